"""What `deskfork bench run` measures: runs as the commands start, resume and report them."""

from collections.abc import Callable
from pathlib import Path

from deskfork.records.reader import read_run
from deskfork.report.build import build_report
from deskfork.trial.config import resolve_config
from deskfork.trial.plan import TrialEvent
from deskfork.trial.resume import resume_run
from deskfork.trial.run import start_run


class CommandRuns:
    """Runs of the null agent on the fake provider, one trial at a time."""

    def start(self, source: Path, out: Path, repeats: int, on_trial: Callable[[], None]) -> Path:
        """Run the null agent so often on each task."""
        given = {"agents": ["null"], "source": source, "out": out, "provider": "fake", "repeats": repeats}

        def notify(event: TrialEvent) -> None:
            if event.is_last:
                on_trial()

        return start_run(resolve_config(None, given), notify=notify, on_begin=lambda begun: None).run_dir

    def resume(self, run_dir: Path) -> int:
        """Resume a run; return of how many trials it has a result then."""
        return len(resume_run(run_dir, notify=lambda event: None, on_begin=lambda begun: None).results)

    def report(self, run_dir: Path) -> object:
        """Read a run and report on it."""
        return build_report([read_run(run_dir)])
