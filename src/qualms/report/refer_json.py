"""A referral plan as JSON, documented in docs/refer.md."""

import math
from dataclasses import asdict
from typing import Any

from qualms import __version__
from qualms.evaluate import Measure, Outcome, Promise, ReferralPlan
from qualms.report.thin import thin
from qualms.scores import Estimate

PLAN_FORMAT = 1


def plan_to_json(plan: ReferralPlan) -> dict[str, Any]:
    """Plain data of a plan; stable within a `format`.

    What is undefined is null; a threshold that refers no item is null too, with
    `refers` false.
    """
    whole = {
        "format": PLAN_FORMAT,
        "qualms": __version__,
        "found": plan.found,
        "refers": plan.found and not math.isinf(plan.threshold),
        "request": asdict(plan.request),
        "uncertainty": plan.uncertainty,
        "threshold": plan.threshold,
        "shown": asdict(plan.shown),
        "observed": asdict(plan.observed) if plan.observed else None,
        "promised": asdict(plan.promised) if plan.promised else None,
        "promise": _promise(plan.promise),
        "needed": plan.needed,
        "level": plan.level,
        "offers": [
            asdict(offer.choice) | {"promised_accuracy": offer.promised}
            for offer in plan.offers
        ],
        "outcomes": [_outcome(outcome) for outcome in plan.outcomes],
        "warnings": list(plan.warnings),
        "notes": list(plan.notes),
    }
    plain: dict[str, Any] = json_numbers(whole)
    return plain


def _promise(promise: Promise | None) -> dict[str, Any] | None:
    if promise is None:
        return None
    return {
        "threshold": promise.threshold,
        "at_least": dict(promise.at_least),
        "budget": promise.budget,
        "confidence": promise.confidence,
        "items": promise.items,
        "tested": promise.tested,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    made = {
        "name": outcome.name,
        "subset": outcome.subset,
        "items": outcome.n,
        "clusters": outcome.clusters,
        "kept": outcome.kept,
        "referred": ends(outcome.referred),
        "scores": [_measure(measure) for measure in outcome.measures],
        "per_thousand": asdict(outcome.per_thousand),
        "verdicts": dict(outcome.verdicts),
        "fall": asdict(outcome.fall) if outcome.fall else None,
        "groups": [_outcome(group) for group in outcome.groups],
    }
    if outcome.curve is not None:
        kept = thin(outcome.curve.y)
        score = outcome.curve.name.removeprefix("referral_")
        made["curve"] = {
            "referred": outcome.curve.x[kept].tolist(),
            score: outcome.curve.y[kept].tolist(),
        }
    return made


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "score": measure.score,
        "label": measure.label,
        "better": measure.better,
        "before": ends(measure.before),
        "kept": ends(measure.kept),
        "with_expert": measure.with_expert,
        "why": measure.why,
    }


def ends(found: Estimate) -> dict[str, float]:
    """A number with its interval."""
    return {"value": found.value, "low": found.low, "high": found.high}


def json_numbers(value: Any) -> Any:
    """`value` with null for every number that JSON cannot hold."""
    if isinstance(value, dict):
        return {key: json_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [json_numbers(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
