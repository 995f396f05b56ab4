"""The failure modes of IDE-Bench, as far as they apply to agents on a desktop, with IDE-Bench's own thresholds.

An edit is a step that writes a file; what is written through the GUI is not seen, so agents that only drive the GUI
make none. Of the twelve:

- *Wrong file targeting* (more than half of the edits fail, less than 30 % of the files explored) is left out: a
  desktop has no set of files that belong to the task, so no share of it can be explored.
- *Iteration exhaustion* is the run's own limit on steps in the place of IDE-Bench's 100.
- *Test misinterpretation* (says done, and asserts at the edges fail) is: says done, and the score is no success. An
  evaluator of ours does not tell which of its checks are edges.
- *Infinite exploration* does not count steps that drive the GUI, which is how a task may be edited here; it needs
  more than 15 steps, as many as trials have by default.
- *Tool call failures* are steps that failed, were refused or overran their time.

Source: IDE-Bench, the table of failure modes; thresholds are the paper's.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator

from deskfork.report.failures.played import Evidence, Played, Turn

READS_BEFORE_EDIT = 3
SYNTAX_ERRORS_IN_A_ROW = 3
STEPS_WITHOUT_EDIT = 15
EDIT_LINES = 50
FAILED_STEPS = 5
EDITS_OF_ONE_FILE = 4
REREADS_OF_ONE_FILE = 5
_SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError)\b", re.MULTILINE)
_NOT_PYTHON = "is not Python"
_STEP_LIMIT = re.compile(r"limit of \d+ steps")


def premature_editing(played: Played) -> list[Evidence]:
    """Find a first edit before which fewer than 3 files were read; those read in the same step count as read."""
    read: set[str] = set()
    for turn in played.turns:
        read |= set(turn.touched.read)
        if turn.touched.written:
            return [Evidence(turn.number, _counted(len(read), "file"))] if len(read) < READS_BEFORE_EDIT else []
    return []


def syntax_error_loop(played: Played) -> list[Evidence]:
    """Find the third of at least 3 steps in a row whose code did not parse."""
    return [
        Evidence(turn.number) for turn, length in _streaks(played, _is_syntax_error) if length == SYNTAX_ERRORS_IN_A_ROW
    ]


def _is_syntax_error(turn: Turn) -> bool:
    # Refused is what the guards could not parse; a cell's own exception stands at the start of a line.
    return _NOT_PYTHON in (turn.record.refused or "") or bool(_SYNTAX.search(turn.record.error or ""))


def infinite_exploration(played: Played) -> list[Evidence]:
    """Find the 16th of more than 15 steps in a row that neither wrote a file nor drove the GUI."""
    streaks = _streaks(played, lambda turn: not turn.touched.written and not turn.deeds.drives)
    return [Evidence(turn.number) for turn, length in streaks if length == STEPS_WITHOUT_EDIT + 1]


def large_risky_edit(played: Played) -> list[Evidence]:
    """Find edits of which the code holds more than 50 lines of text in one piece."""
    return [
        Evidence(turn.number, f"{turn.touched.lines} lines, {turn.touched.written[0]}")
        for turn in played.turns
        if turn.touched.written and turn.touched.lines > EDIT_LINES
    ]


def iteration_exhaustion(played: Played) -> list[Evidence]:
    """Find that the trial ended by its limit on steps."""
    is_out = played.status == "limit" and _STEP_LIMIT.match(played.ending)
    return [Evidence(played.last_step, played.ending)] if is_out else []


def infrastructure_error(played: Played) -> list[Evidence]:
    """Find that our machinery failed, or the machine was lost."""
    return [Evidence(played.last_step, played.status)] if played.status in ("infra_error", "sandbox_lost") else []


def no_successful_edit(played: Played) -> list[Evidence]:
    """Find that all steps that were to write a file failed."""
    edits = [turn for turn in played.turns if turn.touched.written]
    if not edits or not all(turn.has_failed for turn in edits):
        return []
    return [Evidence(edits[-1].number, f"{_counted(len(edits), 'edit')} tried")]


def tool_call_failures(played: Played) -> list[Evidence]:
    """Find the 5th step that failed, was refused or overran its time."""
    failed = [turn for turn in played.turns if turn.has_failed]
    return [Evidence(failed[FAILED_STEPS - 1].number, f"{len(failed)} in all")] if len(failed) >= FAILED_STEPS else []


def thrashing(played: Played) -> list[Evidence]:
    """Find the 5th step that wrote the same file."""
    written = ((turn.number, path) for turn in played.turns for path in turn.touched.written)
    return list(_too_often(written, EDITS_OF_ONE_FILE))


def context_loss(played: Played) -> list[Evidence]:
    """Find the 7th step that read the same file: it was read again more than 5 times."""
    read = ((turn.number, path) for turn in played.turns for path in turn.touched.read)
    return list(_too_often(read, 1 + REREADS_OF_ONE_FILE))


def claimed_success(played: Played) -> list[Evidence]:
    """Find that the agent said it was done, and the score is no success."""
    is_claim = played.self_report == "done" and played.is_success is False
    return [Evidence(played.last_step)] if is_claim else []


def _too_often(uses: Iterator[tuple[int, str]], allowed: int) -> Iterator[Evidence]:
    counts: Counter[str] = Counter()
    for step, path in uses:
        counts[path] += 1
        if counts[path] == allowed + 1:
            yield Evidence(step, path)


def _streaks(played: Played, holds: Callable[[Turn], bool]) -> Iterator[tuple[Turn, int]]:
    """Yield each turn for which something holds, with how many in a row it is by then."""
    length = 0
    for turn in played.turns:
        length = length + 1 if holds(turn) else 0
        if length:
            yield turn, length


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
