"""Sandboxes that outlive the command that started them: a process of their own holds each.

`start_held` runs `python -m deskfork.sandbox.hold …`; that process is the sandbox's owner and ends it on SIGTERM.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from deskfork.core.errors import ConfigError, DeskforkError, SandboxError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.forking import FORK_TIMEOUT_S
from deskfork.sandbox.live import SandboxRecord, sandboxes_dir
from deskfork.sandbox.open import open_vm_provider

STOP_TIMEOUT_S = 30.0


def start_held(cache_dir: Path, provider: str, template: str, *, network: bool) -> str:
    """Start a sandbox that stays until `stop_held`; return its id.

    Raises:
        ConfigError: It was refused.
        SandboxError: It did not come up.
    """
    command = [sys.executable, "-m", "deskfork.sandbox.hold", str(cache_dir), provider, template, str(int(network))]
    holder = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    line = _first_line(holder, Deadline.after(FORK_TIMEOUT_S + 30.0))
    try:
        answer = json.loads(line)
    except ValueError as error:
        holder.kill()
        raise SandboxError(f"the process that holds the sandbox ended without a word (exit {holder.wait()})") from error
    if "id" in answer:
        return str(answer["id"])
    holder.wait(timeout=STOP_TIMEOUT_S)
    kind = ConfigError if answer["is_config"] else SandboxError
    raise kind(answer["error"])


def stop(cache_dir: Path, record: SandboxRecord) -> None:
    """End a sandbox that `sandbox start` started.

    Raises:
        ConfigError: It belongs to a run, which would take its end for a fault.
        SandboxError: It did not end in time.
    """
    if not record.is_held:
        raise ConfigError(
            f"sandbox {record.id} belongs to process {record.owner_pid}, which ends it itself: stop that process"
        )
    with suppress(ProcessLookupError):
        os.kill(record.owner_pid, signal.SIGTERM)
    directory = sandboxes_dir(cache_dir) / record.id
    if not wait_until(lambda: not directory.exists(), Deadline.after(STOP_TIMEOUT_S)):
        raise SandboxError(f"sandbox {record.id} did not end in {STOP_TIMEOUT_S:.0f} s: try `deskfork sandbox prune`")


def hold(cache_dir: Path, provider_name: str, template: str, *, network: bool) -> None:
    """Own one sandbox until SIGTERM; print its id, or why there is none, as one line of JSON."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        with open_vm_provider(provider_name, cache_dir, is_holding=True) as provider:
            sandbox = provider.fork(template, network=network)
            _say({"id": sandbox.facts.id})
            # Either the order to end, or once a second a look at whether there is still something to hold.
            while sandbox.is_alive() and signal.sigtimedwait({signal.SIGTERM, signal.SIGINT}, 1.0) is None:
                continue
    except DeskforkError as error:
        _say({"error": str(error), "is_config": isinstance(error, ConfigError)})


def _say(answer: dict[str, object]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


def _first_line(holder: subprocess.Popen[bytes], deadline: Deadline) -> bytes:
    pipe = holder.stdout
    if pipe is None:
        return b""
    with selectors.DefaultSelector() as selector, pipe:
        selector.register(pipe, selectors.EVENT_READ)
        return pipe.readline() if selector.select(deadline.remaining_s) else b""


if __name__ == "__main__":
    hold(Path(sys.argv[1]), sys.argv[2], sys.argv[3], network=bool(int(sys.argv[4])))
