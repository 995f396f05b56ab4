"""Wire models of the observer; the host parses the same JSON with models of its own."""

from typing import Annotated

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Services(_Wire):
    """Which of the guest's services answer."""

    x: bool
    """The X server serves :0."""
    session: bool
    """A window manager runs and the panel is on the screen."""
    gateway: bool
    """The kernel gateway answers, and its prespawned kernel is idle."""
    sshd: bool


class Health(_Wire):
    """Reply of GET /health."""

    status: str
    """Always "ok": the observer itself works."""
    boot_id: str
    services: Services
    ssh_host_key: str
    """One line, `ssh-ed25519 AAAA...`."""
    time_ns: int
    """The guest's wall clock, nanoseconds since the epoch."""


class RekeyRequest(_Wire):
    """Body of POST /rekey: everything in which two forks of one template must differ."""

    token: Annotated[str, Field(pattern=r"^[!-~]{16,512}$")]
    """The bearer token that holds from now on: printable ASCII without spaces."""
    time_ns: Annotated[int, Field(gt=0)]
    """What the wall clock is set to."""
    entropy: Annotated[Base64Bytes, Field(min_length=16, max_length=512)]
    """Random bytes of the host for the kernel's random number generator."""
    hostname: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    machine_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class RekeyReply(_Wire):
    """Reply of POST /rekey."""

    time_ns: int
    """The wall clock after it was set."""


class Pointer(_Wire):
    """Where the pointer is, pixels from the top left corner."""

    x: int
    y: int


class Window(_Wire):
    """One window that the window manager lists, without its frame."""

    id: int
    title: str
    wm_class: str
    pid: int | None
    x: int
    y: int
    width_px: int
    height_px: int
    active: bool


class Desktop(_Wire):
    """Reply of GET /desktop."""

    width_px: int
    height_px: int
    pointer: Pointer
    active_window: str | None
    """Title of the window that has the focus."""
    windows: list[Window]
    """From the bottom of the stack to its top."""


class AccessibleNode(_Wire):
    """One object that shows on the screen."""

    depth: int
    """How many of the nodes before it it lies in."""
    role: str
    """AT-SPI's name of its role, such as `push button`."""
    name: str
    text: str
    """What is in it, where that is not its name: the text of an entry or a terminal, the value of a slider."""
    states: list[str]
    """Such as `focused`, `checked`, `selected`, `expanded`, `editable`, `disabled`."""
    x: int
    """Pixels from the screen's left edge; like the others, of what of it is on the screen."""
    y: int
    width_px: int
    height_px: int
    app: str
    """The application's name; empty for a window of which no application tells anything but X its place."""
    clickable: bool
    """Whether it is something to click on or to type into."""


class AccessibilityTree(_Wire):
    """Reply of GET /accessibility."""

    nodes: list[AccessibleNode]
    """Parents before their children."""
    is_partial: bool
    """Whether an application did not answer in time, or there was more than is told."""
    duration_s: float
    """What looking took in the guest."""
