"""Guards what the fake promises beyond the conformance suite: injected faults, host paths apart, nothing left over."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import pytest

from deskfork.core.errors import ConfigError, GuestFileError, KernelLost, SandboxError, TransportError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import GUEST_DESKTOP, Sandbox
from deskfork.sandbox.fake.faults import FakeFaults
from deskfork.sandbox.fake.kernel import marked_processes
from deskfork.sandbox.fake.provider import FakeProvider, prune_fakes

OWNER = """
import sys
from pathlib import Path
from deskfork.sandbox.fake.provider import FakeProvider
provider = FakeProvider(parent=Path(sys.argv[1]))
sandbox = provider.fork("desktop")
sandbox.checkpoint()
(branch,) = sandbox.branch(1)
sandbox.run_cell("import subprocess; subprocess.Popen(['sleep', '600'])", timeout_s=5)
sandbox.exec(["bash", "-c", "setsid sleep 600 &"], timeout_s=5)
if sys.argv[2] == "kill kernels":
    for each in provider._open:
        for kernel in (each._kernel, *(snapshot.kernel for snapshot in each._snapshots.values())):
            kernel.close()
print(sandbox.facts.id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[FakeProvider]:
    opened = FakeProvider(parent=tmp_path)
    yield opened
    opened.close()
    assert list(tmp_path.glob("deskfork-fake-*")) == []


@pytest.fixture
def sandbox(provider: FakeProvider) -> Sandbox:
    return provider.fork("desktop")


def kernel_answers(sandbox: Sandbox) -> bool:
    return sandbox.run_cell("print(1)", timeout_s=5).stdout == "1\n"


def exists(sandbox: Sandbox, name: str) -> bool:
    return sandbox.exec(["test", "-e", name], cwd=GUEST_DESKTOP, timeout_s=5).exit_code == 0


def test_closing_the_provider_closes_what_it_opened(tmp_path: Path) -> None:
    provider = FakeProvider(parent=tmp_path)
    sandbox = provider.fork("jupyter")
    sandbox.exec(["bash", "-c", "setsid sleep 600 &"], timeout_s=5)
    assert marked_processes(sandbox.facts.id) != []
    provider.close()
    provider.close()
    assert not sandbox.is_alive()
    assert marked_processes(sandbox.facts.id) == []
    assert list(tmp_path.iterdir()) == []


def test_programs_and_cells_get_nothing_of_the_hosts_environment(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("DISPLAY", ":0")
    with provider.fork("desktop") as sandbox:
        code = "import os; print(os.environ.get('SOME_API_KEY'), os.environ.get('DISPLAY'))"
        assert sandbox.run_cell(code, timeout_s=5).stdout == "None None\n"
        assert sandbox.exec(["python3", "-c", code], timeout_s=5).stdout == "None None\n"


def test_guest_paths_as_arguments_are_mapped(sandbox: Sandbox) -> None:
    sandbox.put(b"echo $1 > made.txt\n", PurePosixPath("/tmp/make.sh"))
    done = sandbox.exec(["bash", "/tmp/make.sh", "text"], cwd=GUEST_DESKTOP, timeout_s=5)
    assert done.exit_code == 0
    assert sandbox.exec(["cat", "/home/user/Desktop/made.txt"], timeout_s=5).stdout == "text\n"


def test_dots_never_lead_out_of_the_guests_tree(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.put(b"x", PurePosixPath("/home/user/../../../../../../escaped"))
    assert not Path("/escaped").exists()
    sandbox.get(PurePosixPath("/escaped"), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"x"
    (tmp_path / "back").unlink()


def test_a_link_out_of_the_tree_is_not_followed(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.run_cell("import os; os.symlink('/etc/passwd', 'link')", timeout_s=5)
    with pytest.raises(GuestFileError):
        sandbox.get(GUEST_DESKTOP / "link", tmp_path / "back")


def test_putting_a_file_over_a_directory_fails(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TransportError):
        sandbox.put(tmp_path / "file", GUEST_DESKTOP)
    (tmp_path / "file").unlink()


def test_the_screen_changes_with_the_desktop(sandbox: Sandbox) -> None:
    before = sandbox.screenshot().tobytes()
    assert sandbox.screenshot().tobytes() == before
    sandbox.put(b"", GUEST_DESKTOP / "größe.txt")
    assert sandbox.screenshot().tobytes() != before


def test_the_screen_has_the_size_asked_for(tmp_path: Path) -> None:
    with FakeProvider(parent=tmp_path, size_px=(640, 480)).fork("desktop") as sandbox:
        assert sandbox.screenshot().size == (640, 480)
        assert sandbox.desktop().height_px == 480


def test_the_first_forks_can_fail(tmp_path: Path) -> None:
    provider = FakeProvider(parent=tmp_path, faults=FakeFaults(failing_forks=2))
    for _ in range(2):
        with pytest.raises(SandboxError):
            provider.fork("desktop")
    with provider.fork("desktop") as sandbox:
        assert kernel_answers(sandbox)
    with pytest.raises(ConfigError):
        provider.fork("warp")


def test_a_machine_can_die_in_a_cell_and_the_next_one_live(tmp_path: Path) -> None:
    provider = FakeProvider(parent=tmp_path, faults=FakeFaults(dies_in_cell=2, dying_sandboxes=1))
    with provider.fork("desktop") as sandbox:
        assert kernel_answers(sandbox)
        with pytest.raises(KernelLost):
            sandbox.run_cell("1", timeout_s=5)
        assert not sandbox.is_alive()
        with pytest.raises(SandboxError):
            sandbox.screenshot()
    with provider.fork("desktop") as sandbox:
        assert all(kernel_answers(sandbox) for _ in range(3))


def test_a_machine_can_die_in_a_program(tmp_path: Path) -> None:
    with FakeProvider(parent=tmp_path, faults=FakeFaults(dies_in_exec=1)).fork("desktop") as sandbox:
        with pytest.raises(SandboxError):
            sandbox.exec(["true"], timeout_s=5)
        assert not sandbox.is_alive()


def test_output_beyond_the_limit_is_dropped_and_said_so(sandbox: Sandbox) -> None:
    done = sandbox.run_cell("print('x' * 6_000_000)", timeout_s=20)
    assert done.is_truncated
    assert len(done.stdout) == 4 * 1024 * 1024


def test_a_closed_standard_output_does_not_end_the_cell(sandbox: Sandbox) -> None:
    done = sandbox.run_cell("import os, time\nos.close(1)\ntime.sleep(0.2)\n7", timeout_s=10)
    assert [output.content for output in done.outputs] == ["7"]


def test_exceptions_that_are_no_errors_stay_in_the_cell(sandbox: Sandbox) -> None:
    for code, name in (("exit()", "SystemExit"), ("raise KeyboardInterrupt", "KeyboardInterrupt")):
        done = sandbox.run_cell(code, timeout_s=5)
        assert done.error is not None
        assert done.error.name == name
        assert not done.timed_out
    assert kernel_answers(sandbox)


def test_closing_ends_a_cell_at_work_even_where_something_holds_its_channels(sandbox: Sandbox) -> None:
    # The child has the kernel's ends of all channels; that one is killed a moment later.
    code = "import os, time\nos.fork()\nopen('begun', 'w').close()\ntime.sleep(600)"
    with ThreadPoolExecutor(1) as threads:
        cell = threads.submit(sandbox.run_cell, code, timeout_s=600)
        assert wait_until(lambda: exists(sandbox, "begun"), Deadline.after(20))
        sandbox.close()
        with pytest.raises(KernelLost, match="died in a cell"):
            cell.result(timeout=10)


@pytest.mark.parametrize("state", ["all alive", "kill kernels"])
def test_a_killed_owner_leaves_nothing_that_prune_does_not_find(tmp_path: Path, state: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), state], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        name = owner.stdout.readline().strip()
        assert marked_processes(name) != []
        assert prune_fakes(tmp_path) == [], "a living owner's sandbox was pruned"
        owner.send_signal(signal.SIGKILL)
        owner.wait(10)
    # Kernels notice their owner's death and clean up; the folder of a sandbox without any is left for `prune`.
    assert wait_until(lambda: prune_fakes(tmp_path) is not None and not list(tmp_path.iterdir()), Deadline.after(10))
    assert wait_until(lambda: not marked_processes(name), Deadline.after(10))


def test_closing_again_after_the_kernel_died_is_harmless(sandbox: Sandbox) -> None:
    with pytest.raises(KernelLost):
        sandbox.run_cell("import os; os.kill(os.getpid(), 9)", timeout_s=5)
    with pytest.raises(KernelLost):
        sandbox.run_cell("1", timeout_s=5)
    sandbox.close()
    sandbox.close()
