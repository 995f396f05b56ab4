"""One run as pages ask for it: the table, a trial, a step, a screen."""

from collections import Counter, OrderedDict
from pathlib import Path
from threading import Lock

from deskfork.core.config import StrictModel, cache_dir
from deskfork.core.errors import ConfigError
from deskfork.viewer.desktop import LiveDesktops
from deskfork.viewer.index import RunIndex
from deskfork.viewer.rows import MAX_PAGE, AgentSum, Choice, TrialRow, sum_up
from deskfork.viewer.screens import read_screen
from deskfork.viewer.steps import StepBody, Steps, first_screen
from deskfork.viewer.trial import Neighbours, TrialPage, picture_px, read_ending, read_prompt
from deskfork.viewer.visible import one_line

_KEPT_TRIALS = 16
"""Trials whose steps' places are remembered."""


class TablePage(StrictModel):
    """Some rows of the table, and what is said above it."""

    run: str
    provider: str
    rows: list[TrialRow]
    matching: int
    """Rows that were chosen, of which these are a part."""
    trials: int
    offset: int
    states: dict[str, int]
    """All trials of the run by their status or state."""
    agents: tuple[AgentSum, ...]
    version: int


class ViewedRun:
    """A run directory that is looked at, from several threads."""

    def __init__(self, folder: Path, desktops: LiveDesktops | None = None) -> None:
        """Read the run.

        Raises:
            ConfigError: It is no run directory, or its lock.json is corrupt.
        """
        self._desktops = desktops or LiveDesktops(cache_dir())
        self._index = RunIndex(folder)
        self._steps: OrderedDict[str, Steps] = OrderedDict()
        self._opening = Lock()

    @property
    def id(self) -> str:
        """The run's id."""
        return self._index.paths.id

    def version(self) -> int:
        """Look for changes; return a number that grows with each."""
        return self._index.refresh()

    def table(self, choice: Choice, offset: int, limit: int) -> TablePage:
        """Return some of the rows that are chosen."""
        version = self._index.refresh()
        first, end = max(0, offset), max(0, offset) + min(max(1, limit), MAX_PAGE)
        self._index.look_again([row.key for row in choice.of_rows(self._index.rows())[first:end]])
        rows = self._index.rows()
        chosen = choice.of_rows(rows)
        return TablePage(
            run=one_line(self.id),
            provider=one_line(self._index.lock.provider) if self._index.lock else "",
            rows=chosen[first:end],
            matching=len(chosen),
            trials=len(rows),
            offset=first,
            states=dict(sorted(Counter(row.status for row in rows).items())),
            agents=sum_up(rows),
            version=version,
        )

    def trial(self, key: str, choice: Choice, *, known_steps: int = 0) -> TrialPage:
        """Return the page of an attempt.

        Args:
            key: The attempt's.
            choice: Among which trials its neighbours are looked for.
            known_steps: How many steps the page has already, which are left out.

        Raises:
            ConfigError: There is no such attempt, or its trajectory cannot be read.
        """
        self._index.refresh()
        self._index.attempt(key)
        self._index.look_again([key])
        row, paths, sandbox = self._index.attempt(key)
        heads = self._steps_of(key).refresh()
        ending = read_ending(paths)
        started = row.started_at.timestamp() if row.started_at else 0.0
        ended = started + row.duration_s if row.started_at and row.duration_s is not None else None
        return TrialPage(
            row=row,
            attempts=self._index.siblings(key),
            neighbours=self._neighbours(key, choice),
            sandbox=one_line(sandbox),
            picture_px=picture_px(self._index.lock, row.agent),
            prompt=read_prompt(paths) if ending else None,
            first_screen=first_screen(paths, heads[0] if heads else None, started, ended),
            ending=ending,
            steps=heads[max(0, known_steps) :],
        )

    def step(self, key: str, number: int, *, is_whole: bool) -> StepBody:
        """Return what was said and done in a step.

        Raises:
            ConfigError: There is no such attempt or step, or it cannot be read.
        """
        steps = self._steps_of(key)
        steps.refresh()
        return steps.body(number, is_whole=is_whole)

    def screen(self, key: str, name: str) -> bytes:
        """Return a screen of an attempt, a PNG.

        Raises:
            ConfigError: There is no such attempt, or it has no such screen.
        """
        row, paths, _ = self._index.attempt(key)
        return read_screen(paths, name, is_coming=row.state == "running")

    def progress(self, key: str) -> tuple[int, bool]:
        """Return how many steps an attempt has, and whether it has a result.

        Raises:
            ConfigError: There is no such attempt.
        """
        row, _, _ = self._index.attempt(key)
        return row.steps, row.state == "ended"

    def desktop_url(self, key: str) -> str:
        """Return the URL of a page that shows the live desktop of an attempt.

        Raises:
            ConfigError: It has none, or none that can be shown here.
            SandboxError: The page could not be served.
        """
        row, _, sandbox = self._index.attempt(key)
        if row.state == "ended":
            raise ConfigError("this trial has ended, and its sandbox with it")
        return self._desktops.url(sandbox)

    def _steps_of(self, key: str) -> Steps:
        _, paths, _ = self._index.attempt(key)
        with self._opening:
            steps = self._steps.setdefault(key, Steps(paths))
            self._steps.move_to_end(key)
            if len(self._steps) > _KEPT_TRIALS:
                self._steps.popitem(last=False)
            return steps

    def _neighbours(self, key: str, choice: Choice) -> Neighbours:
        keys = [row.key for row in choice.of_rows(self._index.rows())]
        last = self._index.siblings(key)[-1]
        if last not in keys:
            return Neighbours(next=keys[0] if keys else None, count=len(keys))
        place = keys.index(last)
        return Neighbours(
            previous=keys[place - 1] if place else None,
            next=keys[place + 1] if place + 1 < len(keys) else None,
            position=place + 1,
            count=len(keys),
        )
