"""Sources of predictions: paths, arrays and frames, read, and refused if unusable."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qualms.evaluate.entry import ScoreOptions
from qualms.predictions import (
    Frame,
    Header,
    HuggingFaceDataset,
    Paths,
    Predictions,
    build,
    read,
    with_stated,
)
from qualms.shelf import traits

Source = str | Path | Mapping[str, Any] | Frame | HuggingFaceDataset | Predictions
LARGEST = 1e70
"""Largest number whose fourth powers and their sums are finite."""


class SourceReader(NamedTuple):
    """Reads files with the options of a user."""

    task: str | None
    logits: bool
    renormalise: bool
    alpha: float | None
    """Miscoverage; None unless the user stated it."""
    raters: Paths
    """Folders of raters' label maps, for files of other programs."""
    draws: str | None = None
    """What several draws vary, models or labels; None unless the user stated it."""
    background: str | int | None = None
    """The class that is background; None unless the user stated it."""

    def read(
        self, source: Source, header: Header | Mapping[str, Any] | None = None
    ) -> Predictions:
        """Return the predictions of `source`; raise unless they can be scored."""
        if header is not None and isinstance(source, (str, Path, Predictions)):
            raise ValueError(
                "header= is for a mapping of arrays; a file, and predictions already "
                "read, have their own"
            )
        predictions = predictions_of(source, header=header, **self._asdict())
        predictions.require_target()
        refuse_huge(predictions)
        _refuse_exchanged(predictions)
        return replace(
            predictions, notes=(*predictions.notes, *self._other_alpha(predictions))
        )

    def _other_alpha(self, predictions: Predictions) -> tuple[str, ...]:
        """Return a note if the header states another alpha than the user."""
        in_header = predictions.header.alpha
        if "values" not in traits(predictions.task) or in_header is None:
            return ()
        if self.alpha in (None, in_header):
            return ()
        return (
            f"the header of {predictions.source} states alpha {in_header:g}, which is "
            f"used, and not {self.alpha:g}",
        )

    def with_gallery(
        self, options: ScoreOptions | None, gallery: Source | None
    ) -> ScoreOptions:
        """Return the options with the embeddings of `gallery`."""
        options = options or ScoreOptions()
        if gallery is None:
            return options
        return replace(options, gallery=self.read(gallery))


def predictions_of(  # noqa: PLR0913 - the options of reading
    source: Source,
    *,
    header: Header | Mapping[str, Any] | None = None,
    task: str | None = None,
    logits: bool = False,
    renormalise: bool = False,
    alpha: float | None = None,
    raters: Paths = (),
    draws: str | None = None,
    background: str | int | None = None,
) -> Predictions:
    """Return the predictions of `source`, read or built where necessary."""
    stated: dict[str, Any] = {"draws": draws, "background": background}
    if isinstance(source, Predictions):
        return with_stated(source, **stated)
    options: dict[str, Any] = {
        "task": task,
        "logits": logits,
        "renormalise": renormalise,
        "alpha": alpha,
    }
    if isinstance(source, (str, Path)):
        return with_stated(read(source, raters=raters, **options), **stated)
    return with_stated(build(source, header=header, **options), **stated)


def refuse_huge(predictions: Predictions) -> None:
    """Raise if a number is too large to compute with."""
    for name, array in predictions.arrays.items():
        if array.dtype != np.float64:
            continue
        if max(array.max(), -array.min()) > LARGEST:
            index = tuple(np.argwhere(np.abs(array) > LARGEST)[0].tolist())
            raise ValueError(
                f"{predictions.source}: array '{name}' must stay within "
                f"{LARGEST:g} to be scored, position {index} is {array[index]:g}; "
                "correct the value or leave the item out"
            )


def _refuse_exchanged(predictions: Predictions) -> None:
    """Raise if most intervals are upside down."""
    lower, upper = predictions.get("lower"), predictions.get("upper")
    if lower is None or upper is None:
        return
    count = int((lower > upper).sum())
    if 2 * count > predictions.n:
        raise ValueError(
            f"{predictions.source}: 'lower' must not be above 'upper', and is in "
            f"{count} of {predictions.n} items; exchange the two, or, if quantiles "
            "cross, sort each pair"
        )
