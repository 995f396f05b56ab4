"""Sums over the steps of one attempt."""

from collections import Counter
from collections.abc import Sequence

from deskfork.records.trajectory import StepRecord
from deskfork.records.trial import TokenUsage


def tokens_of(steps: Sequence[StepRecord]) -> TokenUsage | None:
    """Return what all steps together billed; None when the model did not tell for one of them."""
    told = [step.tokens for step in steps if step.tokens is not None]
    if len(told) < len(steps):
        return None
    return TokenUsage(
        input_tokens=sum(tokens.input_tokens for tokens in told),
        output_tokens=sum(tokens.output_tokens for tokens in told),
    )


def actions_of(steps: Sequence[StepRecord]) -> dict[str, int]:
    """Return how many steps there are of each class of action."""
    return dict(sorted(Counter[str](step.action for step in steps).items()))


def lines_of(steps: Sequence[StepRecord]) -> dict[str, int]:
    """Return how many lines of all actions do what."""
    return dict(sorted(sum((Counter[str](step.lines) for step in steps), Counter[str]()).items()))
