"""Names of keys: what models call them, and what PyAutoGUI on X11 calls them.

Source: PyAutoGUI 0.9.54, `KEYBOARD_KEYS` and `_pyautogui_x11.keyboardMapping`; X11's keysymdef.h.
"""

import difflib
import string

from deskfork.agent.actions.refusal import Refused

_SYMBOLS = frozenset("\t\n\r !\"#$%&'()*+,-./0123456789:;<=>?@[\\]^_`{|}~")
_ELSEWHERE = frozenset(
    """accept browserback browserfavorites browserforward browserhome browserrefresh browsersearch browserstop clear
    convert final fn hanguel hangul hanja junja kana kanji launchapp1 launchapp2 launchmail launchmediaselect modechange
    nexttrack nonconvert playpause prevtrack sleep stop volumedown volumemute volumeup yen command option optionleft
    optionright""".split()  # noqa: SIM905  # two screens of quotes and commas read worse
)
_ON_X11 = frozenset(
    """add alt altleft altright apps backspace capslock ctrl ctrlleft ctrlright decimal del delete divide down end enter
    esc escape execute f1 f10 f11 f12 f13 f14 f15 f16 f17 f18 f19 f2 f20 f21 f22 f23 f24 f3 f4 f5 f6 f7 f8 f9 help home
    insert left multiply num0 num1 num2 num3 num4 num5 num6 num7 num8 num9 numlock pagedown pageup pause pgdn pgup print
    printscreen prntscrn prtsc prtscr return right scrolllock select separator shift shiftleft shiftright space subtract
    tab up win winleft winright""".split()  # noqa: SIM905  # as above
)
KEYBOARD_KEYS = _SYMBOLS | frozenset(string.ascii_lowercase) | _ON_X11 | _ELSEWHERE
"""Every key name that PyAutoGUI knows. Those of other systems do nothing on X11, without a word."""

_ALIASES = {
    "cmd": "win", "command": "win", "super": "win", "super_l": "win", "super_r": "winright", "meta": "win",
    "meta_l": "win", "meta_r": "winright", "windows": "win", "hyper": "win",
    "control": "ctrl", "control_l": "ctrlleft", "control_r": "ctrlright", "ctl": "ctrl", "ctrl_l": "ctrlleft",
    "ctrl_r": "ctrlright", "shift_l": "shiftleft", "shift_r": "shiftright", "alt_l": "altleft", "alt_r": "altright",
    "altgr": "altright", "iso_level3_shift": "altright",
    "option": "alt", "optionleft": "altleft", "optionright": "altright", "opt": "alt",
    "page_up": "pageup", "page_down": "pagedown", "prior": "pageup", "next": "pagedown", "pgdown": "pagedown",
    "back_space": "backspace", "caps_lock": "capslock", "num_lock": "numlock", "scroll_lock": "scrolllock",
    "print_screen": "printscreen", "sys_req": "printscreen", "break": "pause", "linefeed": "enter", "newline": "enter",
    "ins": "insert", "menu": "apps", "arrowleft": "left", "arrowright": "right", "arrowup": "up", "arrowdown": "down",
    "leftarrow": "left", "rightarrow": "right", "uparrow": "up", "downarrow": "down", "iso_left_tab": "tab",
    "spacebar": "space", "exclam": "!", "quotedbl": '"', "numbersign": "#", "dollar": "$", "percent": "%",
    "ampersand": "&", "apostrophe": "'", "quoteright": "'", "quote": "'", "parenleft": "(", "parenright": ")",
    "asterisk": "*", "plus": "+", "comma": ",", "minus": "-", "hyphen": "-", "dash": "-", "period": ".", "dot": ".",
    "slash": "/", "colon": ":", "semicolon": ";", "less": "<", "equal": "=", "equals": "=", "greater": ">",
    "question": "?", "at": "@", "bracketleft": "[", "backslash": "\\", "bracketright": "]", "asciicircum": "^",
    "underscore": "_", "grave": "`", "quoteleft": "`", "backtick": "`", "braceleft": "{", "bar": "|", "pipe": "|",
    "braceright": "}", "asciitilde": "~", "tilde": "~",
    "kp_enter": "enter", "kp_tab": "tab", "kp_space": "space", "kp_home": "home", "kp_end": "end", "kp_left": "left",
    "kp_right": "right", "kp_up": "up", "kp_down": "down", "kp_prior": "pageup", "kp_page_up": "pageup",
    "kp_next": "pagedown", "kp_page_down": "pagedown", "kp_insert": "insert", "kp_delete": "delete", "kp_equal": "=",
    "kp_add": "add", "kp_subtract": "subtract", "kp_multiply": "multiply", "kp_divide": "divide", "kp_separator": ",",
    # X11 finds a keypad digit on the keypad's arrow keys: without Num Lock, num1 would be End.
    **{f"kp_{digit}": digit for digit in string.digits}, **{f"num{digit}": digit for digit in string.digits},
    "kp_decimal": ".", "decimal": ".", "separator": ",",
}  # fmt: skip
_MODIFIERS = frozenset(
    {"ctrl", "ctrlleft", "ctrlright", "alt", "altleft", "altright", "shift", "shiftleft", "shiftright"}
    | {"win", "winleft", "winright"}
)
_CHARACTERS = frozenset(string.printable) - frozenset("\x0b\x0c")
_NAMES = sorted((_ON_X11 | frozenset(_ALIASES)) - _ELSEWHERE)
_SHOWN_CHARS = 40
MAX_CHORD = 6


def key(name: str) -> str:
    """Return PyAutoGUI's name of a key.

    Args:
        name: PyAutoGUI's own, an X11 keysym's as xdotool takes it (`Page_Up`, `KP_Enter`), or another in common use
            (`cmd`, `ArrowLeft`), in any case; or one character, whose case counts.

    Returns:
        A name that works on X11: the keypad's digits become plain ones, and Apple's modifiers the ones in their place.

    Raises:
        Refused: There is no such key, or X11's back end does nothing for it; the text names what is near.
    """
    if len(name) == 1:
        if name in _CHARACTERS:
            return name
        raise Refused(f"there is no key {name!r}: PyAutoGUI presses ASCII characters only")
    wanted = name.strip().lower()
    if len(wanted) == 1 and wanted in _CHARACTERS:
        return name.strip()
    for spelled in (wanted, wanted.replace(" ", "_"), wanted.replace(" ", "").replace("-", "").replace("_", "")):
        if spelled in _ALIASES:
            return _ALIASES[spelled]
        if spelled in _ON_X11:
            return spelled
    shown = f"{name[:_SHOWN_CHARS]!r}"
    if wanted in _ELSEWHERE:
        raise Refused(f"the key {shown} does nothing on this desktop: PyAutoGUI has no such key on X11")
    if "+" in wanted:
        raise Refused(f"{shown} is not one key but several: press them together as a key combination")
    near = difflib.get_close_matches(wanted[:_SHOWN_CHARS], _NAMES, n=1)
    raise Refused(f"there is no key {shown}" + (f"; did you mean {near[0]!r}?" if near else ""))


def together(names: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Return PyAutoGUI's names of keys that are pressed together.

    A capital beside another modifier stands for its key, as in every written shortcut: `Ctrl+A` holds no Shift.

    Raises:
        Refused: One of them is no key, or there are none, or too many.
    """
    if not 1 <= len(names) <= MAX_CHORD:
        raise Refused(f"a key combination has 1 to {MAX_CHORD} keys, not {len(names)}")
    found = [key(name) for name in names]
    if any(name in _MODIFIERS for name in found):
        found = [name.lower() for name in found]
    return tuple(found)


def chord(text: str) -> tuple[str, ...]:
    """Return the keys of a combination as xdotool writes them, in the order in which they go down.

    Args:
        text: Names joined by `+`; a plus at the end, or one alone, is the key: `ctrl+shift+t`, `ctrl++`, `+`.

    Raises:
        Refused: A name is missing or is no key.
    """
    text = text if len(text) == 1 else text.strip()
    plus = text == "+" or text.endswith("++")
    names = text[: -2 if text.endswith("++") else -1].split("+") if plus else text.split("+")
    if plus:
        names = [*(names if names != [""] else []), "+"]
    if any(not name for name in names):
        raise Refused(f"{text[:_SHOWN_CHARS]!r} is no key combination: write names joined by +, as in 'ctrl+shift+t'")
    return together(names)


def typable(text: str) -> str:
    r"""Return the text if all of it can be typed: printable ASCII, tabs and newlines; `\r\n` becomes a newline.

    Raises:
        Refused: PyAutoGUI would leave out a character, which it does without a word.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for place, character in enumerate(text):
        if character not in _CHARACTERS:
            raise Refused(
                f"cannot type {character!r} (U+{ord(character):04X}, character {place + 1} of the text): "
                "PyAutoGUI types printable ASCII, tabs and newlines only"
            )
    return text
