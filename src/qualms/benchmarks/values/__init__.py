"""Which part of an uncertainty method makes the uncertainty of pixels useful?

Kahl, Lüth, Zenk, Maier-Hein and Jaeger (2024, ICLR, arXiv:2401.08501). An uncertainty
method for segmentation is a prediction model, a measure and an aggregation. All of them
are judged on toy shapes with known causes of uncertainty, on lung nodules and on street
scenes: out-of-distribution and failure detection, active learning, calibration, and
ambiguity between raters.

Beyond the paper: four further prediction models, three further aggregations, and
intervals of every number.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from qualms.benchmarks.values._findings import FINDINGS
from qualms.benchmarks.values._rows import (
    FIRST_NAMES,
    GUESTS,
    MEMBERS,
    ROWS,
    SECOND_NAMES,
)
from qualms.benchmarks.values._variants import (
    LABELLED_OPTIONS,
    nodules,
    screened,
    street,
    toys,
)
from qualms.effects import value_of, worst_shortfall
from qualms.spec import Part
from qualms.study import Benchmark, Config, Expectation, Preset

if TYPE_CHECKING:
    from qualms.evaluate.protocol import Protocol
    from qualms.report.presentation import Presentation

_SEEDS = tuple(range(3 * MEMBERS))
_POOLS = tuple(_SEEDS[i : i + MEMBERS] for i in range(0, len(_SEEDS), MEMBERS))
"""Three disjoint ensembles; a row that pools nothing takes the first run of each."""

_MASKS = {
    **{"batch": 8, "lr": 3e-4, "weight_decay": 1e-5, "schedule": "plateau"},
    **{"loss": "dice_likelihood", "normalise": "item", "augment": ["flips", "noise"]},
}
"""The paper's training on volumes without its length: Adam on soft Dice and
cross-entropy."""
_TINY = {
    **{"batch": 4, "epochs": 15, "epoch_passes": 2},
    **{"lr": 5e-3, "schedule": "polynomial"},
}
"""Training in preset demo. What counts is the number of steps: 300 leave the AUROC of
shifted items near chance. Four images to a step take three quarters of the time of
eight on a CPU."""
_STEP_PER_ITEM = {"epoch_passes": 8, "patience": 10}
"""An epoch of the released code on volumes: as many steps as there are items."""
_STREET = {
    **{"optimiser": "sgd", "lr": 0.01, "momentum": 0.9, "weight_decay": 5e-4},
    **{"nesterov": False, "batch": 6, "schedule": "polynomial"},
    **{"loss": "likelihood", "normalise": "imagenet"},
    "augment": ["hflip", "rotate", "zoom", "byte_noise"],
}
"""The paper's training on street scenes without its length."""
_SSN_STREET = {
    **{"optimiser": "rmsprop", "lr": 1e-4, "momentum": 0.6},
    **{"method.rank": 10, "method.mean_epochs": 5},
}
_SHORT: dict[str, dict[str, Any]] = {
    feature: {"lr": 1e-3, "schedule": "polynomial", "epochs": epochs}
    for feature, epochs in (("texture", 16), ("malignancy", 30))
}
"""Training on volumes in few steps, at a larger rate that falls."""
_SCENES: dict[str, Any] = {**_STREET, "epochs": 10}
_SLOW: dict[str, dict[str, Any]] = {
    "toys": {"epochs": 450},
    "texture": {
        **{"lr": 2e-3, "epochs": 143, "warmup_epochs": 1},
        "method.mean_epochs": 13,
    },
    "malignancy": {
        **{"lr": 2e-3, "epochs": 347, "warmup_epochs": 1},
        "method.mean_epochs": 26,
    },
    "scenes": {
        **{"optimiser": "adam", "lr": 1e-3, "epochs": 67, "warmup_epochs": 1},
        **{"method.rank": 10, "method.mean_epochs": 6},
    },
}
"""An SSN in preset small, the longest training of all rows: about 9,000 steps, 676 to
819 of them for its mean, as in the released code. With fewer, its label maps are
worse than those of others: 2,300 on nodules gave a Dice of 0.73 beside 0.78 of softmax.
Rates are those of shorter trainings, where 2e-3 gave validation nodules a Dice of 0.75
and 1e-3 one of 0.71. RMSprop is left out: its first steps are ten times as long as the
others."""
_CONFIGS = {
    "ssn_street": Config(method="ssn", options=_SSN_STREET),
    "tta_street": Config(
        method="tta",
        options={"method.noise": [0.055, 0.123]},
        note="a variance of 10 to 50 of 8-bit images, in normalised ones",
    ),
    **{
        f"ssn_{name}": Config(
            method="ssn",
            options=options,
            note="about 9,000 steps, since an SSN learns most slowly",
        )
        for name, options in _SLOW.items()
    },
    **{
        f"ttd_{name}": Config(
            method="mc_dropout",
            options={"epochs": 2 * options["epochs"]},
            note="twice as long as other methods, since dropout learns more slowly",
        )
        for name, options in (*_SHORT.items(), ("scenes", _SCENES))
    },
}
"""Options of one method on one kind of data."""
_DEMO_SIZES = {
    "1": {"test": 40},
    "2": {"test": 60},
    "3": {"test/3a": 60, "test/3b": 90},
}
"""Items of test splits, more than in the paper: small images cost little."""
# Groups of four voxels make a GPU 1.3 times as fast, see bench/RESULTS.md.
_THIN = Part(name="unet", options={"space": 3, "width": 8, "group": 4})
_DRAWS = {"draws": 10}
_DRAWN = ("ttd", "ensemble", "tta")
"""Rows whose mutual information stands for epistemic uncertainty, by the paper."""
_FINDERS = ("ensemble", "tta")
"""Rows whose mutual information finds shifted items best, by the paper."""
_UNTRAINED = ("laplace",)
"""Rows beyond the paper that cost no training; others run on request."""
_GPU = {"precision": "bf16", "channels_last": True}


def values() -> Benchmark:
    """Return the benchmark; version 1 has the paper's protocol, with correct scores."""
    presets = (_demo(), _small(), _paper())
    return Benchmark(
        name="values",
        version=1,
        title="Uncertainty of segmentation, by its parts",
        paper="Kahl et al. (2024), arXiv:2401.08501",
        task="segmentation",
        rows=ROWS,
        guests=GUESTS,
        presets={preset.name: preset for preset in presets},
        published=Path(__file__).with_name("published.csv"),
        expectations={preset.name: _effects(preset) for preset in presets},
        findings=FINDINGS,
        configs=_CONFIGS,
        labelled_options=LABELLED_OPTIONS,
        protocol=_load_protocol,
        presentation=_load_presentation,
    )


def _load_protocol() -> "Protocol":
    from qualms.benchmarks.values._protocol import values_protocol

    return values_protocol()


def _load_presentation() -> "Presentation":
    from qualms.benchmarks.values._presentation import PRESENTATION

    return PRESENTATION


def _demo() -> Preset:
    return Preset(
        name="demo",
        variants=tuple(toys({"dims": 2, "side": 32}, sizes=_DEMO_SIZES)),
        rows=(*FIRST_NAMES, *_UNTRAINED),
        network=Part(name="unet", options={"space": 2, "width": 8, "levels": 2}),
        training={**_MASKS, **_TINY},
        methods={
            **_methods(warmup=1),
            "mc_dropout": {"rate": 0.2, **_DRAWS},
            "tta": {"flips": "all"},
        },
        seeds=_SEEDS[:MEMBERS],
        pools=_POOLS[:1],
        note="images of 32 x 32 pixels and a thin 2-D U-Net, trained for 1,200 steps of"
        " four images",
    )


def _small() -> Preset:
    outlined = Part(name="lidc_contours", options={"side": 48})
    # Five seeds of crops: smaller ones keep them at 1.2 GB.
    close = Part(name="lidc_contours", options={"side": 32})
    sizes = {"train": 800, "val": 60, "pool": 200, "test": 200}
    scenes = Part(
        name="street_sim", options={"height": 96, "width": 180, "sizes": sizes}
    )
    return Preset(
        name="small",
        variants=(
            *toys({}, configs={"ssn": "ssn_toys"}),
            *nodules(
                outlined,
                _THIN,
                _SHORT,
                simulated=True,
                configs={feature: _slower(feature) for feature in _SHORT},
            ),
            street(
                scenes,
                Part(name="unet", options={"space": 2, "width": 16}),
                _SCENES,
                simulated=True,
                configs={**_slower("scenes"), "tta": "tta_street"},
            ),
            *screened(close, _THIN, _SHORT["texture"], simulated=True),
        ),
        rows=(*FIRST_NAMES, *_UNTRAINED, *SECOND_NAMES),
        network=_THIN,
        # The paper's schedule would hardly begin to act in so few steps.
        training={**_MASKS, **_GPU, "epochs": 110, "schedule": "constant"},
        # As many steps as in five epochs of the released code.
        methods=_methods(warmup=40),
        seeds=_SEEDS,
        pools=_POOLS,
        note="toy volumes for 2,200 steps; real outlines on simulated CT and simulated"
        " street scenes for 780 to 1,340, dropout for twice as many there; an SSN for"
        " 9,000 everywhere; an epoch is one pass over the items",
    )


def _slower(name: str) -> dict[str, str]:
    """Return configs of methods that need more steps than others, by method."""
    return {"ssn": f"ssn_{name}", "mc_dropout": f"ttd_{name}"}


def _paper() -> Preset:
    real = Part(name="lidc")
    wide = Part(name="unet", options={"space": 3, "width": 16})
    lidc = dict.fromkeys(("texture", "malignancy"), _STEP_PER_ITEM)
    usual = _methods(warmup=5)
    return Preset(
        name="paper",
        variants=(
            *toys({}, training=_STEP_PER_ITEM),
            *nodules(real, wide, lidc, simulated=False),
            street(
                Part(name="gta5_cityscapes"),
                Part(name="hrnet_w48", options={"weights": "imagenet"}),
                _STREET,
                simulated=False,
                configs={"ssn": "ssn_street", "tta": "tta_street"},
            ),
            *screened(real, wide, _STEP_PER_ITEM, simulated=False),
        ),
        rows=(*FIRST_NAMES, *_UNTRAINED, *SECOND_NAMES),
        network=_THIN,
        # The patience of epochs of one pass, which only street scenes have here.
        training={**_MASKS, **_GPU, "epochs": 150, "patience": 80},
        methods={**usual, "ssn": {**usual["ssn"], "factor_scale": 1.0}},
        seeds=_SEEDS,
        pools=_POOLS,
        note="150 epochs; one of volumes has a step for each training item, as in the"
        " released code: 24,000 steps on toy volumes, of which an SSN learns its mean"
        " for 800 (epochs of one pass: -o epoch_passes=1 -o patience=80, with -o"
        " method.mean_epochs=40 for an SSN). Datasets that are not prepared are left"
        " out",
    )


def _methods(*, warmup: int) -> dict[str, dict[str, Any]]:
    """Return options by method; an SSN learns its mean for `warmup` epochs."""
    return {
        "mc_dropout": {"rate": 0.5, **_DRAWS},
        "ssn": {"rank": 5, **_DRAWS, "mean_epochs": warmup},
        # With less noise than this, draws would be almost alike.
        "mfvi": {"stddev_mean": 5e-3, **_DRAWS},
        "radial": {"stddev_mean": 0.3, **_DRAWS},
        "rank1": _DRAWS,
        "laplace": _DRAWS,
    }


def _effects(preset: Preset) -> tuple[Expectation, ...]:
    """List what theory says of the toy scenarios, and what the paper found."""
    rows = tuple(row for row in preset.rows if row in _DRAWN)
    ambiguity = {"variant": "toy_1", "subset": "in_domain", "score": "ncc"}
    unseen = {"variant": "toy_3b", "score": "ood_auroc", "aggregation": "patch"}
    finders = tuple(row for row in _FINDERS if row in rows)
    return (
        Expectation(
            text="aleatoric measures beat epistemic ones on ambiguity in toy_1 (NCC)",
            meaning="the entropy that draws have on average lies where raters disagree;"
            " what draws disagree in lies elsewhere",
            numbers=value_of(rows, {**ambiguity, "type": "AU"}, minus={"type": "EU"}),
            low=0.02,
            high=2.0,
        ),
        Expectation(
            text="epistemic measures beat aleatoric ones on unseen shapes in toy_3b"
            " (AUROC)",
            meaning="training items are ambiguous there, so that ambiguous items are"
            " uncertain as well; only what draws disagree in tells unseen ones apart",
            numbers=value_of(rows, {**unseen, "type": "EU"}, minus={"type": "AU"}),
            low=0.02,
            high=1.0,
        ),
        Expectation(
            text="unseen shapes are found in toy_2 (AUROC of epistemic measures)",
            meaning="training items are sharp there, so that only what is unlike them"
            " is uncertain, once training was long enough; after few steps a network is"
            " unsure of all items alike",
            numbers=value_of(finders, {**unseen, "variant": "toy_2", "type": "EU"}),
            low=0.6,
            high=1.0,
        ),
        Expectation(
            text="no aggregation wins everywhere: how far each falls behind the best at"
            " worst (AUROC of shifted items)",
            meaning="how the uncertainties of pixels become one number must be chosen"
            " with the prediction model and the measure",
            numbers=worst_shortfall("aggregation", FIRST_NAMES, {"score": "ood_auroc"}),
            low=0.02,
            high=1.0,
        ),
    )
