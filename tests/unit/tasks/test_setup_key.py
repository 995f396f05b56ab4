"""Guards the key of a set-up: one that stays the same when a file changed starts trials from a stale desktop."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from deskfork.core.errors import TaskError
from deskfork.tasks.checks import CheckIncludeExclude, EvaluatorSpec, GuestFile, IncludeExclude
from deskfork.tasks.schema import Task
from deskfork.tasks.setup_key import setup_key
from deskfork.tasks.steps import BrowserStep, CopyStep, LaunchStep, ScriptStep, SetupStep

DESKTOP = PurePosixPath("/home/user/Desktop")
EVALUATOR = EvaluatorSpec(
    checks=(
        CheckIncludeExclude(
            metric="check_include_exclude", result=GuestFile(path=DESKTOP / "out"), expected=IncludeExclude()
        ),
    )
)
STEPS: tuple[SetupStep, ...] = (
    CopyStep(source=Path("files/table.csv"), target=DESKTOP / "table.csv"),
    ScriptStep(source=Path("files/init.sh"), target=DESKTOP / "init.sh", arguments=("a",)),
    BrowserStep(urls=("https://www.bing.com/",)),
    LaunchStep(command=("jupyter", "lab", str(DESKTOP))),
)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Task]:
    """Makes a task whose files lie in a folder of their own."""

    def made(folder: str = "one", **changes: Any) -> Task:
        root = tmp_path / folder
        (root / "files").mkdir(parents=True, exist_ok=True)
        (root / "files" / "table.csv").write_text("a,b\n1,2\n")
        (root / "files" / "init.sh").write_text("true\n")
        fields = {"id": "t1", "instruction": "Do it.", "setup": STEPS, "evaluator": EVALUATOR, "root": root, **changes}
        return Task(**fields)

    return made


def test_the_two_of_a_pair_have_one_key(make: Callable[..., Task]) -> None:
    other = make("two", id="t2", instruction="Do it, step by step.", wording="verbose", tags=("gui",))
    assert setup_key(make()) == setup_key(other)


def test_where_a_file_lies_on_the_host_is_no_part_of_it(make: Callable[..., Task], tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "copied.csv").write_text("a,b\n1,2\n")
    moved = (STEPS[0].model_copy(update={"source": Path("copied.csv")}), *STEPS[1:])
    assert setup_key(make()) == setup_key(make(setup=moved))


@pytest.mark.parametrize("name", ["table.csv", "init.sh"])
def test_a_changed_file_is_another_key(make: Callable[..., Task], name: str) -> None:
    task = make()
    before = setup_key(task)
    (task.root / "files" / name).write_text("a,b\n1,3\n")
    assert setup_key(task) != before


@pytest.mark.parametrize(
    "setup",
    [
        STEPS[:-1],
        (STEPS[1], STEPS[0], *STEPS[2:]),
        (*STEPS, STEPS[0]),
        (STEPS[0].model_copy(update={"target": DESKTOP / "other.csv"}), *STEPS[1:]),
        (STEPS[0], STEPS[1].model_copy(update={"arguments": ("b",)}), *STEPS[2:]),
        (*STEPS[:2], BrowserStep(urls=("https://example.org/",)), STEPS[3]),
        (*STEPS[:3], LaunchStep(command=("jupyter", "lab"))),
    ],
    ids=["one less", "another order", "one twice", "another target", "arguments", "urls", "command"],
)
def test_other_steps_are_another_key(make: Callable[..., Task], setup: tuple[SetupStep, ...]) -> None:
    assert setup_key(make()) != setup_key(make(setup=setup))


def test_steps_after_the_agent_are_no_part_of_it(make: Callable[..., Task]) -> None:
    later = EVALUATOR.model_copy(update={"post_setup": (STEPS[3],)})
    assert setup_key(make()) == setup_key(make(evaluator=later))


def test_a_task_without_set_up_has_no_key(make: Callable[..., Task]) -> None:
    assert setup_key(make(setup=())) == ""


def test_a_file_that_is_gone_is_named(make: Callable[..., Task]) -> None:
    task = make()
    (task.root / "files" / "table.csv").unlink()
    with pytest.raises(TaskError, match=r"t1.*table\.csv"):
        setup_key(task)
