"""Performing structured acts in the guest: what `computer_13` and the computer tools have in common."""

from collections import Counter
from collections.abc import Mapping, Sequence

from smolagents.utils import AgentExecutionError

from deskfork.agent.actions.acts import Act, Done, Fail, Wait, placed
from deskfork.agent.actions.programs import program
from deskfork.agent.actions.space import Parts
from deskfork.agent.executor import SilentLogger, failure
from deskfork.agent.hands import Acted
from deskfork.core.types import CellResult
from deskfork.records.trajectory import LineClass


def note(acted: Acted, line: str, kind: LineClass) -> None:
    """Note one act of a step, a line of JSON."""
    acted.code = line if acted.code is None else f"{acted.code}\n{line}"
    acted.lines += Counter({kind: 1})


def perform(acts: Sequence[Act], parts: Parts) -> None:
    """Note the acts of a reply, and perform those that are for the guest.

    All are placed before the first is performed: a reply is refused as a whole.

    Raises:
        Refused: A place is off the screen, or names a mark that is not shown.
        AgentExecutionError: PyAutoGUI failed in the guest, or took too long.
        KernelLost: The kernel died in it.
        TransportError: The kernel did not answer as agreed.
    """
    for act in acts:
        if not isinstance(act, Done | Fail):
            note(parts.hands.acted, act.model_dump_json(exclude_none=True), "wait" if isinstance(act, Wait) else "gui")
    due = [placed(act, parts.view.frame) for act in acts if not isinstance(act, Done | Fail)]
    if due:
        result = run_block(program(due), parts, frozenset())
        if wrong := failure(result, parts.hands):
            # What can go wrong was checked before: the display is gone, say, which the agent may have ended itself.
            raise AgentExecutionError(wrong, SilentLogger())


def run_block(code: str, parts: Parts, marks: frozenset[int]) -> CellResult:
    """Run code that drives the desktop in names of its own, of which none is left afterwards.

    Raises:
        KernelLost: The kernel died in it.
        TransportError: The kernel did not answer as agreed.
    """
    view = parts.view
    known = {f"mark_{number}": view.shown(*view.marks[number]) for number in sorted(marks & view.marks.keys())}
    imports = "import pyautogui, time\npyautogui.FAILSAFE = False\n"
    return parts.hands.run(f"{imports}{isolated(code, known, ('pyautogui', 'time'))}del pyautogui, time\n")


def isolated(code: str, values: Mapping[str, object], names: tuple[str, ...] = ()) -> str:
    """Return a statement that runs `code` in names of its own: `values` by their repr, and `names` of the cell's."""
    known = "".join(f"{name!r}: {name}, " for name in names)
    return f"exec(compile({code!r}, '<block>', 'exec'), {{{known}**{dict(values)!r}}})\n"
