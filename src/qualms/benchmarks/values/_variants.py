"""Variants of the values benchmark: toy shapes, lung nodules, street scenes.

Test and pool splits hold in-domain and shifted items together, marked by `shifted`.
Shifted items are to be detected in the pool, and in the test split where there is no
pool. The label `family` says which of the paper's three studies a variant belongs to.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from qualms.benchmarks.values._rows import (
    BEYOND_NAMES,
    EXTRA_AGGREGATIONS,
    FIRST_NAMES,
    SECOND_NAMES,
)
from qualms.spec import Part
from qualms.study import Variant

Options = Mapping[str, Any]

_JUDGED_MASKS = {"aggregation": ("patch", "threshold", *EXTRA_AGGREGATIONS)}
_JUDGED_SCENES = {"aggregation": ("image", "patch", "quantile")}
_FEATURES = {
    "texture": "TEX",
    "malignancy": "MAL",
    "calcification": "CAL",
    "sphericity": "SPH",
    "lobulation": "LOB",
    "spiculation": "SPI",
}
"""Features of nodules by which the paper divides them, with short names."""
FOLDS = 5
"""Repeats of the screening, each with a split of its own."""
SCREENING_SEED = 123
SWAPS = {0: 23, 1: 19, 8: 22, 11: 20, 13: 21}
"""Classes of street scenes with a second label: road, sidewalk, vegetation, person and
car. The released code takes the ambiguity of a pixel from them."""
SWAP_SHARE = 1 / 3
LABELLED_OPTIONS = {"toy_shapes": {"dims": 3, "side": 64}}
"""Options of datasets that are labels of results, with the paper's values."""


def toys(
    options: Options,
    *,
    sizes: Mapping[str, Mapping[str, int]] | None = None,
    training: Options = MappingProxyType({}),
    configs: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Variant]:
    """Yield the four scenarios; 3a and 3b are tested with the same runs.

    Args:
        options: Of the dataset.
        sizes: Items per split by scenario, where these are not the paper's.
        training: Options besides those of the preset.
        configs: By method.
    """
    last = ("test/3a", "test/3b")
    kinds = (("1", ("test",)), ("2", ("test",)), ("3", last))
    for scenario, tests in kinds:
        counts = {"sizes": sizes[scenario]} if sizes else {}
        part = Part(
            name="toy_shapes", options={"scenario": scenario, **options, **counts}
        )
        for test in tests:
            variant = _toy(part, test, ("val", *tests))
            yield replace(variant, training=training, configs=configs)


def _toy(dataset: Part, test: str, splits: tuple[str, ...]) -> Variant:
    scenario = dataset.options["scenario"]
    name = test.removeprefix("test/") if len(splits) > 2 else scenario
    return Variant(
        name=f"toy_{name}",
        label=f"Toy {name}",
        dataset=dataset,
        splits=splits,
        test=test,
        shift="" if scenario == "1" else "grey spheres, cubes, and cut spheres",
        simulated=True,
        rows=(*FIRST_NAMES, *BEYOND_NAMES),
        only=_JUDGED_MASKS,
        labels={"family": "Toy"},
    )


def nodules(
    dataset: Part,
    network: Part,
    training: Mapping[str, Options],
    *,
    simulated: bool,
    configs: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[Variant]:
    """Yield both shifts of the paper; options of training and configs by feature."""
    for feature, options in training.items():
        yield Variant(
            name=f"lidc_{feature}",
            label=f"LIDC {_FEATURES[feature]}",
            dataset=Part(
                name=dataset.name, options={**dataset.options, "feature": feature}
            ),
            splits=("val", "test", "pool"),
            shift=f"nodules of another {feature}",
            simulated=simulated,
            rows=(*FIRST_NAMES, *SECOND_NAMES),
            only=_JUDGED_MASKS,
            network=network,
            training=options,
            configs=(configs or {}).get(feature, {}),
            labels={"family": "LIDC"},
        )


def screened(
    dataset: Part, network: Part, training: Options, *, simulated: bool
) -> Iterator[Variant]:
    """Yield the study of table 2: how much each feature's shift costs, five times."""
    for feature, short in _FEATURES.items():
        for fold in range(FOLDS):
            options = {"feature": feature, "design": "screening", "fold": fold}
            options["seed"] = SCREENING_SEED + fold
            yield Variant(
                name=f"screening_{feature}_{fold}",
                label=f"LIDC {short}, fold {fold}",
                dataset=Part(name=dataset.name, options={**dataset.options, **options}),
                splits=("test",),
                shift=f"nodules of another {feature}",
                simulated=simulated,
                rows=("softmax",),
                # Folds are its repeats.
                repeats=1,
                only=_JUDGED_MASKS,
                network=network,
                training=training,
                labels={"family": "LIDC", "feature": feature, "fold": fold},
            )


def street(
    dataset: Part,
    network: Part,
    training: Options,
    *,
    simulated: bool,
    configs: Mapping[str, str],
) -> Variant:
    """Return street scenes: rendered ones for training, photographs as the shift."""
    return Variant(
        name="gta",
        label="GTA5/CS",
        dataset=dataset,
        splits=("val", "test", "pool"),
        shift="another look of the same streets",
        simulated=simulated,
        rows=(*FIRST_NAMES, *SECOND_NAMES),
        only=_JUDGED_SCENES,
        network=network,
        training=training,
        configs=configs,
        labels={"family": "GTA5/CS"},
        settings={"swaps": SWAPS, "swap_share": SWAP_SHARE, "background": "none"},
    )
