"""Whether the share of GUI lines in what an agent did goes with its success."""

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
from statsmodels.discrete.discrete_model import Logit
from statsmodels.tools.sm_exceptions import ConvergenceWarning, HessianInversionWarning

from deskfork.core.config import StrictModel

FitOutcome = Literal["fitted", "too few trials", "same outcome", "same ratio", "separated", "no convergence"]
"""Why there are no coefficients, or `fitted`; separated: a threshold tells all successes from all failures."""


class LogisticFit(StrictModel):
    """log-odds of success = intercept + slope * ratio, by maximum likelihood."""

    outcome: FitOutcome
    trials: int
    intercept: float | None = None
    slope: float | None = None
    """Change of the log-odds from no GUI line to nothing but GUI lines."""
    slope_low: float | None = None
    """Lower end of its 95 % Wald interval."""
    slope_high: float | None = None
    p: float | None = None
    """Wald test of slope 0."""
    pseudo_r2: float | None = None
    """McFadden's."""


def fit_logistic(ratios: Sequence[float], successes: Sequence[bool]) -> LogisticFit:
    """Fit success on a ratio; where there is no finite estimate, say why.

    Args:
        ratios: One for each trial.
        successes: Whether it succeeded, in the same order.

    Source: the thesis's fit of success on its PyAutoGUI line ratio; statsmodels' `Logit`.
    """
    outcome = _without_fit(ratios, successes)
    if outcome is not None:
        return LogisticFit(outcome=outcome, trials=len(ratios))
    design = np.column_stack([np.ones(len(ratios)), np.asarray(ratios, dtype=float)])
    with warnings.catch_warnings():
        # What they would say is in the result, and is told as "no convergence".
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", HessianInversionWarning)
        try:
            found = Logit(np.asarray(successes, dtype=float), design).fit(disp=0, maxiter=100)
        except np.linalg.LinAlgError:
            return LogisticFit(outcome="no convergence", trials=len(ratios))
        values = [*found.params, *found.conf_int()[1], found.pvalues[1], found.prsquared]
    if not found.mle_retvals["converged"] or not np.isfinite(values).all():
        return LogisticFit(outcome="no convergence", trials=len(ratios))
    intercept, slope, low, high, p, pseudo_r2 = map(float, values)
    return LogisticFit(
        outcome="fitted",
        trials=len(ratios),
        intercept=intercept,
        slope=slope,
        slope_low=low,
        slope_high=high,
        p=p,
        pseudo_r2=pseudo_r2,
    )


def _without_fit(ratios: Sequence[float], successes: Sequence[bool]) -> FitOutcome | None:
    if len(ratios) < 3:
        return "too few trials"
    good = [ratio for ratio, is_success in zip(ratios, successes, strict=True) if is_success]
    bad = [ratio for ratio, is_success in zip(ratios, successes, strict=True) if not is_success]
    if not good or not bad:
        return "same outcome"
    if min(ratios) == max(ratios):
        return "same ratio"
    # With one regressor, separation (Albert and Anderson 1984, quasi-complete too) is that the ranges do not overlap.
    if max(bad) <= min(good) or max(good) <= min(bad):
        return "separated"
    return None
