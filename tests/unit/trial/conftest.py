"""Small tasks of our own on the fake provider, with faults where a test wants them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deskfork.records.paths import AttemptPaths, RunPaths
from deskfork.records.reader import RunRecords, read_run
from deskfork.records.trial import TrialResult
from deskfork.sandbox.fake.faults import FakeFaults
from deskfork.sandbox.fake.provider import FakeProvider
from deskfork.trial.config import RunConfig, resolve_config
from deskfork.trial.plan import TrialEvent
from deskfork.trial.run import RunSummary, start_run

CSV_TASK = """
instruction: Copy in.csv to out.csv.
setup:
  - {type: copy, source: in.csv, target: /home/user/Desktop/in.csv}
evaluator:
  checks:
    - metric: compare_csv
      result: {type: guest_file, path: /home/user/Desktop/out.csv}
      expected: {type: host_file, path: gold.csv}
solution: solution.py
"""
SCRIPT_TASK = """
instruction: Do nothing.
evaluator:
  checks:
    - metric: check_include_exclude
      result: {type: script_output, source: check.sh, target: /home/user/check.sh}
      expected: {type: rule, include: [fine]}
solution: solution.py
"""
BAD_SETUP_TASK = """
instruction: Never begins.
setup:
  - {type: script, source: check.sh, target: /home/user/check.sh}
evaluator:
  checks:
    - metric: compare_csv
      result: {type: guest_file, path: /home/user/Desktop/out.csv}
      expected: {type: host_file, path: gold.csv}
solution: solution.py
"""
SOLUTION = """
# %%
from pathlib import Path
desktop = Path.home() / "Desktop"
# %%
(desktop / "out.csv").write_text((desktop / "in.csv").read_text())
# %%
final_answer("copied")
"""


def write_task(root: Path, name: str, text: str, *, solution: str = SOLUTION, script: str = "echo fine") -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    for file, content in {"task.yaml": text, "in.csv": "a,b\n1,2\n", "gold.csv": "a,b\n1,2\n"}.items():
        (folder / file).write_text(content)
    (folder / "solution.py").write_text(solution)
    (folder / "check.sh").write_text(script + "\n")
    return folder


@dataclass
class Bench:
    """Runs configurations in a folder of the test's own, and sees whether anything stays behind."""

    tmp: Path
    events: list[TrialEvent] = field(default_factory=list)
    on_event: Callable[[TrialEvent], None] = lambda event: None
    summary: RunSummary | None = None

    @property
    def source(self) -> Path:
        return self.tmp / "tasks"

    @property
    def sandboxes(self) -> Path:
        return self.tmp / "sandboxes"

    def config(self, **given: object) -> RunConfig:
        fixed = {"source": self.source, "out": self.tmp / "runs", "provider": "fake", "agents": ["oracle"]}
        return resolve_config(None, {**fixed, **given})

    def attempt_paths(self, event: TrialEvent) -> AttemptPaths:
        (run_dir,) = (self.tmp / "runs").iterdir()
        plan = event.plan
        return RunPaths(run_dir).attempt(plan.task.id, plan.agent.name, plan.repeat, event.attempt)

    def notify(self, event: TrialEvent) -> None:
        self.events.append(event)
        self.on_event(event)

    def run(self, faults: FakeFaults | None = None, **given: object) -> tuple[TrialResult, ...]:
        provider = FakeProvider(parent=self.sandboxes, faults=faults)
        self.summary = start_run(self.config(**given), notify=self.notify, on_begin=lambda *_: None, provider=provider)
        return self.summary.results

    def records(self) -> RunRecords:
        assert self.summary is not None
        return read_run(self.summary.run_dir)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / "sandboxes").mkdir()
    made = Bench(tmp_path)
    yield made
    assert list(made.sandboxes.iterdir()) == [], "a sandbox was left behind"


@pytest.fixture
def csv_task(bench: Bench) -> Path:
    return write_task(bench.source, "copy-csv", CSV_TASK)


@pytest.fixture
def script_task(bench: Bench) -> Path:
    return write_task(bench.source, "script", SCRIPT_TASK)


@pytest.fixture
def bad_setup_task(bench: Bench) -> Path:
    return write_task(bench.source, "bad-setup", BAD_SETUP_TASK, script="echo no luck >&2; exit 3")


@pytest.fixture
def add_task(bench: Bench) -> Callable[..., Path]:
    """Write a csv task of that name with that solution."""
    return lambda name, solution: write_task(bench.source, name, CSV_TASK, solution=solution)
