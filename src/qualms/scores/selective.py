"""Selective prediction: the risk of the items kept, most certain first.

Risk is any per-item loss of 0 or more (error, 1 - Dice). Uncertainty is larger for less
certain items. Tied items are taken in random order and the expectation is given, so the
order of the items never matters.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Index
from qualms.jit import jit
from qualms.scores._about import as_score
from qualms.scores._arrays import flags, vector
from qualms.scores.resampling import (
    Copies,
    Plan,
    edge_plan,
    harmonic_numbers,
    kept_risk,
    ranked_cells,
    risk_cells,
    trapezoid_risk,
    undetected_risk,
)
from qualms.scores.ties import Ranked, ranked_items

# A mean over k equal risks may miss the level they were meant to meet by rounding.
LEVEL_TOLERANCE = 1e-12


class RiskCoverage(NamedTuple):
    """Selective risk against coverage, one point per number of items kept."""

    coverage: Array
    """(N,) share of items kept: k / N for k = 1..N."""
    risk: Array
    """(N,) mean risk of the k most certain items."""


def risk_coverage_curve(risk: ArrayLike, uncertainty: ArrayLike) -> RiskCoverage:
    """Mean risk of the k most certain of N items, k = 1..N (El-Yaniv & Wiener, 2010).

    `risk` and `uncertainty` have shape (N,).

    >>> risk_coverage_curve([0.0, 1.0], [0.1, 0.9])
    RiskCoverage(coverage=array([0.5, 1. ]), risk=array([0. , 0.5]))
    """
    values, rank = _checked(risk, uncertainty)
    coverage = np.arange(1, len(values) + 1) / len(values)
    return RiskCoverage(coverage, kept_means(values[rank.order], rank.start))


@jit
def kept_means(ordered: Array, start: Index) -> Array:
    """(N,) mean of the first k of `ordered`, k = 1..N, expected over tie orders.

    Every item counts the mean of its group: its expectation under a random order.
    """
    means = np.empty(len(ordered))
    total = 0.0
    for group in range(len(start) - 1):
        # Taken as an offset from the first value, the mean of equal values is that
        # value to the last bit: a perfect ranking has an E-AURC of exactly 0.
        first, offset = ordered[start[group]], 0.0
        for item in range(start[group] + 1, start[group + 1]):
            offset += ordered[item] - first
        mean = first + offset / (start[group + 1] - start[group])
        for item in range(start[group], start[group + 1]):
            total += mean
            means[item] = total / (item + 1)
    return means


def aurc_plan(risk: ArrayLike, uncertainty: ArrayLike) -> Plan:
    """`aurc` of `risk` (N,), most certain first by `uncertainty` (N,)."""
    cells = risk_cells(risk, vector("uncertainty", uncertainty))
    (carried,) = cells.carried

    def areas(copies: Copies) -> Array:
        harmonic = harmonic_numbers(int(copies.total().max()).bit_length())
        counts = copies.within(cells)
        return kept_risk(counts, cells.last, carried, harmonic)

    def value(copies: Copies) -> Array:
        return copies.shared((cells, "aurc"), lambda: areas(copies))

    return Plan(len(cells.cell), value)


def eaurc_plan(risk: ArrayLike, uncertainty: ArrayLike) -> Plan:
    """`eaurc`: the AURC above that of the same items ranked by their risk (N,)."""
    ours, best = aurc_plan(risk, uncertainty), aurc_plan(risk, risk)
    return Plan(ours.items, lambda copies: ours.value(copies) - best.value(copies))


def augrc_plan(risk: ArrayLike, uncertainty: ArrayLike) -> Plan:
    """`augrc` of `risk` (N,), most certain first by `uncertainty` (N,)."""
    cells = risk_cells(risk, vector("uncertainty", uncertainty))
    (carried,) = cells.carried

    def value(copies: Copies) -> Array:
        return undetected_risk(copies.within(cells), cells.last, carried)

    return Plan(len(cells.cell), value)


def risk_at_coverage_plan(
    risk: ArrayLike, uncertainty: ArrayLike, *, coverage: float = 0.8
) -> Plan:
    """`risk_at_coverage` of `risk` (N,), most certain first by `uncertainty` (N,)."""
    if not 0.0 < coverage <= 1.0:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage}")

    def kept(total: Array) -> Array:
        return np.maximum(1.0, np.rint(coverage * total))[:, None]

    def value(sums: Array, edges: Array) -> Array:
        return sums[:, 0] / edges[:, 0]

    return edge_plan(risk, vector("uncertainty", uncertainty), kept, value)


@as_score(label="AURC", better="lower", high=np.inf, plan=aurc_plan)
def aurc(risk: ArrayLike, uncertainty: ArrayLike) -> float:
    """Mean over k = 1..N of the risk of the k most certain items, both (N,).

    Geifman & El-Yaniv (2017). A plain mean over the N coverages, no trapezoid and no
    point at coverage 0. Tied items share their mean risk.

    >>> aurc([0.0, 0.0, 1.0], [0.1, 0.2, 0.9])
    0.1111111111111111
    """
    return float(np.mean(risk_coverage_curve(risk, uncertainty).risk))


@as_score(label="E-AURC", better="lower", high=np.inf, plan=eaurc_plan)
def eaurc(risk: ArrayLike, uncertainty: ArrayLike) -> float:
    """AURC in excess of the best ranking of the same risks, both (N,).

    Geifman et al. (2019). The best AURC follows the same rule, so a perfect ranking
    gives exactly 0.

    >>> eaurc([0.0, 0.5, 1.0], [1.0, 2.0, 3.0])
    0.0
    """
    return aurc(risk, uncertainty) - aurc(risk, risk)


def threshold_aurc_plan(risk: ArrayLike, uncertainty: ArrayLike) -> Plan:
    """`threshold_aurc` of `risk` (N,), by thresholds on `uncertainty` (N,)."""
    rank = vector("uncertainty", uncertainty)
    carried = vector("risk", risk, length=len(rank))
    # Neighbouring groups of one risk are two points of the curve.
    cells = ranked_cells(rank, carried, alike=np.zeros(len(rank), dtype=np.bool_))
    (values,) = cells.carried

    def value(copies: Copies) -> Array:
        return trapezoid_risk(copies.within(cells), cells.last, values)

    return Plan(len(rank), value)


def threshold_eaurc_plan(risk: ArrayLike, uncertainty: ArrayLike) -> Plan:
    """`threshold_eaurc` of `risk` (N,), by thresholds on `uncertainty` (N,)."""
    ours = threshold_aurc_plan(risk, uncertainty)
    best = threshold_aurc_plan(risk, risk)
    return Plan(ours.items, lambda copies: ours.value(copies) - best.value(copies))


@as_score(
    label="AURC by thresholds", better="lower", high=np.inf, plan=threshold_aurc_plan
)
def threshold_aurc(risk: ArrayLike, uncertainty: ArrayLike) -> float:
    """Area under risk against coverage, a point per distinct threshold, both (N,).

    The AURC of Kahl et al. (2024, equation 7): trapezoids between the thresholds that
    occur, from coverage 1 down to the share of the most certain items, which are kept
    together if they are tied. What lies below that coverage is left out, so values of
    files with other ties are not comparable; `aurc` covers every number of items.

    >>> threshold_aurc([0.0, 0.5, 1.0], [0.1, 0.2, 0.3])
    0.16666666666666666
    """
    values, rank = _checked(risk, uncertainty)
    kept = rank.start[1:]
    curve = np.cumsum(values[rank.order])[kept - 1] / kept
    return float(np.diff(kept) @ (curve[1:] + curve[:-1]) / (2 * len(values)))


@as_score(
    label="E-AURC by thresholds",
    better="lower",
    low=-np.inf,
    high=np.inf,
    plan=threshold_eaurc_plan,
)
def threshold_eaurc(risk: ArrayLike, uncertainty: ArrayLike) -> float:
    """`threshold_aurc` in excess of the best ranking by the same rule, both (N,).

    The E-AURC of Kahl et al. (2024, equation 8): exactly 0 for a ranking by risk, and
    below 0 where ties leave out more of the curve than the best ranking does.

    >>> threshold_eaurc([0.0, 0.5, 1.0], [0.1, 0.2, 0.3])
    0.0
    """
    return threshold_aurc(risk, uncertainty) - threshold_aurc(risk, risk)


@as_score(label="AUGRC", better="lower", high=np.inf, plan=augrc_plan)
def augrc(risk: ArrayLike, uncertainty: ArrayLike) -> float:
    """Area under the generalised risk-coverage curve, both arguments (N,).

    Traub et al. (2024): the generalised risk at coverage k / N is the summed risk of
    the k most certain items over N, that is risk times coverage, so errors among the
    most certain items do not dominate. Estimated as its mean over k = 1..N, the rule of
    `aurc`; for errors it lies between 0 and (N + 1) / 2N.

    >>> augrc([0.0, 1.0], [0.1, 0.9])
    0.25
    """
    curve = risk_coverage_curve(risk, uncertainty)
    return float(np.mean(curve.risk * curve.coverage))


@as_score(
    label="risk at coverage", better="lower", high=np.inf, plan=risk_at_coverage_plan
)
def risk_at_coverage(
    risk: ArrayLike, uncertainty: ArrayLike, *, coverage: float = 0.8
) -> float:
    """Mean risk of the most certain share `coverage` of the items; arguments (N,).

    Keeps round(coverage N) items, a half to the even number as Python rounds, and at
    least one (Geifman & El-Yaniv, 2017).

    >>> risk_at_coverage([0.0, 0.0, 0.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    0.25
    """
    if not 0.0 < coverage <= 1.0:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage}")
    curve = risk_coverage_curve(risk, uncertainty).risk
    kept = max(1, round(coverage * len(curve)))
    return float(curve[kept - 1])


@as_score(label="coverage at risk", better="higher")
def coverage_at_risk(
    risk: ArrayLike, uncertainty: ArrayLike, *, risk_level: float
) -> float:
    """Largest share of items that can be kept at a risk of at most `risk_level`.

    Only thresholds on the uncertainty count, so tied items are kept together or not at
    all; 0 where no threshold meets the level (Geifman & El-Yaniv, 2017).

    >>> coverage_at_risk([0.0, 0.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0], risk_level=0.4)
    0.75
    """
    if not 0.0 <= risk_level < np.inf:
        raise ValueError(f"risk_level must be a number of 0 or more, got {risk_level}")
    values, rank = _checked(risk, uncertainty)
    kept = rank.start[1:]
    selective = np.cumsum(values[rank.order])[kept - 1] / kept
    good = kept[selective <= risk_level * (1.0 + LEVEL_TOLERANCE)]
    return float(good[-1] / len(values)) if good.size else 0.0


def balanced_joint(shifted: ArrayLike, *, seed: int = 0) -> Index:
    """Row indices of a joint set with as many shifted as in-domain rows.

    `shifted` (N,) marks the shifted rows. The smaller side is repeated a whole number
    of times and filled up with rows drawn without replacement; the larger side appears
    once. In-domain rows come first. (Band et al., 2021, who have more in-domain rows;
    there the other case shrinks the shifted side: `as_published.retina`.)

    >>> balanced_joint([False, False, False, False, True, True])
    array([0, 1, 2, 3, 4, 5, 4, 5])
    """
    moved = flags("shifted", shifted)
    sides = np.flatnonzero(~moved), np.flatnonzero(moved)
    rows = max(len(side) for side in sides)
    if rows == len(moved):
        held = "shifted" if moved.all() else "in-domain"
        raise ValueError(
            f"shifted must mark some rows but not all, got only {held} rows; "
            "pass the joint set"
        )
    rng = np.random.default_rng(seed)
    return np.concatenate([_repeated(side, rows, rng) for side in sides])


def _checked(risk: ArrayLike, uncertainty: ArrayLike) -> tuple[Array, Ranked]:
    values = vector("risk", risk)
    if values.min() < 0.0:
        row = int(np.argmax(values < 0.0))
        raise ValueError(
            f"risk must be 0 or more, row {row} is {values[row]}; pass a loss, such as "
            "an error or 1 - Dice"
        )
    return values, ranked_items(vector("uncertainty", uncertainty, length=len(values)))


def _repeated(side: Index, rows: int, rng: np.random.Generator) -> Index:
    times, missing = divmod(rows, len(side))
    filled = rng.choice(side, size=missing, replace=False)
    return np.concatenate([np.tile(side, times), filled])
