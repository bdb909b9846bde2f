"""Does the referral curve fall: are the items kept worse than those referred?

The accuracy of the kept items falls between two shares referred exactly when the items
that go in between are better than those that stay. Both are shares of separate items,
so Newcombe's (1998) interval of their difference tells a fall from noise; Bonferroni
over all pairs of shares makes a false alarm on any of them as rare as one in twenty.
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from qualms.evaluate.refer.items import ReferralItems
from qualms.evaluate.refer.plan import Fall
from qualms.evaluate.refer.promise import cuts_of

Array = NDArray[np.float64]

SHARES = np.arange(10) / 10
ALARM = 0.05
# Of a million items any fall is beyond noise; below half a point it is of no account.
LEAST = 0.005


def fall_of(sample: ReferralItems, threshold: float) -> Fall | None:
    """The largest fall between tenths referred, and the share `threshold` refers.

    `sample` must hold independent items. None where the curve does not fall by more
    than noise and half a percentage point.
    """
    kept, right = _kept(sample, threshold)
    accuracy = right / kept
    pairs = np.array(list(combinations(range(len(kept)), 2)), np.int64).reshape(-1, 2)
    # ReferralCuts ascend: the first of a pair keeps less, so refers more.
    less, more = pairs.T
    between = kept[more] - kept[less], right[more] - right[less]
    drop = accuracy[more] - accuracy[less]
    sure = _below(right[less], kept[less], between[1], between[0])
    drop = np.where(sure & (drop >= LEAST), drop, 0.0)
    if not drop.any():
        return None
    worst = int(drop.argmax())
    i, j = int(more[worst]), int(less[worst])
    return Fall(
        from_referred=float(1.0 - kept[i] / sample.n),
        to_referred=float(1.0 - kept[j] / sample.n),
        from_accuracy=float(accuracy[i]),
        to_accuracy=float(accuracy[j]),
    )


def _kept(sample: ReferralItems, threshold: float) -> tuple[Array, Array]:
    """Items and right ones kept at each share, fewest first, tied items together."""
    cuts = cuts_of(sample, {"accuracy": 0.0})
    ranks = np.floor((1.0 - SHARES) * sample.n + 1e-9)
    cut = np.searchsorted(cuts.kept, ranks, side="right") - 1
    own = np.searchsorted(cuts.threshold, threshold, side="left")
    cut = np.unique(np.append(cut, own))
    kept, right = cuts.kept[cut], cuts.right["accuracy"][cut]
    some = kept > 0
    return kept[some].astype(np.float64), right[some].astype(np.float64)


def _below(hits: Array, n: Array, others: Array, m: Array) -> NDArray[np.bool_]:
    """Whether hits / n lies below others / m by more than noise, for each pair."""
    if not len(n):
        return np.zeros(0, np.bool_)
    z = float(ndtri(1.0 - ALARM / len(n)))
    first, second = hits / n, others / m
    up = _wilson(hits, n, z) - first
    down = second - _wilson(others, m, -z)
    found: NDArray[np.bool_] = first - second + np.hypot(up, down) < 0.0
    return found


def _wilson(hits: Array, n: Array, z: float) -> Array:
    """One end of Wilson's interval: the upper for a positive `z`."""
    share = hits / n
    reach = z * np.sqrt(share * (1.0 - share) / n + z**2 / (4.0 * n**2))
    end: Array = (share + z**2 / (2.0 * n) + reach) / (1.0 + z**2 / n)
    return end
