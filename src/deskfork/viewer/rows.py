"""The table of trials: what a row says, and which rows are asked for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError
from deskfork.records.trial import TrialResult
from deskfork.viewer.visible import one_line

State = Literal["ended", "running", "unfinished", "unreadable"]
"""running: a process works on it; unfinished: none does, and there is no result; unreadable: result.json is corrupt."""
MAX_PAGE = 500
"""Rows that are given at a time."""
_NOTE_CHARS = 300


class TrialRow(StrictModel):
    """One trial, as its last attempt left it; all text is fit for showing."""

    key: str
    """Names the attempt in URLs."""
    task: str
    agent: str
    repeat: int
    attempts: int
    state: State
    status: str
    """Of trials that ended; the state for others."""
    score: float | None = None
    strict_score: float | None = None
    differs: bool = False
    steps: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    duration_s: float | None = None
    started_at: datetime | None = None
    active_at: datetime | None = None
    """When something was written last, of trials without a result."""
    note: str = ""
    """Why there is no score, what went wrong, or why the scores differ."""


def ended_row(key: str, result: TrialResult, attempts: int) -> TrialRow:
    """Return the row of a trial that has a result."""
    verdict = result.verdict
    return TrialRow(
        key=key,
        task=one_line(result.task),
        agent=one_line(result.agent),
        repeat=result.repeat,
        attempts=attempts,
        state="ended",
        status=result.status.value,
        score=result.score,
        strict_score=result.strict_score,
        differs=result.strict_score is not None and result.strict_score != result.score,
        steps=result.steps,
        tokens=result.tokens.total if result.tokens else None,
        cost_usd=result.cost_usd,
        duration_s=round(result.duration_s, 3),
        started_at=result.started_at,
        note=one_line(verdict.reason or result.error or verdict.difference or result.ending, _NOTE_CHARS),
    )


class AgentSum(StrictModel):
    """All trials of one agent."""

    agent: str
    trials: int
    scored: int
    """Trials that the means are taken over: an absent score is no zero."""
    mean_score: float | None
    mean_strict_score: float | None


def sum_up(rows: Iterable[TrialRow]) -> tuple[AgentSum, ...]:
    """Return each agent's sums, by name."""
    groups: dict[str, list[TrialRow]] = {}
    for row in rows:
        groups.setdefault(row.agent, []).append(row)
    return tuple(_sum(agent, groups[agent]) for agent in sorted(groups))


def _sum(agent: str, rows: Sequence[TrialRow]) -> AgentSum:
    scores = [row.score for row in rows if row.score is not None]
    strict = [row.strict_score for row in rows if row.strict_score is not None]
    return AgentSum(
        agent=agent, trials=len(rows), scored=len(scores), mean_score=_mean(scores), mean_strict_score=_mean(strict)
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


_SCORES: Mapping[str, Callable[[TrialRow], bool]] = {
    "": lambda row: True,
    "one": lambda row: row.score == 1.0,
    "between": lambda row: row.score is not None and 0.0 < row.score < 1.0,
    "zero": lambda row: row.score == 0.0,
    "absent": lambda row: row.score is None,
    "differs": lambda row: row.differs,
}
_SORTS: Mapping[str, Callable[[TrialRow], object]] = {
    "task": lambda row: (row.task, row.agent, row.repeat),
    "agent": lambda row: (row.agent, row.task, row.repeat),
    "status": lambda row: row.status,
    "score": lambda row: row.score,
    "strict": lambda row: row.strict_score,
    "steps": lambda row: row.steps,
    "tokens": lambda row: row.tokens,
    "cost": lambda row: row.cost_usd,
    "duration": lambda row: row.duration_s,
    "started": lambda row: row.started_at,
}


@dataclass(frozen=True)
class Choice:
    """Which trials are asked for, and in which order."""

    agent: str = ""
    status: str = ""
    task: str = ""
    """Part of the task's id."""
    score: str = ""
    """A key of _SCORES: one, between, zero, absent, differs; empty for any."""
    text: str = ""
    """Part of anything that a row says, in any case."""
    sort: str = "task"
    descending: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Choice":
        """Read a URL's query; other names in it are left alone.

        Raises:
            ConfigError: There is no such score or order.
        """
        texts = {name: query.get(name, "") for name in ("agent", "status", "task", "score", "text")}
        choice = cls(**texts, sort=query.get("sort") or "task", descending=query.get("order") == "down")
        if choice.score not in _SCORES or choice.sort not in _SORTS:
            raise ConfigError(f"score is one of {', '.join(filter(None, _SCORES))}; sort one of {', '.join(_SORTS)}")
        return choice

    def of_rows(self, rows: Iterable[TrialRow]) -> list[TrialRow]:
        """Return the rows that are asked for, those that lack what is sorted by last."""
        task, text, has_score = self.task.lower(), self.text.lower(), _SCORES[self.score]
        chosen = [
            row
            for row in rows
            if (not self.agent or row.agent == self.agent)
            and (not self.status or row.status == self.status)
            and has_score(row)
            and task in row.task.lower()
            and (not text or text in f"{row.task} {row.agent} {row.status} {row.note}".lower())
        ]
        value = _SORTS[self.sort]
        known = [row for row in chosen if value(row) is not None]
        known.sort(key=value, reverse=self.descending)  # type: ignore[arg-type]  # one column's values are of one type
        return known + [row for row in chosen if value(row) is None]
