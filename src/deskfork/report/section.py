"""One table of a report, whatever it is written in."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """One table of a report; what is in its cells may have been written by guests and models."""

    name: str
    """Stable, for links."""
    title: str
    note: str
    """How to read it."""
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
