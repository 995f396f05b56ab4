"""Guards baking task by task: each set-up runs once, and one that fails stops neither the others nor a run."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from deskfork.core.errors import TaskError
from deskfork.sandbox.fake.provider import FakeProvider
from deskfork.sandbox.templates.baked import BakeOptions
from deskfork.tasks.load import open_source
from deskfork.tasks.setup_key import setup_key
from deskfork.trial.bake import BakeResult, bake_tasks

TASK = """
instruction: Do nothing.
network: {network}
setup:
  - {{type: script, source: init.sh, target: /home/user/init.sh}}
evaluator:
  checks:
    - metric: compare_csv
      result: {{type: guest_file, path: /home/user/Desktop/out.csv}}
      expected: {{type: host_file, path: init.sh}}
"""


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[FakeProvider]:
    """Its sandboxes lie in the test's own folder."""
    with closing(FakeProvider(parent=tmp_path)) as opened:
        yield opened
    assert list(tmp_path.glob("deskfork-fake-*")) == []


def write(tasks: Path, name: str, script: str, *, network: str = "false") -> None:
    (tasks / name).mkdir(parents=True)
    (tasks / name / "task.yaml").write_text(TASK.format(network=network))
    (tasks / name / "init.sh").write_text(script)


def baked(tasks: Path, provider: FakeProvider, wanted: str = "all", *, force: bool = False) -> dict[str, BakeResult]:
    options = BakeOptions(force=force)
    return {
        found.task: found
        for found in bake_tasks(tasks, wanted, provider, options=options, on_progress=lambda line: None)
    }


def outcomes(results: dict[str, BakeResult]) -> dict[str, str]:
    return {task: result.outcome for task, result in results.items()}


def test_tasks_with_the_same_set_up_share_what_is_baked(tmp_path: Path, provider: FakeProvider) -> None:
    tasks, count = tmp_path / "tasks", tmp_path / "count"
    for name in ("a", "b"):
        write(tasks, name, f"echo once >> {count}")
    assert outcomes(baked(tasks, provider)) == {"a": "baked", "b": "shared"}
    assert outcomes(baked(tasks, provider)) == {"a": "there already", "b": "shared"}
    assert count.read_text() == "once\n"
    assert outcomes(baked(tasks, provider, force=True)) == {"a": "baked", "b": "shared"}
    assert count.read_text() == "once\nonce\n"


def test_a_changed_file_is_baked_anew(tmp_path: Path, provider: FakeProvider) -> None:
    tasks = tmp_path / "tasks"
    write(tasks, "a", "true")
    baked(tasks, provider)
    (tasks / "a" / "init.sh").write_text("true #")
    assert outcomes(baked(tasks, provider)) == {"a": "baked"}


def test_a_failing_set_up_is_named_and_the_others_go_on(tmp_path: Path, provider: FakeProvider) -> None:
    tasks = tmp_path / "tasks"
    for name, script in {"a": "exit 3", "b": "true", "c": "exit 3"}.items():
        write(tasks, name, script)
    results = baked(tasks, provider)
    assert outcomes(results) == {"a": "failed", "b": "baked", "c": "failed"}
    assert "step 1 (run script init.sh)" in results["a"].error
    task = open_source(tasks).load("a")
    with provider.fork("desktop", baked=setup_key(task)) as sandbox:
        assert sandbox.facts.baked == ""


def test_a_broken_task_is_skipped_unless_it_was_named(tmp_path: Path, provider: FakeProvider) -> None:
    tasks = tmp_path / "tasks"
    write(tasks, "a", "true")
    write(tasks, "b", "true")
    (tasks / "b" / "init.sh").unlink()
    results = baked(tasks, provider)
    assert outcomes(results) == {"a": "baked", "b": "skipped"}
    assert "init.sh" in results["b"].error
    with pytest.raises(TaskError, match=r"init\.sh"):
        baked(tasks, provider, "b")


def test_a_task_without_set_up_has_nothing_to_bake(tmp_path: Path, provider: FakeProvider) -> None:
    tasks = tmp_path / "tasks"
    write(tasks, "a", "true")
    text = (tasks / "a" / "task.yaml").read_text()
    kept = [line for line in text.splitlines() if "type: script" not in line and line != "setup:"]
    (tasks / "a" / "task.yaml").write_text("\n".join(kept))
    assert outcomes(baked(tasks, provider)) == {"a": "no set-up"}


def test_a_set_up_with_a_network_is_another(tmp_path: Path, provider: FakeProvider) -> None:
    tasks = tmp_path / "tasks"
    write(tasks, "a", "true", network="true")
    write(tasks, "b", "true", network="false")
    assert outcomes(baked(tasks, provider)) == {"a": "baked", "b": "baked"}
    key = setup_key(open_source(tasks).load("a"))
    for network in (True, False):
        with provider.fork("desktop", network=network, baked=key) as sandbox:
            assert (sandbox.facts.baked, sandbox.facts.network) == (key, network)
