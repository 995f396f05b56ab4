"""Guards sealing and examining: an end state that changes while it is judged, and an agent that is run by its judge."""

import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from deskfork.core.config import cache_dir
from deskfork.core.errors import ConfigError, GuestFileError, SandboxError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import GUEST_DESKTOP, GUEST_HOME, FinalState, Sandbox, SandboxProvider, load_state
from deskfork.sandbox.templates.baked import BakeOptions
from deskfork.sandbox.templates.listing import list_templates
from deskfork.sandbox.templates.use import retire
from left_behind import left_of

SOON_S = 60.0
OWNER = """
import sys
from pathlib import Path
from deskfork.sandbox.open import open_provider
provider = open_provider(sys.argv[1], Path(sys.argv[2]))
sandbox = provider.fork("desktop")
examined = provider.examine(sandbox.seal(timeout_s=60))
print(sandbox.facts.id, examined.facts.id, flush=True)
sys.stdin.read()
"""
AGENT = r"""
set -e
cd ~/Desktop
printf answer > answer.txt
mkdir -p ~/notes ~/.jupyter ~/.local/lib/python3.11/site-packages folder
printf noted > ~/notes/note.txt
ln -s ../notes notes
ln -s /etc/passwd link
ln -s loop-b loop-a
ln -s loop-a loop-b
mkfifo pipe eval.sh
printf 'alias jupyter=false\n' >> ~/.bashrc
printf 'raise SystemExit(3)' | tee json.py ~/.jupyter/jupyter_config.py > ~/.local/lib/python3.11/site-packages/csv.py
(while :; do echo $RANDOM$RANDOM > next; mv next moving.txt; done) > /dev/null 2>&1 &
until [ -e moving.txt ]; do sleep 0.05; done
"""


@dataclass(frozen=True)
class Ended:
    """A sandbox that was sealed, and what it left."""

    sandbox: Sandbox
    state: FinalState


@pytest.fixture(scope="module")
def ended(provider: SandboxProvider) -> Iterator[Ended]:
    with provider.fork("desktop") as sandbox:
        done = sandbox.exec(["bash", "-c", AGENT], timeout_s=SOON_S)
        assert done.exit_code == 0, done.stderr
        yield Ended(sandbox, sandbox.seal(timeout_s=SOON_S))


@pytest.fixture(scope="module")
def examined(provider: SandboxProvider, ended: Ended) -> Iterator[Sandbox]:
    with provider.examine(ended.state) as sandbox:
        yield sandbox


def read(sandbox: Sandbox, path: PurePosixPath, folder: Path) -> str:
    target = folder / f"{sandbox.facts.id}-{path.name}"
    sandbox.get(path, target)
    return target.read_text()


def test_a_sealed_sandbox_refuses_everything_but_its_logs(ended: Ended, tmp_path: Path) -> None:
    sealed = ended.sandbox
    refused: list[Callable[[], object]] = [
        lambda: sealed.exec(["true"], timeout_s=5),
        lambda: sealed.put(b"", PurePosixPath("/tmp/x")),
        lambda: sealed.get(PurePosixPath("/tmp/x"), tmp_path / "x"),
        lambda: sealed.run_cell("1", timeout_s=5),
        sealed.screenshot,
        sealed.desktop,
        sealed.checkpoint,
        lambda: sealed.branch(1),
        lambda: sealed.seal(timeout_s=5),
    ]
    for operation in refused:
        with pytest.raises(SandboxError, match="sealed"):
            operation()
    assert not sealed.is_alive()
    sealed.save_logs(tmp_path)
    assert (tmp_path / "console.log").exists()


def test_what_was_left_is_read(examined: Sandbox, provider: SandboxProvider, tmp_path: Path) -> None:
    assert read(examined, GUEST_DESKTOP / "answer.txt", tmp_path) == "answer"
    assert read(examined, GUEST_DESKTOP / "notes" / "note.txt", tmp_path) == "noted"
    facts = examined.facts
    assert (facts.provider, facts.template, facts.network) == (provider.name, "desktop", False)
    assert facts.template_digest == provider.describe("desktop").digest


def test_examinations_agree_and_share_nothing(
    provider: SandboxProvider, ended: Ended, examined: Sandbox, tmp_path: Path
) -> None:
    moving = GUEST_DESKTOP / "moving.txt"
    first = read(examined, moving, tmp_path)
    assert first
    examined.put(b"changed", GUEST_DESKTOP / "answer.txt")
    examined.put(b"added", PurePosixPath("/tmp/added.txt"))
    with provider.examine(ended.state) as other:
        assert read(other, moving, tmp_path) == first
        assert read(other, GUEST_DESKTOP / "answer.txt", tmp_path) == "answer"
        with pytest.raises(GuestFileError):
            other.get(PurePosixPath("/tmp/added.txt"), tmp_path / "added")
    assert left_of(other.facts.id) == []
    assert read(examined, moving, tmp_path) == first
    examined.put(b"answer", GUEST_DESKTOP / "answer.txt")


def test_nothing_that_the_agent_left_is_run(examined: Sandbox) -> None:
    for script in ("import json", "import csv"):
        done = examined.exec(["python3", "-c", script], cwd=GUEST_DESKTOP, timeout_s=SOON_S)
        assert done.exit_code == 0, done.stderr
    hidden = "test ! -e ~/.bashrc && test ! -e ~/.jupyter && test ! -e ~/.local/lib && test -d ~/notes"
    assert examined.exec(["bash", "-c", hidden], timeout_s=SOON_S).exit_code == 0


def test_what_is_hidden_from_programs_can_be_read(examined: Sandbox, tmp_path: Path) -> None:
    assert "alias jupyter=false" in read(examined, GUEST_HOME / ".bashrc", tmp_path)
    assert "SystemExit" in read(examined, GUEST_HOME / ".jupyter" / "jupyter_config.py", tmp_path)


@pytest.mark.parametrize("name", ["pipe", "link", "loop-a", "loop-a/x", "answer.txt/x", "missing"])
def test_what_is_no_file_is_the_guests_fact(examined: Sandbox, tmp_path: Path, name: str) -> None:
    with pytest.raises(GuestFileError):
        examined.get(GUEST_DESKTOP / name, tmp_path / "back", timeout_s=30)


def test_a_script_replaces_what_the_agent_left_at_its_place(examined: Sandbox) -> None:
    examined.put(b"echo judged", GUEST_DESKTOP / "eval.sh", timeout_s=30)
    done = examined.exec(["bash", "eval.sh"], cwd=GUEST_DESKTOP, timeout_s=SOON_S)
    assert (done.exit_code, done.stdout) == (0, "judged\n")


def test_cells_work_on_the_agents_desktop(examined: Sandbox) -> None:
    cell = examined.run_cell("import os, json; print('answer.txt' in os.listdir())", timeout_s=SOON_S)
    assert (cell.error, cell.stdout) == (None, "True\n")


def test_an_examination_is_no_starting_point(examined: Sandbox) -> None:
    refused: list[Callable[[], object]] = [
        examined.checkpoint,
        lambda: examined.branch(1),
        lambda: examined.seal(timeout_s=5),
    ]
    for operation in refused:
        with pytest.raises(SandboxError, match="examine"):
            operation()
    assert examined.is_alive()


def test_a_state_is_kept_beyond_its_sandbox(provider: SandboxProvider, tmp_path: Path) -> None:
    with provider.fork("desktop") as sandbox:
        sandbox.put(b"before", GUEST_DESKTOP / "before.txt")
        taken = sandbox.checkpoint()
        sandbox.put(b"lost", GUEST_DESKTOP / "lost.txt")
        # A machine that goes on from a checkpoint has its disk over one that ends with the sandbox.
        sandbox.restore(taken)
        sandbox.put(b"kept", GUEST_DESKTOP / "answer.txt")
        state = sandbox.seal(timeout_s=SOON_S)
        kept = state.keep(tmp_path / "state")
    assert not state.disk.exists()
    assert load_state(tmp_path / "state") == kept
    moved = (tmp_path / "state").rename(tmp_path / "elsewhere")
    with provider.examine(load_state(moved)) as sandbox:
        assert read(sandbox, GUEST_DESKTOP / "answer.txt", tmp_path) == "kept"
        assert read(sandbox, GUEST_DESKTOP / "before.txt", tmp_path) == "before"
        with pytest.raises(GuestFileError):
            sandbox.get(GUEST_DESKTOP / "lost.txt", tmp_path / "lost")
    with pytest.raises(ConfigError, match="gone"):
        provider.examine(state)


def test_what_was_done_over_a_baked_set_up_is_examined(provider: SandboxProvider, tmp_path: Path) -> None:
    key = uuid.uuid4().hex

    def prepare(sandbox: Sandbox) -> None:
        sandbox.put(b"prepared", GUEST_DESKTOP / "prepared.txt")

    try:
        provider.bake("desktop", key, prepare, task=f"final-{key}", options=BakeOptions())
        with provider.fork("desktop", baked=key) as sandbox:
            assert sandbox.facts.baked == key
            sandbox.put(b"done", GUEST_DESKTOP / "done.txt")
            state = sandbox.seal(timeout_s=SOON_S).keep(tmp_path / "state")
        with provider.examine(state) as examined:
            assert read(examined, GUEST_DESKTOP / "prepared.txt", tmp_path) == "prepared"
            assert read(examined, GUEST_DESKTOP / "done.txt", tmp_path) == "done"
    finally:
        for found in list_templates(cache_dir()):
            if found.task == f"final-{key}":
                assert retire(found.directory)
    if state.kind == "disk":
        with pytest.raises(ConfigError, match="gone from the cache"):
            provider.examine(state)


def test_a_state_of_another_image_is_refused(provider: SandboxProvider, ended: Ended) -> None:
    with pytest.raises(ConfigError, match="image"):
        provider.examine(ended.state.model_copy(update={"image_digest": "0" * 64}))


def test_a_folder_without_a_state_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no final state"):
        load_state(tmp_path)
    (tmp_path / "final-state.json").write_text('{"kind": "disk"')
    with pytest.raises(ConfigError, match="no final state"):
        load_state(tmp_path)


def test_a_closed_sandbox_cannot_be_sealed(provider: SandboxProvider) -> None:
    with provider.fork("desktop") as sandbox:
        pass
    with pytest.raises(SandboxError, match="closed"):
        sandbox.seal(timeout_s=5)


def test_a_final_state_and_its_examination_die_with_their_owner(provider: SandboxProvider) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, provider.name, str(cache_dir())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        try:
            assert owner.stdout is not None
            names = owner.stdout.readline().split()
            assert len(names) == 2
            assert all(left_of(name) for name in names)
        finally:
            owner.send_signal(signal.SIGKILL)
            owner.wait(20)
    assert wait_until(lambda: not any(left_of(name) for name in names), Deadline.after(30)), names
