"""What a node of a cluster does: builds images and templates once, and runs attempts that are sent to it."""

import fcntl
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from deskfork.core.config import cache_dir
from deskfork.core.errors import ConfigError, InfraError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.records.paths import RunPaths
from deskfork.sandbox.base import SandboxProvider, TemplateFacts
from deskfork.sandbox.images.build import build_images
from deskfork.sandbox.images.guest import DEFAULT_MIRROR
from deskfork.sandbox.open import open_provider
from deskfork.sandbox.provider import EXAMINING_TEMPLATE, VmProvider
from deskfork.trial.budget import RunLedger
from deskfork.trial.config import RunConfig
from deskfork.trial.engines.crowd import Reached
from deskfork.trial.engines.parcel import Parcel, Piece, pieces, unpack
from deskfork.trial.plan import TrialEvent, TrialSetting
from deskfork.trial.trial import run_attempt

BUILD_TIMEOUT_S = 7200.0
"""For images and templates of one node, which takes some ten minutes on two cores."""

_ASK_EVERY_S = 0.5
"""How often a node asks whether the run was cancelled."""


@dataclass(frozen=True)
class Order:
    """With what an attempt is to be run."""

    config: RunConfig
    provider: str
    attempt: int
    earlier_losses: int


class Line(Protocol):
    """The way back to the machine that has the run's directory."""

    @property
    def ledger(self) -> RunLedger:
        """The run's ledger."""
        ...

    def send(self, message: Reached | Piece) -> None:
        """Hand something in.

        Raises:
            InfraError: It was not taken.
        """
        ...

    def is_cancelled(self) -> bool:
        """Ask whether the run was cancelled."""
        ...


def play(parcel: Parcel, order: Order, line: Line) -> str:
    """Run one attempt on this machine and hand in its records.

    Returns:
        Its TrialResult as JSON.

    Raises:
        ConfigError: The provider cannot work here, or a template can neither be found nor built.
        InfraError: Building failed, or the way back did.
    """
    config = order.config
    with ExitStack() as stack:
        stack.enter_context(_interruptible_programs())
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="deskfork-node-")))
        plan = unpack(parcel, folder / "files")
        provider = open_provider(order.provider, cache_dir())
        stack.callback(provider.close)
        make_ready(provider, [plan.task.template])

        def notify(event: TrialEvent) -> None:
            line.send(Reached(event.phase, event.step))

        setting = TrialSetting(
            provider=provider,
            paths=RunPaths(folder / "run"),
            limits=config.limits,
            setup_timeout_s=config.setup_timeout_s,
            network=config.network,
            notify=notify,
            ledger=line.ledger,
            keep_state=config.keep_state,
            evaluations=config.evaluations,
        )
        stack.enter_context(_watching(line, setting))
        result = run_attempt(plan, setting, order.attempt, order.earlier_losses)
        for piece in pieces(setting.paths.attempt(*plan.key, order.attempt).root):
            line.send(piece)
        return result.model_dump_json()


@contextmanager
def _interruptible_programs() -> Iterator[None]:
    """Within the block, programs that are started can be interrupted.

    Observed with ray 2.60: its workers block SIGINT, programs inherit that, and a cell that overran its time could not
    be interrupted. This process itself goes on to take no notice of it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, lambda number, frame: None)
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _watching(line: Line, setting: TrialSetting) -> Iterator[None]:
    """Within the block, end the attempt when the run is cancelled, as Ctrl-C does where a run is local."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_ASK_EVERY_S):
            if line.is_cancelled():
                setting.cancelled.set()
                setting.provider.close()
                return

    watcher = threading.Thread(target=watch, name="cancellation", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join(_ASK_EVERY_S + 5.0)


def make_ready(provider: SandboxProvider, names: Sequence[str]) -> tuple[TemplateFacts, ...]:
    """Return the templates of this machine, and build those that are missing; others who ask meanwhile wait.

    Raises:
        ConfigError: They cannot be built here.
        InfraError: Building failed, or took too long elsewhere on this machine.
    """
    wanted = sorted({*names, EXAMINING_TEMPLATE})
    try:
        return tuple(provider.describe(name) for name in wanted)
    except ConfigError:
        if not isinstance(provider, VmProvider):
            raise
    with _locked(cache_dir() / "node.lock"):
        mirror = os.environ.get("DESKFORK_DEBIAN_MIRROR", DEFAULT_MIRROR)
        build_images(cache_dir(), lambda progress: None, mirror=mirror, is_forced=False)
        for name in wanted:
            if not _is_there(provider, name):
                provider.build(name, lambda line: None)
    return tuple(provider.describe(name) for name in wanted)


def _is_there(provider: SandboxProvider, name: str) -> bool:
    try:
        provider.describe(name)
    except ConfigError:
        return False
    return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:

        def is_free() -> bool:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        if not wait_until(is_free, Deadline.after(BUILD_TIMEOUT_S), interval_s=1.0):
            raise InfraError(f"{path}: another process builds images or templates for {BUILD_TIMEOUT_S:.0f} s")
        yield
