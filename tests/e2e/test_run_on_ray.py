"""Guards runs on a cluster: a real one of two local nodes, each a set of processes, on the fake provider."""

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from deskfork.core.errors import ConfigError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.records.reader import read_run, read_trajectory
from deskfork.records.trial import TrialResult, TrialStatus
from deskfork.trial.config import RunConfig, resolve_config
from deskfork.trial.plan import TrialEvent
from deskfork.trial.resume import resume_run
from deskfork.trial.run import RunSummary, start_run

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")
pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"
)

TASK = """
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
SOLUTION = """
# %%
from pathlib import Path
# %%
(Path.home() / "Desktop/out.csv").write_text((Path.home() / "Desktop/in.csv").read_text())
"""
MIB = 2**20


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name in ("first", "second"):
        folder = tmp_path / "tasks" / name
        folder.mkdir(parents=True)
        files = {"task.yaml": TASK, "in.csv": "a,b\n1,2\n", "gold.csv": "a,b\n1,2\n", "solution.py": SOLUTION}
        for file, content in files.items():
            (folder / file).write_text(content)
    return tmp_path / "tasks"


def fixed_ports() -> dict[str, int]:
    """Return free ports for a node's agents.

    Without them ray 2.60 waits for a file from each agent, and aborts the node after 15 s if a busy machine is slower
    (ray-project/ray #65983).
    """
    names = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
    with ExitStack() as open_:
        listening = [open_.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in names]
        return {name: found.getsockname()[1] for name, found in zip(names, listening, strict=True)}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes for two sandboxes each, of which the second says that it has KVM."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("RAY_raylet_start_wait_time_s", "180")
        yield from two_nodes()


def two_nodes() -> Iterator[Any]:
    room = {"num_cpus": 2, "memory": 512 * MIB, "object_store_memory": 80 * MIB}
    started = cluster_utils.Cluster(
        initialize_head=True, head_node_args={**room, **fixed_ports(), "include_dashboard": False}
    )
    # At an address of its own: of nodes that share one, the caller connects to any, and that one is not to be lost.
    started.second = started.add_node(**room, **fixed_ports(), resources={"kvm": 2}, node_ip_address="127.0.0.2")
    started.wait_for_nodes()
    try:
        yield started
    finally:
        ray.shutdown()
        started.shutdown()


def config(cluster: Any, source: Path, **given: object) -> RunConfig:
    fixed = {"source": source, "out": source.parent / "runs", "provider": "fake", "engine": "ray", "parallel": "auto"}
    return resolve_config(None, {**fixed, "ray_address": cluster.address, "agents": ["oracle", "null"], **given})


def run(resolved: RunConfig, events: list[TrialEvent]) -> RunSummary:
    return start_run(resolved, notify=events.append, on_begin=lambda begun: None)


def test_a_run_on_two_nodes_leaves_what_a_local_one_does(cluster: Any, source: Path) -> None:
    events: list[TrialEvent] = []
    summary = run(config(cluster, source, repeats=2), events)
    assert [(r.task, r.agent, r.repeat, r.score) for r in summary.results] == [
        (task, agent, repeat, 1.0 if agent == "oracle" else 0.0)
        for repeat in (0, 1)
        for task in ("first", "second")
        for agent in ("oracle", "null")
    ]
    records = read_run(summary.run_dir)
    assert sorted(trial.result.model_dump_json() for trial in records.trials() if trial.result) == sorted(
        result.model_dump_json() for result in summary.results
    )
    for trial in records.trials():
        assert trial.result is not None
        steps = read_trajectory(trial.paths)
        assert len(steps) == trial.result.steps
        assert all((trial.paths.root / str(step.screen)).is_file() for step in steps)
        assert "score" in (trial.paths.logs / "trial.log").read_text()
        assert trial.paths.guest.is_dir()
    assert {event.phase for event in events} >= {"fork", "setup", "agent", "evaluate", "ended"}
    assert not list(summary.run_dir.rglob("*.partial"))


def test_a_run_on_a_cluster_is_resumed_on_it(cluster: Any, source: Path) -> None:
    summary = run(config(cluster, source, agents=["oracle"]), [])
    cut = read_run(summary.run_dir).attempts[0].paths
    cut.result.unlink()
    resumed = resume_run(summary.run_dir, notify=lambda event: None, on_begin=lambda begun: None)
    assert [(result.attempt, result.score) for result in resumed.results] == [(1, 1.0), (0, 1.0)]
    kept = TrialResult.model_validate_json(cut.result.read_text())
    assert kept.status is TrialStatus.CANCELLED


def test_a_budget_holds_for_all_nodes_together(cluster: Any, source: Path) -> None:
    for name in ("first", "second"):
        (source / name / "solution.py").write_text("# %%\nimport time\ntime.sleep(60)\n# %%\n1\n")
    begun_at = time.monotonic()
    summary = run(config(cluster, source, agents=["oracle"], repeats=4, **{"budget.seconds": 12}), [])
    assert time.monotonic() - begun_at < 55
    assert {result.status for result in summary.results} == {TrialStatus.LIMIT}
    assert summary.not_begun == 8 - len(summary.results) >= 4
    assert summary.budget_reached == "run budget of 12 seconds reached"


def test_a_cancelled_run_has_its_records_handed_in(cluster: Any, source: Path) -> None:
    for name in ("first", "second"):
        (source / name / "solution.py").write_text("# %%\n1\n# %%\nimport time\ntime.sleep(60)\n")

    def interrupt(event: TrialEvent) -> None:
        if event.phase == "agent" and event.step == 1 and event.result is None:
            signal.raise_signal(signal.SIGINT)

    resolved = config(cluster, source, agents=["oracle"], parallel=1)
    summary = start_run(resolved, notify=interrupt, on_begin=lambda begun: None)
    assert [result.status for result in summary.results] == [TrialStatus.CANCELLED]
    assert summary.results[0].steps >= 1
    (attempt,) = read_run(summary.run_dir).attempts
    assert attempt.result == summary.results[0]


def test_what_a_cluster_cannot_do_is_refused(cluster: Any, source: Path) -> None:
    with pytest.raises(ConfigError, match="cache"):
        run(config(cluster, source, cache=source.parent / "cache"), [])
    assert not (source.parent / "runs").exists()
    ray.shutdown()
    with pytest.raises(ConfigError, match="no Ray cluster answers"):
        run(config(cluster, source, ray_address="127.0.0.1:1"), [])
    assert wait_until(lambda: not ray.is_initialized(), Deadline.after(10.0))


def test_a_lost_node_costs_only_the_trials_it_held_which_run_again_elsewhere(cluster: Any, source: Path) -> None:
    # The last test, as the cluster has one node less afterwards.
    slow = SOLUTION.replace("# %%\n(", "# %%\nimport time; time.sleep(4)\n# %%\n(")
    for name in ("first", "second"):
        (source / name / "solution.py").write_text(slow)
    events: list[TrialEvent] = []
    lost: list[float] = []

    def lose_the_second_node(event: TrialEvent) -> None:
        events.append(event)
        at_work = {seen.plan.key for seen in events if seen.phase == "agent" and seen.step >= 1}
        if len(at_work) >= 3 and not lost:
            lost.append(time.monotonic())
            cluster.remove_node(cluster.second, allow_graceful=False)

    resolved = config(cluster, source, agents=["oracle"], repeats=4)
    summary = start_run(resolved, notify=lose_the_second_node, on_begin=lambda begun: None)
    assert lost, "no node was lost"
    assert (summary.signal_number, summary.not_begun) == (None, 0)
    assert [result.score for result in summary.results] == [1.0] * 8
    attempts = [attempt.result for attempt in read_run(summary.run_dir).attempts]
    failed = [result for result in attempts if result and result.status is TrialStatus.INFRA_ERROR]
    assert 1 <= len(failed) <= 2, "what the first node held was lost as well"
    assert all("lost with its node" in result.error for result in failed)
    assert len(attempts) == 8 + len(failed)
