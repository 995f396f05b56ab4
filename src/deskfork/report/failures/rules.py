"""All rules, and what is printed of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from deskfork.report.failures import gui, ide_bench
from deskfork.report.failures.played import Evidence, Played


@dataclass(frozen=True)
class Rule:
    """One failure mode."""

    name: str
    """As in JSON."""
    title: str
    meaning: str
    """When it holds, with the threshold."""
    source: Literal["IDE-Bench", "deskfork"]
    find: Callable[[Played], list[Evidence]]
    """Returns every place where it holds; none when it does not."""


RULES = (
    Rule("premature_editing", "Premature editing", "fewer than 3 files read before the first edit", "IDE-Bench",
         ide_bench.premature_editing),
    Rule("syntax_error_loop", "Syntax error loop", "3 steps in a row that do not parse", "IDE-Bench",
         ide_bench.syntax_error_loop),
    Rule("infinite_exploration", "Infinite exploration", "more than 15 steps without an edit or a GUI act", "IDE-Bench",
         ide_bench.infinite_exploration),
    Rule("large_risky_edit", "Large risky edit", "more than 50 lines written in one edit", "IDE-Bench",
         ide_bench.large_risky_edit),
    Rule("iteration_exhaustion", "Iteration exhaustion", "ended by the limit on steps", "IDE-Bench",
         ide_bench.iteration_exhaustion),
    Rule("infrastructure_error", "Infrastructure error", "ended as infra_error or sandbox_lost", "IDE-Bench",
         ide_bench.infrastructure_error),
    Rule("no_successful_edit", "No successful edit", "every step that was to write a file failed", "IDE-Bench",
         ide_bench.no_successful_edit),
    Rule("tool_call_failures", "Tool call failures", "5 or more steps failed, refused or overran", "IDE-Bench",
         ide_bench.tool_call_failures),
    Rule("thrashing", "Thrashing", "more than 4 edits of one file", "IDE-Bench", ide_bench.thrashing),
    Rule("context_loss", "Context loss", "one file read again more than 5 times", "IDE-Bench", ide_bench.context_loss),
    Rule("claimed_success", "Claimed success", "said done, and was not (test misinterpretation)", "IDE-Bench",
         ide_bench.claimed_success),
    Rule("click_without_effect", "Click without effect", "a click that leaves the screen as it was", "deskfork",
         gui.click_without_effect),
    Rule("repeated_action", "Repeated action", "the same action 3 times in a row", "deskfork", gui.repeated_action),
    Rule("typing_into_wrong_window", "Typing into the wrong window",
         "text typed after a click that chose nothing", "deskfork", gui.typing_into_wrong_window),
    Rule("stale_screenshot", "Stale screenshot", "acted on pixels 3 steps or more after the last look", "deskfork",
         gui.stale_screenshot),
    Rule("refused_act", "Refused act", "the action space refused an act", "deskfork", gui.refused_act),
    Rule("timed_out", "Time-out", "a step was interrupted at its time limit", "deskfork", gui.timed_out),
)  # fmt: skip


def failures_of(played: Played) -> dict[str, list[Evidence]]:
    """Return the rules that hold for a trial, by name, with every place that shows it."""
    return {rule.name: found for rule in RULES if (found := rule.find(played))}
