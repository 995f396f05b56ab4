"""Runs trials on the nodes of a Ray cluster; the only module that imports ray.

Each attempt is one Ray task, placed by memory and, while there are any, on nodes with the custom resource `kvm`. Nodes
need deskfork itself, the keys of models in their environment, and nothing else: what a trial needs comes with it. Its
events, what it uses and its records come back through an actor on the caller's node, the desk.
"""

import os
import socket
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, TaskCancelledError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from deskfork.agent.limits import Limits
from deskfork.agent.models.built import Price
from deskfork.core.config import cache_dir
from deskfork.core.errors import ConfigError, InfraError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.records.trial import TokenUsage, TrialResult
from deskfork.sandbox.base import TemplateFacts
from deskfork.sandbox.open import open_provider
from deskfork.tasks.schema import Task
from deskfork.trial.budget import RunBudget, RunLedger
from deskfork.trial.capacity import Capacity, Slots, sandbox_mib
from deskfork.trial.config import RunConfig
from deskfork.trial.engines.crowd import Crowd, Lost, Reached, Unplaced
from deskfork.trial.engines.engine import Work
from deskfork.trial.engines.node import BUILD_TIMEOUT_S, Order, make_ready, play
from deskfork.trial.engines.parcel import Parcel, Piece

_ray: Any = ray
"""As Ray's own annotations, which are in part wrong and in part missing, do not get in the way."""
KVM = "kvm"
"""Custom resource of nodes on which guests run under KVM; one for each sandbox."""
_CONNECT_TIMEOUT_S = 10.0
_ASK_TIMEOUT_S = 60.0
_POST_TIMEOUT_S = 300.0
_BACKLOG = 32
"""Messages that wait at the desk for the caller; pieces of records among them have up to 2 MiB."""


class _Desk:
    """Where nodes hand in what they have, and ask whether they may go on; one, on the caller's node."""

    def __init__(self, budget: RunBudget, tokens: int, cost_usd: float) -> None:
        self._ledger = RunLedger(budget, tokens=tokens, cost_usd=cost_usd)
        self._messages: deque[tuple[int, Any]] = deque()
        self._is_cancelled = False

    def spent(self) -> str:
        return self._ledger.spent()

    def book(self, tokens: TokenUsage | None, price: Price | None) -> None:
        self._ledger.book(tokens, price)

    def within(self, limits: Limits) -> Limits:
        return self._ledger.within(limits)

    def post(self, ticket: int, message: Any) -> bool:
        if len(self._messages) >= _BACKLOG and isinstance(message, Piece):
            return False
        self._messages.append((ticket, message))
        return True

    def take(self) -> list[tuple[int, Any]]:
        taken = list(self._messages)
        self._messages.clear()
        return taken

    def cancel(self) -> None:
        self._is_cancelled = True

    def is_cancelled(self) -> bool:
        return self._is_cancelled


class FarLedger(RunLedger):
    """The ledger that lies on the desk."""

    def __init__(self, desk: Any) -> None:
        self.desk = desk

    def book(self, tokens: TokenUsage | None, price: Price | None) -> None:
        """See `RunLedger.book`; what is asked afterwards knows of it."""
        self.desk.book.remote(tokens, price)

    def spent(self) -> str:
        """See `RunLedger.spent`."""
        return str(_ask(self.desk.spent.remote()))

    def within(self, limits: Limits) -> Limits:
        """See `RunLedger.within`."""
        found: Limits = _ask(self.desk.within.remote(limits))
        return found


class RayEngine:
    """Carries out trials on a cluster; see `Engine`."""

    def __init__(self, address: str, provider: str) -> None:
        """Connect.

        Args:
            address: See `RunConfig.ray_address`.
            provider: Name of the provider that every node opens.

        Raises:
            ConfigError: There is no cluster at that address.
        """
        # Ray tells its makers about every cluster unless it is told not to.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self.provider = provider
        try:
            _require_listener(address)
            _ray.init(address=address, log_to_driver=False, logging_level="ERROR", ignore_reinit_error=True)
        except (RayError, OSError, RuntimeError, ValueError, OverflowError) as error:
            raise ConfigError(
                f"no Ray cluster answers at {address}: {error}; start one with `ray start --head`, or use"
                " --ray-address local"
            ) from error

    def templates(self, tasks: tuple[Task, ...]) -> tuple[TemplateFacts, ...]:
        """Build images and templates where they are missing; see `Engine.templates`."""
        names = sorted({task.template for task in tasks})
        prepare = _ray.remote(num_cpus=0, max_retries=0)(_prepare_node)
        places = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in _nodes()]
        asked = [prepare.options(scheduling_strategy=place).remote(self.provider, names) for place in places]
        found = [facts for answer in asked for facts in _ask(answer, BUILD_TIMEOUT_S)]
        return tuple({(facts.name, facts.digest): facts for facts in found}.values())

    def slots(self, config: RunConfig, templates: Sequence[TemplateFacts]) -> Slots:
        """Go by the nodes' processors and memory; see `Engine.slots`."""
        if config.cache is not None:
            raise ConfigError("a cache of answers lies on one machine: drop --cache, or run without --engine ray")
        need_mib = sandbox_mib(self.provider)
        nodes = _nodes()
        fitting = sum(_fitting(node, need_mib) for node in nodes)
        if not fitting:
            raise ConfigError(f"no node of the cluster has a processor and {need_mib} MiB of memory for one sandbox")
        capacity = Capacity(sum(map(_cores, nodes)), sum(map(_memory_mib, nodes)))
        count = fitting if config.parallel == "auto" else config.parallel
        warning = f"{count} at a time of {fitting} that fit: --parallel auto uses all" if count < fitting else ""
        return Slots(min(count, fitting), need_mib, capacity, warning)

    def ledger(self, budget: RunBudget, *, tokens: int, cost_usd: float) -> RunLedger:
        """Count at the desk; see `Engine.ledger`."""
        # Not softly: observed with ray 2.60, that puts it on another node at times, and it would be lost with that.
        here = NodeAffinitySchedulingStrategy(_ray.get_runtime_context().get_node_id(), soft=False)
        make = _ray.remote(num_cpus=0, scheduling_strategy=here)(_Desk)
        return FarLedger(make.remote(budget, tokens, cost_usd))

    def run(self, work: Work) -> list[TrialResult]:
        """Run trials on the nodes; see `Engine.run`."""
        assert isinstance(work.ledger, FarLedger)
        return Crowd(work, _Tasks(work, self.provider, work.ledger.desk), self.provider).run()

    def close(self) -> None:
        """Leave the cluster, which ends what still runs there for us."""
        _ray.shutdown()


@dataclass
class _Tasks:
    """Attempts as Ray tasks; see `crowd.Tasks`."""

    work: Work
    provider: str
    desk: Any
    _tickets: dict[Any, int] = field(default_factory=dict)
    _with_kvm: set[Any] = field(default_factory=set)

    def begin(self, ticket: int, parcel: Parcel, attempt: int, earlier_losses: int) -> None:
        order = Order(self.work.config, self.provider, attempt, earlier_losses)
        play = _ray.remote(num_cpus=1, memory=self.work.slots.sandbox_mib * 2**20, max_retries=0)(_play)
        # Not by what Ray says is free, which lags behind.
        if _count_kvm(_nodes()) > len(self._with_kvm):
            reference = play.options(resources={KVM: 1}).remote(self.desk, ticket, parcel, order)
            self._with_kvm.add(reference)
        else:
            reference = play.remote(self.desk, ticket, parcel, order)
        self._tickets[reference] = ticket

    def messages(self) -> list[tuple[int, Any]]:
        taken: list[tuple[int, Any]] = _ask(self.desk.take.remote())
        return taken

    def ended(self, timeout_s: float) -> list[tuple[int, str | Lost | Unplaced]]:
        references = list(self._tickets)
        done, _ = _ray.wait(references, num_returns=len(references), timeout=timeout_s)
        if not done:
            self._take_back_stranded()
        self._with_kvm.difference_update(done)
        return [(self._tickets.pop(reference), _outcome(reference)) for reference in done]

    def cancel(self) -> None:
        self.desk.cancel.remote()

    def _take_back_stranded(self) -> None:
        """Do not wait for a node of a kind of which none is left, as Ray does, for ever.

        Raises:
            InfraError: There is none at all on which a trial could run.
        """
        nodes, need_mib = _nodes(), self.work.slots.sandbox_mib
        if not any(_fitting(node, need_mib) for node in nodes):
            raise InfraError(
                f"no node of the Ray cluster is left that fits a sandbox of {need_mib} MiB; `deskfork run resume` goes"
                " on once there is one"
            )
        if not _count_kvm(nodes):
            for reference in self._with_kvm:
                _ray.cancel(reference)
            self._with_kvm.clear()


def _outcome(reference: Any) -> str | Lost | Unplaced:
    try:
        return str(_ray.get(reference, timeout=_ASK_TIMEOUT_S))
    except TaskCancelledError:
        return Unplaced()
    except RayError as error:
        return Lost(" ".join(str(error).split())[:500])


def _require_listener(address: str) -> None:
    """Ask before Ray does, which goes on trying for minutes.

    Raises:
        OSError: Nothing listens there.
        ValueError: It names a port that is none.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()


def _nodes() -> list[dict[str, Any]]:
    return [node for node in _ray.nodes() if node["Alive"] and _cores(node)]


def _cores(node: dict[str, Any]) -> int:
    return int(node["Resources"].get("CPU", 0))


def _memory_mib(node: dict[str, Any]) -> int:
    return int(node["Resources"].get("memory", 0) / 2**20)


def _fitting(node: dict[str, Any], need_mib: int) -> int:
    """How many sandboxes fit."""
    return min(_cores(node), _memory_mib(node) // need_mib)


def _count_kvm(nodes: list[dict[str, Any]]) -> int:
    return int(sum(node["Resources"].get(KVM, 0) for node in nodes))


def _ask(reference: Any, timeout_s: float = _ASK_TIMEOUT_S) -> Any:
    """Return what a task or an actor answered.

    Raises:
        ConfigError: It refused.
        InfraError: It failed, or did not answer in time.
    """
    try:
        return _ray.get(reference, timeout=timeout_s)
    except GetTimeoutError as error:
        raise InfraError(f"the Ray cluster gave no answer in {timeout_s:.0f} s") from error
    except RayError as error:
        if isinstance(cause := getattr(error, "cause", None), ConfigError):
            raise ConfigError(f"a node of the Ray cluster: {cause}") from error
        raise InfraError(f"the Ray cluster failed: {' '.join(str(error).split())[:500]}") from error


def _prepare_node(provider: str, names: list[str]) -> tuple[TemplateFacts, ...]:
    with closing(open_provider(provider, cache_dir())) as opened:
        return make_ready(opened, names)


@dataclass(frozen=True)
class _Line:
    """The way from a node to the desk; see `node.Line`."""

    desk: Any
    ticket: int

    @property
    def ledger(self) -> RunLedger:
        return FarLedger(self.desk)

    def send(self, message: Reached | Piece) -> None:
        def is_taken() -> bool:
            return bool(_ask(self.desk.post.remote(self.ticket, message)))

        if not wait_until(is_taken, Deadline.after(_POST_TIMEOUT_S), interval_s=0.1):
            raise InfraError(f"records were not taken from this node in {_POST_TIMEOUT_S:.0f} s")

    def is_cancelled(self) -> bool:
        return bool(_ask(self.desk.is_cancelled.remote()))


def _play(desk: Any, ticket: int, parcel: Parcel, order: Order) -> str:
    return play(parcel, order, _Line(desk, ticket))
