"""Reading segmented items, a few at a time, and the uncertainty maps of each."""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.entry import ScoreOptions
from qualms.predictions import Header, Maps, Predictions, are_on_disk
from qualms.processes import LostProcessError, Workforce
from qualms.progress import counting

Map = NDArray[np.floating[Any]]
R = TypeVar("R")

OWN = "uncertainty/"
"""Prefix of measures that are the user's own maps or numbers."""
SMALL = 1 << 18
"""Fewest pixels of a file that is measured by other processes."""
WORTHWHILE = 1 << 25
"""Pixels of all files so far for which processes are started. On two cores one process
measured 2^24 pixels in 3.6 s, and starting two took 2.6 s: from 2^24.5 pixels on they
save more than they cost."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that are set to one, because there is a process for every core."""


@contextmanager
def measuring(options: ScoreOptions) -> Iterator[ScoreOptions]:
    """Yield options with processes that measure the segmented items of all files.

    The processes are started at the first file that is large enough, and end with the
    context.
    """
    if options.workforce is not None or options.workers < 2:
        yield options
        return
    # Their functions are defined in this package; the main script is not needed.
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

    The processes of `options` do the work if the items are large enough, else threads.
    """
    maps = predictions.maps
    if maps is None:
        raise ValueError(f"{predictions.source} holds no segmentation items")
    job, rows = partial(_of_row, work, maps), range(len(maps))
    workforce = _workforce_for(predictions, options)
    if workforce is None:
        yield from counting(_threaded(job, rows, options.workers), len(rows))
        return
    try:
        yield from counting(workforce.each(job, rows), len(rows))
    except LostProcessError as error:
        raise LostProcessError(
            f"{predictions.source}: {error}; run again while more memory is free"
        ) from error


def _of_row(work: Callable[[Maps], R], maps: Sequence[Maps], row: int) -> R:
    return work(maps[row])


def _workforce_for(predictions: Predictions, options: ScoreOptions) -> Workforce | None:
    """Return the processes of `options` if the items are on disk and large enough."""
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


class MapKind(NamedTuple):
    """Properties of a file that decide how its maps are read."""

    header: Header
    draws: int
    """The most draws of an item."""


def map_kind(predictions: Predictions) -> MapKind:
    """Return the properties of a file that decide how its maps are read."""
    return MapKind(predictions.header, predictions.draws)


def is_single(kind: MapKind) -> bool:
    """Return whether all items have one draw of a network, and so one measure."""
    return kind.draws == 1 and kind.header.draws != "labels"


def measured_maps(kind: MapKind, maps: Maps) -> dict[str, Map]:
    """Return the uncertainty maps of an item, with the user's own at the end.

    PE, EE and MI, or MSR if all items have one draw; and `uncertainty/<name>`.
    """
    measure = scores.region_maps if kind.header.regions else scores.uncertainty_maps
    uncertainty = measure(maps.mean_probs, maps.expected_entropy)
    own = {f"{OWN}{name}": values for name, values in maps.uncertainty.items()}
    if is_single(kind):
        return {"MSR": uncertainty.max_softmax, **own}
    return {
        "PE": uncertainty.predictive,
        "EE": uncertainty.aleatoric,
        "MI": uncertainty.epistemic,
        **own,
    }


def measure_settings(measure: str, aggregation: str = "") -> dict[str, str]:
    """Return the settings of scores for a measure and an aggregation.

    >>> measure_settings("PE", "patch")
    {'measure': 'PE', 'aggregation': 'patch'}
    >>> measure_settings("uncertainty/mine")
    {'uncertainty': 'mine'}
    """
    own = measure.startswith(OWN)
    settings = {"uncertainty" if own else "measure": measure.removeprefix(OWN)}
    return settings | ({"aggregation": aggregation} if aggregation else {})


def segmented_labels(kind: MapKind, maps: Maps) -> NDArray[np.uint8]:
    """Return the most probable class (*space) of the mean prediction.

    For regions, a map (K, *space) with 1 where a pixel is predicted to lie inside.
    """
    probs = maps.mean_probs
    if kind.header.regions:
        return (probs > 0.5).astype(np.uint8)
    # The comparison is faster for two classes; the first class wins ties either way.
    first = probs[1] > probs[0] if len(probs) == 2 else probs.argmax(axis=0)
    labels: NDArray[np.uint8] = first.astype(np.uint8)
    return labels
