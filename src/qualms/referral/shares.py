"""Shares in percent, for sentences and tables."""

import math

from qualms.inference import WithInterval


def exact_percent(share: float) -> str:
    """Return a requested share with all its digits.

    >>> exact_percent(0.955)
    '95.5%'
    """
    return f"{100 * share:g}%"


def short_percent(share: float) -> str:
    """Return a share with one decimal, or without one if it is 0.

    >>> short_percent(0.2), short_percent(0.9543)
    ('20%', '95.4%')
    """
    return f"{round(100 * share, 1):g}%"


def lower_percent(bound: float) -> str:
    """Return a lower bound with one decimal, rounded down.

    >>> lower_percent(0.9599)
    '95.9%'
    """
    return f"{math.floor(1000 * bound + 1e-9) / 10:.1f}%"


def percent(share: float) -> str:
    """Return a share with one decimal.

    >>> percent(0.2)
    '20.0%'
    """
    return f"{100 * share:.1f}%"


def percent_interval(share: WithInterval) -> str:
    """Return a share with its interval.

    >>> from qualms.inference import Bounded
    >>> percent_interval(Bounded(0.2, 0.15, 0.262))
    '20.0% [15.0, 26.2]'
    """
    return f"{percent(share.value)} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def points(difference: float) -> str:
    """Return a difference of two shares in percentage points.

    >>> points(0.123), points(-0.02)
    ('+12.3 points', '-2.0 points')
    """
    return f"{100 * difference:+.1f} points"
