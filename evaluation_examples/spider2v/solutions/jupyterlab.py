"""What a person does with JupyterLab in a maximised Chromium: all acts by mouse and keyboard.

Each act waits for what shows that it worked: the screen, a window's title, what the server and the disk say. These are
only read here.
"""

# %%
import json
import subprocess
import time
import urllib.request
from pathlib import Path

import pyautogui
from PIL import Image, ImageChops, ImageGrab
from Xlib import X, display
from Xlib.ext import xtest

pyautogui.PAUSE = 0.05
WAIT_S = 900  # what takes seconds takes an emulated guest minutes, where four share two cores
DISPLAY = display.Display()
DESKTOP = Path.home() / "Desktop"
MENU_BAR = (800, 100)  # right of JupyterLab's menus, where nothing is
FIRST_TAB = (340, 133)
PALETTE_FIELD = (394, 148), (600, 134)  # on the frame of the command palette's search field
PALETTE_FIRST = (400, 169, 880, 189)  # the row that Enter runs
PALETTE_REST = (400, 240, 880, 400)  # where the list goes on when it has more than three rows
SELECTED = (25, 118, 210)  # JupyterLab's blue, of a list's chosen row
SPINNER, ORANGE = (745, 415, 795, 470), (243, 118, 38)  # where a file that loads has JupyterLab's turning arc
REST_PX = 4_000  # a list there changes more than what loses the keyboard to it
CARET_PX = 80  # a blinking caret changes fewer pixels than anything else that moves


def press(*keys):
    """Press keys together, named as in PyAutoGUI.

    PyAutoGUI waits for the X server between press and release. On a busy machine that takes so long that the key
    repeats; here both reach the server at once.
    """
    codes = [pyautogui.platformModule.keyboardMapping[key] for key in keys]
    for code in codes:
        xtest.fake_input(DISPLAY, X.KeyPress, code)
    for code in reversed(codes):
        xtest.fake_input(DISPLAY, X.KeyRelease, code)
    DISPLAY.sync()


def write(text):
    """Type a text."""
    for character in text:
        press(*(["shift"] if pyautogui.isShiftCharacter(character) else []), character)


def happens(probe, timeout_s):
    """Return the first true value of `probe()`, or its last one when the time is over."""
    deadline = time.monotonic() + timeout_s
    while True:
        begun_at = time.monotonic()
        if (found := probe()) or begun_at > deadline:
            return found
        # Looking must not take an emulated processor from what is waited for.
        time.sleep(max(0.25, 2 * (time.monotonic() - begun_at)))


def wait(what, probe, timeout_s=WAIT_S):
    """Return the first true value of `probe()`."""
    if not (found := happens(probe, timeout_s)):
        raise TimeoutError(f"{what}: not within {timeout_s} s; windows: {titles()}")
    return found


def titles():
    """Return the titles of all windows."""
    listing = subprocess.run(["wmctrl", "-l"], capture_output=True, text=True, timeout=60).stdout
    return [line.split(None, 3)[-1] for line in listing.splitlines()]


def active_title():
    """Return the title of the window that has the keyboard."""
    asked = subprocess.run(["xdotool", "getactivewindow", "getwindowname"], capture_output=True, text=True, timeout=60)
    return asked.stdout.strip()


def grab(box=None):
    """Return the screen, or what is in a small box of it (left, top, right, bottom), which is quicker."""
    if box is None:
        return ImageGrab.grab(xdisplay="")
    size = box[2] - box[0], box[3] - box[1]
    image = DISPLAY.screen().root.get_image(*box[:2], *size, X.ZPixmap, 0xFFFFFFFF)
    return Image.frombytes("RGB", size, image.data, "raw", "BGRX")


def pixel(place):
    """Return the colour of one pixel."""
    return grab((*place, place[0] + 1, place[1] + 1)).getpixel((0, 0))


def changed(before, after):
    """Return how many pixels of two pictures differ."""
    difference = ImageChops.difference(before, after).convert("L")
    return sum(difference.histogram()[16:])


def still(since=None, least_px=CARET_PX + 1):
    """Return the screen once it stands still; with `since`, a picture of it, not before it differs from that."""
    earlier = grab()

    def look():
        nonlocal earlier
        time.sleep(0.5)
        before, earlier = earlier, grab()
        stands = changed(before, earlier) <= CARET_PX
        return stands and (since is None or changed(since, earlier) >= least_px)

    wait("the screen to change and come to rest", look)
    return earlier


def is_like(found, wanted):
    """Whether two colours are the same to the eye."""
    return all(abs(one - other) <= 6 for one, other in zip(found, wanted, strict=True))


def count_colour(picture, rgb):
    """Return how many pixels of a picture are of that colour."""
    counts = picture.getcolors(picture.width * picture.height)
    return sum(count for count, found in counts if is_like(found, rgb))


def has_dialog():
    """Whether a dialog dims JupyterLab's page."""
    return max(pixel(MENU_BAR)) < 230


def focus_page():
    """Give JupyterLab's page the keyboard, and what its first tab shows the commands."""
    wait("JupyterLab in front", lambda: "JupyterLab" in active_title())
    wait("JupyterLab's menu bar", lambda: min(pixel(MENU_BAR)) > 230)
    pyautogui.click(*FIRST_TAB)
    # Off the tab, or its tooltip will cover what is looked at.
    pyautogui.moveTo(*MENU_BAR)
    still()


def palette(command, of=None):
    """Run the command that the command palette finds for these words; they must leave it no more than three.

    The palette closes of its own when something else on the page takes the keyboard, a notebook that has just got its
    kernel for one: then it is opened anew. A command of a document, `of`, is not found where a Launcher that came late
    stands before it: then the document is brought to the front.
    """
    rest = grab(PALETTE_REST)
    for _ in range(3):
        press("ctrl", "shift", "c")
        if not happens(is_palette_open, WAIT_S / 3):
            continue
        write(command)
        if happens(lambda rest=rest: is_row_chosen() and changed(rest, grab(PALETTE_REST)) < REST_PX, WAIT_S / 3):
            still()
            if is_palette_open():
                press("enter")
                wait("the palette to close", lambda: not is_palette_open())
                return
        elif of is not None and not active_title().startswith(of.name[:10]):
            press("escape")
            still()
            open_path(of.name)
            rest = grab(PALETTE_REST)
    raise TimeoutError(f"the palette did not find '{command}'; windows: {titles()}")


def is_palette_open():
    """Whether the palette's search field is there."""
    return all(is_like(pixel(place), (184, 215, 235)) for place in PALETTE_FIELD)


def is_row_chosen():
    """Whether the palette's first row is the chosen one."""
    return count_colour(grab(PALETTE_FIRST), SELECTED) > 5_000


def servers():
    """Return what each Jupyter server that runs has written about itself."""
    written = (Path.home() / ".local/share/jupyter/runtime").glob("jpserver-*.json")
    known = [json.loads(text) for path in written if (text := path.read_text())]
    return [server for server in known if Path(f"/proc/{server['pid']}").exists()]


def kernel_of(path):
    """Return the state of an open notebook's kernel, None before there is one."""
    for server in servers():
        with urllib.request.urlopen(f"{server['url']}api/sessions", timeout=60) as reply:
            for session in json.load(reply):
                if Path(server["root_dir"]) / session["path"] == Path(path):
                    return session["kernel"]["execution_state"]
    return None


def wait_shown(path):
    """Wait until JupyterLab shows a file, whose name the window's title begins with."""
    name = Path(path).name[:10]
    wait(f"{name} in the window's title", lambda: active_title().startswith(name))
    wait(f"{name} to be loaded", lambda: count_colour(grab(SPINNER), ORANGE) == 0)
    still()


def wait_kernel(path):
    """Wait until an open notebook's kernel is at rest."""
    wait(f"the kernel of {path}", lambda: kernel_of(path) == "idle")
    still()


def open_path(path):
    """Open a file in JupyterLab by its path below the server's folder."""
    for _ in range(3):
        palette("open from path")
        if happens(has_dialog, 120):
            break
    wait("the dialog that asks for a path", has_dialog, timeout_s=30)
    dialog = still()
    write(path)
    still(dialog)
    press("enter")
    wait("the dialog to close", lambda: not has_dialog())
    wait_shown(path)


def notebook(path):
    """Return a notebook as it is on the disk, None while it is being written."""
    try:
        return json.loads(Path(path).read_text())
    except (ValueError, FileNotFoundError):
        return None


def written_at(path):
    """Return when a file was written, None when there is none."""
    return Path(path).stat().st_mtime_ns if Path(path).exists() else None


def save(path, is_as_wanted, timeout_s=WAIT_S):
    """Press Ctrl+S until the notebook on the disk is as wanted.

    Where the server's reply comes late, JupyterLab takes what it wrote itself for somebody else's, and asks at the next
    save whether that is to be overwritten.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        before = written_at(path)
        press("ctrl", "s")
        happens(lambda before=before: has_dialog() or written_at(path) != before, 30)
        if has_dialog():
            still()
            press("enter")
            happens(lambda before=before: written_at(path) != before, 30)
        if written_at(path) != before:
            wait(f"{path} to be whole", lambda: notebook(path))
            if is_as_wanted(notebook(path)):
                return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path} was not saved as wanted in {timeout_s} s")
        still()


def has_run(saved):
    """Whether each code cell of a notebook has been run."""
    return all(cell["execution_count"] for cell in saved["cells"] if cell["cell_type"] == "code" and cell["source"])


def focus_terminal():
    """Click into the desktop's terminal window, which has the keyboard then."""

    def window():
        listing = subprocess.run(["wmctrl", "-lxG"], capture_output=True, text=True, timeout=60).stdout
        rows = [line.split() for line in listing.splitlines()]
        return next((row for row in rows if "terminal" in row[6].lower()), None)

    row = wait("a terminal window", window)
    left, top, width, height = map(int, row[2:6])
    still()
    pyautogui.click(left + width // 2, top + height // 2)
    asked = ["xdotool", "getactivewindow"]
    wait(
        "the terminal in front",
        lambda: int(subprocess.run(asked, capture_output=True, text=True, timeout=60).stdout or 0) == int(row[0], 16),
    )
    still()
