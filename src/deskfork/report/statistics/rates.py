"""Shares with their intervals."""

from statsmodels.stats.proportion import proportion_confint

from deskfork.core.config import StrictModel

CONFIDENCE = 0.95
"""Of every interval in a report."""


class Rate(StrictModel):
    """A share of trials, with its interval."""

    successes: int
    trials: int
    """Trials that the share is taken of; those without a score are not among them."""
    rate: float | None
    """In [0, 1]; None when there are no trials."""
    low: float | None
    """Lower end of the 95 % Wilson score interval."""
    high: float | None


def rate_of(successes: int, trials: int) -> Rate:
    """Return a share with its Wilson score interval, in which trials count as independent.

    Args:
        successes: At most `trials`.
        trials: May be 0: then nothing is known.

    Source: Wilson 1927; statsmodels' `proportion_confint`.
    """
    if not trials:
        return Rate(successes=0, trials=0, rate=None, low=None, high=None)
    rate = successes / trials
    low, high = proportion_confint(successes, trials, alpha=1 - CONFIDENCE, method="wilson")
    # At 0 and 1 the ends are the rate itself but for rounding.
    return Rate(
        successes=successes,
        trials=trials,
        rate=rate,
        low=min(max(0.0, float(low)), rate),
        high=max(min(1.0, float(high)), rate),
    )
