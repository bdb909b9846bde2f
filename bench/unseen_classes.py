"""How often intervals of retrieval scores cover those of new classes.

Classes have their own places and their own spread, and some items are ambiguous. Every
sample has new classes. The truth is the mean score of samples of that size. Compared
are clusters of a class, and units of items that are each other's nearest neighbours,
which promise new items of the same classes only.

    python bench/unseen_classes.py
"""

import argparse

import numpy as np

from qualms import scores
from qualms.inference import (
    influence_of,
    interval_of,
    mean_influence,
    sampling_design,
)
from qualms.scores.retrieval import retrieved

DIMENSIONS = 16
SHAPES = ((4, 100), (6, 66), (8, 50), (10, 40), (14, 29), (30, 14), (80, 5), (100, 10))
"""Classes, and items of each."""


def draw_set(rng, classes, each):
    """Return embeddings, classes and uncertainties of one set of new classes."""
    target = np.repeat(np.arange(classes), each)
    place = rng.normal(size=(classes, DIMENSIONS))
    spread = np.exp(0.1 * rng.normal(size=classes))[target]
    ambiguity = rng.random(len(target))
    noise = rng.normal(size=(len(target), DIMENSIONS))
    embedding = place[target] + (1.0 + ambiguity)[:, None] * spread[:, None] * noise
    uncertainty = ambiguity + 0.3 * spread + 0.3 * rng.normal(size=len(target))
    return embedding.astype(np.float32), target, uncertainty


def intervals(embedding, target, uncertainty):
    """Yield score, design, value and interval."""
    search = retrieved(embedding, target)
    hits = search.hits
    designs = {"class": target, "pair": search.unit}
    about = scores.about(scores.recall_at_1)
    influences = {
        "R@1": mean_influence(hits, about=about),
        "R-AUROC": influence_of(
            scores.weighted_auroc,
            score=uncertainty,
            positive_weight=1 - hits,
            negative_weight=hits,
        ),
    }
    for score, influence in influences.items():
        for name, cluster in designs.items():
            design = sampling_design(len(hits), cluster=cluster)
            yield score, name, influence.value, interval_of(influence, design=design)


def main():
    """Print coverage and width by design, score and number of classes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    options = parser.parse_args()
    print("| classes x items | score | truth | class | width | pair | width |")
    print("|---|---|---|---|---|---|---|")
    for classes, each in SHAPES:
        found = {}
        for sample in range(options.samples):
            rng = np.random.default_rng([classes, each, sample])
            for score, name, value, interval in intervals(
                *draw_set(rng, classes, each)
            ):
                row = (value, interval.low, interval.high)
                found.setdefault((score, name), []).append(row)
        for score in ("R@1", "R-AUROC"):
            cells = []
            truth = np.mean([row[0] for row in found[score, "class"]])
            for name in ("class", "pair"):
                _, low, high = np.array(found[score, name]).T
                covered = 100 * np.mean((low <= truth) & (truth <= high))
                cells += [f"{covered:.1f}", f"{np.nanmedian(high - low):.3f}"]
            print(
                f"| {classes} x {each} | {score} | {truth:.3f} | {' | '.join(cells)} |"
            )


if __name__ == "__main__":
    main()
