"""Choosing tasks from a list by what is known of them."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Literal

from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError
from deskfork.tasks.summary import TaskSummary

MAX_SHOWN = 25
"""How many of the values that exist a refusal names."""


class Choice(StrictModel):
    """What tasks are wanted; everything given must hold, and what is empty says nothing."""

    ids: tuple[str, ...] = ()
    """Beginnings of ids, of which one must be the task's."""
    tags: tuple[str, ...] = ()
    """All of them."""
    apps: tuple[str, ...] = ()
    """Tools that the task is about, all of them."""
    evaluators: tuple[str, ...] = ()
    """Metrics that its evaluator uses, all of them."""
    wording: Literal["abstract", "verbose"] | None = None
    is_runnable: bool = False
    """Only those that can be run here."""


def choose(summaries: Sequence[TaskSummary], choice: Choice) -> list[TaskSummary]:
    """Return those of `summaries` that `choice` wants, in their order.

    Raises:
        ConfigError: A tag, tool, metric or id is no task's; says which there are.
    """
    _check(choice.tags, {tag for summary in summaries for tag in summary.tags}, "tag")
    _check(choice.apps, {app for summary in summaries for app in summary.related_apps}, "tool")
    _check(choice.evaluators, {metric for summary in summaries for metric in summary.metrics}, "evaluator")
    for beginning in choice.ids:
        if not any(summary.id.startswith(beginning) for summary in summaries):
            raise ConfigError(f"no task's id begins with {beginning!r}; `deskfork task list` shows them all")
    return [summary for summary in summaries if _is_wanted(summary, choice)]


def split_words(given: Iterable[str]) -> tuple[str, ...]:
    """Return the words of an option that may be repeated, and may hold several with commas between."""
    return tuple(dict.fromkeys(word.strip() for text in given for word in text.split(",") if word.strip()))


def _is_wanted(summary: TaskSummary, choice: Choice) -> bool:
    return (
        (not choice.ids or summary.id.startswith(choice.ids))
        and set(choice.tags) <= set(summary.tags)
        and set(choice.apps) <= set(summary.related_apps)
        and set(choice.evaluators) <= set(summary.metrics)
        and (choice.wording is None or summary.wording == choice.wording)
        and (summary.runnable or not choice.is_runnable)
    )


def _check(wanted: Sequence[str], known: set[str], kind: str) -> None:
    for word in wanted:
        if word in known:
            continue
        close = difflib.get_close_matches(word, known, n=3)
        shown = close or sorted(known)[:MAX_SHOWN]
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(shown) or 'none'}"
        raise ConfigError(f"no task has the {kind} {word!r}: {hint}")
