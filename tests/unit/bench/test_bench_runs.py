"""Guards what `bench run` says: it measures real runs, and one that lost trials is no figure."""

from collections.abc import Callable
from pathlib import Path

import pytest

from deskfork.bench.runs import bench_runs
from deskfork.cli.bench_runs import CommandRuns
from deskfork.core.errors import InfraError


class Forgetful(CommandRuns):
    """Resumes to fewer trials than there are."""

    def resume(self, run_dir: Path) -> int:
        return super().resume(run_dir) - 1


@pytest.fixture
def say() -> Callable[[str], None]:
    return lambda line: None


def test_figures_are_of_the_trials_that_were_asked_for(say: Callable[[str], None]) -> None:
    found = bench_runs(CommandRuns(), say, trials=10, finished=40, rounds=2)
    assert (found.trials, found.finished_trials, found.resume_s.n, found.report_s.n) == (10, 40, 2, 2)
    assert 0 < found.own_ms_per_trial < found.whole_ms_per_trial
    assert found.memory_mib > abs(found.memory_growth_mib)


def test_a_run_that_lost_a_trial_is_no_figure(say: Callable[[str], None]) -> None:
    with pytest.raises(InfraError, match="39 trials with a result, not 40"):
        bench_runs(Forgetful(), say, trials=10, finished=40, rounds=1)
