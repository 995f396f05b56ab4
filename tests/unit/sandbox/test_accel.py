"""Guards against a /dev/kvm that is believed although guests hang under it, and a probe that could only ever say no."""

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from deskfork.core.errors import SandboxError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.accel import KVM_DEVICE, Acceleration, probe_acceleration, probe_dir, try_guest
from deskfork.sandbox.boot_sector import EXIT_CODE, boot_sector

QEMU = "qemu-system-x86_64"


@pytest.fixture
def device(tmp_path: Path) -> Path:
    path = tmp_path / "kvm"
    path.touch()
    return path


def script(tmp_path: Path, body: str) -> list[str]:
    """Return a command that stands for QEMU and counts its starts in the file `starts`."""
    path = tmp_path / "qemu.py"
    path.write_text(f"open({str(tmp_path / 'starts')!r}, 'a').write('x')\n{body}\n")
    return [sys.executable, str(path)]


def starts(tmp_path: Path) -> int:
    path = tmp_path / "starts"
    return len(path.read_text()) if path.exists() else 0


def test_the_boot_sector_is_one_bootable_sector() -> None:
    assert len(boot_sector()) == 512
    assert boot_sector()[-2:] == b"\x55\xaa"
    # The code jumps to, and loads its descriptor table from, fixed addresses.
    assert boot_sector()[0x58:0x5D] == bytes.fromhex("ea 76 7c 08 00")
    assert boot_sector()[0x70:0x78] == bytes.fromhex("0f 00 60 7c 00 00 31 c0")


@pytest.mark.vm
def test_the_probe_guest_runs_to_its_end_where_guests_run(tmp_path: Path) -> None:
    assert try_guest([QEMU], tmp_path, "tcg", timeout_s=60) is None


@pytest.mark.vm
@pytest.mark.skipif(not KVM_DEVICE.exists(), reason="this machine has no /dev/kvm")
def test_this_machines_own_kvm_gets_a_verdict_and_leaves_nothing(tmp_path: Path) -> None:
    found = probe_acceleration([QEMU], tmp_path, qemu_version="any")
    assert found.kind in ("kvm", "tcg")
    assert found.reason
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert str(probe_dir(tmp_path)).encode() not in entry.read_bytes()
        except OSError:
            continue
    if found.kind == "tcg" and shutil.which(QEMU) and os.access(KVM_DEVICE, os.R_OK | os.W_OK):
        # With a plain CPU model the same device may hang instead of aborting: bounded either way.
        started = time.monotonic()
        try_guest([QEMU], tmp_path, "kvm", cpu="qemu64", timeout_s=3)
        assert time.monotonic() - started < 15


def test_no_device_means_tcg_without_starting_anything(tmp_path: Path) -> None:
    found = probe_acceleration(script(tmp_path, ""), tmp_path, qemu_version="1", device=tmp_path / "none")
    assert found == Acceleration(kind="tcg", reason=f"this machine has no {tmp_path / 'none'}")
    assert starts(tmp_path) == 0


def test_a_device_that_cannot_be_opened_means_tcg(tmp_path: Path) -> None:
    found = probe_acceleration(script(tmp_path, ""), tmp_path, qemu_version="1", device=tmp_path)
    assert found.kind == "tcg"
    assert "cannot be opened" in found.reason
    assert starts(tmp_path) == 0


def test_kvm_is_believed_only_for_the_guests_own_exit_code(tmp_path: Path, device: Path) -> None:
    good = script(tmp_path, f"raise SystemExit({EXIT_CODE})")
    assert probe_acceleration(good, tmp_path, qemu_version="1", device=device).kind == "kvm"
    bad = script(tmp_path, "import sys\nsys.exit('cannot set MSR')")
    found = probe_acceleration(bad, tmp_path, qemu_version="2", device=device)
    assert found.kind == "tcg"
    assert "code 1 (cannot set MSR)" in found.reason


def test_a_clean_end_without_the_guests_word_is_no_proof(tmp_path: Path, device: Path) -> None:
    assert probe_acceleration(script(tmp_path, ""), tmp_path, qemu_version="1", device=device).kind == "tcg"


def test_a_hanging_guest_means_tcg_and_its_whole_group_is_killed(tmp_path: Path, device: Path) -> None:
    body = (
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '300'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(300)"
    )
    found = probe_acceleration(script(tmp_path, body), tmp_path, qemu_version="1", device=device, timeout_s=1)
    assert found.kind == "tcg"
    assert "hung" in found.reason
    child = Path(f"/proc/{(tmp_path / 'child').read_text()}/cmdline")
    # A process that was killed has an empty command line until its parent takes note, and no folder after that.
    assert wait_until(lambda: not child.exists() or not child.read_bytes(), Deadline.after(10))


def test_a_verdict_is_kept_until_qemu_changes(tmp_path: Path, device: Path) -> None:
    command = script(tmp_path, f"raise SystemExit({EXIT_CODE})")
    first = probe_acceleration(command, tmp_path, qemu_version="1", device=device)
    assert probe_acceleration(command, tmp_path, qemu_version="1", device=device) == first
    assert starts(tmp_path) == 1
    probe_acceleration(command, tmp_path, qemu_version="2", device=device)
    assert starts(tmp_path) == 2


def test_a_damaged_note_is_tried_again(tmp_path: Path, device: Path) -> None:
    command = script(tmp_path, f"raise SystemExit({EXIT_CODE})")
    probe_acceleration(command, tmp_path, qemu_version="1", device=device)
    for note in probe_dir(tmp_path).glob("*.json"):
        note.write_text('{"kind": "warp"}')
    assert probe_acceleration(command, tmp_path, qemu_version="1", device=device).kind == "kvm"
    assert starts(tmp_path) == 2


def test_qemu_missing_is_a_reason_not_an_error(tmp_path: Path, device: Path) -> None:
    found = probe_acceleration(["no-such-qemu"], tmp_path, qemu_version="1", device=device)
    assert found.kind == "tcg"
    assert "no-such-qemu could not be started" in found.reason


def test_a_cache_that_cannot_be_written_is_our_error(tmp_path: Path, device: Path) -> None:
    (tmp_path / "acceleration").touch()
    with pytest.raises(SandboxError, match="could not be written"):
        try_guest(["true"], tmp_path / "acceleration", "tcg")
