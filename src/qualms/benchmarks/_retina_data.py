"""The variants of the retina benchmark: two shifts, two regimes, real and simulated."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from qualms.benchmarks._benchmark import Preset, Variant
from qualms.benchmarks._retina_configs import config_name
from qualms.benchmarks._retina_rows import METHODS
from qualms.spec import Part

SHIFTS = {
    "country": ("Country Shift", "other cameras and people"),
    "severity": ("Severity Shift", "grades worse than any in training"),
}
SELECT_BY = {"in-domain": "val_auroc", "joint": "val_referral"}
"""What the epoch is chosen by in each regime."""
_OTHERWISE = {
    "last": "the last epoch of each run, chosen on no items",
    "val_loss": "epochs chosen by the loss on in-domain validation items",
}
SPLITS = ("train", "val", "val/shifted", "test", "test/shifted")
SIZES = {
    "country": (35_126, 10_906, 733, 42_670, 2_929),
    "severity": (33_545, 10_429, 477, 40_727, 3_524),
}
"""Items of each split in the paper."""
BLURS = (5, 10, 20)
"""Constants of the preprocessing that are compared with the usual 30."""
BLUR_ROWS = ("map", "mc_dropout", "map_ensemble", "mc_dropout_ensemble")


def fundus(regime: str, options: Mapping[str, Any]) -> Iterator[Variant]:
    """Both shifts on simulated photographs; `options` say how large, and how many."""
    for shift in SHIFTS:
        part = Part(name="fundus", options={"shift": shift, **options})
        yield replace(_variant(part, shift, regime), simulated=True)


def full_size(*regimes: str) -> Iterator[Variant]:
    """Both shifts on as many simulated photographs as RETINA has, of 256 pixels."""
    for variant in eyepacs(*regimes):
        shift = variant.dataset.options["shift"]
        sizes = dict(zip(SPLITS, SIZES[shift], strict=True))
        options = {"shift": shift, "size": 256, "sizes": sizes}
        yield replace(
            variant,
            name=f"fundus_{variant.name}",
            dataset=Part(name="fundus", options=options),
            simulated=True,
        )


def eyepacs(*regimes: str) -> Iterator[Variant]:
    """Both shifts on EyePACS, with APTOS abroad, each with its published configs."""
    for regime in regimes:
        for shift in SHIFTS:
            part = Part(name="eyepacs", options={"shift": shift})
            yield replace(
                _variant(part, shift, regime), configs=_published(shift, regime)
            )


def blurred() -> Iterator[Variant]:
    """EyePACS with other constants of the preprocessing, as in tables 12 and 13."""
    for variant in eyepacs("in-domain"):
        for blur in BLURS:
            options = {**variant.dataset.options, "blur": blur}
            yield replace(
                variant,
                name=f"{variant.name}_blur{blur}",
                label=f"{variant.label}, blur {blur}",
                dataset=replace(variant.dataset, options=options),
                rows=BLUR_ROWS,
            )


def epochs_text(preset: Preset, variant: Variant) -> str:
    """What is to be said of epochs that the rule of the regime does not choose.

    '' where it does, as in all presets until a user asks for another rule.
    """
    rule = {**preset.training, **variant.training}.get("select_by", "last")
    return "" if rule == SELECT_BY.get(variant.regime) else _OTHERWISE.get(rule, "")


def _variant(part: Part, shift: str, regime: str) -> Variant:
    label, what = SHIFTS[shift]
    suffix = "" if regime == "in-domain" else f"_{regime}"
    return Variant(
        name=f"{shift}{suffix}",
        label=label,
        dataset=part,
        shift=what,
        shifted=True,
        regime=regime,
        alphas=(None,),
        training={"select_by": SELECT_BY[regime]},
    )


def _published(shift: str, regime: str) -> dict[str, str]:
    return {method: config_name(method, shift, regime) for method in METHODS}
