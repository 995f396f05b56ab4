"""Guards scripts chosen by task: each trial says its own, and one that is missing is found before a machine starts."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from deskfork.core.errors import ConfigError
from deskfork.trial.prepare import prepare

POLICIES = Path(__file__).parents[3] / "evaluation_examples/spider2v/policies"
SAY = "- \"<code>\\nfinal_answer('{answer}')\\n</code>\"\n"


@pytest.fixture
def policies(bench: Any, csv_task: Path, script_task: Path) -> Path:
    """Scripts for two tasks, of which one cannot be played in `pyautogui`."""
    folder = Path(bench.tmp) / "policies"
    for policy in ("copying", "idling"):
        (folder / policy).mkdir(parents=True)
        (folder / policy / "code.yaml").write_text(SAY.format(answer=policy))
    (folder / "copying" / "pyautogui.yaml").write_text('- "```\\nDONE\\n```"\n')
    (folder / "index.yaml").write_text("copy-csv: copying\nscript: idling\n")
    return folder


def test_each_trial_says_the_script_of_its_task(bench: Any, policies: Path) -> None:
    results = bench.run(agents=["code"], model=f"scripted:{policies}")
    assert {result.task: result.answer for result in results} == {"copy-csv": "copying", "script": "idling"}
    assert {result.model for result in results} == {f"scripted:{p}/code.yaml" for p in ("copying", "idling")}
    scripts = bench.records().lock.scripts
    assert set(scripts) == {f"{policies}/{policy}/code.yaml" for policy in ("copying", "idling")}


def test_a_script_that_is_missing_is_named_with_task_agent_and_file(bench: Any, policies: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        prepare(bench.config(agents=["code", "pyautogui"], model=f"scripted:{policies}"))
    assert all(word in str(raised.value) for word in ("'pyautogui'", "script", f"{policies}/idling/pyautogui.yaml"))


@pytest.mark.parametrize(
    ("index", "named"),
    [("copy-csv: copying\n", "does not name it"), ("- a\n", "must map"), ("{", "no YAML"), (None, "cannot be read")],
)
def test_a_folder_without_a_sound_index_is_refused(bench: Any, policies: Path, index: str | None, named: str) -> None:
    (policies / "index.yaml").unlink()
    if index is not None:
        (policies / "index.yaml").write_text(index)
    with pytest.raises(ConfigError, match=named):
        prepare(bench.config(agents=["code"], model=f"scripted:{policies}"))


def test_the_policies_for_spider2v_are_all_indexed() -> None:
    index = yaml.safe_load((POLICIES / "index.yaml").read_text())
    assert set(index.values()) == {path.name for path in POLICIES.iterdir() if path.is_dir()}
    assert all(len(task) == 36 for task in index)


def test_the_scripted_ablation_names_only_tasks_with_a_script_for_each_of_its_agents() -> None:
    config = yaml.safe_load((POLICIES.parents[2] / "configs/ablation_scripted.yaml").read_text())
    index = yaml.safe_load((POLICIES / "index.yaml").read_text())
    for prefix in config["tasks"].split(","):
        (policy,) = {policy for task, policy in index.items() if task.startswith(prefix)}
        assert all((POLICIES / policy / f"{agent}.yaml").is_file() for agent in config["agents"])
