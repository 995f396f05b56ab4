"""AT-SPI's numbers in words.

Source: atspi-constants.h of at-spi2-core 2.46, `AtspiRole` and `AtspiStateType`; the names are those of
`atspi_role_get_name`.
"""

_ROLE_NAMES = (
    "invalid,accelerator label,alert,animation,arrow,calendar,canvas,check box,check menu item,color chooser,"
    "column header,combo box,date editor,desktop icon,desktop frame,dial,dialog,directory pane,drawing area,"
    "file chooser,filler,focus traversable,font chooser,frame,glass pane,html container,icon,image,internal frame,"
    "label,layered pane,list,list item,menu,menu bar,menu item,option pane,page tab,page tab list,panel,"
    "password text,popup menu,progress bar,push button,radio button,radio menu item,root pane,row header,scroll bar,"
    "scroll pane,separator,slider,spin button,split pane,status bar,table,table cell,table column header,"
    "table row header,tearoff menu item,terminal,text,toggle button,tool bar,tool tip,tree,tree table,unknown,viewport,"
    "window,extended,header,footer,paragraph,ruler,application,autocomplete,editbar,embedded,entry,chart,caption,"
    "document frame,heading,page,section,redundant object,form,link,input method window,table row,tree item,"
    "document spreadsheet,document presentation,document text,document web,document email,comment,list box,grouping,"
    "image map,notification,info bar,level bar,title bar,block quote,audio,video,definition,article,landmark,log,"
    "marquee,math,rating,timer,static,math fraction,math root,subscript,superscript,description list,"
    "description term,description value,footnote,content deletion,content insertion,mark,suggestion,"
    "push button menu"
)
ROLES = tuple(_ROLE_NAMES.split(","))
"""The names of roles, by number."""

ACTIVE, BUSY, CHECKED, COLLAPSED, DEFUNCT, EDITABLE, ENABLED = 1, 3, 4, 5, 6, 7, 8
EXPANDED, FOCUSABLE, FOCUSED, ICONIFIED, PRESSED, SELECTED, SENSITIVE, SHOWING = 10, 11, 12, 15, 20, 23, 24, 25
VISIBLE, INDETERMINATE, HAS_POPUP, READ_ONLY = 30, 32, 42, 43
REPORTED = {
    ACTIVE: "active",
    BUSY: "busy",
    CHECKED: "checked",
    COLLAPSED: "collapsed",
    EDITABLE: "editable",
    EXPANDED: "expanded",
    FOCUSABLE: "focusable",
    FOCUSED: "focused",
    PRESSED: "pressed",
    SELECTED: "selected",
    INDETERMINATE: "indeterminate",
    HAS_POPUP: "has-popup",
    READ_ONLY: "read-only",
}
"""The states that are told, besides `disabled`; what is listed at all is showing."""


def role_name(number: int) -> str:
    """Return a role's name; one that came with a later AT-SPI is `extended`."""
    return ROLES[number] if number < len(ROLES) else "extended"


def state_names(bits: int, *, is_control: bool) -> list[str]:
    """Return the names of the states in a set, and `disabled` for a control that cannot be used."""
    names = [name for bit, name in REPORTED.items() if bits >> bit & 1]
    if is_control and not bits >> SENSITIVE & 1 and not bits >> ENABLED & 1:
        names.append("disabled")
    return names
