"""The interval of a shift of logits, whose effect saturates.

Where most probabilities are near 0 and 1, the mean probability changes little with the
shift until it changes fast, so that no straight line describes it. The interval holds
all shifts whose mean probability agrees with the positives, up to the noise there.
"""

import math

import numpy as np
from scipy.special import expit

from qualms.inference._design import Design
from qualms.inference._shares import exact_interval, student_quantile
from qualms.scores.calibration_line import shift_root
from qualms.scores.influence import Shifted, few_errors


def shift_ends(
    shifted: Shifted, value: float, design: Design, level: float
) -> tuple[float, float]:
    """Return the ends of the interval of the shift `value`; nan where it is open.

    Where few items are wrong, or right, the noise of the outcomes is that of the exact
    intervals of the shares of missed positives and of false alarms, added by squares.
    """
    logits, truth = shifted
    guess, change, unseen = truth, 0.0, {-1: 0.0, 1: 0.0}
    if few_errors((logits > 0.0) != truth):
        guess = logits > 0.0
        missed, alarm = truth & ~guess, guess & ~truth
        shares = np.array([missed.mean(), alarm.mean()])
        ends = [
            exact_interval(of, design=design, level=level) for of in (missed, alarm)
        ]
        (low, high), (least, most) = ends
        change = float(shares[0] - shares[1])
        unseen[-1] = math.hypot(shares[0] - low, most - shares[1])
        unseen[1] = math.hypot(high - shares[0], shares[1] - least)

    def end(sign: int) -> float:
        def excess(shift: float) -> float:
            above = expit(logits + shift) - guess
            spread = design.spread(above / len(above))
            reach = student_quantile(level, spread.freedom) * math.sqrt(spread.variance)
            return float(above.mean()) - change - sign * math.hypot(reach, unseen[sign])

        chance = expit(logits + value)
        away = -excess(value) / float((chance * (1.0 - chance)).mean())
        near = sorted((value + 0.98 * away, value + 1.02 * away))
        return shift_root(excess, logits, near=(near[0], near[1]))

    return end(-1), end(1)
