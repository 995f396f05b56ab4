"""Guards the one QEMU command line: a fork whose machine differs from its template's cannot take its state."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.core.errors import ConfigError
from deskfork.sandbox.machine import MachineFiles, MachineSpec, Start, qemu_arguments, require_usable_path

Options = list[tuple[str, str]]

SPECS = st.builds(
    MachineSpec,
    width_px=st.integers(640, 3840),
    height_px=st.integers(480, 2160),
    memory_mib=st.integers(1024, 65536),
    cores=st.integers(1, 64),
    acceleration=st.sampled_from(["kvm", "tcg"]),
    translation_cache_mib=st.integers(32, 4096),
)
FORWARDS = st.lists(
    st.tuples(st.sampled_from(["", "127.0.0.1"]), st.integers(0, 65535), st.integers(1, 65535)), max_size=4
).map(tuple)


def files(directory: str, *, memory_offset: int = 0) -> MachineFiles:
    folder = Path(directory)
    return MachineFiles(
        directory=folder,
        kernel=Path("/image/vmlinuz"),
        initrd=Path("/image/initrd.img"),
        disk=folder / "disk.qcow2",
        memory=folder / "memory",
        token=folder / "seed-token",
        authorized_key=folder / "seed-key",
        memory_offset=memory_offset,
    )


def options(spec: MachineSpec, where: MachineFiles, start: Start) -> Options:
    """Return the command line as pairs; an option without a value has an empty one."""
    found: Options = []
    for word in qemu_arguments(spec, where, start):
        if word.startswith("-"):
            found.append((word, ""))
        else:
            name, value = found.pop()
            assert value == "", f"{word} belongs to no option"
            found.append((name, word))
    return found


def properties(command: Options, name: str) -> dict[str, str]:
    (value,) = (value for option, value in command if option == name)
    return dict(part.partition("=")[::2] for part in value.split(","))


@given(SPECS, FORWARDS, FORWARDS, st.booleans())
def test_boot_and_fork_differ_only_where_they_may(
    spec: MachineSpec, boot_forwards: tuple, fork_forwards: tuple, network: bool
) -> None:
    boot = options(spec, files("/boot"), Start(forwards=boot_forwards))
    fork = options(spec, files("/fork"), Start(incoming="file:/state", network=network, forwards=fork_forwards))
    assert fork.pop() == ("-incoming", "defer")
    assert "-incoming" not in dict(boot)
    assert [name for name, _ in boot] == [name for name, _ in fork]
    differing = {
        before[0]
        for before, after in zip(boot, fork, strict=True)
        if before != (after[0], after[1].replace("/fork/", "/boot/"))
    }
    assert differing <= {"-object", "-netdev"}
    assert [value for name, value in boot if name == "-device"] == [value for name, value in fork if name == "-device"]


@given(SPECS, st.sampled_from([0, 4096, 1 << 21]))
def test_only_a_machine_to_be_frozen_writes_to_its_memory_file(spec: MachineSpec, offset: int) -> None:
    boot = properties(options(spec, files("/m"), Start()), "-object")
    fork = properties(options(spec, files("/m", memory_offset=offset), Start(incoming="file:/s")), "-object")
    assert boot.pop("share") == "on"
    assert (fork.pop("share"), fork.pop("readonly"), fork.pop("rom")) == ("off", "on", "off")
    assert fork.pop("offset", "0") == str(offset)
    assert boot == fork


@given(SPECS, FORWARDS, st.sampled_from([None, "file:/s"]))
def test_a_guest_has_a_way_out_only_when_asked(spec: MachineSpec, forwards: tuple, incoming: str | None) -> None:
    fenced, free = (
        options(spec, files("/m"), Start(incoming=incoming, network=network, forwards=forwards))
        for network in (False, True)
    )
    (inside,) = (value for name, value in fenced if name == "-netdev")
    (outside,) = (value for name, value in free if name == "-netdev")
    assert "restrict=on" in inside.split(",")
    assert outside == inside.replace("restrict=on", "restrict=off")
    assert [value for value in inside.split(",") if value.startswith("hostfwd=")] == [
        f"hostfwd=tcp:{address}:{port}-10.0.2.15:{guest}" for address, port, guest in forwards
    ]


@given(SPECS)
def test_the_machine_is_the_one_that_was_asked_for(spec: MachineSpec) -> None:
    command = options(spec, files("/m"), Start())
    assert properties(command, "-object")["size"] == dict(command)["-m"] == f"{spec.memory_mib}M"
    assert ("-device", f"virtio-vga,xres={spec.width_px},yres={spec.height_px}") in command
    assert dict(command)["-accel"].split(",")[0] == spec.acceleration
    # Unversioned, the type would change with QEMU, and with it the state's layout.
    assert dict(command)["-machine"].startswith("pc-i440fx-9.0,")


def test_folders_that_qemu_cannot_be_given_are_refused() -> None:
    require_usable_path(Path("/" + "a" * 106))
    for path in ("/" + "a" * 107, "/" + "ü" * 60, "/has,comma", "/has:colon"):
        with pytest.raises(ConfigError, match="DESKFORK_CACHE"):
            require_usable_path(Path(path))
