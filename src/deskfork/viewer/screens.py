"""A trial's screens: which of its files may be shown."""

import re
from pathlib import Path, PurePosixPath

from deskfork.core.errors import ConfigError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.records.paths import AttemptPaths

_NAME = re.compile(r"[0-9a-f]{24}\.png")
_PNG = b"\x89PNG\r\n\x1a\n"
_COMING_TIMEOUT_S = 20.0
_MAX_BYTES = 64 * 1024 * 1024


def screen_name(recorded: str | None) -> str | None:
    """Return the file name in a recorded path of a screen; None if it is not as screens are named."""
    name = PurePosixPath(recorded or "").name
    return name if _NAME.fullmatch(name) else None


def read_screen(paths: AttemptPaths, name: str, *, is_coming: bool) -> bytes:
    """Return a screen's PNG.

    Args:
        paths: The attempt's.
        name: The file's.
        is_coming: The trial is at work. Its screens are encoded beside the agent, so that one may be written some time
            after its step: it is waited for.

    Raises:
        ConfigError: There is none of that name in the trial's own folder, or it is no PNG.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError("a screen's name is 24 hexadecimal digits and .png")
    place = paths.screens / name
    if is_coming:
        wait_until(place.exists, Deadline.after(_COMING_TIMEOUT_S), interval_s=0.1)
    try:
        # A run directory may come from elsewhere, with links in it that lead anywhere.
        if _has_link(place, paths) or place.stat().st_size > _MAX_BYTES:
            raise ConfigError(f"{name} is a link, or too large to be shown")
        content = place.read_bytes()
    except OSError as error:
        raise ConfigError(f"{name} is not there, or not yet") from error
    if not content.startswith(_PNG):
        raise ConfigError(f"{name} is no PNG")
    return content


def _has_link(place: Path, paths: AttemptPaths) -> bool:
    return place.is_symlink() or paths.screens.is_symlink()
