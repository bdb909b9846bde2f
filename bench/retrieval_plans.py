"""Count how often referral plans for queries of a retrieval break their promise.

`python bench/retrieval_plans.py` draws embeddings of a few classes, lets `qualms refer
--accuracy` choose a threshold, and looks up R@1 of many new queries that it keeps: in
the gallery that the plan was made with, or, without one, among the items that it was
made on. Embeddings lie around the mean of their class, some far and some near, and the
uncertainty knows how far they may lie. It prints the table of `docs/embeddings.md`.
`--times` sets how many plans are drawn in each line.
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import qualms
from qualms import scores
from qualms.inference import wilson_ends
from qualms.referral import ReferralOptions

CONFIDENCE = 0.9
Z = 1.96
NEW = 10_000
"""New queries that stand for all."""
BLIND = 0.0
"""Of an uncertainty that knows nothing of the noise."""


class World(NamedTuple):
    """A population of embeddings."""

    name: str
    classes: int
    dimensions: int
    knows: float
    """How well the uncertainty knows the noise of an item, from 0 to 1."""
    accuracy: float
    """R@1 that is asked for."""

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
        """Return n items."""
        centre = np.random.default_rng(7).normal(size=(self.classes, self.dimensions))
        target = rng.integers(0, self.classes, n)
        noise = 0.2 + 1.6 * rng.random(n)
        place = centre[target]
        place = place + noise[:, None] * rng.normal(size=place.shape)
        guess = self.knows * noise + (1 - self.knows) * rng.random(n)
        return {"embedding": place, "target": target, "uncertainty/own": guess}


WORLDS = (
    World("10 classes, 8 dimensions", 10, 8, 0.7, 0.8),
    World("10 classes, 8 dimensions, blind", 10, 8, BLIND, 0.64),
    World("3 classes, 2 dimensions", 3, 2, 0.7, 0.45),
    World("50 classes, 16 dimensions", 50, 16, 0.7, 0.8),
)


class Broken(NamedTuple):
    """Plans of one line."""

    made: int
    """Plans that a threshold was found for."""
    broken: int
    """Those whose new queries have a lower R@1 than was promised."""


def kept_recall(
    new: dict[str, np.ndarray], gallery: dict[str, np.ndarray], threshold: float
) -> float:
    """Return R@1 in a gallery of the new queries below a threshold."""
    kept = new["uncertainty/own"] < threshold
    if not kept.any():
        return 1.0
    ranks = scores.right_ranks(
        new["embedding"][kept],
        new["target"][kept],
        gallery=gallery["embedding"],
        gallery_target=gallery["target"],
    )
    return float(scores.hits_within(ranks, 1).mean())


def counted(world: World, items: int, *, gallery: int, times: int) -> Broken:
    """Return how many of `times` plans were made, and broken."""
    made = broken = 0
    for seed in range(times):
        rng = np.random.default_rng([seed, items, gallery])
        queries = world.draw(rng, items)
        among = world.draw(rng, gallery) if gallery else None
        options = ReferralOptions(gallery=among, uncertainty="own")
        plan = qualms.refer(queries, accuracy=world.accuracy, options=options)
        if not plan.found:
            continue
        made += 1
        recall = kept_recall(
            world.draw(rng, NEW), queries if among is None else among, plan.threshold
        )
        broken += recall < world.accuracy
    return Broken(made, broken)


def lines(times: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| population | queries | gallery | plans made | broken, of all |"
    yield "|---|---:|---:|---:|---|"
    for world in WORLDS:
        for items, gallery in ((300, 500), (300, 0), (1000, 0)):
            made, broken = counted(world, items, gallery=gallery, times=times)
            share = np.array([broken / times])
            low, high = (float(e[0]) for e in wilson_ends(share, np.array([times]), Z))
            where = str(gallery) if gallery else "none"
            yield (
                f"| {world.name} | {items:,} | {where} | {made} of {times} |"
                f" {100 * share[0]:.1f} % ({100 * low:.1f} to {100 * high:.1f}) |"
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1000)
    for line in lines(parser.parse_args().times):
        print(line, flush=True)


if __name__ == "__main__":
    main()
