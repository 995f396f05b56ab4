"""Values that cross layers: results of guest commands and cells."""

from dataclasses import dataclass

FINAL_ANSWER_MIME = "application/vnd.deskfork.final-answer+json"
"""Display-data type by which guest code hands over its final answer, as JSON."""


@dataclass(frozen=True)
class CommandResult:
    """What one guest program did, whatever its exit code."""

    argv: tuple[str, ...]
    exit_code: int
    """The program's own code; 127 when there is no such program, -1 when it was killed at its deadline."""
    stdout: str
    stderr: str
    duration_s: float
    timed_out: bool = False


@dataclass(frozen=True)
class CellError:
    """An exception raised by a cell."""

    name: str
    value: str
    traceback: str
    """Without ANSI codes."""


@dataclass(frozen=True)
class RichOutput:
    """One displayed object of a cell."""

    mime: str
    """The richest of what the kernel sent: FINAL_ANSWER_MIME, image/png, image/jpeg, text/html or text/plain."""
    content: str | bytes
    """Bytes for images, text for all else."""
    text: str = ""
    """The text/plain form that came with it, if any."""


@dataclass(frozen=True)
class CellResult:
    """What one cell did: output is kept whether it failed, overran or neither."""

    stdout: str
    stderr: str
    outputs: tuple[RichOutput, ...]
    duration_s: float
    error: CellError | None = None
    timed_out: bool = False
    """The deadline passed and the kernel obeyed the interrupt."""
    is_truncated: bool = False
    """Output beyond the size limit was dropped."""


@dataclass(frozen=True)
class Window:
    """One top-level window as the guest's window manager lists it."""

    title: str
    wm_class: str
    x: int
    y: int
    width_px: int
    height_px: int
    is_active: bool


@dataclass(frozen=True)
class DesktopState:
    """What is on the guest's screen, as the guest itself tells it."""

    width_px: int
    height_px: int
    pointer_x: int
    pointer_y: int
    windows: tuple[Window, ...]


@dataclass(frozen=True)
class AccessibleNode:
    """One object on the guest's screen, as its application describes it to assistive technology."""

    depth: int
    """How many of the nodes before it it lies in; a window's is 0."""
    role: str
    """AT-SPI's name of its role, such as `push button`."""
    name: str
    text: str
    """What is in it, where that is not its name: the text of an entry or a terminal, the value of a slider."""
    states: tuple[str, ...]
    """Such as `focused`, `checked`, `selected`, `expanded`, `editable`, `disabled`."""
    x: int
    """Left edge of the part that is on the screen, pixels."""
    y: int
    """Top edge of that part, pixels."""
    width_px: int
    height_px: int
    app: str
    """The application's name; empty for a window of which no application tells anything but X its place."""
    is_clickable: bool
    """Whether it is something to click on or to type into."""


@dataclass(frozen=True)
class AccessibilityTree:
    """What can be seen on the guest's screen, as its applications tell it: data, not truth."""

    nodes: tuple[AccessibleNode, ...]
    """Window by window from the top of the stack to its bottom; parents before their children."""
    is_partial: bool
    """Whether an application did not answer in time, or there was more than is told."""
    seconds: float
    """What looking took in the guest."""
