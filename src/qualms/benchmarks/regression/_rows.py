"""Rows and variants of the regression benchmark.

Rows are the paper's ten, its variations, and ours. Variants are simulated families and
real datasets.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from qualms.datasets import GRADED_COUNTS, GRADED_YAWS, Subset
from qualms.labels import Labels
from qualms.spec import Part
from qualms.study import GUEST, TableRow, Variant

_MAP, _GAUSSIAN = Part(name="map"), Part(name="gaussian")

_PLAIN = replace(GUEST, labels={"interval": "gaussian"})
GUESTS = (
    _PLAIN,
    replace(_PLAIN, name="{method}_ensemble", label="{method} Ensemble", pool=5),
)
"""Rows of a method that the benchmark does not have: its variance, or that of its
draws, gives the interval."""

PAPER_ROWS = (
    TableRow(
        name="conformal",
        label="Conformal Prediction",
        method=_MAP,
        labels={"interval": "point"},
    ),
    TableRow(
        name="ensemble",
        label="Ensemble",
        method=_MAP,
        pool=5,
        labels={"interval": "gaussian"},
    ),
    TableRow(
        name="gaussian",
        label="Gaussian",
        method=_GAUSSIAN,
        labels={"interval": "gaussian"},
    ),
    TableRow(
        name="gaussian_ensemble",
        label="Gaussian Ensemble",
        method=_GAUSSIAN,
        pool=5,
        labels={"interval": "gaussian"},
    ),
    TableRow(
        name="quantile",
        label="Quantile Regression",
        method=Part(name="quantile"),
        trained_by=("alpha",),
        labels={"interval": "quantile"},
    ),
    *(
        TableRow(
            name=f"gaussian_{name}",
            label=f"Gaussian + Selective {label}",
            method=_GAUSSIAN,
            labels={"interval": "gaussian", "select": select},
        )
        for name, label, select in (
            ("gmm", "GMM", "gmm4"),
            ("knn", "kNN", "knn10"),
            ("variance", "Variance", "variance"),
        )
    ),
    *(
        TableRow(
            name=f"gaussian_ensemble_{name}",
            label=f"Gaussian Ensemble + Selective {label}",
            method=_GAUSSIAN,
            pool=5,
            labels={"interval": "gaussian", "select": select},
        )
        for name, label, select in (
            ("gmm", "GMM", "gmm4"),
            ("variance", "Ens Var", "ensemble_variance"),
        )
    ),
)

SELECTIONS = ("gmm2", "gmm4", "gmm8", "knn5", "knn10", "knn20", "knn10_l2")
"""All scores by which items are selected; they are fitted after training, so that runs
with fewer of them are other runs."""
VARIATIONS = (
    *(
        TableRow(
            name=f"gaussian_{select}",
            label=f"Gaussian + Selective {label}",
            method=Part(name="gaussian", options={"select": SELECTIONS}),
            labels={"interval": "gaussian", "select": select},
        )
        for select, label in (
            ("gmm2", "GMM, k=2"),
            ("gmm8", "GMM, k=8"),
            ("knn5", "kNN, k=5"),
            ("knn20", "kNN, k=20"),
            ("knn10_l2", "kNN, L2"),
        )
    ),
    TableRow(
        name="gaussian_gmm_spectral",
        label="Gaussian + Selective GMM, Spectral Norm",
        method=_GAUSSIAN,
        network={"spectral": 3.0},
        labels={"interval": "gaussian", "select": "gmm4"},
    ),
)

BEYOND = (
    TableRow(
        name="gaussian_weighted",
        label="Gaussian, weighted calibration",
        method=_GAUSSIAN,
        beyond=True,
        labels={"interval": "gaussian", "weighted": True},
    ),
    TableRow(
        name="mc_dropout",
        label="MC Dropout",
        method=Part(name="mc_dropout"),
        beyond=True,
        labels={"interval": "gaussian"},
    ),
    TableRow(
        name="laplace",
        label="Last-layer Laplace",
        method=Part(name="laplace"),
        weights_of="conformal",
        beyond=True,
        labels={"interval": "gaussian"},
    ),
)


MAIN: tuple[Labels, ...] = ({"alpha": 0.1},)
"""The miscoverage rate of the main tables."""
ALPHAS: tuple[Labels, ...] = (*MAIN, {"alpha": 0.2}, {"alpha": 0.05})
COMMON = ("conformal", "ensemble", "gaussian", "gaussian_ensemble", "quantile")
"""The five rows that figures 4 and A15 show."""
SELECTIVE = (
    *("gaussian_gmm", "gaussian_knn", "gaussian_variance"),
    *("gaussian_ensemble_gmm", "gaussian_ensemble_variance"),
)
"""The five rows that leave items out (figure A6)."""
SYNTHETIC = (
    *("Cells", "Cells-Tails", "Cells-Gap"),
    *("ChairAngle", "ChairAngle-Tails", "ChairAngle-Gap"),
)
REAL = (
    *("AssetWealth", "VentricularVolume", "BrainTumourPixels"),
    *("SkinLesionPixels", "HistologyNucleiPixels", "AerialBuildingPixels"),
)

_SUFFIX = {"plain": "", "tails": "_tails", "gap": "_gap"}
_GRADED: Mapping[str, Mapping[str, Subset]] = {
    "cells_tails": GRADED_COUNTS,
    "cell200_tails": GRADED_COUNTS,
    "chairs_gap": GRADED_YAWS,
    "rc49_gap": GRADED_YAWS,
}
_REAL = (
    ("ventricular_volume", "VentricularVolume", "end-diastole, trained on end-systole"),
    ("brain_tumour_pixels", "BrainTumourPixels", "other patients"),
    ("skin_lesion_pixels", "SkinLesionPixels", "Australia, trained on Austria"),
    ("histology_nuclei_pixels", "HistologyNucleiPixels", "another hospital"),
)


def cell_counts(
    *variants: str, dataset: str = "cells", sizes: Mapping[str, int] | None = None
) -> Iterator[Variant]:
    """Yield cell counts: "plain", "tails" and "gap" of the simulator or of Cell-200."""
    last = 149 if dataset == "cell200" else 150
    shift = {
        "plain": "",
        "tails": "counts below 51 and above 150",
        "gap": f"50 to {last}",
    }
    for variant in variants:
        yield Variant(
            name=dataset + _SUFFIX[variant],
            label="Cells" + _SUFFIX[variant].title().replace("_", "-"),
            dataset=_family(dataset, variant, sizes),
            shift=shift[variant],
            labels=_shifted(variant),
            simulated=dataset == "cells",
            # The paper repeats neither Cells-Gap nor ChairAngle-Tails for other alphas.
            at=MAIN if variant == "gap" else ALPHAS,
        )


def chair_angles(*variants: str, dataset: str = "chairs") -> Iterator[Variant]:
    """Yield chair angles: "plain", "tails" and "gap" of the simulator or of RC-49."""
    shift = {"plain": "", "tails": "angles below 15, above 75", "gap": "30 to 60"}
    for variant in variants:
        yield Variant(
            name=dataset + _SUFFIX[variant],
            label="ChairAngle" + _SUFFIX[variant].title().replace("_", "-"),
            dataset=_family(dataset, variant, None),
            shift=shift[variant],
            labels=_shifted(variant),
            simulated=dataset == "chairs",
            at=MAIN if variant == "tails" else ALPHAS,
        )


def with_graded(*variants: Variant) -> Iterator[Variant]:
    """Yield each variant, and its three graded shifts of figure 4, if any."""
    for variant in variants:
        yield variant
        for split, subset in _GRADED.get(variant.name, {}).items():
            step = split.removeprefix("test/")
            yield replace(
                variant,
                name=f"{variant.name}_{step}",
                label=f"{variant.label} {step}",
                labels={**variant.labels, "step": step},
                settings={"within": subset.within},
                shift=f"{variant.shift}, step {step[1:]} of 4",
                at=MAIN,
                rows=COMMON,
            )


def photographs() -> Iterator[Variant]:
    """Yield the six datasets of photographs and scans, and two further test cities."""
    yield Variant(
        name="asset_wealth",
        label="AssetWealth",
        dataset=Part(name="asset_wealth"),
        shift="other African countries",
        at=MAIN,
        # WILDS has standardised its eight channels already.
        training={"normalise": "none"},
    )
    for name, label, shift in _REAL:
        yield Variant(
            name=name,
            label=label,
            dataset=Part(name=name),
            shift=shift,
            at=ALPHAS,
        )
    yield from _aerial()


def _aerial() -> Iterator[Variant]:
    """Yield variants that test one set of runs on three cities (figure A15)."""
    west_tyrol = Variant(
        name="aerial_building_pixels",
        label="AerialBuildingPixels",
        dataset=Part(name="aerial_building_pixels"),
        splits=("val", "test", "test/kitsap", "test/vienna"),
        shift="West Tyrol, not US cities",
        at=ALPHAS,
    )
    yield west_tyrol
    for city in ("kitsap", "vienna"):
        yield replace(
            west_tyrol,
            name=f"{west_tyrol.name}_{city}",
            label=f"{west_tyrol.label}-{city.title()}",
            test=f"test/{city}",
            shift=f"{city.title()}, not the US cities trained on",
            at=MAIN,
            rows=COMMON,
        )


def _shifted(variant: str) -> Labels:
    return {} if variant == "plain" else {"shift": variant}


def _family(dataset: str, variant: str, sizes: Mapping[str, int] | None) -> Part:
    options = {} if sizes is None else {"sizes": dict(sizes)}
    return Part(name=dataset, options={"variant": variant, **options})
