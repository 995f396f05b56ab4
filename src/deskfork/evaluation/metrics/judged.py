"""What a metric returns: a number that can say why."""

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


def shown(text: str, limit: int = 80) -> str:
    """Return `text` quoted, without control characters, and shortened."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")
