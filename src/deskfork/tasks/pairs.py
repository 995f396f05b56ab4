"""Two tasks with one goal, worded abstract and verbose: which belong together, and in which order they are shown."""

from collections.abc import Iterable

from deskfork.tasks.summary import TaskSummary


def pair_name(task: str, counterpart: str | None, counterparts: dict[str, str | None]) -> str:
    """Return the name of the pair that `task` belongs to, the smaller of both ids, or its own id when it has no pair.

    Args:
        task: Its id.
        counterpart: The task that it names as its other wording.
        counterparts: The same for all tasks; a pair is one only when both name each other.
    """
    if counterpart is None or counterpart == task or counterparts.get(counterpart) != task:
        return task
    return min(task, counterpart)


def in_pairs(summaries: Iterable[TaskSummary]) -> list[TaskSummary]:
    """Return `summaries` with the two of a pair side by side, abstract first; what can be run comes before the rest."""
    summaries = list(summaries)
    counterparts = {summary.id: summary.counterpart for summary in summaries}
    names = {summary.id: pair_name(summary.id, summary.counterpart, counterparts) for summary in summaries}
    can_run = {names[summary.id] for summary in summaries if summary.runnable}

    def place(summary: TaskSummary) -> tuple[bool, tuple[str, ...], str, str, str]:
        pair = names[summary.id]
        # What has no pair that is known is grouped by its tool, then by its wording.
        tools = () if pair in can_run else summary.related_apps[:1]
        return pair not in can_run, tools, pair, summary.wording or "", summary.id

    return sorted(summaries, key=place)
