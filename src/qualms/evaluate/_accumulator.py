"""Collecting predictions batch by batch, to score them together at the end."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate._results import Results
from qualms.evaluate.entry import ScoreOptions
from qualms.evaluate.scoring import score
from qualms.evaluate.sources import Source
from qualms.predictions import Header, Predictions, build
from qualms.shelf import tasks_with
from qualms.wording import suggest


class Accumulator:
    """Batches of predictions; `compute` returns the results of all of them together.

    Every batch is checked on `update`. Scores such as AUROC need all items, so the
    arrays are kept, and the results equal those of one call of `qualms.score`.

    >>> collected = Accumulator("classification")
    >>> collected.update(target=[0, 1], prob=[0.2, 0.9])
    >>> collected.update(target=[1, 0], prob=[0.4, 0.1])
    >>> collected.compute(resamples=0)["accuracy"].value
    0.75
    >>> collected
    <Accumulator of classification: 4 items; see .update(...), .compute()>
    """

    def __init__(
        self,
        task: str,
        *,
        header: Header | Mapping[str, Any] | None = None,
        logits: bool = False,
    ) -> None:
        if task in tasks_with("pixels"):
            raise ValueError(
                "maps are not collected in memory; stream the items to a folder with "
                "qualms.predictions.SegmentationWriter and score that"
            )
        if task not in (known := tasks_with("items")):
            raise ValueError(
                f"task must be one of {', '.join(known)}, got {task!r}."
                f"{suggest(task, known)}"
            )
        self._task = task
        self._header = header
        self._logits = logits
        self._batches: list[Predictions] = []

    def __len__(self) -> int:
        return sum(batch.n for batch in self._batches)

    def __repr__(self) -> str:
        return (
            f"<Accumulator of {self._task}: {len(self)} items; "
            "see .update(...), .compute()>"
        )

    def update(self, **arrays: Any) -> None:
        """Add a batch: arrays by name, as in `qualms.predictions.build`."""
        batch = build(arrays, header=self._header, task=self._task, logits=self._logits)
        _refuse_unjoinable(batch)
        if self._batches:
            _refuse_other(self._batches[0], batch)
        # Callers may reuse the memory of a batch for the next one.
        copies = {name: array.copy() for name, array in batch.arrays.items()}
        self._batches.append(replace(batch, arrays=copies))

    def predictions(self) -> Predictions:
        """Return the items of all batches as one set of predictions."""
        if not self._batches:
            raise ValueError("there are no predictions yet; call update(...) first")
        first = self._batches[0]
        names = dict.fromkeys(name for batch in self._batches for name in batch.arrays)
        joined = {name: self._joined(name) for name in names}
        return build(joined, header=first.header, task=self._task)

    def _joined(self, name: str) -> NDArray[Any]:
        # Only batches that hold an item of no known class say which are known.
        parts = [
            batch.arrays.get(name, np.ones(batch.n, np.bool_))
            for batch in self._batches
        ]
        first = next(batch for batch in self._batches if name in batch.arrays)
        return np.concatenate(parts, axis=first.item_axis(name) or 0)

    def compute(  # noqa: PLR0913 - the options of `score`
        self,
        *,
        val: "Source | Accumulator | None" = None,
        options: ScoreOptions | None = None,
        name: str | None = None,
        resamples: int | None = None,
        level: float | None = None,
        seed: int | None = None,
        alpha: float | None = None,
        by_group: bool | None = None,
        subset: str | None = None,
        uncertainty: str | None = None,
    ) -> Results:
        """Return every score of the items so far; for options see `qualms.score`."""
        if isinstance(val, Accumulator):
            val = val.predictions()
        return score(
            self.predictions(),
            val=val,
            options=options,
            name=name,
            resamples=resamples,
            level=level,
            seed=seed,
            alpha=alpha,
            by_group=by_group,
            subset=subset,
            uncertainty=uncertainty,
        )

    def reset(self) -> None:
        """Remove all batches."""
        self._batches.clear()


def _refuse_unjoinable(batch: Predictions) -> None:
    for name, array in batch.arrays.items():
        if batch.item_axis(name) is None:
            raise ValueError(
                f"array {name!r} of a batch must have a row for each of its {batch.n}"
                f" items, got shape {array.shape}; leave it out"
            )


def _refuse_other(first: Predictions, batch: Predictions) -> None:
    # Only batches that hold an item of no known class say which are known.
    if (set(batch.arrays) ^ set(first.arrays)) - {"known"}:
        raise ValueError(
            f"every batch must have the arrays of the first, {_listed(first)}; got "
            f"{_listed(batch)}"
        )
    if (batch.draws, batch.classes) != (first.draws, first.classes):
        raise ValueError(
            "every batch must have the draws and classes of the first, "
            f"{first.draws} and {first.classes}; got {batch.draws} and {batch.classes}"
        )


def _listed(batch: Predictions) -> str:
    return ", ".join(sorted(batch.arrays))
