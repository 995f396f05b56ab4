"""Guards `checkpoint` and `restore` where a person would look: on the screen, and in what the kernel remembers."""

from PIL import Image, ImageChops, ImageDraw

from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import Sandbox
from deskfork.sandbox.provider import VmProvider

SOON_S = 60.0
CLOCK_PX = (1200, 766, 1280, 800)
"""Where the panel shows the time."""
OPEN_WINDOW = """
import subprocess, sys
program = "import tkinter; root = tkinter.Tk(); root.title('kept'); root.geometry('300x200+200+150'); root.mainloop()"
window = subprocess.Popen([sys.executable, "-c", program])
"""


def titles(sandbox: Sandbox) -> list[str]:
    return [window.title for window in sandbox.desktop().windows]


def still_screen(sandbox: Sandbox) -> Image.Image:
    """Return the screen without its clock, once two looks at it have shown the same."""
    last: Image.Image | None = None

    def look() -> Image.Image | None:
        nonlocal last
        image = sandbox.screenshot()
        ImageDraw.Draw(image).rectangle(CLOCK_PX, "black")
        is_still = last is not None and difference(last, image) is None
        last = image
        return image if is_still else None

    found = wait_until(look, Deadline.after(30), interval_s=0.5)
    assert found is not None, "the screen does not come to rest"
    return found


def difference(one: Image.Image, other: Image.Image) -> tuple[int, int, int, int] | None:
    """Return the box around all pixels that differ; None if none does."""
    return ImageChops.difference(one, other).getbbox()


def test_restore_brings_back_the_screen_and_the_kernel(provider: VmProvider) -> None:
    with provider.fork("desktop") as sandbox:
        empty = still_screen(sandbox)
        sandbox.run_cell(OPEN_WINDOW, timeout_s=SOON_S)
        assert wait_until(lambda: "kept" in titles(sandbox), Deadline.after(SOON_S), interval_s=0.2)
        before = still_screen(sandbox)
        assert difference(empty, before) is not None

        taken = sandbox.checkpoint()
        # All of the guest's memory that is not zero: more than a desktop needs to run, less than it has.
        assert 100 * 2**20 < taken.bytes_written < 2100 * 2**20
        assert taken.duration_s > 0

        sandbox.run_cell("window.kill(); window.wait(); del window", timeout_s=SOON_S)
        assert wait_until(lambda: "kept" not in titles(sandbox), Deadline.after(SOON_S), interval_s=0.2)
        assert difference(before, still_screen(sandbox)) is not None

        sandbox.restore(taken)
        assert difference(before, still_screen(sandbox)) is None
        assert "kept" in titles(sandbox)
        assert sandbox.run_cell("print(window.poll())", timeout_s=SOON_S).stdout == "None\n"
        # It is the process itself that came back, not its picture.
        sandbox.run_cell("window.kill(); window.wait()", timeout_s=SOON_S)
        assert wait_until(lambda: "kept" not in titles(sandbox), Deadline.after(SOON_S), interval_s=0.2)
