"""Items one after the other, a few at a time, and the uncertainty maps of each."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.entry import ScoreOptions
from qualms.predictions import Header, Maps, Predictions

Map = NDArray[np.floating[Any]]
R = TypeVar("R")

SINGLE = "softmax"
"""The table of roles for one draw of a network."""


def streamed(
    work: Callable[[Maps], R], predictions: Predictions, options: ScoreOptions
) -> Iterator[R]:
    """`work` on every item, a few in flight, in order."""
    maps = predictions.maps
    if maps is None:
        raise ValueError(f"{predictions.source} holds no segmentation items")

    def job(index: int) -> R:
        return work(maps[index])

    # Threads, not processes: nearly all time is spent in NumPy and in reading, which
    # release the interpreter's lock, and no map has to be copied to another process.
    with ThreadPoolExecutor(options.workers) as pool:
        waiting: deque[Future[R]] = deque()
        for index in range(len(maps)):
            waiting.append(pool.submit(job, index))
            if len(waiting) > options.workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def map_roles(header: Header, draws: int) -> str:
    """The method whose table says what each map stands for."""
    method = header.method or ""
    if draws == 1 and method != "ssn":
        return SINGLE
    # Several runs of a plain network are an ensemble.
    return "ensemble" if method in (SINGLE, "map") else method


def measured_maps(header: Header, maps: Maps) -> dict[str, Map]:
    """Uncertainty maps of an item by measure: PE, EE and MI, or MSR of one draw."""
    found = scores.uncertainty_maps(maps.mean_probs, maps.expected_entropy)
    if map_roles(header, len(maps.draw_labels)) == SINGLE:
        return {"MSR": found.max_softmax}
    return {"PE": found.predictive, "EE": found.aleatoric, "MI": found.epistemic}


def segmented_labels(maps: Maps) -> NDArray[np.uint8]:
    """(*space) the most probable class of the mean prediction."""
    probs = maps.mean_probs
    # Of two classes the first one wins a tie as well, in a fraction of the time.
    first = probs[1] > probs[0] if len(probs) == 2 else probs.argmax(axis=0)
    labels: NDArray[np.uint8] = first.astype(np.uint8)
    return labels
