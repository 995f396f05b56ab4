"""What of this machine deskfork needs, what of it is there, and what to do about the rest."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError, DeskforkError
from deskfork.sandbox.images.image import find_guest_image
from deskfork.sandbox.images.recipes import recipe_dir
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.machine import MachineSpec
from deskfork.sandbox.providers.docker import DockerLauncher
from deskfork.sandbox.providers.docker_daemon import is_docker_answering
from deskfork.sandbox.providers.qemu import QemuLauncher
from deskfork.sandbox.templates.template import RECIPES, find_template
from deskfork.sandbox.view import NOVNC

OLDEST_PYTHON = (3, 11)
FREE_DISK_GIB = 10.0
"""Image, templates and what building them needs meanwhile."""
_GIB = 2**30
_TIMEOUT_S = 10.0
_SETUP = "run `make setup`"
_PROGRAMS = (
    ("qemu-img", ("qemu-img", "--version"), "qemu-utils"),
    ("mmdebstrap", ("mmdebstrap", "--version"), "mmdebstrap"),
    ("mke2fs", ("mke2fs", "-V"), "e2fsprogs"),
    ("ssh", ("ssh", "-V"), "openssh-client"),
)


class Finding(StrictModel):
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "missing", "optional"]
    """`optional` is missing too, but everything works without it, or by another way."""
    found: str
    """A version, a size, or what is wrong."""
    advice: str = ""
    """What to do, if anything."""


class Diagnosis(StrictModel):
    """What `deskfork doctor` says."""

    findings: list[Finding]
    providers: list[str]
    """Those that this machine can run, whether or not images and templates are built."""

    @property
    def can_run(self) -> bool:
        """Whether there is a provider that can start machines."""
        return bool(self.providers)


def examine(cache_dir: Path) -> Diagnosis:
    """Look at the machine; starts a test guest where /dev/kvm was not tried since the last boot."""
    findings = [_python(), *(_program(*each) for each in _PROGRAMS)]
    launchers = dict(_launchers(cache_dir, findings))
    findings += [_novnc(), _disk(cache_dir), _memory(), _image(cache_dir)]
    for name, launcher in launchers.items():
        findings += [_acceleration(name, launcher), *_templates(cache_dir, name, launcher)]
    can_write_disks = shutil.which("qemu-img") is not None
    return Diagnosis(findings=findings, providers=list(launchers) if can_write_disks else [])


def _launchers(cache_dir: Path, findings: list[Finding]) -> Iterator[tuple[str, Launcher]]:
    """Yield the providers that work here; what was learned on the way is added to `findings`."""
    qemu = QemuLauncher(cache_dir)
    at_hand = _checked("qemu", qemu.qemu_version)
    findings.append(at_hand)
    if at_hand.state == "ok":
        yield "qemu", qemu
    client = _program("docker", ("docker", "--version"), "docker.io", is_optional=True)
    findings.append(client)
    if client.state != "ok":
        return
    if is_docker_answering():
        findings.append(Finding(name="docker daemon", state="ok", found="answers"))
        yield "docker", DockerLauncher(cache_dir, recipe_dir("qemu"))
    else:
        advice = "start it (`systemctl start docker`, or `dockerd` as root); without it, provider qemu is used"
        found = "does not answer this user"
        findings.append(Finding(name="docker daemon", state="optional", found=found, advice=advice))


def _python() -> Finding:
    version = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        return Finding(name="python", state="ok", found=version)
    return Finding(name="python", state="missing", found=version, advice="install Python 3.11 or newer")


def _program(name: str, command: tuple[str, ...], package: str, *, is_optional: bool = False) -> Finding:
    advice = f"{_SETUP} (Debian package: {package})"
    if shutil.which(command[0]) is None:
        return Finding(name=name, state="optional" if is_optional else "missing", found="not installed", advice=advice)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return Finding(name=name, state="missing", found=f"does not run: {exc}", advice=advice)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return Finding(name=name, state="ok", found=lines[0] if lines else "installed")


def _novnc() -> Finding:
    if (NOVNC / "vnc.html").is_file():
        return Finding(name="novnc", state="ok", found=str(NOVNC))
    advice = f"{_SETUP} (Debian package: novnc); only `deskfork sandbox view` needs it"
    return Finding(name="novnc", state="optional", found="not installed", advice=advice)


def _disk(cache_dir: Path) -> Finding:
    existing = next(folder for folder in (cache_dir, *cache_dir.parents) if folder.is_dir())
    free_gib = shutil.disk_usage(existing).free / _GIB
    found = f"{free_gib:.1f} GiB free for {cache_dir}"
    if not os.access(existing, os.W_OK):
        advice = "make it writable, or set DESKFORK_CACHE to another folder"
        return Finding(name="disk", state="missing", found=f"{existing} is not writable", advice=advice)
    if free_gib >= FREE_DISK_GIB:
        return Finding(name="disk", state="ok", found=found)
    advice = f"building image and templates needs {FREE_DISK_GIB:.0f} GiB: free some, or set DESKFORK_CACHE"
    return Finding(name="disk", state="optional", found=found, advice=advice)


def _memory() -> Finding:
    lines = Path("/proc/meminfo").read_text().splitlines()
    available_kib = next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), 0)
    available_gib, needed_gib = available_kib / 2**20, MachineSpec().memory_mib / 1024 + 0.5
    found = f"{available_gib:.1f} GiB available"
    if available_gib >= needed_gib:
        return Finding(name="memory", state="ok", found=found)
    advice = f"a template's build needs about {needed_gib:.1f} GiB: end something else"
    return Finding(name="memory", state="optional", found=found, advice=advice)


def _image(cache_dir: Path) -> Finding:
    return _checked(
        "guest image",
        lambda: find_guest_image(cache_dir, recipe_dir("guest")).digest[:12],
        "run `deskfork image build`",
    )


def _acceleration(name: str, launcher: Launcher) -> Finding:
    label = f"acceleration ({name})"
    try:
        found = launcher.acceleration()
    except DeskforkError as error:
        return Finding(name=label, state="optional", found=str(error))
    advice = "" if found.kind == "kvm" else "guests run emulated (TCG): correct, but several times slower"
    return Finding(name=label, state="ok", found=f"{found.kind}: {found.reason}", advice=advice)


def _templates(cache_dir: Path, provider: str, launcher: Launcher) -> Iterator[Finding]:
    for name in sorted(RECIPES):

        def digest(name: str = name) -> str:
            image = find_guest_image(cache_dir, recipe_dir("guest"))
            return find_template(cache_dir, name, image, launcher).manifest.digest[:12]

        repair = f"run `deskfork template build {name} --force --provider {provider}`"
        yield _checked(f"template {name} ({provider})", digest, repair)


def _checked(name: str, ask: Callable[[], str], repair: str = _SETUP) -> Finding:
    """Ask, and take an error of ours as the finding; a ConfigError says itself what to do."""
    try:
        return Finding(name=name, state="ok", found=ask())
    except ConfigError as error:
        return Finding(name=name, state="missing", found=str(error))
    except DeskforkError as error:
        return Finding(name=name, state="missing", found=f"damaged: {error}", advice=repair)
