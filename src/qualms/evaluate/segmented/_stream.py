"""Reading segmented items, a few at a time, and the uncertainty maps of each."""

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
"""The method whose roles hold for one draw of a network."""
SMALL = 1 << 18
"""Pixels of a file below which this process measures it."""
WORTHWHILE = 1 << 24
"""Pixels of all files so far from which on processes are started: on two cores,
measuring them took 3.6 s in one process, and starting two processes 2.6 s."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Set to one, since there is a process for every core."""


@contextmanager
def measuring(options: ScoreOptions) -> Iterator[ScoreOptions]:
    """Yield options with processes that measure the segmented items of all files.

    The processes are started at the first file that is worth it, and end with the
    context.
    """
    if options.workforce is not None or options.workers < 2:
        yield options
        return
    # Their work is defined in this package, so they need not import the main script.
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
    """Yield `work` of every item in order, several at a time; close it if you break.

    The processes of `options` do the work if that is worth it, else threads.
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
    """Return the processes of `options` if the items are on disk and worth them."""
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
    """Return the method whose table gives the role of each map."""
    method = (header.method or "").lower()
    if draws == 1 and method != "ssn":
        return SINGLE
    # A pool of plain networks is an ensemble.
    return "ensemble" if method in (SINGLE, "map") else method


def measured_maps(header: Header, maps: Maps) -> dict[str, Map]:
    """Return uncertainty maps of an item: PE, EE and MI, or MSR if it has one draw."""
    uncertainty = scores.uncertainty_maps(maps.mean_probs, maps.expected_entropy)
    if map_roles(header, len(maps.draw_labels)) == SINGLE:
        return {"MSR": uncertainty.max_softmax}
    return {
        "PE": uncertainty.predictive,
        "EE": uncertainty.aleatoric,
        "MI": uncertainty.epistemic,
    }


def segmented_labels(maps: Maps) -> NDArray[np.uint8]:
    """Return the most probable class (*space) of the mean prediction."""
    probs = maps.mean_probs
    # With two classes this is faster, and the first class wins ties in both ways.
    first = probs[1] > probs[0] if len(probs) == 2 else probs.argmax(axis=0)
    labels: NDArray[np.uint8] = first.astype(np.uint8)
    return labels
