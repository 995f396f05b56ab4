"""What a report says in words and numbers, whatever it is written in."""

from collections.abc import Mapping, Sequence

from deskfork.report.aggregate import AgentReport
from deskfork.report.pairs import PairReport, mean
from deskfork.report.trial import TrialReport

MAX_REASONS = 8
"""How many reasons for leaving tasks out are told."""
_MAX_NAMED = 3
_REASON_CHARS = 200
_UUID_CHARS = 36
_SHORT_CHARS = 8


def number(score: float | None) -> str:
    """Return a score, which may be absent."""
    return "absent" if score is None else f"{score:.3f}"


def short_id(task: str) -> str:
    """Return an id for a crowded table: long ones by their beginning."""
    return task[:_SHORT_CHARS] if len(task) == _UUID_CHARS else task


def notes_on(trials: Sequence[TrialReport]) -> list[str]:
    """Return a sentence for each trial that ended badly or without a score, and for each whose two scores differ."""
    notes = []
    for trial in trials:
        if trial.reason:
            notes.append(f"{trial.task}: {trial.reason[:_REASON_CHARS]}")
        if trial.has_difference and trial.difference:
            notes.append(f"{trial.task}: score and strict differ: {trial.difference[:_REASON_CHARS]}")
    return notes


def skipped_lines(skipped: Mapping[str, str]) -> list[str]:
    """Return a line for each reason why tasks were left out, the first few of many."""
    groups: dict[str, list[str]] = {}
    for task, why in skipped.items():
        groups.setdefault(why.removeprefix(f"task {task} ").removeprefix(f"task {task}: "), []).append(task)
    lines = [f"skipped {_some(tasks)}: {why[:_REASON_CHARS]}" for why, tasks in list(groups.items())[:MAX_REASONS]]
    if left := [task for tasks in list(groups.values())[MAX_REASONS:] for task in tasks]:
        lines.append(f"skipped {len(left)} more for other reasons; `deskfork task list` says which")
    return lines


def _some(tasks: Sequence[str]) -> str:
    if len(tasks) == 1:
        return tasks[0]
    named = ", ".join(map(short_id, tasks[:_MAX_NAMED]))
    return f"{len(tasks)} tasks ({named}{', …' if len(tasks) > _MAX_NAMED else ''})"


def agent_sentence(agent: AgentReport) -> str:
    """Return one line about all trials of an agent."""
    means = "no score" if agent.mean_score is None else f"mean score {agent.mean_score:.3f}"
    strict = "" if agent.mean_strict_score is None else f", mean strict score {agent.mean_strict_score:.3f}"
    if agent.differing:
        strict += f" ({agent.differing} differ)"
    absent = f", {agent.absent} without a score (not counted in it)" if agent.absent else ""
    cost = f", {agent.cost_usd:.4f} USD" if agent.cost_usd else ""
    tokens = f", {agent.tokens} tokens" if agent.tokens else ""
    return f"{agent.agent}: {means} over {agent.scored} of {agent.trials} trials{absent}{strict}{tokens}{cost}"


def pair_rows(pairs: Sequence[PairReport]) -> list[list[str]]:
    """Return the table of pairs: headers, a row for each pair, and for each agent the mean over its pairs."""
    rows = [["pair: abstract, verbose", "agent", "abstract", "strict", "verbose", "strict"]]
    rows += [
        [f"{short_id(pair.abstract.task)}, {short_id(pair.verbose.task)}", pair.agent, *map(number, _scores(pair))]
        for pair in pairs
    ]
    for agent in dict.fromkeys(pair.agent for pair in pairs):
        columns = zip(*(_scores(pair) for pair in pairs if pair.agent == agent), strict=True)
        means = [mean([score for score in column if score is not None]) for column in columns]
        rows.append([f"mean of {sum(pair.agent == agent for pair in pairs)}", agent, *map(number, means)])
    return rows


def _scores(pair: PairReport) -> tuple[float | None, ...]:
    return (
        pair.abstract.mean_score,
        pair.abstract.mean_strict_score,
        pair.verbose.mean_score,
        pair.verbose.mean_strict_score,
    )
