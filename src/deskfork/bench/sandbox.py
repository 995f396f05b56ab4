"""Measuring boot, fork and channels of a provider on the machine at hand."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from deskfork.bench.agents import framework_seconds
from deskfork.bench.figures import Figure, SandboxFigures
from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.provider import VmProvider
from deskfork.sandbox.running import private_memory_mib, settle
from deskfork.sandbox.vm import VmSandbox

TEMPLATE = "jupyter"
AT_ONCE = 4
_CELL = "print(1)"
_MB_PER_MIB = 2**20 / 1e6


def bench_sandbox(provider: VmProvider, on_progress: Callable[[str], None], *, forks: int) -> SandboxFigures:
    """Measure one provider with the `jupyter` template.

    Args:
        provider: Opened by the caller; its template must be built.
        on_progress: Told what is being measured.
        forks: How many forks to time one after the other.

    Raises:
        ConfigError: The template is not built.
        InfraError: A machine failed while it was measured.
    """
    on_progress("booting cold to the template's state")
    cold = provider.time_cold_boot(TEMPLATE)
    fork_s: list[float] = []
    disk_mb: list[float] = []
    memory_mb: list[float] = []
    for number in range(forks):
        on_progress(f"fork {number + 1} of {forks}")
        seconds, sandbox = _timed_fork(provider)
        with sandbox:
            fork_s.append(seconds)
            settle(sandbox.qemu_pid, Deadline.after(30.0))
            disk_mb.append(_occupied_mb(sandbox.directory))
            memory_mb.append(private_memory_mib(sandbox.qemu_pid) * _MB_PER_MIB)
    on_progress(f"{AT_ONCE} forks at once")
    at_once = [_forks_at_once(provider) for _ in range(3)]
    on_progress("cells, screenshots and agent steps")
    with provider.fork(TEMPLATE) as sandbox:
        settle(sandbox.qemu_pid, Deadline.after(30.0))
        cells = _repeat(lambda: _answer(sandbox), warm_up=20, n=50)
        screens = _repeat(lambda: sandbox.screenshot().load(), warm_up=3, n=30)
        framework = framework_seconds(sandbox)
    fork = Figure.of(fork_s)
    return SandboxFigures(
        cold_boot_s=Figure.of([cold]),
        fork_to_first_output_s=fork,
        speedup=round(cold / fork.median, 1),
        four_at_once_s=Figure.of(at_once),
        disk_per_fork_mb=Figure.of(disk_mb),
        private_memory_per_fork_mb=Figure.of(memory_mb),
        cell_round_trip_ms=Figure.of([1000 * s for s in cells]),
        screenshot_ms=Figure.of([1000 * s for s in screens]),
        framework_ms_per_step=Figure.of([1000 * s for s in framework]),
    )


def _timed_fork(provider: VmProvider) -> tuple[float, VmSandbox]:
    started = time.monotonic()
    with ExitStack() as undo:
        sandbox = undo.enter_context(provider.fork(TEMPLATE))
        _answer(sandbox)
        seconds = time.monotonic() - started
        undo.pop_all()
    return seconds, sandbox


def _forks_at_once(provider: VmProvider) -> float:
    started = time.monotonic()
    with ExitStack() as opened, ThreadPoolExecutor(AT_ONCE) as pool:
        for asked in [pool.submit(_timed_fork, provider) for _ in range(AT_ONCE)]:
            opened.enter_context(asked.result()[1])
        return time.monotonic() - started


def _answer(sandbox: VmSandbox) -> None:
    result = sandbox.run_cell(_CELL, timeout_s=60.0)
    if result.stdout != "1\n":
        raise InfraError(f"{sandbox.facts.id}: {_CELL} answered {result.stdout!r} instead of '1'")


def _repeat(action: Callable[[], object], *, warm_up: int, n: int) -> list[float]:
    seconds = []
    for number in range(warm_up + n):
        started = time.monotonic()
        action()
        if number >= warm_up:
            seconds.append(time.monotonic() - started)
    return seconds


def _occupied_mb(directory: Path) -> float:
    return sum(path.stat().st_blocks * 512 for path in directory.iterdir() if path.is_file()) / 1e6
