"""What active learning gains from an uncertainty."""

import numpy as np

from qualms.scores._about import score


@score(label="AL gain", better="higher", low=-np.inf, high=np.inf)
def al_improvement(dice_before: float, dice_after: float, dice_random: float) -> float:
    """Relative gain in Dice by querying uncertain items over random ones.

    (after / before - 1) - (random / before - 1) on the shifted test split, where the
    pool was queried by uncertainty or at random between the two trainings (Kahl et
    al., 2024, appendix A.4); nan where nothing was segmented before.

    >>> round(al_improvement(0.5, 0.6, 0.55), 6)
    0.1
    """
    values = {
        "dice_before": dice_before,
        "dice_after": dice_after,
        "dice_random": dice_random,
    }
    for name, value in values.items():
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} must be finite and lie in [0, 1], got {value}")
    if dice_before == 0.0:
        return float("nan")
    return (float(dice_after) - float(dice_random)) / float(dice_before)
