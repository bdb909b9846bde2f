"""Findings of the RETINA paper, as questions to any results (Band et al., 2021).

Where a sentence has no number ("far below", "essentially all"), the limit is ours and
stands in the text.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from qualms.effects import (
    ByName,
    DecidingNumber,
    Numbers,
    Wishes,
    estimates,
    mean_of,
)
from qualms.labels import Label, Wanted
from qualms.study import Expectation

if TYPE_CHECKING:
    from qualms.evaluate.benchmark_results import BenchmarkResults
    from qualms.evaluate.entry import Curve

NHS = (0.2, 0.85)
"""False and true positive rate of the NHS's recommendation: 80 % specificity and 85 %
sensitivity."""
_USUAL: Wishes = {
    "source": (None, "000_retina"),
    "selection": "in_domain",
    "onset": (None, "moderate"),
    "blur": (None, 30),
    "referred": None,
}
"""The paper's main setting; its second text repeats some numbers."""
_BAYES = ("mfvi", "radial", "rank1", "fsvi")


def _name(method: Label, pool: Label) -> str:
    return str(method) if pool == 1 else f"{method} of {pool}"


def _of(
    shift: str, subset: str, score: str, *, minus: Wishes | None = None, **more: Wanted
) -> Numbers:
    """Return a function to a score of each method and pool, or to a difference."""
    labels: Wishes = {
        **{**_USUAL, "shift": shift, "subset": subset, "score": score},
        **more,
    }
    return estimates(labels, lines=("method", "pool"), minus=minus, named=_name)


def _sensitivity(subset: str, methods: Callable[[str], bool]) -> Numbers:
    """Return a function to each method's sensitivity at 80 % specificity.

    It is read from the mean ROC curve.
    """

    def numbers(results: "BenchmarkResults") -> ByName:
        labels = {n: want for n, want in _USUAL.items() if n != "referred"}
        table = results.table.where(score="auroc", referred=None)
        return {
            _name(of["method"], of["pool"]): _at_standard(
                curve, len(table.at(**{**of, "name": None}).values)
            )
            for of, curve in results.curves.where(
                **labels, name="roc", shift="country", subset=subset
            )
            if methods(str(of["method"]))
        }

    return numbers


def _at_standard(curve: "Curve", repeats: int) -> DecidingNumber:
    """Return the sensitivity of a ROC curve, with the error over seeds and items.

    Both eyes of a patient may be right or wrong together, so that the variance over
    items is doubled.
    """
    import numpy as np  # declarations are read by every command
    from scipy import stats

    place, (positives, negatives) = NHS[0], curve.counts
    value, left, right = np.interp(
        [place, place - 0.05, place + 0.05], curve.x, curve.y
    )
    if curve.stderr is None or repeats < 3:  # two seeds do not show how others vary
        return DecidingNumber(float(value))
    slope = (right - left) / 0.1
    of_items = value * (1 - value) / max(positives, 1)
    of_items += slope**2 * place * (1 - place) / max(negatives, 1)
    of_seeds = float(np.interp(place, curve.x, curve.stderr))
    width = math.hypot(
        stats.t.ppf(0.975, repeats - 1) * of_seeds, 1.96 * math.sqrt(2 * of_items)
    )
    low, high = max(0.0, value - width), min(1.0, value + width)
    return DecidingNumber(float(value), float(low), float(high))


def _mean_minus_map(results: "BenchmarkResults") -> ByName:
    """Return the mean accuracy of variational methods on severe cases less MAP's."""
    labels = "severity", "shifted", "accuracy"
    found = _of(*labels, referred=0.5, method=(*_BAYES, "map"), pool=1)(results)
    numbers = {n: v for n, v in found.items() if isinstance(v, DecidingNumber)}
    single = numbers.pop("map", None)
    if single is None or not numbers:
        return {}
    name = f"mean of {', '.join(numbers)}"
    return {name: mean_of(list(numbers.values())) - single}


FINDINGS = (
    Expectation(
        text="At home MC dropout meets the NHS standard: 85 % sensitivity at 80 % "
        "specificity",
        where="Section 3.2, figure 3 (a)",
        numbers=_sensitivity("in_domain", lambda name: name == "mc_dropout"),
        low=NHS[1],
    ),
    Expectation(
        text="At home no method but MC dropout meets the NHS standard",
        where="Section 3.2, figure 3 (a)",
        numbers=_sensitivity("in_domain", lambda name: name != "mc_dropout"),
        high=NHS[1],
    ),
    Expectation(
        text="Abroad essentially all methods surpass the NHS standard (most of them)",
        where="Section 3.2, figure 3 (b)",
        numbers=_sensitivity("shifted", lambda _: True),
        low=NHS[1],
        most=True,
    ),
    Expectation(
        text="AUROC is higher abroad than at home, for every method",
        where="Section 3.2, table 1",
        numbers=_of("country", "shifted", "auroc", minus={"subset": "in_domain"}),
        low=0.0,
    ),
    Expectation(
        text="Abroad AUROC falls when 70 % are referred, for most methods but MFVI",
        where="Section 3.2, figure 3 (d), table 1",
        numbers=_of(
            *("country", "shifted", "auroc"),
            referred=0.7,
            method=("map", "radial", "fsvi", "mc_dropout", "rank1"),
            minus={"referred": None},
        ),
        high=0.0,
        most=True,
    ),
    Expectation(
        text="Abroad the AUROC of MFVI rises when half are referred",
        where="Section 3.2, table 1",
        numbers=_of(
            *("country", "shifted", "auroc"),
            referred=0.5,
            method="mfvi",
            minus={"referred": None},
        ),
        low=0.0,
    ),
    Expectation(
        text="At home MC dropout has the highest AUROC: no other single method reaches "
        "it",
        where="Table 1",
        numbers=_of(
            *("country", "in_domain", "auroc"), pool=1, minus={"method": "mc_dropout"}
        ),
        high=0.0,
    ),
    Expectation(
        text="At home the ECE of MC dropout is the lowest of all single methods",
        where="Table 4, numbers alone",
        numbers=_of(
            *("country", "in_domain", "ece"), pool=1, minus={"method": "mc_dropout"}
        ),
        low=0.0,
    ),
    Expectation(
        text="Under severity shift accuracy is far below in-domain accuracy (by more "
        "than 0.1, for most methods)",
        where="Table 2, numbers alone",
        numbers=_of("severity", "shifted", "accuracy", minus={"subset": "in_domain"}),
        high=-0.1,
        most=True,
    ),
    Expectation(
        text="AUROC is higher with severe cases than without them (joint and in-domain "
        "items)",
        where="Section 3.1, figure 2 (a, b), table 5",
        numbers=_of("severity", "joint", "auroc", minus={"subset": "in_domain"}),
        low=0.0,
    ),
    Expectation(
        text="Accuracy rises when half are referred, also under severity shift (most "
        "methods)",
        where="Section 3.1, figure 2 (d), table 2",
        numbers=_of(
            *("severity", "shifted", "accuracy"), referred=0.5, minus={"referred": None}
        ),
        low=0.0,
        most=True,
    ),
    Expectation(
        text="With half referred, MC dropout is right on nearly all severe cases "
        "(accuracy above 0.98)",
        where="Section 3.1, figure 2 (d), table 2",
        numbers=_of(
            *("severity", "shifted", "accuracy"),
            referred=0.5,
            method="mc_dropout",
        ),
        low=0.98,
        of_paper=True,
    ),
    Expectation(
        text="With half referred, the other variational methods are less accurate than "
        "MAP on severe cases, on average",
        where="Section 3.1, figure 2 (d), table 2",
        numbers=_mean_minus_map,
        high=0.0,
    ),
    Expectation(
        text="The entropy hardly tells items from abroad: AUROC below 0.55",
        where="Table 3, numbers alone",
        numbers=_of("country", "joint", "ood_auroc"),
        high=0.55,
    ),
)
