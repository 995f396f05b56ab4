"""Guards what is measured of tasks: one that cannot be run is told, and costs the others nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deskfork.bench.tasks import bench_tasks
from deskfork.core.errors import ConfigError, TaskError
from deskfork.sandbox.fake.provider import FakeProvider

TASK = """
instruction: Do it.
setup:
  - {type: script, source: run.sh, target: /home/user/run.sh}
evaluator:
  checks:
    - metric: check_include_exclude
      result: {type: guest_file, path: /home/user/answer.txt}
      expected: {type: rule, include: [x]}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, script in (("good", "echo x >made"), ("failing", "exit 3")):
        folder = tmp_path / "tasks" / name
        folder.mkdir(parents=True)
        (folder / "task.yaml").write_text(TASK)
        (folder / "run.sh").write_text(f"{script}\n")
    (tmp_path / "tasks/broken").mkdir()
    (tmp_path / "tasks/broken/task.yaml").write_text("instruction: 1\n")
    return tmp_path / "tasks"


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[FakeProvider]:
    (tmp_path / "sandboxes").mkdir()
    opened = FakeProvider(parent=tmp_path / "sandboxes")
    yield opened
    opened.close()


def test_what_can_be_measured_is_and_the_rest_says_why_not(source: Path, provider: FakeProvider) -> None:
    told: list[str] = []
    times = bench_tasks(source, "all", provider, told.append)
    broken, failing, good = times.tasks
    assert good.ready_s is not None
    assert good.fork_s is not None
    assert 0 < good.fork_s < good.ready_s
    assert [step.step for step in good.steps] == ["run script run.sh"]
    assert (good.baked_s, times.baked_s) == (None, None)
    assert "exit code 3" in failing.error
    assert broken.error
    assert times.ready_s is not None
    assert (times.ready_s.n, times.ready_s.median) == (1, good.ready_s)
    assert len(told) == 2


def test_a_broken_task_that_was_named_is_refused(source: Path, provider: FakeProvider) -> None:
    with pytest.raises(TaskError):
        bench_tasks(source, "broken", provider, lambda line: None)
    with pytest.raises(ConfigError):
        bench_tasks(source, "", provider, lambda line: None)
