"""Referral plans, and what they do on new items, as JSON (docs/plan_files.md)."""

import math
from dataclasses import asdict
from typing import Any

from qualms import __version__
from qualms.evaluate.drawings import thin
from qualms.referral import (
    AppliedPlan,
    Cutoff,
    Measure,
    Outcome,
    ReferralPlan,
    Workload,
)
from qualms.scores import Estimate

FORMAT = 1


def plan_to_json(plan: ReferralPlan) -> dict[str, Any]:
    """Return plain data of a plan; stable within a `format`.

    What is undefined is null; a threshold that refers no item is null too, with
    `refers` false.
    """
    return _plain(
        {
            "format": FORMAT,
            "qualms": __version__,
            "found": plan.found,
            "refers": plan.found and not math.isinf(plan.threshold),
            "request": plan.request.as_data(),
            "uncertainty": plan.uncertainty.name,
            "threshold": plan.threshold,
            "shown": asdict(plan.shown),
            "observed": _cutoff(plan.observed),
            "promised": _cutoff(plan.promised),
            "promise": _promise(plan),
            "needed": plan.needed,
            "level": plan.level,
            "offers": [
                asdict(offer.cutoff) | {"promised_accuracy": offer.promised}
                for offer in plan.offers
            ],
            "outcomes": [_outcome(outcome) for outcome in plan.outcomes],
            "warnings": list(plan.warnings),
            "notes": list(plan.notes),
        }
    )


def applied_to_json(applied: AppliedPlan) -> dict[str, Any]:
    """Return plain data of an applied plan; stable within a `format`."""
    check = applied.check
    return _plain(
        {
            "format": FORMAT,
            "qualms": __version__,
            "name": applied.name,
            "rule": applied.rule,
            "promise": applied.promise,
            "workload": _workload(applied.workload),
            "check": {
                "verdict": check.verdict,
                "sentence": check.sentence,
                "items": check.items,
                "reference": check.reference,
                "level": check.level,
                "departures": [asdict(each) for each in check.departures],
            },
            "items": [
                dict(zip(applied.items.columns, line, strict=True))
                for line in applied.items.first(len(applied.items))
            ],
            "warnings": list(applied.warnings),
            "notes": list(applied.notes),
        }
    )


def _cutoff(cutoff: Cutoff | None) -> dict[str, float] | None:
    return None if cutoff is None else asdict(cutoff)


def _promise(plan: ReferralPlan) -> dict[str, Any] | None:
    if plan.promise is None:
        return None
    return {"threshold": plan.shown.threshold, **plan.promise.as_data()}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    data = {
        "name": outcome.name,
        "subset": outcome.subset,
        "items": outcome.n,
        "clusters": outcome.clusters,
        "kept": outcome.kept,
        "referred": _ends(outcome.referred),
        "scores": [_measure(measure) for measure in outcome.measures],
        "per_thousand": asdict(outcome.per_thousand),
        "verdicts": dict(outcome.verdicts),
        "fall": asdict(outcome.fall) if outcome.fall else None,
        "groups": [_outcome(group) for group in outcome.groups],
    }
    if outcome.curve is not None:
        places = thin(outcome.curve.y)
        score = outcome.curve.name.removeprefix("referral_")
        data["curve"] = {
            "referred": outcome.curve.x[places].tolist(),
            score: outcome.curve.y[places].tolist(),
        }
    return data


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "score": measure.score,
        "label": measure.label,
        "better": measure.better,
        "before": _ends(measure.before),
        "kept": _ends(measure.kept),
        "with_expert": measure.with_expert,
        "why": measure.why,
    }


def _workload(work: Workload) -> dict[str, Any]:
    number, low, high = work.expected
    return {
        "items": work.items,
        "clusters": work.clusters,
        "referred": work.referred,
        "share": _ends(work.share),
        "planned": _ends(work.planned),
        "change": _ends(work.change),
        "expected": {"value": number, "low": low, "high": high},
    }


def _ends(estimate: Estimate) -> dict[str, float]:
    """Return a number with the ends of its interval."""
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """Return `data` with null for every number that JSON cannot hold."""
    return {key: _finite(value) for key, value in data.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return _plain(value)
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
