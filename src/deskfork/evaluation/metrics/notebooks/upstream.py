"""What upstream's metrics on notebooks have in common: how gold is read, and what becomes of an exception."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.judged import Judged, shown
from deskfork.evaluation.metrics.notebooks.reading import UPSTREAM_FAILS, Broken, read_as_upstream

P = ParamSpec("P")


def read_gold_as_upstream(raw: bytes) -> Any:
    """Return a gold notebook's cells, as upstream reads them.

    Raises:
        EvaluationError: It is no notebook.
    """
    try:
        return read_as_upstream(raw)["cells"]
    except Broken as error:
        raise EvaluationError(f"the gold notebook cannot be compared with: {error}") from error


def zero_as_upstream(judge: Callable[P, Judged]) -> Callable[P, Judged]:
    """Have `judge` give 0 where upstream's metric raises, which its runner takes for 0."""

    @wraps(judge)
    def judged(*args: P.args, **kwargs: P.kwargs) -> Judged:
        try:
            return judge(*args, **kwargs)
        except Broken as error:
            return Judged(0.0, f"the notebook is broken: {error}")
        except UPSTREAM_FAILS as error:
            return Judged(0.0, f"the notebook is broken: {type(error).__name__} {shown(str(error))}")

    return judged
