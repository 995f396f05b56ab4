"""Guards a doctor that finds a machine healthy that can run nothing, or breaks on a machine that has nothing."""

import gc
from pathlib import Path

import pytest

from deskfork.sandbox.doctor import Finding, examine

FAKE_QEMU = "#!/bin/sh\necho 'QEMU emulator version {version} (Debian)'\n"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in PATH, empty; there is no Docker daemon."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-daemon.sock")
    return folder


def install(folder: Path, name: str, script: str = "#!/bin/sh\necho some version 1.0\n") -> None:
    path = folder / name
    path.write_text(script)
    path.chmod(0o755)


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_a_bare_machine_can_run_nothing_and_is_told_what_to_install(programs: Path, tmp_path: Path) -> None:
    diagnosis = examine(tmp_path / "cache" / "deep")
    found = by_name(diagnosis.findings)
    assert not diagnosis.can_run
    for name, package in (("qemu-img", "qemu-utils"), ("mmdebstrap", "mmdebstrap"), ("mke2fs", "e2fsprogs")):
        assert found[name].state == "missing"
        assert package in found[name].advice
    assert found["qemu"].state == "missing"
    assert found["docker"].state == "optional"
    assert found["guest image"].state == "missing"
    assert found["python"].state == "ok"
    assert not (tmp_path / "cache").exists(), "looking made something"


def test_an_old_qemu_is_no_provider(programs: Path, tmp_path: Path) -> None:
    install(programs, "qemu-img")
    install(programs, "qemu-system-x86_64", FAKE_QEMU.format(version="7.2.19"))
    diagnosis = examine(tmp_path)
    assert not diagnosis.can_run
    assert "7.2.19" in by_name(diagnosis.findings)["qemu"].found


def test_a_new_qemu_is_enough_before_anything_is_built(programs: Path, tmp_path: Path) -> None:
    install(programs, "qemu-img")
    install(programs, "qemu-system-x86_64", FAKE_QEMU.format(version="10.0.2"))
    diagnosis = examine(tmp_path)
    found = by_name(diagnosis.findings)
    assert diagnosis.providers == ["qemu"]
    assert diagnosis.can_run
    # This QEMU runs no guest, so whatever /dev/kvm is like here, it is not believed.
    assert found["acceleration (qemu)"].found.startswith("tcg: ")
    assert found["template jupyter (qemu)"].state == "missing"


# docker 7.1 leaves its socket to the garbage collector when the daemon's version cannot be asked.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_daemon_that_does_not_answer_is_said_but_not_needed(programs: Path, tmp_path: Path) -> None:
    install(programs, "docker")
    found = by_name(examine(tmp_path).findings)["docker daemon"]
    assert (found.state, found.found) == ("optional", "does not answer this user")
    gc.collect()


def test_a_program_that_does_not_run_is_not_there(programs: Path, tmp_path: Path) -> None:
    install(programs, "mmdebstrap", "#!/no/such/interpreter\n")
    assert by_name(examine(tmp_path).findings)["mmdebstrap"].state == "missing"
