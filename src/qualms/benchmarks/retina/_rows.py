"""Rows and variants of the retina benchmark.

Six methods, alone and pooled, on two shifts, with two ways to choose epochs and
configurations, on real and on simulated photographs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from qualms.benchmarks.retina._configs import config_name
from qualms.labels import Label
from qualms.spec import Part
from qualms.study import GUEST, Selection, TableRow, Variant

METHODS = ("map", "mc_dropout", "mfvi", "radial", "rank1", "fsvi")
ENSEMBLES = tuple(f"{method}_ensemble" for method in METHODS)
"""Names of the rows that pool three runs of each method, as the paper does."""
PAIRS = tuple(f"{method}_pair" for method in METHODS)
"""Names of the rows that pool two runs of each method, for presets with few runs."""

_LABELS = {
    "map": ("MAP (Deterministic)", "Deep Ensemble"),
    "mc_dropout": ("MC Dropout", "MC Dropout Ensemble"),
    "mfvi": ("MFVI", "MFVI Ensemble"),
    "radial": ("Radial-MFVI", "Radial-MFVI Ensemble"),
    "rank1": ("Rank-1", "Rank-1 Ensemble"),
    "fsvi": ("FSVI", "FSVI Ensemble"),
}

ROWS = (
    *(
        TableRow(name=name, label=_LABELS[name][0], method=Part(name=name))
        for name in METHODS
    ),
    *(
        TableRow(name=row, label=_LABELS[name][1], method=Part(name=name), pool=3)
        for name, row in zip(METHODS, ENSEMBLES, strict=True)
    ),
    *(
        TableRow(
            name=row,
            label=f"{_LABELS[name][1]} of 2",
            method=Part(name=name),
            pool=2,
            beyond=True,
        )
        for name, row in zip(METHODS, PAIRS, strict=True)
    ),
)

GUESTS = (
    GUEST,
    replace(GUEST, name="{method}_ensemble", label="{method} Ensemble", pool=3),
    replace(GUEST, name="{method}_pair", label="{method} Ensemble of 2", pool=2),
)
"""Rows of a method that the paper does not have."""

SHIFTS = {
    "country": ("Country Shift", "other cameras and people"),
    "severity": ("Severity Shift", "grades worse than any in training"),
}
DECEPTIVE = {
    "country": "cameras, people and other diseases of a hospital abroad",
    "severity": "grades worse than any in training, after laser treatment",
}
"""Shift of the simulated photographs, in words, except for the mild variants."""
SELECTIONS = (
    Selection(
        name="in_domain",
        rule="val_auroc",
        splits=("val",),
        label="AUROC of in-domain validation items",
        items="in-domain validation items",
    ),
    Selection(
        name="joint",
        rule="val_referral",
        splits=("val", "val/shifted"),
        label="area of accuracy after referral of in-domain and shifted validation "
        "items together",
        items="in-domain and shifted validation items",
    ),
)
"""Joint selection looks at shifted items before the test does."""
SPLITS = ("train", "val", "val/shifted", "test", "test/shifted")
SIZES = {
    "country": (35_126, 10_906, 733, 42_670, 2_929),
    "severity": (33_545, 10_429, 477, 40_727, 3_524),
}
"""Items of each split in the paper."""
USUAL_BLUR = 30
"""Blur constant of the preprocessing outside the study of it."""
BLURS = (5, 10, 20)
"""Blur constants of the preprocessing that are compared with the usual one."""
LABELLED_OPTIONS: Mapping[str, Mapping[str, Label | None]] = {
    "eyepacs": {"onset": "moderate", "size": 512, "blur": USUAL_BLUR},
    "fundus": {"onset": "moderate", "size": None, "blur": None},
}
"""Options of datasets that are labels of results, with their usual values."""
BLUR_ROWS = ("map", "mc_dropout", "map_ensemble", "mc_dropout_ensemble")


def simulated(selection: Selection, options: Mapping[str, Any]) -> Iterator[Variant]:
    """Yield both shifts on simulated photographs; `options` set size and number."""
    for shift in SHIFTS:
        part = Part(name="fundus", options={"shift": shift, **options})
        yield _deceptive(replace(_variant(part, shift, selection), simulated=True))


def simulated_full_size() -> Iterator[Variant]:
    """Yield both shifts on as many simulated photographs as RETINA has, 256 pixels."""
    for variant in photographed():
        shift = variant.dataset.options["shift"]
        sizes = dict(zip(SPLITS, SIZES[shift], strict=True))
        options = {"shift": shift, "size": 256, "sizes": sizes}
        yield _deceptive(
            replace(
                variant,
                name=f"fundus_{variant.name}",
                dataset=Part(name="fundus", options=options),
                simulated=True,
            )
        )


def mild(variant: Variant) -> Variant:
    """Return a simulated variant with the shift that does not deceive."""
    options = {n: v for n, v in variant.dataset.options.items() if n != "deceptive"}
    shift = options["shift"]
    return replace(
        variant,
        name=variant.name.replace(shift, f"{shift}_mild"),
        label=f"{variant.label}, mild",
        dataset=replace(variant.dataset, options=options),
        shift=SHIFTS[shift][1],
    )


def _deceptive(variant: Variant) -> Variant:
    """Return a simulated variant with the shift that deceives."""
    options = {**variant.dataset.options, "deceptive": True}
    return replace(
        variant,
        dataset=replace(variant.dataset, options=options),
        shift=DECEPTIVE[options["shift"]],
    )


def photographed(selections: tuple[Selection, ...] = SELECTIONS) -> Iterator[Variant]:
    """Yield both shifts on EyePACS, with APTOS abroad, with published configs."""
    for selection in selections:
        for shift in SHIFTS:
            part = Part(name="eyepacs", options={"shift": shift})
            configs = {
                method: config_name(method, shift, selection.name) for method in METHODS
            }
            yield replace(_variant(part, shift, selection), configs=configs)


def blurred(
    variants: Iterable[Variant], blurs: Sequence[int] = BLURS
) -> Iterator[Variant]:
    """Yield variants with other preprocessing constants, as in tables 12 and 13."""
    for variant in variants:
        for blur in blurs:
            options = {**variant.dataset.options, "blur": blur}
            yield replace(
                variant,
                name=f"{variant.name}_blur{blur}",
                label=f"{variant.label}, blur {blur}",
                dataset=replace(variant.dataset, options=options),
                rows=BLUR_ROWS,
            )


def _variant(part: Part, shift: str, selection: Selection) -> Variant:
    label, text = SHIFTS[shift]
    suffix = "" if selection.name == "in_domain" else f"_{selection.name}"
    return Variant(
        name=f"{shift}{suffix}",
        label=label,
        dataset=part,
        splits=("val", "val/shifted", "test", "test/shifted"),
        shift=text,
        labels={"shift": shift},
        selection=selection.name,
        training={"select_by": selection.rule},
    )
