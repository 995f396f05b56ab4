"""Guards trials that run on other machines: what they need goes along, what they leave comes back whole or not at all.

The machines are threads here, with folders of their own on the fake provider; `tests/e2e` has a real cluster.
"""

import queue
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from deskfork.agent.config import ReplayConfig
from deskfork.core.errors import ConfigError, InfraError
from deskfork.records.claim import claimed
from deskfork.records.paths import AttemptPaths, RunPaths, create_run
from deskfork.records.reader import read_run, read_trajectory
from deskfork.records.trial import TrialStatus
from deskfork.tasks.steps import SupplyStep
from deskfork.trial.budget import RunLedger
from deskfork.trial.capacity import Capacity, Slots
from deskfork.trial.engines.crowd import Crowd, Lost, Reached, Unplaced
from deskfork.trial.engines.engine import Work
from deskfork.trial.engines.node import Order, play
from deskfork.trial.engines.parcel import Arrival, Parcel, Piece, pack, pieces, unpack
from deskfork.trial.plan import TrialEvent
from deskfork.trial.prepare import prepare

pytestmark = pytest.mark.usefixtures("csv_task")


@dataclass
class Machines:
    """Runs attempts in threads.

    By the number of attempts begun: those in `dying` are lost once their agent works, those in `unplaced` never run.
    """

    work: Work
    dying: set[int] = field(default_factory=set)
    unplaced: set[int] = field(default_factory=set)
    sent: "queue.SimpleQueue[tuple[int, Any]]" = field(default_factory=queue.SimpleQueue)
    running: dict[int, "Future[str]"] = field(default_factory=dict)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4))
    is_cancelled: bool = False

    def begin(self, ticket: int, parcel: Parcel, attempt: int, earlier_losses: int) -> None:
        order = Order(self.work.config, "fake", attempt, earlier_losses)
        line = Wire(self, ticket, self.work.ledger, is_dying=ticket in self.dying)
        if ticket in self.unplaced:
            self.running[ticket] = self.pool.submit(str)
            return
        self.running[ticket] = self.pool.submit(play, parcel, order, line)

    def messages(self) -> list[tuple[int, Any]]:
        return [self.sent.get() for _ in range(self.sent.qsize())]

    def ended(self, timeout_s: float) -> list[tuple[int, str | Lost | Unplaced]]:
        found: list[tuple[int, str | Lost | Unplaced]] = []
        for ticket, future in list(self.running.items()):
            try:
                outcome = future.result(timeout_s)
                found.append((ticket, Unplaced() if ticket in self.unplaced else outcome))
            except TimeoutError:
                continue
            except InfraError as error:
                found.append((ticket, Lost(str(error))))
            del self.running[ticket]
        return found

    def cancel(self) -> None:
        self.is_cancelled = True


@dataclass
class Wire:
    """The way back of one attempt; a dying machine's breaks before its records are through."""

    machines: Machines
    ticket: int
    ledger: RunLedger
    is_dying: bool

    def send(self, message: Reached | Piece) -> None:
        if self.is_dying and isinstance(message, Piece):
            raise InfraError("the node is gone")
        self.machines.sent.put((self.ticket, message))

    def is_cancelled(self) -> bool:
        return self.machines.is_cancelled


@pytest.fixture
def elsewhere(bench: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Run a configuration on machines of which some die; return results, the run's records and what was told."""
    monkeypatch.setenv("TMPDIR", str(bench.tmp))
    used: list[Machines] = []

    def run(
        dying: set[int] | None = None,
        unplaced: set[int] | None = None,
        on_event: Callable[[TrialEvent], object] = lambda event: None,
        **given: object,
    ) -> Any:
        config = bench.config(**given)
        prepared = prepare(config)
        paths = create_run(config.out)
        paths.config.write_text("agents: []\n")
        events: list[TrialEvent] = []

        def notify(event: TrialEvent) -> None:
            events.append(event)
            on_event(event)

        ledger = RunLedger(config.budget)
        slots = Slots(2, 48, Capacity(2, 4000))
        work = Work(config, paths, [(plan, ()) for plan in prepared.plans], slots, ledger, notify)
        machines = Machines(work, dying or set(), unplaced or set())
        used.append(machines)
        with claimed(paths):
            results = Crowd(work, machines, "fake").run()
        return results, read_run(paths.root), events

    yield run
    for machines in used:
        machines.pool.shutdown()


def test_records_of_other_machines_are_those_of_this_one(elsewhere: Any) -> None:
    results, records, events = elsewhere(agents=["oracle", "null"], repeats=2)
    assert {(r.agent, r.repeat, r.score) for r in results} == {
        (agent, repeat, score) for agent, score in (("oracle", 1.0), ("null", 0.0)) for repeat in (0, 1)
    }
    for attempt in records.attempts:
        assert attempt.result in results
        assert attempt.result is not None
        assert len(read_trajectory(attempt.paths)) == attempt.result.steps
        assert {path.name for path in attempt.paths.root.iterdir() if path.is_dir()} == {"screens", "guest", "logs"}
    assert not list(records.paths.root.rglob("*.partial"))
    phases = [event.phase for event in events if event.plan.key == ("copy-csv", "oracle", 0) and event.result is None]
    assert phases == ["waiting", "fork", "setup", "agent", "agent", "agent", "agent", "evaluate"]


def test_what_a_lost_machine_held_runs_again_and_is_kept(elsewhere: Any) -> None:
    results, records, _ = elsewhere(dying={2}, repeats=3)
    assert [result.score for result in results] == [1.0] * 3
    lost = [attempt.result for attempt in records.attempts if attempt.result not in results]
    assert [(result.status, result.score, result.attempt) for result in lost] == [(TrialStatus.INFRA_ERROR, None, 0)]
    assert lost[0].error == "lost with its node in evaluate: the node is gone"
    assert len(records.attempts) == 4


def test_an_attempt_that_no_machine_took_leaves_nothing(elsewhere: Any) -> None:
    results, records, _ = elsewhere(unplaced={1, 2, 3}, repeats=2)
    assert [(result.score, result.attempt) for result in results] == [(1.0, 0)] * 2
    assert len(records.attempts) == 2


def test_a_trial_whose_machines_are_all_lost_ends(elsewhere: Any) -> None:
    (result,), records, _ = elsewhere(dying=set(range(100)))
    assert (result.status, result.score) == (TrialStatus.INFRA_ERROR, None)
    assert len(records.attempts) == 4


def test_an_interrupt_has_records_handed_in(elsewhere: Any, csv_task: Path) -> None:
    (csv_task / "solution.py").write_text("# %%\n1\n# %%\nimport time\ntime.sleep(60)\n")
    told: list[int] = []

    def interrupt(event: TrialEvent) -> None:
        if event.step == 1 and event.result is None and not told:
            told.append(event.step)
            signal.raise_signal(signal.SIGINT)

    results, records, _ = elsewhere(on_event=interrupt, repeats=5)
    assert {result.status for result in results} == {TrialStatus.CANCELLED}
    assert 1 <= len(results) <= 2
    assert [attempt.result for attempt in records.attempts if attempt.result] == sorted(
        results, key=lambda result: result.repeat
    )


def test_a_budget_begins_nothing_more(elsewhere: Any, csv_task: Path) -> None:
    (csv_task / "solution.py").write_text("# %%\nimport time\ntime.sleep(60)\n# %%\n1\n")
    results, records, _ = elsewhere(repeats=6, **{"budget.seconds": 3})
    assert {result.status for result in results} == {TrialStatus.LIMIT}
    assert len(records.attempts) == len(results) <= 2


def test_everything_a_trial_needs_goes_along(bench: Any, csv_task: Path, tmp_path: Path) -> None:
    (bench.tmp / "steps.jsonl").write_text('{"code": "1"}\n')
    (plan,) = prepare(bench.config(agents=[f"replay:{bench.tmp}/steps.jsonl"])).plans
    supply = SupplyStep(source=csv_task / "gold.csv", target="/home/user/Desktop/more.csv")
    task = plan.task.model_copy(update={"setup": (*plan.task.setup, supply)})
    parcel = pack(replace(plan, task=task))
    for path in (csv_task / "in.csv", csv_task / "gold.csv", bench.tmp / "steps.jsonl"):
        path.unlink()
    there = unpack(parcel, tmp_path / "there")
    assert (there.task.id, there.key, there.model) == (plan.task.id, plan.key, plan.model)
    for file in (*there.task.host_files(), there.task.setup[-1].source):  # type: ignore[union-attr]
        assert there.task.host_path(file).read_text() == "a,b\n1,2\n"
        assert there.task.host_path(file).is_relative_to(tmp_path / "there")
    assert isinstance(there.agent, ReplayConfig)
    assert there.agent.file.read_text() == '{"code": "1"}\n'
    with pytest.raises(ConfigError, match=r"in\.csv cannot be read"):
        pack(plan)


def test_a_folder_comes_back_as_it_was(tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    (sent / "logs" / "empty").mkdir(parents=True)
    (sent / "large").write_bytes(bytes(range(256)) * 20_000)
    (sent / "logs" / "nothing").write_bytes(b"")
    (sent / "link").symlink_to("/etc/passwd")
    paths = AttemptPaths(tmp_path / "run" / "attempt-0")
    arrival = Arrival(paths)
    for piece in pieces(sent):
        assert piece.content is None or len(piece.content) <= 2 * 2**20
        arrival.add(piece)
        assert not paths.root.exists(), "seen before it was whole"
    arrival.finish()
    assert (paths.root / "large").read_bytes() == (sent / "large").read_bytes()
    assert (paths.root / "logs" / "empty").is_dir()
    assert (paths.root / "logs" / "nothing").read_bytes() == b""
    assert not (paths.root / "link").is_symlink()


@pytest.mark.parametrize("path", ["../escaped", "/etc/escaped", "logs/../../escaped"])
def test_a_piece_never_leaves_its_folder(tmp_path: Path, path: str) -> None:
    arrival = Arrival(RunPaths(tmp_path).attempt("t", "a", 0, 0))
    with pytest.raises(InfraError, match="not below it"):
        arrival.add(Piece(path, b"x"))
    assert not list(tmp_path.rglob("escaped"))


def test_what_a_killed_caller_left_of_an_attempt_is_not_mixed_with_the_next(tmp_path: Path) -> None:
    paths = AttemptPaths(tmp_path / "attempt-0")
    Arrival(paths).add(Piece("old", b"old"))
    again = Arrival(paths)
    again.add(Piece("new", b"new"))
    again.finish()
    assert [path.name for path in paths.root.iterdir()] == ["new"]


def test_a_trial_keeps_the_name_of_its_model(bench: Any, tmp_path: Path) -> None:
    script = tmp_path / "said.yaml"
    script.write_text('- "<code>\\nfinal_answer(1)\\n</code>"\n')
    (plan,) = prepare(bench.config(agents=["code"], model=f"scripted:{script}")).plans
    there = unpack(pack(plan), tmp_path / "there")
    assert there.model == plan.model == f"scripted:{tmp_path.name}/said.yaml"
    assert f"{tmp_path}/there" in str(there.agent)
