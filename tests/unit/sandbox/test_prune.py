"""Guards `prune`: what a dead owner left must go, whatever of it is broken, and nothing of a live one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from abandoned import Owner, is_running, owning

from deskfork.core.errors import ConfigError
from deskfork.sandbox.live import SandboxRecord, claim, live_records, sandboxes_dir
from deskfork.sandbox.prune import prune

pytestmark = [
    pytest.mark.usefixtures("no_docker"),
    # docker-py leaks its socket when nothing answers.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Owner]:
    """Another process, with a sandbox folder and a QEMU."""
    with owning(tmp_path) as owner:
        yield owner


def test_nothing_is_nothing(tmp_path: Path) -> None:
    assert prune(tmp_path) == []
    assert prune(tmp_path / "none") == []


def test_a_killed_owners_qemu_and_folder_are_removed(tmp_path: Path, owner: Owner) -> None:
    owner.kill()
    assert is_running(owner.qemu_pid), "nothing was left to clean up"
    assert prune(tmp_path) == [owner.sandbox_id]
    assert not is_running(owner.qemu_pid)
    assert list(sandboxes_dir(tmp_path).iterdir()) == []
    assert prune(tmp_path) == []


def test_a_live_owners_are_left_alone(tmp_path: Path, owner: Owner) -> None:
    with owning(tmp_path) as other:
        other.kill()
        assert prune(tmp_path) == [other.sandbox_id]
    assert is_running(owner.qemu_pid)
    assert [record.id for record in live_records(tmp_path)] == [owner.sandbox_id]


def test_a_qemu_is_found_although_its_record_is_not(tmp_path: Path, owner: Owner) -> None:
    owner.kill()
    (sandboxes_dir(tmp_path) / owner.sandbox_id / "sandbox.json").write_bytes(b"\xff")
    assert prune(tmp_path) == [owner.sandbox_id]
    assert not is_running(owner.qemu_pid)


def test_a_process_that_only_has_the_recorded_number_is_spared(tmp_path: Path, owner: Owner) -> None:
    owner.kill()
    with owning(tmp_path / "other") as innocent:
        record = sandboxes_dir(tmp_path) / owner.sandbox_id / "sandbox.json"
        known = SandboxRecord.model_validate_json(record.read_bytes())
        record.write_text(known.model_copy(update={"qemu_pid": innocent.qemu_pid}).model_dump_json())
        assert prune(tmp_path) == [owner.sandbox_id]
        assert is_running(innocent.qemu_pid)


def test_what_needs_docker_waits_for_it_and_keeps_nothing_else_waiting(tmp_path: Path, owner: Owner) -> None:
    claims = [claim(tmp_path, provider="docker", kind="sandbox") for _ in range(3)]
    for each in claims:
        each.let_go()
    owner.kill()
    with pytest.raises(ConfigError, match="Docker's daemon does not answer") as refused:
        prune(tmp_path)
    assert all(each.record.id in str(refused.value) for each in claims)
    assert not is_running(owner.qemu_pid)
    # The folders are how the containers will be found once the daemon answers.
    assert {path.name for path in sandboxes_dir(tmp_path).iterdir()} == {each.record.id for each in claims}
    with pytest.raises(ConfigError, match="Docker's daemon does not answer"):
        prune(tmp_path)
