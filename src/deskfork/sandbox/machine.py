"""The QEMU command line of every machine, whichever provider starts it. Pure: builds arguments, touches nothing.

Source and destination of a fork need the same machine type, devices and order, so there is one list of devices, and
what may differ between boot and fork (memory sharing, incoming state, network restriction, paths) is in `Start`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError

GUEST_ADDRESS = "10.0.2.15"
GUEST_PORTS = {"ssh": 22, "observer": 60000, "kernel": 60001}
"""Services of the guest contract, by the name under which their endpoints are known on the host."""

# AF_UNIX addresses hold 108 bytes with the terminating zero, on every Linux.
_SOCKET_PATH_MAX = 107


class MachineSpec(StrictModel):
    """What a machine has; the same for a template and all of its forks."""

    width_px: int = Field(default=1280, ge=640, le=3840)
    height_px: int = Field(default=800, ge=480, le=2160)
    memory_mib: int = Field(default=2048, ge=1024)
    cores: int = Field(default=2, ge=1)
    acceleration: Literal["kvm", "tcg"] = "tcg"
    translation_cache_mib: int = Field(default=512, ge=32)
    """TCG only: how much translated code QEMU keeps."""


@dataclass(frozen=True)
class MachineFiles:
    """The files of one machine, at the same paths for QEMU and for us."""

    directory: Path
    """The machine's own folder: sockets, console log, overlay."""
    kernel: Path
    initrd: Path
    disk: Path
    """The machine's own writable overlay (qcow2)."""
    memory: Path
    """Guest memory; written through when booting, mapped copy-on-write when forking."""
    token: Path
    """Handed to a booting guest through fw_cfg."""
    authorized_key: Path
    memory_offset: int = 0
    """Where in its file memory begins."""

    @property
    def qmp_socket(self) -> Path:
        """Where QEMU takes its orders."""
        return self.directory / "qmp.sock"

    @property
    def vnc_socket(self) -> Path:
        """Where QEMU shows the screen."""
        return self.directory / "vnc.sock"

    @property
    def console_log(self) -> Path:
        """The guest's serial console."""
        return self.directory / "console.log"


@dataclass(frozen=True)
class Start:
    """How a machine comes to life."""

    incoming: str | None = None
    """Migration URI of the state to fork from (None: boot a machine that is going to be frozen)."""
    is_mapped_ram: bool = False
    """Whether that state is a `mapped-ram` file."""
    network: bool = False
    forwards: tuple[tuple[str, int, int], ...] = ()
    """(address to listen on, port there with 0 for any, guest port)."""


def require_usable_path(path: Path) -> None:
    """Refuse a socket's path that could not be bound, or not be named to QEMU or Docker.

    Raises:
        ConfigError: `path` is longer than a Unix socket's address may be, or holds a comma or colon.
    """
    if set(str(path)) & set(",:"):
        # Commas separate QEMU's options, colons the parts of Docker's bind mounts.
        raise ConfigError(f"{path}: has a comma or colon in it; set DESKFORK_CACHE to a folder without")
    if len(bytes(path)) > _SOCKET_PATH_MAX:
        raise ConfigError(
            f"{path}: too long for a socket ({len(bytes(path))} bytes, at most {_SOCKET_PATH_MAX}); "
            "set DESKFORK_CACHE to a folder with a shorter path"
        )


def qemu_arguments(spec: MachineSpec, files: MachineFiles, start: Start) -> list[str]:
    """Build QEMU's arguments, without the program's name.

    Source: the measured recipe in the design notes; option names from QEMU 10.0's qemu-options.
    """
    backend = f"memory-backend-file,id=pc.ram,size={spec.memory_mib}M,mem-path={files.memory},merge=off,dump=off"
    backend += f",offset={files.memory_offset}" if files.memory_offset else ""
    # A fork's writes stay its own; those of a machine that is going to be frozen are what is frozen.
    backend += ",share=on" if start.incoming is None else ",share=off,readonly=on,rom=off"
    forwards = "".join(
        f",hostfwd=tcp:{address}:{port}-{GUEST_ADDRESS}:{guest}" for address, port, guest in start.forwards
    )
    restrict = "off" if start.network else "on"
    arguments = [
        *("-nodefaults", "-no-user-config"),
        *_acceleration(spec),
        *("-smp", str(spec.cores), "-m", f"{spec.memory_mib}M"),
        *("-object", backend, "-machine", "pc-i440fx-9.0,memory-backend=pc.ram,hpet=off,vmport=off"),
        *("-display", "none", "-serial", f"file:{files.console_log}"),
        *("-kernel", str(files.kernel), "-initrd", str(files.initrd)),
        *("-append", "root=/dev/vda rw console=ttyS0 quiet mitigations=off net.ifnames=0 nowatchdog"),
        *("-drive", f"file={files.disk},format=qcow2,if=virtio,cache=unsafe,discard=unmap"),
        *("-netdev", f"user,id=n0,restrict={restrict}{forwards}", "-device", "virtio-net-pci,netdev=n0,romfile="),
        *("-device", f"virtio-vga,xres={spec.width_px},yres={spec.height_px}"),
        *("-device", "virtio-tablet-pci", "-device", "virtio-keyboard-pci", "-device", "virtio-rng-pci"),
        *("-fw_cfg", f"name=opt/deskfork/token,file={files.token}"),
        *("-fw_cfg", f"name=opt/deskfork/authorized_key,file={files.authorized_key}"),
        *("-qmp", f"unix:{files.qmp_socket},server=on,wait=off"),
        *("-vnc", f"unix:{files.vnc_socket}"),
        *("-rtc", "base=utc,clock=host"),
        *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"),
    ]
    if start.incoming is not None:
        # Named by QMP once it answers: the capability that the state was written with can be set only there.
        arguments += ["-incoming", "defer"]
    return arguments


def _acceleration(spec: MachineSpec) -> list[str]:
    if spec.acceleration == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", f"tcg,thread=multi,tb-size={spec.translation_cache_mib}", "-cpu", "max"]
