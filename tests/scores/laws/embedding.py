"""Laws of the retrieval scores and of human alignment."""

import numpy as np

from qualms.scores.gallery import map_at_r, recall_at_k
from qualms.scores.human import human_alignment
from qualms.scores.retrieval import (
    crop_rate,
    mixed_r_auroc,
    r_auroc,
    recall_at_1,
    retrieval_hits,
)
from scores.laws import Case

ALWAYS = frozenset({"permutation", "bounds", "empty", "dtype", "layout", "nan"})
RANK = ALWAYS | {"ties", "monotone", "one_class", "rounding"}


def embedded(rng, n):
    target = rng.integers(0, 4, n)
    centre = rng.normal(size=(4, 5))
    return {"embedding": centre[target] + rng.normal(size=(n, 5)), "target": target}


def on_a_lattice(rng, n):
    """Many items share their direction, so most have several nearest neighbours."""
    return {
        "embedding": rng.integers(-1, 2, (n, 3)).astype(float),
        "target": rng.integers(0, 3, n),
    }


def doubted(rng, n):
    return embedded(rng, n) | {"uncertainty": rng.normal(size=n)}


def doubted_lattice(rng, n):
    return on_a_lattice(rng, n) | {"uncertainty": rng.normal(size=n)}


def mixed(rng, n):
    return doubted_lattice(rng, n) | {"upstream": rng.random(n) < 0.5}


def one_class(rng, n):
    return doubted(rng, n) | {"target": np.zeros(n, dtype=int)}


def one_class_upstream(rng, n):
    return one_class(rng, n) | {"upstream": np.ones(n, dtype=bool)}


def cropped(rng, n):
    return {"uncertainty": rng.normal(size=n), "cropped": rng.normal(size=n)}


def voted(rng, n):
    votes = rng.multinomial(5, [0.5, 0.3, 0.2], n)
    votes[::9] = 0
    return {"uncertainty": rng.normal(size=n), "votes": votes}


def agreed(rng, n):
    return voted(rng, n) | {"votes": np.tile([5, 0, 0], (n, 1))}


CASES = [
    Case(recall_at_1, embedded, ALWAYS),
    Case(recall_at_1, on_a_lattice, ALWAYS, name="recall_at_1 tied"),
    Case(map_at_r, embedded, ALWAYS),
    Case(map_at_r, on_a_lattice, ALWAYS, name="map_at_r tied"),
    Case(recall_at_k, embedded, ALWAYS),
    Case(recall_at_k, on_a_lattice, ALWAYS, name="recall_at_k tied"),
    Case(
        retrieval_hits,
        on_a_lattice,
        ALWAYS - {"bounds"} | {"batching"},
        value=lambda hits: float(hits.mean()),
        blocks=({"block": 1}, {"block": 13}, {"block": 60}),
    ),
    Case(
        r_auroc,
        doubted,
        RANK,
        rank="uncertainty",
        one_class=one_class,
        one_class_value=float("nan"),
    ),
    Case(
        r_auroc,
        doubted_lattice,
        RANK - {"one_class"},
        rank="uncertainty",
        name="r_auroc tied",
    ),
    Case(
        mixed_r_auroc,
        mixed,
        RANK,
        rank="uncertainty",
        one_class=one_class_upstream,
        one_class_value=float("nan"),
    ),
    Case(crop_rate, cropped, ALWAYS | {"repeat"}),
    Case(
        human_alignment,
        voted,
        RANK | {"repeat", "renaming"},
        classes={"votes": 1},
        rank="uncertainty",
        value=lambda alignment: alignment.value,
        one_class=agreed,
        one_class_value=float("nan"),
    ),
]
