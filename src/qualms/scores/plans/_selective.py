"""Plans of selective prediction: the risk of what is kept."""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores import _weighted as kernel
from qualms.scores import proper
from qualms.scores._arrays import Array, Index, vector
from qualms.scores._copies import Copies
from qualms.scores._labelled import labelled
from qualms.scores._resample import Weights
from qualms.scores._ties import ranked
from qualms.scores.decomposition import entropy
from qualms.scores.plans._plan import Plan, edge_plan, replay_plan, risk_cells
from qualms.scores.referral import referral_curve


def aurc_plan(risk: ArrayLike, uncertainty: ArrayLike) -> Plan:
    """`aurc` of `risk` (N,), most certain first by `uncertainty` (N,)."""
    cells = risk_cells(risk, vector("uncertainty", uncertainty))
    (carried,) = cells.carried

    def areas(copies: Copies) -> Array:
        harmonic = kernel.harmonic_numbers(int(copies.total().max()).bit_length())
        counts = copies.within(cells)
        return kernel.kept_risk(counts, cells.last, carried, harmonic)

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
        return kernel.undetected_risk(copies.within(cells), cells.last, carried)

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


def referral_area_plan(
    name: str,
    probs: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike | None = None,
) -> Plan:
    """The `area` of `referral_curve(name, probs, target, uncertainty)`.

    Accuracy, NLL and AUROC are presorted; the other curves are made anew every time.
    """
    mean, truth = labelled(probs, target)
    doubt = entropy(mean) if uncertainty is None else uncertainty
    if name == "accuracy":
        return aurc_plan(proper.correct(mean, truth), doubt)
    if name == "nll":
        return aurc_plan(proper.item_nll(mean, truth), doubt)
    if name == "auroc" and mean.shape[1] == 2:
        return _auroc_area_plan(mean[:, 1], truth, vector("uncertainty", doubt))
    curve = partial(referral_curve, name)
    return replay_plan(lambda *arrays: curve(*arrays).area, mean, truth, doubt)


def _auroc_area_plan(score: Array, positive: Index, uncertainty: Array) -> Plan:
    item, first = ranked(uncertainty)
    last = np.zeros(len(item), dtype=np.bool_)
    last[first[1:] - 1] = True
    order, start = ranked(score)
    level = np.empty(len(score), dtype=np.int64)
    level[order] = np.repeat(np.arange(len(start) - 1), np.diff(start))
    truth, ranked_level = (positive == 1)[item], level[item]

    def one(weights: Weights) -> float:
        ends, count = kernel.kept_auroc(weights, item, last, truth, ranked_level)
        if not count.size:
            return float("nan")
        curve = np.interp(np.arange(1.0, count[-1] + 1.0), count, ends)
        defined = curve[~np.isnan(curve)]
        return float(defined.mean()) if defined.size else float("nan")

    def value(copies: Copies) -> Array:
        return np.array([one(row) for row in copies.weights])

    return Plan(len(score), value)
