"""The stages of the guest image: Debian packages, Python wheels, Python environments, disk."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from deskfork.core.errors import ConfigError, InfraError
from deskfork.sandbox.images.keys import key_of, tree_key
from deskfork.sandbox.images.web import record_nltk
from deskfork.sandbox.images.workshop import Stage, Workshop

SUITE = "bookworm"
DEFAULT_MIRROR = "http://deb.debian.org/debian"
DISK_GIB = 8
PYTHON = (3, 11)
"""What Debian 12 has, and so what the wheels must be for."""
ENVIRONMENTS = {
    "jupyter": PurePosixPath("home/user/anaconda3/envs/jupyter"),
    "service": PurePosixPath("opt/deskfork/venv"),
}
OFFERED = "offered"
"""Wheels that are not installed: `pip install` in the guest finds them without a network."""
RECORDED = "recorded"
"""A wheel out of which the web's recordings are made."""
PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "setpriv": "util-linux",
    "tar": "tar",
    "chroot": "coreutils",
}
_WHEELS = (*ENVIRONMENTS, OFFERED, RECORDED)
_CHROOT_ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
}


def read_list(path: Path) -> list[str]:
    """Return the lines of `path` that are neither empty nor comments."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def bootstrap(workshop: Workshop, recipe: Path, target: Path, *, mirror: str, backports: bool = False) -> None:
    """Make a Debian root filesystem with the packages that `recipe` lists, as the tar `target`."""
    suites = [SUITE, f"{SUITE}-updates", *([f"{SUITE}-backports"] if backports else [])]
    sources = [f"deb {mirror} {suite} main" for suite in suites]
    sources.append(f"deb {mirror.rstrip('/')}-security {SUITE}-security main")
    options = [f"--dpkgopt={line}" for line in read_list(recipe / "dpkg-excludes.txt")]
    if backports:
        options.append('--setup-hook=mkdir -p "$1/etc/apt/preferences.d"')
        options.append(f"--setup-hook=copy-in {recipe / 'backports.pref'} /etc/apt/preferences.d")
    with workshop.work_folder() as work:
        # INITRD=No: the initial RAM disk is made once, at the end, with our own configuration.
        environment = dict(os.environ, TMPDIR=str(work), INITRD="No")
        workshop.run(
            [
                "mmdebstrap",
                "--mode=root",
                "--variant=minbase",
                "--format=tar",
                '--aptopt=Acquire::Languages "none"',
                '--aptopt=APT::Install-Recommends "false"',
                '--aptopt=Acquire::Retries "5"',
                *options,
                f"--include={','.join(read_list(recipe / 'packages.txt'))}",
                SUITE,
                str(target),
                *sources,
            ],
            env=environment,
        )


@dataclass(frozen=True)
class GuestStages:
    """The stages of one guest image, in order; each is keyed by its own inputs and by what it builds on."""

    recipe: Path
    """sandbox_images/guest."""
    guest_package: Path
    """The Python package that runs in the guest."""
    mirror: str = DEFAULT_MIRROR

    @property
    def base(self) -> Stage:
        """Debian packages: base.tar."""
        inputs = [(self.recipe / name).read_bytes() for name in ("packages.txt", "dpkg-excludes.txt")]
        return Stage("base", key_of("base 1", *inputs), self._make_base, weight_s=70, timeout_s=3600)

    @property
    def wheels(self) -> Stage:
        """Python wheels: a folder for each lock."""
        inputs = [(self.recipe / "python" / f"{name}.lock").read_bytes() for name in _WHEELS]
        return Stage("wheels", key_of("wheels 2", *inputs), self._make_wheels, weight_s=60, timeout_s=3600)

    @property
    def python(self) -> Stage:
        """The Python environments: python.tar."""
        key = key_of("python 1", self.base.key, self.wheels.key)
        return Stage("python", key, self._make_python, weight_s=50, timeout_s=1800)

    @property
    def disk(self) -> Stage:
        """What is booted: disk.raw, vmlinuz, initrd.img, and lists of what is on the disk."""
        key = key_of(
            f"disk 2 {DISK_GIB}",
            self.python.key,
            tree_key(self.recipe / "rootfs"),
            tree_key(self.guest_package),
            (self.recipe / "finish.sh").read_bytes(),
        )
        return Stage("disk", key, self._make_disk, weight_s=50, timeout_s=1800)

    def all(self) -> list[Stage]:
        """Return the stages in order."""
        return [self.wheels, self.base, self.python, self.disk]

    def _make_base(self, workshop: Workshop, result: Path) -> None:
        bootstrap(workshop, self.recipe, result / "base.tar", mirror=self.mirror)

    def _make_wheels(self, workshop: Workshop, result: Path) -> None:
        if sys.version_info[:2] != PYTHON:
            raise ConfigError(f"building the guest image needs Python 3.11, as the guest has; this is {sys.version}")
        for name in _WHEELS:
            lock = self.recipe / "python" / f"{name}.lock"
            (result / name).mkdir()
            _collect_wheels(workshop, lock, result / name)

    def _make_python(self, workshop: Workshop, result: Path) -> None:
        with workshop.work_folder() as work:
            root = work / "root"
            root.mkdir()
            workshop.run(_untar(workshop.artifact(self.base) / "base.tar", root))
            for name, path in ENVIRONMENTS.items():
                wheels = root / "wheels" / name
                shutil.copytree(workshop.artifact(self.wheels) / name, wheels)
                inside = f"/wheels/{name}/"
                listing = [inside + wheel.name for wheel in sorted(wheels.iterdir()) if wheel.suffix == ".whl"]
                python = f"/{path}/bin/python"
                workshop.run(_chroot(root, "python3", "-m", "venv", f"/{path}"), env=_CHROOT_ENV)
                install = ("-m", "pip", "install", "--no-deps", "--no-index", "--no-cache-dir", *listing)
                workshop.run(_chroot(root, python, *install), env=_CHROOT_ENV)
            trees = [str(path) for path in ENVIRONMENTS.values()]
            workshop.run(["tar", "-C", str(root), "-cf", str(result / "python.tar"), "--numeric-owner", *trees])

    def _make_disk(self, workshop: Workshop, result: Path) -> None:
        with workshop.work_folder() as work:
            root = work / "root"
            root.mkdir()
            workshop.run(_untar(workshop.artifact(self.base) / "base.tar", root))
            workshop.run(_untar(workshop.artifact(self.python) / "python.tar", root))
            install_tree(self.recipe / "rootfs", root)
            install_tree(self.guest_package, root / "opt/deskfork/lib" / self.guest_package.name)
            wheels = workshop.artifact(self.wheels)
            install_tree(wheels / OFFERED, root / "opt/deskfork/wheels")
            record_nltk(_only(wheels / RECORDED, "*.whl"), root / "opt/deskfork/web")
            shutil.copyfile(self.recipe / "finish.sh", root / "finish.sh")
            workshop.run(_chroot(root, "sh", "/finish.sh"), env=_CHROOT_ENV)
            (root / "finish.sh").unlink()
            (root / "packages.txt").rename(result / "packages.txt")
            for pattern, name in (("vmlinuz-*", "vmlinuz"), ("initrd.img-*", "initrd.img")):
                shutil.copyfile(_only(root / "boot", pattern), result / name)
            self._make_filesystem(workshop, root, result / "disk.raw")
            for path in result.iterdir():
                path.chmod(0o644)

    @staticmethod
    def _make_filesystem(workshop: Workshop, root: Path, disk: Path) -> None:
        # Nothing is left for the first boot to initialise in the background.
        options = "lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0"
        command = ["mke2fs", "-q", "-t", "ext4", "-L", "deskfork", "-m", "0", "-E", options, "-d", str(root)]
        workshop.run([*command, str(disk), f"{DISK_GIB}G"])


def _collect_wheels(workshop: Workshop, lock: Path, wheels: Path) -> None:
    """Fill `wheels` with what `lock` pins: each file's hash is checked when it is downloaded."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    # Not in the work folder: what was downloaded before a failure is not downloaded again.
    downloads = workshop.kept_folder(f"downloads-{key_of(lock.read_bytes())[:16]}")
    workshop.run([*pip, "download", "--no-deps", "--require-hashes", "-r", str(lock), "-d", str(downloads)])
    for wheel in downloads.glob("*.whl"):
        shutil.copyfile(wheel, wheels / wheel.name)
    if sources := [str(path) for path in downloads.iterdir() if path.suffix != ".whl"]:
        workshop.run([*pip, "wheel", "--no-deps", "-w", str(wheels), *sources])
    shutil.rmtree(downloads)


def _untar(archive: Path, target: Path) -> list[str]:
    return ["tar", "-C", str(target), "-xf", str(archive), "--numeric-owner", "--xattrs", "--xattrs-include=*"]


def _chroot(root: Path, *argv: str) -> list[str]:
    return ["chroot", str(root), *argv]


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise InfraError(f"image stage disk: expected one {pattern} in the guest's {folder.name}, found {len(found)}")
    return found[0]


def install_tree(source: Path, target: Path) -> None:
    """Copy all files and links below `source` over `target`, owned by us, with the modes of a system's own files."""
    for path in sorted(source.rglob("*")):
        if "__pycache__" in path.parts:
            continue
        copy = target / path.relative_to(source)
        if path.is_dir() and not path.is_symlink():
            continue
        copy.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        copy.unlink(missing_ok=True)
        if path.is_symlink():
            copy.symlink_to(path.readlink())
        else:
            shutil.copyfile(path, copy)
            copy.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
