"""Items one after the other, a few at a time, and the uncertainty maps of each."""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.entry import ScoreOptions
from qualms.predictions import Header, Maps, Predictions, are_on_disk
from qualms.processes import LostProcessError, Workforce

Map = NDArray[np.floating[Any]]
R = TypeVar("R")

SINGLE = "softmax"
"""The table of roles for one draw of a network."""
SMALL = 1 << 18
"""A file of fewer pixels is measured in this process."""
WORTHWHILE = 1 << 24
"""Pixels, of all files so far, that are worth starting processes for: on two cores,
measuring them took 3.6 s of one process, and starting two of them 2.6 s."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Set to one, as there is a process for every core; our kernels start no threads."""


@contextmanager
def measuring(options: ScoreOptions) -> Iterator[ScoreOptions]:
    """Options whose segmented items are measured by processes that all files share.

    They are started at the first file that is worth it, and end with the block.
    """
    if options.workforce is not None or options.workers < 2:
        yield options
        return
    # What they do is defined here, so a script that scores files need not be imported.
    with Workforce(
        options.workers,
        environment=dict.fromkeys(_THREADS, "1"),
        script=False,
        patience=WORTHWHILE,
    ) as workforce:
        yield replace(options, workforce=workforce)


def streamed(
    work: Callable[[Maps], R], predictions: Predictions, options: ScoreOptions
) -> Generator[R, None, None]:
    """`work` on every item, several at a time, in order; close it if you leave early.

    By the processes of `options` where that is worth it, else by threads.
    """
    maps = predictions.maps
    if maps is None:
        raise ValueError(f"{predictions.source} holds no segmentation items")
    job, rows = partial(_of_row, work, maps), range(len(maps))
    workforce = _workforce_for(predictions, options)
    if workforce is None:
        yield from _threaded(job, rows, options.workers)
        return
    try:
        yield from workforce.each(job, rows)
    except LostProcessError as error:
        raise LostProcessError(
            f"{predictions.source}: {error}; run again while more memory is free"
        ) from error


def _of_row(work: Callable[[Maps], R], maps: Sequence[Maps], row: int) -> R:
    return work(maps[row])


def _workforce_for(predictions: Predictions, options: ScoreOptions) -> Workforce | None:
    """The processes of `options`, if these items lie on disk and are worth them."""
    workforce, pixels = options.workforce, predictions.pixels * predictions.n
    if workforce is None or pixels < SMALL or not are_on_disk(predictions.maps):
        return None
    return workforce if workforce.takes(pixels, workers=predictions.n) else None


def _threaded(
    job: Callable[[int], R], rows: Sequence[int], workers: int
) -> Iterator[R]:
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[R]] = deque()
        for row in rows:
            waiting.append(pool.submit(job, row))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def map_roles(header: Header, draws: int) -> str:
    """The method whose table says what each map stands for."""
    method = (header.method or "").lower()
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
