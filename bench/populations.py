"""Populations with known scores, for `bench/coverage.py`.

A population draws n items; a case is a score of them with its interval. True scores
come from a very large sample, or are known: a calibrated model has no error.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, ndtr, softmax

from qualms import scores
from qualms.inference import (
    ConfidenceInterval,
    Influence,
    OrderStatistic,
    influence_difference,
    influence_of,
    interval_of,
    mean_influence,
    quantile_influence,
    referral_influence,
    sampling_design,
)
from qualms.scores.arguments import called_in_order
from qualms.scores.retrieval import retrieved

Items = dict[str, np.ndarray]
Rng = np.random.Generator
CALIBRATION = ("ECE", "Adaptive ECE", "Class-wise ECE", "Smooth ECE")
SEEDS = 5


@dataclass(frozen=True)
class Case:
    """A score, how its interval is made, and what it is on a very large sample."""

    label: str
    interval: Callable[[Items], ConfidenceInterval]
    truth: Callable[[Items], float]
    share: bool = False
    """A share may be covered more often than promised: its values are discrete."""


@dataclass(frozen=True)
class Population:
    """Items of one kind, and the scores that are made of them."""

    draw: Callable[[int, Rng], Items]
    cases: tuple[Case, ...]
    calibrated: bool = False
    sizes: tuple[int, ...] = (200, 1_000, 10_000)
    truth_items: int = 2_000_000
    relative: bool = field(default=False)
    """The score depends on n, as that of a gallery or of intervals calibrated on a part
    of the items does: its mean over samples is the truth."""


def design_of(items: Items):
    length = len(next(iter(items.values())))
    return sampling_design(
        length, cluster=items.get("cluster"), sample=items.get("sample")
    )


def scored(label: str, score: Any, *keys: str, share: bool = False, **options: Any):
    """A case of a public score."""
    whole = partial(score, **options) if options else score

    def interval(items: Items) -> ConfidenceInterval:
        found = influence_of(whole, *(items[key] for key in keys))
        return interval_of(found, design=design_of(items))

    def truth(items: Items) -> float:
        value = called_in_order(whole, *(items[key] for key in keys))
        return float(getattr(value, "value", value))

    return Case(label, interval, truth, share)


def averaged(label: str, score: Any, key: str, *, share: bool = False):
    """A case of a per-item value averaged over items."""

    def interval(items: Items) -> ConfidenceInterval:
        found = mean_influence(items[key], about=scores.about(score))
        return interval_of(found, design=design_of(items))

    return Case(label, interval, lambda items: float(np.nanmean(items[key])), share)


def referred(name: str, tau: float | None, label: str, *, share: bool = False):
    """A case of a referral curve."""

    def arrays(items: Items):
        return items["probs"], items["y"], items["u"]

    def interval(items: Items) -> ConfidenceInterval:
        curve = scores.referral_curve(name, *arrays(items))
        found = referral_influence(curve, *arrays(items), tau=tau)
        return interval_of(found, design=design_of(items))

    def truth(items: Items) -> float:
        few = {key: items[key][:200_000] for key in ("probs", "y", "u")}
        curve = scores.referral_curve(name, *arrays(few))
        return curve.area if tau is None else curve.at(tau)

    return Case(label, interval, truth, share)


def compared(label: str, score: Any, first: tuple[str, ...], second: tuple[str, ...]):
    """A case of the paired difference of two models."""

    def interval(items: Items) -> ConfidenceInterval:
        a, b = (
            influence_of(score, *(items[k] for k in keys)) for keys in (first, second)
        )
        found = influence_difference(a, b, design=design_of(items))
        return ConfidenceInterval(low=found.low, high=found.high, method="paired")

    def truth(items: Items) -> float:
        one, other = (
            called_in_order(score, *(items[k] for k in keys))
            for keys in (first, second)
        )
        return float(one - other)

    return Case(label, interval, truth)


# ---------------------------------------------------------------- classification


def binary(p: np.ndarray, y: np.ndarray) -> Items:
    p = np.clip(p, 1e-9, 1 - 1e-9)
    wrong = ((p > 0.5) != (y == 1)).astype(float)
    unsure = -np.abs(p - 0.5).round(9)
    return {"probs": p, "y": y, "positive": y == 1, "risk": wrong, "u": unsure}


def separated(n: int, rng: Rng, *, share=0.5, shift=0.0, gap=4.0, noise=2.0) -> Items:
    """Two classes whose logits are normal, `gap` apart."""
    y = (rng.random(n) < share).astype(int)
    logit = shift + gap * (y - 0.5) + noise * rng.standard_normal(n)
    return binary(expit(logit), y)


def by_probability(n: int, rng: Rng, *, factor=1.0, spread=2.0) -> Items:
    """Labels drawn from the probabilities, whose logits are then stretched."""
    logit = spread * rng.standard_normal(n)
    y = (rng.random(n) < expit(logit)).astype(int)
    return binary(expit(factor * logit), y)


def clustered(n: int, rng: Rng, *, share=0.4) -> Items:
    """Pairs, such as two eyes, whose targets and errors are correlated by .7."""
    cluster = np.repeat(np.arange(n // 2), 2)

    def pair() -> np.ndarray:
        both = rng.standard_normal(n // 2)
        return np.sqrt(0.7) * both[cluster] + np.sqrt(0.3) * rng.standard_normal(n)

    y = (ndtr(pair()) < share).astype(int)
    return binary(expit(1.5 * (2 * y - 1) + 1.8 * pair()), y) | {"cluster": cluster}


def tied(n: int, rng: Rng) -> Items:
    """Probabilities of one decimal."""
    y = (rng.random(n) < 0.4).astype(int)
    p = expit(1.2 * (2 * y - 1) + 1.3 * rng.standard_normal(n)).round(1)
    return binary(np.clip(p, 0.01, 0.99), y)


def ten_classes(n: int, rng: Rng, *, calibrated=False) -> Items:
    """Ten classes, the last ones rare and the model over-confident, or calibrated."""
    logit = rng.standard_normal((n, 10))
    if calibrated:
        probs = softmax(1.5 * logit, axis=1)
        drawn = rng.random(n)[:, None]
        y = (probs.cumsum(axis=1) < drawn).sum(axis=1).clip(0, 9)
    else:
        weight = np.linspace(2.0, 0.5, 10)
        y = rng.choice(10, size=n, p=weight / weight.sum())
        logit[np.arange(n), y] += 2.5
        probs = softmax(1.5 * logit, axis=1)
    wrong = (probs.argmax(axis=1) != y).astype(float)
    return {"probs": probs, "y": y, "risk": wrong, "u": -probs.max(axis=1)}


def shifted_sets(n: int, rng: Rng) -> Items:
    """An in-domain and a shifted set of fixed sizes, two to one."""
    moved = np.arange(n) >= 2 * n // 3
    u = rng.standard_normal(n) + 1.2 * moved
    right = rng.random(n) < expit(2.0 - u)
    return {"u": u, "moved": moved, "right": right, "sample": moved.astype(int)}


def two_models(n: int, rng: Rng, *, share=0.4) -> Items:
    """Two classifiers of correlated errors, the second a little worse."""
    y = (rng.random(n) < share).astype(int)
    common = rng.standard_normal(n)
    items: Items = {"y": y, "positive": y == 1}
    for name, gap in (("a", 1.6), ("b", 1.4)):
        logit = gap * (2 * y - 1) + 1.2 * common + 1.0 * rng.standard_normal(n)
        items[name] = expit(logit)
        items[f"{name}_risk"] = ((logit > 0) != (y == 1)).astype(float)
        items[f"{name}_u"] = -np.abs(logit)
    return items


def seeds(n: int, rng: Rng) -> Items:
    """Five trainings of one method, judged on the same items."""
    y = (rng.random(n) < 0.4).astype(int)
    common = rng.standard_normal(n)
    quality = 1.5 + 0.12 * rng.standard_normal(SEEDS)
    noise = 0.8 * rng.standard_normal((SEEDS, n))
    logit = quality[:, None] * (2 * y - 1) + 1.2 * common + noise
    return {"y": y, "positive": y == 1, "prob": expit(logit).T}


def over_seeds(label: str, score: Any, positive: str):
    def each(items: Items) -> list[Influence]:
        return [
            influence_of(score, items["prob"][:, seed], items[positive])
            for seed in range(SEEDS)
        ]

    def truth(_: Items) -> float:
        # Large enough that items and seeds both average out.
        rng = np.random.default_rng(11)
        found = []
        for _ in range(400):
            some = seeds(4_000, rng)
            found.append(
                np.mean(
                    [called_in_order(score, p, some[positive]) for p in some["prob"].T]
                )
            )
        return float(np.mean(found))

    return Case(label, lambda items: interval_of(each(items)), truth)


CLASSES = (
    scored("Accuracy", scores.accuracy, "probs", "y", share=True),
    scored("Balanced accuracy", scores.balanced_accuracy, "probs", "y"),
    scored("MCC", scores.mcc, "probs", "y"),
    scored("NLL", scores.nll, "probs", "y"),
    scored("Brier", scores.brier, "probs", "y"),
    scored("ECE", scores.ece, "probs", "y"),
    scored("Adaptive ECE", scores.adaptive_ece, "probs", "y"),
    scored("Class-wise ECE", scores.classwise_ece, "probs", "y"),
    scored("Smooth ECE", scores.smooth_ece, "probs", "y"),
    scored("AURC", scores.aurc, "risk", "u"),
    scored("E-AURC", scores.eaurc, "risk", "u"),
    scored("AUGRC", scores.augrc, "risk", "u"),
    scored("Risk at 80 %", scores.risk_at_coverage, "risk", "u", share=True),
    referred("accuracy", 0.5, "Accuracy, half referred", share=True),
)
TWO_CLASSES = (
    *CLASSES,
    scored("AUROC", scores.auroc, "probs", "positive"),
    scored("AUPRC", scores.auprc, "probs", "positive"),
    scored("AP", scores.average_precision, "probs", "positive"),
    scored("FPR95", scores.fpr_at_tpr, "probs", "positive", share=True),
)
REFERRAL = (
    referred("auroc", 0.5, "AUROC, half referred"),
    referred("auroc", None, "Referral AUROC area"),
    referred("nll", None, "Referral NLL area"),
)
SHIFT = (
    scored("OOD AUROC", scores.ood_auroc, "u", "moved"),
    scored("OOD AUPRC", scores.ood_auprc, "u", "moved"),
    scored("OOD FPR95", scores.ood_fpr95, "u", "moved", share=True),
    scored("SCOD AUROC", scores.scod_auroc, "right", "moved", "u"),
    scored("SCOD AURC", scores.scod_aurc, "right", "moved", "u"),
)
PAIRED = (
    compared("Accuracy, difference", scores.accuracy, ("a", "y"), ("b", "y")),
    compared("NLL, difference", scores.nll, ("a", "y"), ("b", "y")),
    compared("AUROC, difference", scores.auroc, ("a", "positive"), ("b", "positive")),
    compared("AURC, difference", scores.aurc, ("a_risk", "a_u"), ("b_risk", "b_u")),
)
REPEATED = (
    over_seeds("Accuracy, 5 seeds", scores.accuracy, "y"),
    over_seeds("AUROC, 5 seeds", scores.auroc, "positive"),
    over_seeds("NLL, 5 seeds", scores.nll, "y"),
)

# ---------------------------------------------------------------- other tasks


def regression(n: int, rng: Rng, *, freedom: float = np.inf) -> Items:
    """Errors whose scale varies; a third of all items are for validation."""
    x = rng.standard_normal(n)
    spread = np.exp(0.5 * x)
    noise = rng.standard_normal(n)
    if np.isfinite(freedom):
        noise = rng.standard_t(freedom, n)
    target = x + spread * noise
    mean = x + 0.3 * rng.standard_normal(n)
    var = (1.1 * spread) ** 2
    half = 1.645 * np.sqrt(var)
    draws = mean + np.sqrt(var) * rng.standard_normal((5, n))
    return {
        "mean": mean,
        "var": var,
        "target": target,
        "draws": draws,
        "lower": mean - half,
        "upper": mean + half,
        "error": np.abs(mean - target),
    }


def conformal(label: str, score: Any, *, share: bool = False):
    """A score of conformal intervals; every third item calibrates them."""

    def parts(items: Items):
        keys = ("lower", "upper", "target")
        val = np.arange(len(items["target"])) % 3 == 0
        return [items[k][~val] for k in keys], [items[k][val] for k in keys]

    def at(test: list[np.ndarray], offset: float) -> tuple[np.ndarray, ...]:
        lower, upper, target = test
        ends = (lower - offset, upper + offset)
        return ends if score is scores.interval_length else (*ends, target)

    def interval(items: Items) -> ConfidenceInterval:
        test, val = parts(items)
        excess = np.maximum(val[0] - val[2], val[2] - val[1])
        rank = int(np.ceil((len(excess) + 1) * 0.9))
        found = quantile_influence(
            lambda offset: influence_of(score, *at(test, offset)),
            [OrderStatistic(excess, rank)],
        )
        design = sampling_design(len(test[0])).joined(sampling_design(len(excess)))
        return interval_of(found, design=design)

    def truth(items: Items) -> float:
        test, val = parts(items)
        return called_in_order(
            score, *at(test, called_in_order(scores.conformal_offset, *val, alpha=0.1))
        )

    return Case(label, interval, truth, share)


def segmentation(n: int, rng: Rng) -> Items:
    """Per-item Dice, GED, NCC and ACE; some items are missed whole."""
    hard = rng.standard_normal(n)
    dice = rng.beta(8 * expit(2.0 - hard) + 0.3, 8 * expit(hard - 2.0) + 0.3)
    dice[rng.random(n) < 0.03] = 0.0
    ncc = np.tanh(0.6 + 0.4 * rng.standard_normal(n) - 0.2 * hard)
    ncc[rng.random(n) < 0.1] = np.nan
    return {
        "dice": dice,
        "risk": 1 - dice,
        "ged": 0.8 * (1 - dice) * rng.gamma(4.0, 0.25, n),
        "ncc": ncc,
        "ace": 0.2 * rng.beta(2, 8, n) * (1 + 0.3 * np.tanh(hard)),
        "u": hard + 0.8 * rng.standard_normal(n),
    }


def retrieval(n: int, rng: Rng) -> Items:
    """Embeddings of 20 classes in 8 dimensions, with votes of ten people."""
    centre = np.random.default_rng(7).standard_normal((20, 8))
    y = rng.integers(20, size=n)
    noise = np.exp(0.4 * rng.standard_normal(n))
    embedding = centre[y] + 0.55 * noise[:, None] * rng.standard_normal((n, 8))
    embedding /= np.linalg.norm(embedding, axis=1, keepdims=True)
    near = embedding @ embedding.T
    np.fill_diagonal(near, -2.0)
    u = np.log(noise) + 0.5 * rng.standard_normal(n)
    unsure = expit(-2.0 + 1.5 * np.log(noise) + 0.7 * rng.standard_normal(n))
    other = rng.binomial(10, 0.5 * unsure)
    nearest, own = near.argmax(axis=1), np.arange(n)
    hits = (y[nearest] == y).astype(float)
    return {
        # Items that are each other's nearest are one unit.
        "cluster": np.where(nearest[nearest] == own, np.minimum(own, nearest), own),
        "hits": hits,
        "miss": 1.0 - hits,
        "u": u,
        "cropped": u + 0.5 * rng.standard_normal(n) + 0.3,
        "votes": np.stack([10 - other, other], axis=1),
    }


REGRESSION = (
    scored("MAE", scores.mae, "mean", "target"),
    scored("RMSE", scores.rmse, "mean", "target"),
    scored("Gaussian NLL", scores.gaussian_nll, "mean", "var", "target"),
    scored("CRPS", scores.crps_gaussian, "mean", "var", "target"),
    scored("CRPS of draws", scores.crps_ensemble, "draws", "target"),
    scored("Regression ECE", scores.regression_ece, "mean", "var", "target"),
    scored("Coverage", scores.coverage, "lower", "upper", "target", share=True),
    scored("Interval length", scores.interval_length, "lower", "upper"),
    scored(
        "Interval score", scores.interval_score, "lower", "upper", "target", alpha=0.1
    ),
    scored("AURC of errors", scores.aurc, "error", "var"),
)
CONFORMAL = (
    conformal("Conformal coverage", scores.coverage, share=True),
    conformal("Conformal length", scores.interval_length),
)
SEGMENTATION = (
    averaged("Dice", scores.dice, "dice"),
    averaged("GED", scores.ged, "ged"),
    averaged("NCC", scores.ncc, "ncc"),
    averaged("ACE", scores.ace, "ace"),
    scored("AURC of 1 - Dice", scores.aurc, "risk", "u"),
    scored("E-AURC of 1 - Dice", scores.eaurc, "risk", "u"),
    scored("AUGRC of 1 - Dice", scores.augrc, "risk", "u"),
)
RETRIEVAL = (
    averaged("R@1", scores.recall_at_1, "hits", share=True),
    scored("R-AUROC", scores.weighted_auroc, "u", "miss", "hits"),
    scored("Crop rate", scores.crop_rate, "u", "cropped", share=True),
    scored("Human alignment", scores.human_alignment, "u", "votes"),
)

POPULATIONS: dict[str, Population] = {
    "balanced": Population(separated, TWO_CLASSES + REFERRAL),
    "15 % positives": Population(
        partial(separated, share=0.15, shift=-1.25, gap=1.5, noise=1.0),
        TWO_CLASSES + REFERRAL,
    ),
    "5 % positives": Population(
        partial(separated, share=0.05, shift=-1.25, gap=2.5, noise=1.2), TWO_CLASSES
    ),
    "accuracy .99": Population(partial(separated, gap=9.3), TWO_CLASSES),
    "calibrated": Population(by_probability, TWO_CLASSES + REFERRAL, calibrated=True),
    "over-confident": Population(
        partial(by_probability, factor=2.5, spread=1.5), TWO_CLASSES
    ),
    "clustered": Population(clustered, TWO_CLASSES),
    "clustered, 10 % positives": Population(partial(clustered, share=0.1), TWO_CLASSES),
    "tied": Population(tied, TWO_CLASSES),
    "ten classes": Population(ten_classes, CLASSES, truth_items=1_000_000),
    "ten classes, calibrated": Population(
        partial(ten_classes, calibrated=True),
        CLASSES,
        calibrated=True,
        truth_items=1_000_000,
    ),
    "shifted set": Population(shifted_sets, SHIFT),
    "two models": Population(two_models, PAIRED),
    "five seeds": Population(seeds, REPEATED, sizes=(200, 1_000), truth_items=200),
    "regression": Population(regression, REGRESSION),
    "regression, t3 errors": Population(partial(regression, freedom=3.0), REGRESSION),
    "conformal": Population(regression, CONFORMAL, truth_items=200, relative=True),
    "conformal, t3 errors": Population(
        partial(regression, freedom=3.0), CONFORMAL, truth_items=200, relative=True
    ),
    "segmentation": Population(segmentation, SEGMENTATION, sizes=(200, 1_000)),
    "retrieval": Population(
        retrieval, RETRIEVAL, sizes=(200, 1_000), truth_items=200, relative=True
    ),
}


# ---------------------------------------------------------------- few items or errors


def stated(n: int, rng: Rng, *, confidence: Any, error: float = 0.0) -> Items:
    """Items of a stated `confidence`, a number or a draw (n,), right that often.

    `error` is by how much all of them are less often right than stated.
    """
    drawn = confidence(n, rng) if callable(confidence) else np.full(n, confidence)
    one = rng.random(n) < 0.5
    right = rng.random(n) < drawn - error
    y = np.where(right, one, ~one).astype(int)
    return binary(np.where(one, drawn, 1.0 - drawn), y)


def near_one(n: int, rng: Rng) -> np.ndarray:
    """Confidences of a saturated network: Beta(30, 0.6), .98 on average."""
    return np.maximum(rng.beta(30.0, 0.6, n), 0.5)


def two_models_missing(n: int, rng: Rng, *, share: float = 0.05) -> Items:
    """Two classifiers of correlated errors that miss most of the few positives."""
    y = (rng.random(n) < share).astype(int)
    common = rng.standard_normal(n)
    items: Items = {"y": y, "positive": y == 1}
    for name, gap in (("a", 2.9), ("b", 2.5)):
        logit = -1.25 + gap * (y - 0.5) + 0.9 * common + 0.8 * rng.standard_normal(n)
        items[name] = expit(logit)
        items[f"{name}_risk"] = ((logit > 0) != (y == 1)).astype(float)
        items[f"{name}_u"] = -np.abs(logit)
    return items


def sure_classes(n: int, rng: Rng, *, confidence: float = 0.99) -> Items:
    """Ten classes, all items with the same calibrated confidence."""
    y = rng.integers(10, size=n)
    wrong = (y + rng.integers(1, 10, size=n)) % 10
    says = np.where(rng.random(n) < confidence, y, wrong)
    probs = np.full((n, 10), (1.0 - confidence) / 9)
    probs[np.arange(n), says] = confidence
    risk = (says != y).astype(float)
    return {"probs": probs, "y": y, "risk": risk, "u": -probs.max(axis=1)}


ERRORS = (
    scored("ECE", scores.ece, "probs", "y"),
    scored("Smooth ECE", scores.smooth_ece, "probs", "y"),
    scored("NLL", scores.nll, "probs", "y"),
    scored("Brier", scores.brier, "probs", "y"),
    scored("E-AURC", scores.eaurc, "risk", "u"),
)
RARE = (
    compared(
        "Balanced accuracy, difference",
        scores.balanced_accuracy,
        ("a", "y"),
        ("b", "y"),
    ),
    compared("MCC, difference", scores.mcc, ("a", "y"), ("b", "y")),
    compared(
        "Risk at 80 %, difference",
        scores.risk_at_coverage,
        ("a_risk", "a_u"),
        ("b_risk", "b_u"),
    ),
    compared("Accuracy, difference", scores.accuracy, ("a", "y"), ("b", "y")),
    compared("AUROC, difference", scores.auroc, ("a", "positive"), ("b", "positive")),
)
FEW_SIZES = (20, 30, 50, 100, 200)
_few = partial(Population, sizes=FEW_SIZES, truth_items=400_000)
FEW: dict[str, Population] = {
    "sure of .97": _few(partial(stated, confidence=0.97), ERRORS, calibrated=True),
    "sure of .99": _few(partial(stated, confidence=0.99), ERRORS, calibrated=True),
    "sure of .995": _few(partial(stated, confidence=0.995), ERRORS, calibrated=True),
    "near 1": _few(partial(stated, confidence=near_one), ERRORS, calibrated=True),
    "ten classes, sure of .99": _few(sure_classes, ERRORS, calibrated=True),
    "sure of .99, right .95": _few(
        partial(stated, confidence=0.99, error=0.04), ERRORS
    ),
    "sure of .8, right .99": _few(partial(stated, confidence=0.8, error=-0.19), ERRORS),
    "accuracy .99": _few(partial(separated, gap=9.3), ERRORS),
    "balanced": _few(separated, ERRORS),
    "15 % positives": _few(
        partial(separated, share=0.15, shift=-1.25, gap=1.5, noise=1.0), ERRORS
    ),
    "calibrated": _few(by_probability, ERRORS, calibrated=True),
    "over-confident": _few(partial(by_probability, factor=2.5, spread=1.5), ERRORS),
    "ten classes": _few(ten_classes, ERRORS),
    "ten classes, calibrated": _few(
        partial(ten_classes, calibrated=True), ERRORS, calibrated=True
    ),
    "two models, 5 % positives": Population(
        two_models_missing, RARE, sizes=(100, 200, 1_000)
    ),
    "two models, 40 % positives": Population(two_models, RARE, sizes=(20, 50, 200)),
    "regression": Population(
        regression,
        (scored("Regression ECE", scores.regression_ece, "mean", "var", "target"),),
        sizes=(50, 100, 200, 1_000),
    ),
    "regression, t3 errors": Population(
        partial(regression, freedom=3.0),
        (scored("Regression ECE", scores.regression_ece, "mean", "var", "target"),),
        sizes=(50, 100, 200, 1_000),
    ),
}
"""Models that are seldom wrong, and samples of few items."""


# ------------------------------------------------------- clusters, skew and neighbours


def hospitals(n: int, rng: Rng, *, alike: float, skewed: bool = False) -> Items:
    """Items of clusters of 20, whose targets and errors are `alike` by that much."""
    count = n // 20
    cluster = np.repeat(np.arange(count), 20)

    def drawn() -> np.ndarray:
        common = rng.standard_normal(count)
        if skewed:
            common = rng.exponential(1.0, count) - 1.0
        own = rng.standard_normal(len(cluster))
        return np.sqrt(alike) * common[cluster] + np.sqrt(1.0 - alike) * own

    y = (drawn() > 0.0).astype(int)
    logit = (2 * y - 1) * (1.6 + 1.4 * drawn() * (1 - 2 * skewed))
    error = np.abs(1.0 + drawn()) * np.exp(0.3 * rng.standard_normal(len(cluster)))
    return binary(expit(logit), y) | {
        "cluster": cluster,
        "error": error,
        "zero": np.zeros(len(error)),
    }


def saturated(n: int, rng: Rng, *, shares: float = 0.5) -> Items:
    """An over-confident network: 1.5 % of its items lie on the wrong side."""
    y = (rng.random(n) < shares).astype(int)
    return binary(expit(4.3 * (8.7 * (y - 0.5) + 2.0 * rng.standard_normal(n))), y)


def right_share(n: int, rng: Rng, *, share: float) -> Items:
    right = rng.random(n) < share
    return {"called": right, "positive": np.ones(n, np.bool_)}


def graded(n: int, rng: Rng) -> Items:
    """Dice with a long tail of failures, and an uncertainty that knows of it."""
    hard = rng.gamma(1.5, 1.0, n)
    dice = np.clip(1.0 - 0.6 * rng.beta(1.0, 6.0, n) * (1.0 + hard), 0.0, 1.0)
    dice[rng.random(n) < 0.05] = 0.0
    return {"dice": dice, "risk": 1.0 - dice, "u": hard + 0.6 * rng.standard_normal(n)}


def neighbours(n: int, rng: Rng, *, classes: int) -> Items:
    """Embeddings of classes with heavy noise, in 8 dimensions."""
    centre = np.random.default_rng(7).standard_normal((classes, 8))
    y = rng.integers(classes, size=n)
    noise = 0.8 * np.exp(0.4 * rng.standard_normal(n))
    embedding = centre[y] + noise[:, None] * rng.standard_normal((n, 8))
    # Items that are each other's nearest are one unit of R@k, as `qualms score` takes.
    return {"embedding": embedding, "y": y, "cluster": retrieved(embedding, y).unit}


def many_classes(n: int, rng: Rng, *, skew: float = 0.0) -> Items:
    """A hundred classes, of other difficulty and, by `skew`, of other size."""
    weight = np.exp(-skew * np.linspace(0.0, 1.0, 100))
    y = rng.choice(100, size=n, p=weight / weight.sum())
    hard = rng.exponential(1.0, n)[:, None]
    logit = rng.standard_normal((n, 100)) * (0.6 + 0.4 * hard)
    logit[np.arange(n), y] += 3.0 * (0.6 + 0.4 * np.linspace(0.0, 1.0, 100))[y]
    return {"probs": softmax(logit, axis=1), "y": y}


def alone(case: Case) -> Case:
    """The case without clusters."""

    def interval(items: Items) -> ConfidenceInterval:
        return case.interval({k: v for k, v in items.items() if k != "cluster"})

    return replace(case, interval=interval)


CLUSTERED = (
    scored("Accuracy", scores.accuracy, "probs", "y", share=True),
    scored("Balanced accuracy", scores.balanced_accuracy, "probs", "y"),
    scored("MCC", scores.mcc, "probs", "y"),
    scored("NLL", scores.nll, "probs", "y"),
    scored("Brier", scores.brier, "probs", "y"),
    scored("ECE", scores.ece, "probs", "y"),
    scored("AURC", scores.aurc, "risk", "u"),
    scored("E-AURC", scores.eaurc, "risk", "u"),
    scored("AUROC", scores.auroc, "probs", "positive"),
    scored("AP", scores.average_precision, "probs", "positive"),
    scored("FPR95", scores.fpr_at_tpr, "probs", "positive", share=True),
    scored("Calibration slope", scores.calibration_slope, "probs", "positive"),
    scored("Calibration intercept", scores.calibration_intercept, "probs", "positive"),
    scored("MAE", scores.mae, "error", "zero"),
)
LINE = CLUSTERED[-3:-1]
SMALL_LOSSES = (
    *(REGRESSION[place] for place in (0, 3, 4, 7, 8, 9)),
    scored("Pinball", scores.pinball, "lower", "target", level=0.05),
)
OF_NEIGHBOURS = (
    alone(scored("MAP@R", scores.map_at_r, "embedding", "y")),
    scored("R@1", partial(scores.recall_at_k, k=1), "embedding", "y", share=True),
    scored("R@5", scores.recall_at_k, "embedding", "y", share=True),
)
SHARE = (scored("Share", scores.sensitivity, "called", "positive", share=True),)
OVER_CLASSES = (
    scored("Macro F1", scores.macro_f1, "probs", "y"),
    scored("Macro AUROC", scores.macro_auroc, "probs", "y"),
)
_clusters = partial(Population, sizes=(200, 400, 1_000), truth_items=200_000)
_small = partial(Population, sizes=(12, 30, 100, 300), truth_items=200_000)
_near = partial(Population, truth_items=200, relative=True)
FEW |= {
    f"clusters of 20, alike {alike}{', skewed' * skewed}": _clusters(
        partial(hospitals, alike=alike, skewed=skewed), CLUSTERED
    )
    for alike in (0.3, 0.8)
    for skewed in (False, True)
}
FEW |= {
    "saturated": _small(saturated, LINE),
    "saturated, 20 % positives": _small(partial(saturated, shares=0.2), LINE),
    "small regression": _small(regression, SMALL_LOSSES),
    "small regression, t3 errors": _small(
        partial(regression, freedom=3.0), SMALL_LOSSES
    ),
    "small segmentation": _small(segmentation, SEGMENTATION),
    "graded, skewed": _small(graded, (SEGMENTATION[0], *SEGMENTATION[4:])),
    "10 classes of neighbours": _near(
        partial(neighbours, classes=10), OF_NEIGHBOURS, sizes=(60, 300)
    ),
    "40 classes of neighbours": _near(
        partial(neighbours, classes=40), OF_NEIGHBOURS, sizes=(300,)
    ),
    "100 classes": Population(
        many_classes, OVER_CLASSES, sizes=(400, 500, 1_000), truth_items=60_000
    ),
    "100 classes of other sizes": Population(
        partial(many_classes, skew=2.0),
        OVER_CLASSES,
        sizes=(500, 1_000),
        truth_items=60_000,
    ),
}
FEW |= {
    f"share {share}": Population(
        partial(right_share, share=share),
        SHARE,
        sizes=(12, 30, 100, 300),
        truth_items=1_000_000,
    )
    for share in (0.9, 0.97, 0.99, 0.995, 0.999)
}


def equal_rows(kind: str, rows: int, n: int, rng: Rng) -> Items:
    """Rows of equal quality: their errors are exchangeable, and correlated by .5.

    Probabilities (n, rows, C), uncertainties, risks; or the errors of regression.
    """
    if kind == "regression":
        scale = np.exp(0.5 * rng.standard_normal(n))[:, None]
        noise = rng.standard_t(3.0, (n, 1)) + rng.standard_normal((n, rows))
        var = np.square(1.5 * scale) * np.exp(0.3 * rng.standard_normal((n, rows)))
        return {"mean": scale * noise, "var": var, "target": np.zeros(n)}
    classes = 10 if kind == "ten classes" else 2
    weight = np.linspace(2.0, 0.5, 10) if classes == 10 else np.array([0.5, 0.5])
    if kind == "5 % positives":
        weight = np.array([0.95, 0.05])
    y = rng.choice(classes, size=n, p=weight / weight.sum())
    both = rng.standard_normal((n, 1, classes))
    logit = both + rng.standard_normal((n, rows, classes))
    logit[np.arange(n), :, y] += {"accuracy .99": 4.7}.get(kind, 2.0)
    logit += np.log(weight)
    probs = softmax(1.5 * logit, axis=2)
    return {"probs": probs, "y": y}


# ---------------------------------------------------------------- equal rows


def _right(rng: Rng, chance: np.ndarray) -> np.ndarray:
    """Draw whether items are right, (N, K) alike in all rows to some degree."""
    common = rng.standard_normal((len(chance), 1))
    own = rng.standard_normal(chance.shape)
    return ndtr(np.sqrt(0.6) * common + np.sqrt(0.4) * own) < chance


def _confidence(rng: Rng, size: int, rows: int) -> np.ndarray:
    """Draw confidences (N, K), uniform between 0 and 1 and alike in all rows."""
    common = rng.standard_normal((size, 1))
    own = rng.standard_normal((size, rows))
    return ndtr(np.sqrt(0.5) * (common + own))


def calibrated_rows(kind: str, rows: int, size: int, better: float, rng: Rng) -> Items:
    """Probabilities (N, K) of rows that all have one calibration error; targets (N, K).

    The first row is `better` by that much. Its kinds: calibrated or overconfident, of
    equal or of other sharpness in every second row, and one error of other shapes.
    """
    uniform, row = _confidence(rng, size, rows), np.arange(rows)
    confidence = 0.5 + 0.5 * np.sqrt(uniform)
    if "other sharpness" in kind:
        confidence = np.where(row % 2, 0.9 + 0.05 * uniform, 0.55 + 0.45 * uniform)
    error = np.full(rows, 0.05 if "overconfident" in kind else 0.0)
    error[0] -= better
    chance = confidence - error
    if kind == "other shapes":
        confidence = 0.55 + 0.4 * uniform
        high = confidence > 0.8
        of_shape = (
            np.full(high.shape, 0.04),
            0.04 / 0.375 * high,
            np.where(high, 0.04, -0.04),
        )
        gap = np.choose(row % 3, of_shape)
        gap[:, 0] *= 1.0 - better / 0.04
        chance = confidence - gap
    right = _right(rng, chance)
    # The target is shared; a wrong row predicts the other class.
    target = rng.random(size) < 0.5
    says_one = right == target[:, None]
    return {"probs": np.where(says_one, confidence, 1.0 - confidence), "y": target}


def detecting_rows(rows: int, size: int, better: float, rng: Rng) -> Items:
    """Uncertainties (N, K) of rows that detect shifted items equally well."""
    moved = np.arange(size) % 2 == 0
    common = rng.standard_normal((size, 1))
    own = rng.standard_normal((size, rows))
    u = np.sqrt(0.5) * (common + own) + 2.0 * moved[:, None]
    u[:, 0] += better * moved
    return {"u": u, "shifted": moved}
