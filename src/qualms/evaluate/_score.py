"""From predictions to results: check, judge by task, resample, tabulate."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qualms.evaluate._classification import judge_classification
from qualms.evaluate._embedding import judge_embedding
from qualms.evaluate._entry import Entry, Judgement, Settings
from qualms.evaluate._regression import judge_regression
from qualms.evaluate._results import Array, Results, Row
from qualms.evaluate._segmentation import judge_segmentation
from qualms.predictions import Predictions, build, read
from qualms.scores import (
    Copies,
    Plan,
    Resampling,
    about,
    bootstrap,
    percentile_interval,
)

Source = str | Path | Mapping[str, Any] | Predictions
Judge = Callable[[Predictions, Predictions | None, Settings], Judgement]

# Squares and sums of larger numbers would no longer be finite.
LARGEST = 1e100

_JUDGES: dict[str, Judge] = {
    "classification": judge_classification,
    "regression": judge_regression,
    "segmentation": judge_segmentation,
    "embedding": judge_embedding,
}


def score(
    source: Source,
    *,
    val: Source | None = None,
    settings: Settings | None = None,
    task: str | None = None,
    logits: bool = False,
    name: str | None = None,
) -> Results:
    """Every score of a predictions file, with intervals: the twin of `qualms score`.

    Args:
        source: A path, a mapping of arrays, or predictions already read.
        val: Validation predictions of the same run; recalibration, conformal offsets,
            selection thresholds and Platt scaling are fitted on them.
        settings: Resamples, level, seed, groups; the defaults of `Settings`.
        task: Says what the arrays are where that is ambiguous.
        logits: The class scores are logits; never guessed.
        name: What to call the file in tables.
    """
    settings = settings or Settings()
    predictions = _take(source, task=task, logits=logits)
    validation = None if val is None else _take(val, task=task, logits=logits)
    if validation is not None and validation.task != predictions.task:
        raise ValueError(
            f"val must hold {predictions.task} predictions like {predictions.source}, "
            f"got {validation.task} in {validation.source}"
        )
    judgement = _JUDGES[predictions.task](predictions, validation, settings)
    return Results(
        name=name or _name_of(predictions),
        header=predictions.header,
        task=predictions.task,
        n=predictions.n,
        draws=predictions.draws,
        rows=_rows(predictions, judgement, settings),
        curves=judgement.curves,
        bars=judgement.bars,
        notes=(*predictions.notes, *judgement.notes),
        level=settings.level,
        resamples=settings.resamples,
        seed=settings.seed,
        identity=_identity(predictions),
    )


def _take(source: Source, *, task: str | None, logits: bool) -> Predictions:
    if isinstance(source, Predictions):
        taken = source
    elif isinstance(source, (str, Path)):
        taken = read(source, task=task, logits=logits)
    else:
        taken = build(source, task=task, logits=logits)
    _refuse_huge(taken)
    return taken


def _refuse_huge(predictions: Predictions) -> None:
    for name, array in predictions.arrays.items():
        if array.dtype != np.float64:
            continue
        if max(array.max(), -array.min()) > LARGEST:
            where = tuple(np.argwhere(np.abs(array) > LARGEST)[0].tolist())
            raise ValueError(
                f"{predictions.source}: array '{name}' must stay within "
                f"{LARGEST:g} to be scored, position {where} is {array[where]:g}; "
                "correct the value or leave the item out"
            )


def _rows(
    predictions: Predictions, judgement: Judgement, settings: Settings
) -> tuple[Row, ...]:
    entries = judgement.entries
    if settings.resamples == 0:
        return tuple(_row(entry, None, settings.level) for entry in entries)
    resampling = Resampling(
        predictions.n,
        strata=judgement.strata,
        cluster=predictions.get("cluster"),
        seed=settings.seed,
    )
    samples = bootstrap(
        {str(i): _on_all(entry, predictions.n) for i, entry in enumerate(entries)},
        resampling,
        replicates=settings.resamples,
        progress=settings.progress,
        workers=settings.workers,
    )
    return tuple(
        _row(entry, samples[str(i)], settings.level) for i, entry in enumerate(entries)
    )


def _on_all(entry: Entry, n: int) -> Plan:
    """The entry's plan as one over all `n` items."""
    index, plan = entry.index, entry.plan
    if len(index) == n and (index == np.arange(n)).all():
        return plan

    def value(copies: Copies) -> Array:
        chosen = copies.of(index)
        # Drawing whole clusters may miss a small subset altogether.
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(chosen.total() > 0, plan.value(chosen), np.nan)

    return Plan(n, value)


def _row(entry: Entry, samples: Array | None, level: float) -> Row:
    record = about(entry.score)
    value = entry.value
    if value is None:
        value = entry.plan(np.ones(len(entry.index), np.int32))
    low = high = float("nan")
    # An infinite conformal offset makes every replicate infinite too.
    if samples is not None and not np.isinf(value):
        interval = percentile_interval(samples, level=level)
        low, high = interval.low, interval.high
    return Row(
        score=entry.score.__name__,
        label=record.label,
        subset=entry.subset,
        variant=entry.variant,
        better=record.better,
        value=value,
        low=low,
        high=high,
        n=len(entry.index),
        why=entry.why if np.isnan(value) else "",
        samples=samples,
    )


def _identity(predictions: Predictions) -> str:
    text = hashlib.sha256(str(predictions.n).encode())
    for name in ("item", "target", "shifted", "cluster"):
        array = predictions.get(name)
        if array is not None:
            text.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return text.hexdigest()[:16]


def _name_of(predictions: Predictions) -> str:
    return predictions.header.method or Path(predictions.source).name
