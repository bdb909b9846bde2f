"""From predictions files to results: check, judge by task, resample, tabulate."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qualms.evaluate.compare import Comparison, compare
from qualms.evaluate.entry import Judgement, ScoreOptions
from qualms.evaluate.kernel import Estimated, estimated
from qualms.evaluate.results import Results, ScoreRow
from qualms.predictions import Predictions, build, read
from qualms.scores import about
from qualms.shelf import find

Source = str | Path | Mapping[str, Any] | Predictions
TaskJudge = Callable[[Predictions, Predictions | None, ScoreOptions], Judgement]

# Squares and sums of larger numbers would no longer be finite.
LARGEST = 1e100


def score(
    source: Source,
    *,
    val: Source | None = None,
    options: ScoreOptions | None = None,
    task: str | None = None,
    logits: bool = False,
    name: str | None = None,
) -> Results:
    """Every score of a predictions file, with intervals: the twin of `qualms score`.

    Args:
        source: A path, a mapping of arrays, or predictions already read.
        val: Validation predictions of the same run; recalibration, conformal offsets,
            selection thresholds and Platt scaling are fitted on them.
        options: Resamples, level, seed, groups; the defaults of `ScoreOptions`.
        task: Says what the arrays are where that is ambiguous.
        logits: The class scores are logits; never guessed.
        name: What to call the file in tables.
    """
    options = options or ScoreOptions()
    predictions = _take(source, task=task, logits=logits)
    validation = None if val is None else _take(val, task=task, logits=logits)
    if validation is not None and validation.task != predictions.task:
        raise ValueError(
            f"val must hold {predictions.task} predictions like {predictions.source}, "
            f"got {validation.task} in {validation.source}"
        )
    judgement = judge_file(predictions, validation, options)
    return Results(
        name=name or _name_of(predictions),
        header=predictions.header,
        task=predictions.task,
        n=predictions.n,
        draws=predictions.draws,
        rows=tuple(_row(found) for found in estimated([judgement], options)),
        curves=judgement.curves,
        histograms=judgement.histograms,
        notes=(*predictions.notes, *judgement.notes),
        level=options.level,
        resamples=options.resamples,
        seed=options.seed,
        identity=_identity(predictions),
        design=judgement.design,
    )


def _take(source: Source, *, task: str | None, logits: bool) -> Predictions:
    if isinstance(source, Predictions):
        taken = source
    elif isinstance(source, (str, Path)):
        taken = read(source, task=task, logits=logits)
    else:
        taken = build(source, task=task, logits=logits)
    taken.require_target()
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


def judge_file(
    predictions: Predictions, val: Predictions | None, options: ScoreOptions
) -> Judgement:
    """The judgement of one file by its task."""
    judge: TaskJudge = find("evaluate.tasks", predictions.task)
    return judge(predictions, val, options)


def _row(found: Estimated) -> ScoreRow:
    entry = found.entry
    record = about(entry.score)
    return ScoreRow(
        score=entry.score.__name__,
        label=record.label,
        subset=entry.subset,
        settings=entry.settings,
        better=record.better,
        value=found.values[0] if found.values else float("nan"),
        low=found.interval.low,
        high=found.interval.high,
        n=len(entry.index) if entry.items is None else entry.items,
        why=found.why,
        method=found.interval.method,
        no_interval=found.interval.reason,
        entry=entry,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Results of one or more files, and how they compare."""

    results: tuple[Results, ...]
    comparison: Comparison | None = None


def score_files(
    files: Sequence[Path],
    *,
    val: Sequence[Path] | None = None,
    options: ScoreOptions | None = None,
    task: str | None = None,
    logits: bool = False,
) -> Scored:
    """Score each file; `val` is one validation file for all, or one for each."""
    vals = _one_each(val or (), len(files))
    names = _names(files)
    results = tuple(
        score(file, val=known, options=options, task=task, logits=logits, name=name)
        for file, known, name in zip(files, vals, names, strict=True)
    )
    comparison = compare(results) if len(results) > 1 else None
    return Scored(results=results, comparison=comparison)


def _one_each(val: Sequence[Path], files: int) -> Sequence[Path | None]:
    if len(val) == 0:
        return [None] * files
    if len(val) == 1:
        return [val[0]] * files
    if len(val) != files:
        raise ValueError(
            f"--val must be given once, or once per file: {files} files, got {len(val)}"
        )
    return val


def _names(files: Sequence[Path]) -> list[str]:
    """Stems where they differ, else as much of the path as tells the files apart."""
    for depth in range(1, 12):
        names = ["/".join(file.with_suffix("").parts[-depth:]) for file in files]
        if len(set(names)) == len(names):
            return names
    return [f"{file} ({i + 1})" for i, file in enumerate(files)]
