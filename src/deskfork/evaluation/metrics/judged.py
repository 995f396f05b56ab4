"""What a metric returns: for each of two readings, a number that can say why."""

from dataclasses import dataclass
from typing import Self

MAX_DETAIL_CHARS = 400


class Judged(float):
    """A score in [0, 1], with one sentence of what differed."""

    detail: str

    def __new__(cls, score: float, detail: str = "") -> Self:
        """Make the score.

        Args:
            score: Between 0 and 1.
            detail: One sentence; empty for a full score.
        """
        made = super().__new__(cls, score)
        made.detail = detail if len(detail) <= MAX_DETAIL_CHARS else detail[: MAX_DETAIL_CHARS - 1] + "…"
        return made


MATCH = Judged(1.0)


@dataclass(frozen=True)
class Comparison:
    """One state judged twice."""

    upstream: Judged
    """What the benchmark's own evaluator gives, bug for bug."""
    strict: Judged
    """Whether the task was done: refuses what upstream lets pass, and forgives what no user would mind."""

    @classmethod
    def agreed(cls, judged: Judged) -> Self:
        """Return a comparison whose two readings are one."""
        return cls(judged, judged)


def shown(text: str, limit: int = 80) -> str:
    """Return `text` quoted, without control characters, and shortened."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")
