"""How a report writes its numbers, wherever they stand."""

from deskfork.report.model import Spread
from deskfork.report.statistics.rates import Rate

UNKNOWN = "unknown"
NOTHING = "-"
_TINY_P = 0.001


def percent(share: float | None) -> str:
    """Return a share in [0, 1] as per cent."""
    return NOTHING if share is None else f"{100 * share:.1f} %"


def rate_text(rate: Rate) -> str:
    """Return a share with its interval and what it was counted from: `38.6 % [25.7, 53.4] 17/44`."""
    if rate.rate is None or rate.low is None or rate.high is None:
        return "no score"
    return f"{percent(rate.rate)} [{100 * rate.low:.1f}, {100 * rate.high:.1f}] {rate.successes}/{rate.trials}"


def short_rate(rate: Rate) -> str:
    """Return a share and what it was counted from, for crowded tables."""
    return "no score" if rate.rate is None else f"{100 * rate.rate:.0f} % ({rate.successes}/{rate.trials})"


def p_text(p: float | None) -> str:
    """Return a p-value."""
    if p is None:
        return NOTHING
    return "<0.001" if p < _TINY_P else f"{p:.3f}"


def signed(value: float | None, digits: int = 3) -> str:
    """Return a number with its sign."""
    return NOTHING if value is None else f"{value:+.{digits}f}"


def interval_text(low: float | None, high: float | None) -> str:
    """Return an interval of signed numbers."""
    return NOTHING if low is None or high is None else f"[{signed(low)}, {signed(high)}]"


def amount(value: float | None) -> str:
    """Return a quantity with about three digits that count."""
    if value is None:
        return NOTHING
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.4f}"


def spread_text(spread: Spread) -> str:
    """Return the median with the quartiles, and for how many trials it is unknown."""
    told = f"{amount(spread.median)} [{amount(spread.low_quartile)}, {amount(spread.high_quartile)}]"
    if not spread.known:
        return UNKNOWN if spread.unknown else NOTHING
    return f"{told}, {spread.unknown} unknown" if spread.unknown else told


def total_text(spread: Spread) -> str:
    """Return the total, which one trial of which it is unknown leaves unknown."""
    return UNKNOWN if spread.total is None else amount(spread.total)
