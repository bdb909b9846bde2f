"""Referral plans: the items that an expert should see, with a promise on the others.

`refer` chooses a threshold and returns a `ReferralPlan`; `plan.save` writes it to a
file, `read_plan` reads it, and `plan.apply` finds the new, unlabelled items to refer.
`plan_choices` returns the answers of `refer` to a grid of budgets and targets.
"""

from qualms.referral._answers import BudgetAnswers, ScoreAnswers
from qualms.referral._applied import AppliedPlan, ReferredItems, Workload
from qualms.referral._choices import (
    MeasureChoices,
    PlanChoices,
    SetChoices,
    plan_choices,
)
from qualms.referral._items import (
    UncertaintySource,
    predicted_values,
    uncertainty_source,
    uncertainty_values,
)
from qualms.referral._kept_shares import Estimates
from qualms.referral._likeness import Departure, LikenessCheck, ReferenceSample
from qualms.referral._outcome import Fall, Measure, Outcome, PerThousand
from qualms.referral._plan import PlanOrigin, ReferralPlan, read_plan
from qualms.referral._plan_file import PlanError
from qualms.referral._refer import refer
from qualms.referral._request import ReferralOptions, Request
from qualms.referral._task import (
    Referral,
    ReferredOutcomes,
    referable_tasks,
    referral_of,
)
from qualms.referral._threshold import Cutoff, Offer, Promise

__all__ = [
    "AppliedPlan",
    "BudgetAnswers",
    "Cutoff",
    "Departure",
    "Estimates",
    "Fall",
    "LikenessCheck",
    "Measure",
    "MeasureChoices",
    "Offer",
    "Outcome",
    "PerThousand",
    "PlanChoices",
    "PlanError",
    "PlanOrigin",
    "Promise",
    "ReferenceSample",
    "Referral",
    "ReferralOptions",
    "ReferralPlan",
    "ReferredItems",
    "ReferredOutcomes",
    "Request",
    "ScoreAnswers",
    "SetChoices",
    "UncertaintySource",
    "Workload",
    "plan_choices",
    "predicted_values",
    "read_plan",
    "refer",
    "referable_tasks",
    "referral_of",
    "uncertainty_source",
    "uncertainty_values",
]
