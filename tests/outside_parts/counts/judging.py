"""TaskJudging counts: deviance, error, and whether the spread of rates finds errors."""

import numpy as np

from counts.referral import deviation
from qualms import scores
from qualms.evaluate.entry import Judgement, bound_entry
from qualms.evaluate.judging import ShownScores, TaskJudging
from qualms.evaluate.main_scores import MainScore
from qualms.evaluate.subsets import design_of, subsets, unknown_notes
from qualms.evaluate.verdict import (
    better_than,
    finds_errors,
    gap_from,
    reduces,
    row_or_none,
)
from qualms.inference import mean_influence
from qualms.scores import as_score

FLOOR = 1e-9


def _deviances(rate, target):
    rate = np.maximum(rate, FLOOR)
    events = np.where(target > 0, target * np.log(np.maximum(target, 1) / rate), 0.0)
    return 2.0 * (events - (target - rate))


@as_score(label="Deviance", better="lower", high=np.inf, items=_deviances)
def poisson_deviance(rate, target):
    """Return the mean deviance of counts from their expected values."""
    return float(_deviances(rate, target).mean())


def judge_counts(predictions, _val, options):
    """Judge one file of counts."""
    rates = predictions.arrays["rate"]
    mean, target = rates.mean(0), predictions.arrays["target"]
    own = {"spread": deviation(predictions), **predictions.named("uncertainty")}
    entries = []
    for subset, index in subsets(
        predictions, by_group=options.by_group, seed=0
    ).items():
        arrays = {"rate": mean[index], "mean": mean[index], "target": target[index]}
        entries += [
            bound_entry(score, arrays, index, subset=subset)
            for score in (poisson_deviance, scores.mae)
        ]
        risk = np.abs(mean - target)[index]
        entries += [
            bound_entry(
                scores.aurc,
                {"risk": risk, "uncertainty": values[index]},
                index,
                subset=subset,
                settings={"uncertainty": name},
            )
            for name, values in own.items()
        ]
    return Judgement(
        entries=tuple(entries),
        design=design_of(predictions),
        notes=unknown_notes(predictions, in_ood_scores=False),
    )


def _accurate(results, items):
    error = row_or_none(results, "poisson_deviance", items)
    target = results.items.arrays["target"][error.entry.index]
    constant = mean_influence(_deviances(np.full(len(target), target.mean()), target))
    reply = reduces(results, error, constant, "constant")
    gap = gap_from(results, error, constant, 1.0)
    worse = gap is not None and gap.low > 0.0
    because = f"deviance {reply.because}"
    return better_than("a constant", reply.answer, because, worse=worse)


JUDGING = TaskJudging(
    judge=judge_counts,
    rules={"accurate": _accurate, "finds_errors": finds_errors({}, "mae")},
    shown=lambda _: ShownScores(
        main=tuple(map(MainScore, ("poisson_deviance", "mae", "aurc"))),
        grouped=("poisson_deviance", "mae"),
    ),
    baseline="a constant",
)
