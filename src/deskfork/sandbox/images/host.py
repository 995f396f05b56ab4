"""What building images asks of the host."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from deskfork.core.errors import ConfigError

GIB = 1024**3


def require_programs(packages: Mapping[str, str]) -> None:
    """Check that each program is installed.

    Args:
        packages: The Debian package of each program.

    Raises:
        ConfigError: Some are missing.
    """
    missing = sorted({package for program, package in packages.items() if shutil.which(program) is None})
    if missing:
        raise ConfigError(f"building images needs Debian packages that are not installed: {' '.join(missing)}")


def require_root() -> None:
    """Check that we may make device files and change roots.

    Raises:
        ConfigError: We are not root.
    """
    if os.geteuid() != 0:
        raise ConfigError("building images needs root (it makes a Debian root filesystem): run it with sudo -E")


def require_space(folder: Path, needed_gib: float) -> None:
    """Check that the disk of `folder` has room.

    Raises:
        ConfigError: It has not.
    """
    available_gib = shutil.disk_usage(folder).free / GIB
    if available_gib < needed_gib:
        raise ConfigError(f"{folder}: building needs {needed_gib:.0f} GiB of free disk, there are {available_gib:.1f}")
