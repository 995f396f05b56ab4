"""Guards which agents a run gets: every form of naming one, each at every task in a fair order, one name each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from deskfork.agent.config import ModelAgentConfig, ReplayConfig
from deskfork.core.errors import ConfigError
from deskfork.records.lock import RunLock
from deskfork.trial.config import RunConfig, resolve_config
from deskfork.trial.prepare import prepare

AddTask = Callable[..., Path]
SOLUTION = "# %%\nfinal_answer('done')\n"


def run_file(folder: Path, content: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def names(config: RunConfig) -> list[str]:
    return [agent.name for agent in config.agents]


def test_an_agent_is_named_by_word_file_or_what_would_stand_in_one(tmp_path: Path) -> None:
    (tmp_path / "configs/agents").mkdir(parents=True)
    (tmp_path / "configs/agents/mine.yaml").write_text("name: mine\nactions: pyautogui\nmodel: scripted:said.yaml\n")
    inline = {"name": "short", "actions": "code", "model": "openai:m@http://h/v1", "limits": {"steps": 2}}
    specs = ["oracle", "null", "replay:steps.jsonl", "agents/mine.yaml", inline]
    config = resolve_config(run_file(tmp_path / "configs", {"agents": specs}), {})
    assert names(config) == ["oracle", "null", "replay", "mine", "short"]
    replay, mine, short = config.agents[2:]
    assert isinstance(replay, ReplayConfig)
    assert replay.file == tmp_path / "configs/steps.jsonl"
    assert isinstance(mine, ModelAgentConfig)
    assert mine.model == f"scripted:{tmp_path}/configs/agents/said.yaml"
    assert isinstance(short, ModelAgentConfig)
    assert short.limits is not None
    assert (short.limits.steps, short.observe != ()) == (2, True)


def test_a_model_is_given_to_all_agents_that_have_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = run_file(tmp_path / "configs", {"agents": ["code", "null", "pyautogui"], "model": "scripted:here.yaml"})

    def models(config: RunConfig) -> list[str]:
        return [agent.model for agent in config.agents if isinstance(agent, ModelAgentConfig)]

    assert models(resolve_config(file, {})) == [f"scripted:{tmp_path}/configs/here.yaml"] * 2
    assert models(resolve_config(file, {"model": "scripted:there.yaml"})) == [f"scripted:{tmp_path}/there.yaml"] * 2


def test_agents_of_the_command_line_take_the_place_of_the_files(tmp_path: Path) -> None:
    file = run_file(tmp_path, {"agents": ["code"], "tasks": "a"})
    config = resolve_config(file, {"agents": ["oracle"]})
    assert (names(config), config.tasks) == (["oracle"], "a")


def test_what_is_resolved_means_the_same_again(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nactions: code\nmodel: openai:m\nobserve: [{name: a11y_tree, tokens: 3000}]\n"
    )
    config = resolve_config(run_file(tmp_path, {"agents": ["mine.yaml", "null", "replay:a"], "parallel": "auto"}), {})
    again = resolve_config(run_file(tmp_path / "other", config.model_dump(mode="json")), {})
    assert again == config


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"agents": ["null", "null"]}, "two agents are called 'null'"),
        ({"agents": []}, "no agent was named"),
        ({"agents": ["null"], "model": "openai:m"}, "uses no model"),
        ({"agents": ["code"]}, "needs a model"),
        ({"agents": [None]}, "agents: must be a list"),
        ({"agents": "null"}, "agents: must be a list"),
        ({"agents": [{"actions": "code", "model": "openai:m", "nme": "x"}]}, "agent 'code': nme"),
        ({"agents": ["null"], "agent": "null"}, "agent"),
        ({"agents": ["null"], "parallel": 0}, "parallel"),
        ({"agents": ["null"], "model": 3}, "model: must be text"),
        ({"agents": ["null"], "budget": {"minutes": 3}}, "budget.minutes"),
    ],
)
def test_what_names_no_run_is_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        resolve_config(None, given)


def test_a_run_that_is_cut_off_has_given_each_agent_the_same_tasks(bench: Any, add_task: AddTask) -> None:
    for name in ("b", "a"):
        add_task(name, SOLUTION)
    prepared = prepare(bench.config(agents=["oracle", "null"], repeats=2))
    assert [plan.key for plan in prepared.plans] == [
        (task, agent, repeat) for repeat in (0, 1) for task in ("a", "b") for agent in ("oracle", "null")
    ]


def test_every_agent_plays_every_task_and_the_lock_holds_them_all(bench: Any, csv_task: Path) -> None:
    results = bench.run(agents=["oracle", "null"], repeats=2, parallel=2)
    assert [(result.agent, result.repeat, result.score) for result in results] == [
        ("oracle", 0, 1.0),
        ("null", 0, 0.0),
        ("oracle", 1, 1.0),
        ("null", 1, 0.0),
    ]
    lock = bench.records().lock
    assert [agent["name"] for agent in lock.agents] == ["oracle", "null"]


def test_a_lock_of_a_single_agent_is_still_read(bench: Any, csv_task: Path) -> None:
    bench.run()
    lock = bench.records().lock.model_dump(mode="json")
    (agent,) = lock.pop("agents")
    assert RunLock.model_validate({**lock, "agent": agent}).agents == (agent,)
