"""Laws of the segmentation scores; an item of these laws is a pixel."""

import numpy as np

from qualms.scores.aggregation import (
    aggregate_boundary,
    aggregate_image,
    aggregate_object,
    aggregate_quantile,
    aggregate_threshold,
)
from qualms.scores.as_published import values
from qualms.scores.overlap import al_improvement, dice, dice_drop, ged, macro_dice
from qualms.scores.platt import ace, stated_ace
from qualms.scores.raters import ncc
from scores.laws import Case

OVERLAP = frozenset({"permutation", "bounds", "empty", "layout", "repeat", "one_class"})
PIXELS = frozenset({"permutation", "empty", "dtype", "layout", "nan"})


def two_maps(classes):
    def make(rng, n):
        prediction, reference = rng.integers(0, classes, (2, n)).astype(np.uint8)
        return {"prediction": prediction, "reference": reference}

    return make


def draws_and_raters(classes):
    def make(rng, n):
        draws = rng.integers(0, classes, (4, n)).astype(np.uint8)
        raters = rng.integers(0, classes, (3, n)).astype(np.uint8)
        return {"draws": draws, "raters": raters}

    return make


def empty_maps(rng, n):
    return {key: 0 * maps for key, maps in two_maps(2)(rng, n).items()}


def empty_draws(rng, n):
    return {key: 0 * maps for key, maps in draws_and_raters(2)(rng, n).items()}


def uncertainty_and_reference(rng, n):
    return {"uncertainty": rng.random(n), "reference": rng.random(n)}


def constant_reference(rng, n):
    return {"uncertainty": rng.random(n), "reference": np.full(n, 0.1)}


def confidence_and_correct(rng, n):
    confidence = rng.random(n)
    return {"confidence": confidence, "correct": rng.random(n) < confidence}


def all_correct(rng, n):
    return {"confidence": np.full(n, 0.75), "correct": np.ones(n, dtype=bool)}


def probabilities_and_correct(rng, n):
    probs = rng.dirichlet(np.ones(3), n).T
    return {"mean_probs": probs, "correct": rng.random(n) < probs.max(axis=0)}


def uncertainty_map(rng, n):
    return {"uncertainty_map": rng.random(n)}


def risk_and_uncertainty(rng, n):
    return {"risk": rng.random(n), "uncertainty": rng.permutation(n).astype(float)}


def three_dice(rng, n):
    names = ("dice_before", "dice_after", "dice_random")
    return dict(zip(names, rng.random(3), strict=True))


def two_dice(rng, n):
    return dict(zip(("dice_in_domain", "dice_shifted"), rng.random(2), strict=True))


def map_and_band(rng, n):
    return {"uncertainty_map": rng.random(n), "band": rng.random(n) < 0.5}


def map_and_labels(rng, n):
    labels = rng.integers(0, 2, n).astype(np.uint8)
    return {"uncertainty_map": rng.random(n), "labels": labels}


MAPS_AXIS = {"draws": 1, "raters": 1}

CASES = [
    Case(dice, two_maps(2), OVERLAP, one_class=empty_maps, one_class_value=1.0),
    Case(
        dice,
        two_maps(5),
        OVERLAP - {"one_class"} | {"renaming"},
        options={"classes": 5},
        classes={"prediction": None, "reference": None},
        name="dice of five classes",
    ),
    Case(
        macro_dice,
        two_maps(5),
        OVERLAP - {"one_class"} | {"renaming"},
        options={"classes": 5, "background": None},
        classes={"prediction": None, "reference": None},
    ),
    Case(
        ged,
        draws_and_raters(2),
        OVERLAP | {"members"},
        axis=MAPS_AXIS,
        members={"draws": 0, "raters": 0},
        one_class=empty_draws,
        one_class_value=0.0,
    ),
    Case(
        ged,
        draws_and_raters(3),
        OVERLAP - {"one_class"} | {"members", "renaming"},
        options={"classes": 3},
        axis=MAPS_AXIS,
        members={"draws": 0, "raters": 0},
        classes={"draws": None, "raters": None},
        name="ged of three classes",
    ),
    Case(
        ged,
        draws_and_raters(4),
        OVERLAP - {"one_class"},
        options={"classes": 4, "ignore": 3},
        axis=MAPS_AXIS,
        name="ged of four classes, one ignored",
    ),
    Case(
        ncc,
        uncertainty_and_reference,
        PIXELS | {"bounds", "repeat", "one_class"},
        one_class=constant_reference,
        one_class_value=float("nan"),
    ),
    Case(
        ace,
        confidence_and_correct,
        PIXELS | {"bounds", "repeat", "one_class"},
        one_class=all_correct,
        one_class_value=0.25,
    ),
    Case(
        stated_ace,
        probabilities_and_correct,
        PIXELS | {"bounds", "repeat"},
        axis={"mean_probs": 1},
    ),
    Case(al_improvement, three_dice, frozenset({"bounds"})),
    Case(dice_drop, two_dice, frozenset({"bounds"})),
    Case(aggregate_image, uncertainty_map, PIXELS),
    Case(
        aggregate_quantile,
        uncertainty_map,
        PIXELS | {"repeat"},
        options={"share": 0.5},
    ),
    Case(aggregate_boundary, map_and_band, PIXELS | {"repeat"}),
    Case(aggregate_object, map_and_labels, PIXELS | {"repeat"}),
    Case(
        aggregate_threshold,
        uncertainty_map,
        PIXELS | {"repeat"},
        options={"threshold": 0.5},
    ),
    Case(
        values.dice,
        two_maps(2),
        OVERLAP,
        one_class=empty_maps,
        one_class_value=0.0,
        name="dice as published",
    ),
    Case(
        values.ged,
        draws_and_raters(2),
        OVERLAP,
        axis=MAPS_AXIS,
        one_class=empty_draws,
        one_class_value=0.0,
        name="ged as published",
    ),
    Case(
        values.ncc,
        uncertainty_and_reference,
        PIXELS | {"bounds", "one_class"},
        one_class=constant_reference,
        one_class_value=float("nan"),
        name="ncc as published",
    ),
    Case(
        values.ace,
        confidence_and_correct,
        PIXELS | {"bounds", "repeat", "one_class"},
        one_class=all_correct,
        one_class_value=0.75,
        name="ace as published",
    ),
    Case(
        values.aurc,
        risk_and_uncertainty,
        PIXELS | {"bounds", "monotone"},
        rank="uncertainty",
        name="aurc of values as published",
    ),
    Case(
        values.eaurc,
        risk_and_uncertainty,
        PIXELS | {"bounds", "monotone"},
        rank="uncertainty",
        name="eaurc of values as published",
    ),
]
