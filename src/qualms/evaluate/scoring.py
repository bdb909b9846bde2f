"""Scores of predictions files: read, check, judge by task, estimate intervals."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate._compare import Comparison, compare
from qualms.evaluate._dead_uncertainty import name_dead
from qualms.evaluate._declared_scores import with_declared_scores
from qualms.evaluate._estimators import Estimator, estimator_arrays
from qualms.evaluate._interval_kinds import with_shared_kind
from qualms.evaluate._repeated import repeated_rows
from qualms.evaluate._results import Results
from qualms.evaluate._validation import check_validation
from qualms.evaluate.best_aggregation import best_aggregations
from qualms.evaluate.chosen_uncertainty import with_chosen_first
from qualms.evaluate.entry import Judgement, ScoreOptions
from qualms.evaluate.estimates import Estimated, estimated
from qualms.evaluate.group_spreads import group_spreads
from qualms.evaluate.judging import judging_of
from qualms.evaluate.operating_points import PointOptions
from qualms.evaluate.rows import ScoreRow
from qualms.evaluate.segmented import measuring
from qualms.evaluate.sources import Source, SourceReader
from qualms.evaluate.subsets import (
    group_arrays,
    require_subset,
    shown_subsets,
    ungrouped_notes,
)
from qualms.evaluate.verdict import verdict_of
from qualms.predictions import Header, Paths, Predictions, in_order_of
from qualms.scores import about, shared_sorts
from qualms.shelf import traits
from qualms.wording import in_one_line, plural

ScoreSource = Source | Estimator
"""Source of predictions for `score`: predictions, or an estimator."""

LONGEST = 40
"""Longest text that distinguishes runs of one name; beyond, their paths do."""
NO_GROUPS = "scores by group need an array 'group', and there is none"
PAIRED = ("item", "target", "cluster", "shifted", "known")
"""Arrays that show whether two files hold the same items."""


@in_one_line
def score(  # noqa: PLR0913 - the options of the command
    source: ScoreSource,
    X: Any = None,  # noqa: N803 - as everybody calls it
    y: Any = None,
    *,
    val: Source | None = None,
    options: ScoreOptions | None = None,
    task: str | None = None,
    logits: bool = False,
    renormalise: bool = False,
    name: str | None = None,
    header: Header | Mapping[str, Any] | None = None,
    force_val: bool = False,
    gallery: Source | None = None,
    resamples: int | None = None,
    level: float | None = None,
    seed: int | None = None,
    alpha: float | Sequence[float] | None = None,
    by_group: bool | None = None,
    subset: str | None = None,
    uncertainty: str | None = None,
    points: PointOptions | None = None,
    ordinal: bool | None = None,
    raters: Paths = (),
    draws: str | None = None,
    background: str | int | None = None,
) -> Results:
    """Return every score of a predictions file, with intervals, as `qualms score` does.

    Args:
        source: A path, a mapping of arrays, a frame of pandas or polars with the
            columns of a .csv file, or predictions already read. Or an estimator like
            those of scikit-learn, which predicts `X`.
        X: Inputs of an estimator, as its `predict` takes them.
        y: Targets of an estimator, as it was fitted on.
        val: Validation predictions of the same run; recalibration, conformal offsets,
            selection thresholds and Platt scaling are fitted on them.
        options: Resamples, level, seed, groups; by default those of `ScoreOptions`.
        task: The task of the arrays, if that is ambiguous.
        logits: True if the class scores are logits; never guessed.
        renormalise: Divide the class probabilities by their sums, e.g. percentages.
        name: Name of the file in tables.
        header: Header of a mapping of arrays, as in `qualms.predictions.build`.
        force_val: Use `val` even if headers show that it is of another run.
        gallery: Embeddings among which neighbours are found, instead of the file's.
        resamples: Bootstrap replicates of your own scores that declare no influence.
        level: Level of the intervals.
        seed: Seed of everything random.
        alpha: Intervals and conformal sets aim at a coverage of 1 - alpha, where the
            header states no alpha. Several: the rows of all but the first have the
            setting `alpha`.
        by_group: Score every group, too.
        subset: Items that the verdict, tables and pictures are about: in_domain,
            shifted, or all (both together). By default in-domain ones with the shifted
            ones beside them, where the file marks some of its items as shifted.
        uncertainty: Name of the uncertainty that the verdict and the main scores judge.
            By default the one that the header names, else the first array
            `uncertainty/<name>` of the file, else the entropy.
        points: Thresholds at which items of two classes, or of classes that are
            positive and others, are judged (docs/operating_points.md).
        ordinal: Classes are grades: also the quadratic kappa.
        raters: Folders with the label maps of raters, for a folder of predictions that
            another program wrote.
        draws: What several draws vary, if the header does not say: "models" (ensembles,
            dropout, test-time augmentation) or "labels" (networks that draw label maps,
            such as SSN, probabilistic U-Nets and PHiSeg). Aleatoric and epistemic
            measures depend on it.
        background: Segmentation: the name or the number of the class that is
            background, or "none", if the header does not say.

    `resamples` and the eight after it override `options`.
    """
    alpha, further = _first_and_further(alpha)
    arguments = {
        "further_alphas": further or None,
        "resamples": resamples,
        "level": level,
        "seed": seed,
        "alpha": alpha,
        "by_group": by_group,
        "subset": subset,
        "uncertainty": uncertainty,
        "points": points,
        "ordinal": ordinal,
    }
    changes: dict[str, Any] = {k: v for k, v in arguments.items() if v is not None}
    reader = SourceReader(task, logits, renormalise, alpha, raters, draws, background)
    if isinstance(source, Estimator):
        source, header = estimator_arrays(source, X, y)
    elif X is not None or y is not None:
        raise ValueError(
            "X and y belong to an estimator with `predict`, got"
            f" {type(source).__name__}; write qualms.score({{'target': ..., 'prob':"
            " ...}) for arrays, qualms.predict for a torch module, or leave them out"
        )
    predictions = reader.read(source, header)
    return _scored(
        predictions,
        None if val is None else reader.read(val),
        reader.with_gallery(replace(options or ScoreOptions(), **changes), gallery),
        name=name,
        force_val=force_val,
    )


def _first_and_further(
    alpha: float | Sequence[float] | None,
) -> tuple[float | None, tuple[float, ...]]:
    if alpha is None or not isinstance(alpha, Sequence):
        return alpha, ()
    if not alpha:
        raise ValueError("alpha must hold at least one number, got none")
    return alpha[0], tuple(alpha[1:])


def _scored(
    predictions: Predictions,
    val: Predictions | None,
    options: ScoreOptions,
    *,
    name: str | None,
    force_val: bool,
    shared_val: bool = False,
) -> Results:
    require_subset(predictions, options.subset)
    notes = repeated_rows(predictions)
    if val is not None:
        notes += check_validation(predictions, val, force=force_val, shared=shared_val)
    if options.by_group:
        left_out = ungrouped_notes(predictions)
        bare = not left_out and not group_arrays(predictions)
        notes = (*notes, *left_out, *([NO_GROUPS] if bare else []))
    with shared_sorts(), measuring(options) as options:
        judgement, chosen = with_chosen_first(
            judge_file(predictions, val, options), predictions, options
        )
        estimates, dead = name_dead(
            estimated([judgement], options),
            judgement.design,
            level=options.level,
            wanted=options.subset,
        )
    rows = tuple(map(_row, estimates))
    shown = shown_subsets({row.subset for row in rows}, wanted=options.subset)
    aggregations: Iterable[str] = ()
    if "pixels" in traits(predictions.task):
        aggregations = best_aggregations(rows, judgement.design, shown, options)
    results = Results(
        name=name or _name_of(predictions),
        header=predictions.header,
        task=predictions.task,
        n=predictions.n,
        draws=predictions.draws,
        rows=rows,
        curves=judgement.curves,
        histograms=judgement.histograms,
        points=judgement.points,
        groups=group_spreads(rows, judgement.design, options.level),
        notes=(
            *judgement.warnings,
            *dead,
            *predictions.notes,
            *notes,
            *judgement.notes,
        ),
        level=options.level,
        resamples=options.resamples,
        seed=options.seed,
        items=_without_predictions(predictions, judgement.drawn),
        design=judgement.design,
        uncertainty=chosen,
        aggregations=tuple(aggregations),
        subsets=shown,
    )
    return replace(results, verdict=verdict_of(results))


def judge_file(
    predictions: Predictions, val: Predictions | None, options: ScoreOptions
) -> Judgement:
    """Judge a file by its task."""
    kind = traits(predictions.task)
    of_neighbours = options.gallery or options.nearest or options.map_at_r
    if "vectors" not in kind and of_neighbours:
        raise ValueError(
            f"{predictions.source} holds {predictions.task}; a gallery, the nearest "
            "items and MAP@R are for embeddings, leave them out"
        )
    of_classes = options.points.asked or options.ordinal
    if not {"items", "probabilities"} <= kind and of_classes:
        raise ValueError(
            f"{predictions.source} holds {predictions.task}; thresholds at which items "
            "are called positive, and grades, are for classification, leave them out"
        )
    judge = judging_of(predictions.task).judge
    return with_declared_scores(judge(predictions, val, options), predictions, options)


def _row(estimate: Estimated) -> ScoreRow:
    entry = estimate.entry
    record = about(entry.score)
    return ScoreRow(
        score=entry.score.__name__,
        label=entry.label,
        subset=entry.subset,
        settings=entry.settings,
        better=record.better,
        value=estimate.values[0] if estimate.values else float("nan"),
        low=estimate.interval.low,
        high=estimate.interval.high,
        n=len(entry.index) if entry.items is None else entry.items,
        why=estimate.why,
        method=estimate.interval.method,
        no_interval=estimate.interval.reason,
        entry=entry,
    )


def _without_predictions(
    predictions: Predictions, drawn: NDArray[np.float64] | None
) -> Predictions:
    """Return the arrays that identify items, without any large ones."""
    arrays = {
        name: array
        for name, array in predictions.arrays.items()
        if name in PAIRED and array.ndim == 1
    }
    if drawn is not None:
        arrays["target"] = drawn.astype(np.int64)
    return replace(predictions, arrays=arrays, maps=None)


def _name_of(predictions: Predictions) -> str:
    header = predictions.header
    return _run_name(header) or header.method or Path(predictions.source).name


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Results of one or more files, and their comparison."""

    results: tuple[Results, ...]
    comparison: Comparison | None = None

    def _repr_html_(self) -> str:
        compared = "" if self.comparison is None else self.comparison._repr_html_()
        return "".join(each._repr_html_() for each in self.results) + compared


@in_one_line
def score_files(  # noqa: PLR0913 - the options of the command
    files: str | Path | Sequence[str | Path],
    *,
    val: str | Path | Sequence[str | Path] | None = None,
    options: ScoreOptions | None = None,
    task: str | None = None,
    logits: bool = False,
    renormalise: bool = False,
    force_val: bool = False,
    gallery: str | Path | None = None,
    names: str | Sequence[str] | None = None,
    alpha: float | Sequence[float] | None = None,
    raters: Paths = (),
    draws: str | None = None,
    background: str | int | None = None,
) -> Scored:
    """Score several files and compare them.

    Args:
        files: Predictions files or folders, or a single one.
        val: A validation file for each, or one for all if they are of the same run.
        options: Resamples, level, seed, groups; by default those of `ScoreOptions`.
        task: The task of the arrays, where that is ambiguous.
        logits: The class scores are logits; never guessed.
        renormalise: Divide the class probabilities by their sums, e.g. percentages.
        force_val: Use `val` even if headers show that it is of another run.
        gallery: Embeddings among which neighbours are found, instead of each file's.
        names: Names of the files in tables; by default method and seed where the
            header has both, else the file's name.
        alpha: Intervals and conformal sets aim at a coverage of 1 - alpha, where the
            header states no alpha; it overrides that of `options`. Several: the rows
            of all but the first have the setting `alpha`.
        raters: Folders with the label maps of raters, for folders of predictions that
            another program wrote.
        draws: What several draws vary, "models" or "labels", where a header states
            nothing.
        background: Segmentation: the name or the number of the class that is
            background, or "none", where a header states nothing.
    """
    alpha, further = _first_and_further(alpha)
    reader = SourceReader(task, logits, renormalise, alpha, raters, draws, background)
    if alpha is not None:
        options = replace(
            options or ScoreOptions(), alpha=alpha, further_alphas=further
        )
    options = reader.with_gallery(options, gallery)
    paths, val_paths = _paths("files", files), _paths("val", val or ())
    vals = _one_each(val_paths, len(paths))
    names = [names] if isinstance(names, str) else names
    if not paths:
        raise ValueError("files must name at least one predictions file, got none")
    if names and len(names) != len(paths):
        raise ValueError(
            f"--name must be given once per file, in the same order: {len(paths)} "
            f"{plural(len(paths), 'file')}, got {len(names)} "
            f"{plural(len(names), 'name')}"
        )
    in_one_order, vals_in_one_order = _OneOrder(), _OneOrder()
    with measuring(options) as shared:
        results = tuple(
            _scored(
                in_one_order(reader.read(file)),
                None if val_file is None else vals_in_one_order(reader.read(val_file)),
                shared,
                name="",
                force_val=force_val,
                shared_val=len(val_paths) == 1 < len(paths),
            )
            for file, val_file in zip(paths, vals, strict=True)
        )
    chosen = names or [
        _run_name(r.header) or f.stem for r, f in zip(results, paths, strict=True)
    ]
    unique = _unique_names(chosen, results, paths)
    results = with_shared_kind(
        [replace(r, name=n) for r, n in zip(results, unique, strict=True)]
    )
    comparison = compare(results) if len(results) > 1 else None
    return Scored(results=results, comparison=comparison)


def _paths(name: str, files: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the paths of one file or several; raise if an entry is no path."""
    several = [files] if isinstance(files, (str, Path)) else list(files)
    wrong = next((f for f in several if not isinstance(f, (str, PathLike))), None)
    if wrong is not None:
        raise TypeError(
            f"{name} must be paths of predictions files, got {type(wrong).__name__};"
            " score what is in memory with qualms.score, and compare the results with"
            " qualms.compare"
        )
    return [Path(file) for file in several]


class _OneOrder:
    """Puts items with equal names in the order of the first file, to pair them."""

    def __init__(self) -> None:
        self._first: Predictions | None = None

    def __call__(self, predictions: Predictions) -> Predictions:
        """Return predictions in the order of the first ones with names."""
        if predictions.get("item") is None:
            return predictions
        if self._first is None:
            self._first = replace(
                predictions, arrays={"item": predictions.arrays["item"]}, maps=None
            )
            return predictions
        first = self._first
        return in_order_of(predictions, first.arrays["item"], of=first.source)


def _one_each(val: Sequence[Path], files: int) -> Sequence[Path | None]:
    if len(val) == 0:
        return [None] * files
    if len(val) == 1:
        return [val[0]] * files
    if len(val) != files:
        raise ValueError(
            "--val must be given once per file, in the same order: "
            f"{files} {plural(files, 'file')}, got {len(val)}"
        )
    return val


def _run_name(header: Header) -> str:
    """Return method and seed of a run; '' unless the header has both."""
    if not header.method or header.seed is None:
        return ""
    return f"{header.method} seed {header.seed}"


def _unique_names(
    names: Sequence[str], results: Sequence[Results], files: Sequence[Path]
) -> list[str]:
    """Return `names`; equal ones are followed by the differences of the files."""
    unique = list(names)
    for name in [n for n, count in Counter(names).items() if count > 1]:
        equal = [number for number, each in enumerate(names) if each == name]
        headers = [results[number].header for number in equal]
        details = _differences(headers) or _path_names([files[i] for i in equal])
        for number, text in zip(equal, details, strict=True):
            # A path that ends in the name needs no name before it.
            unique[number] = text if text.endswith(f"/{name}") else f"{name} ({text})"
    return unique


def _differences(headers: Sequence[Header]) -> list[str]:
    """Return the differences of the headers; [] unless short texts distinguish all."""
    fields: list[dict[str, Any]] = [
        {
            "": header.method,
            "seed ": header.seed,
            "dataset ": header.dataset,
            "split ": header.split,
            **{f"{name}=": value for name, value in header.options.items()},
        }
        for header in headers
    ]
    keys = dict.fromkeys(key for each in fields for key in each)
    unlike = [k for k in keys if len({str(each.get(k)) for each in fields}) > 1]
    parts = [{k: each[k] for k in unlike if each.get(k) is not None} for each in fields]
    words = [", ".join(f"{k}{value}" for k, value in each.items()) for each in parts]
    short = all(0 < len(each) <= LONGEST for each in words)
    return words if short and len(set(words)) == len(words) else []


def _path_names(files: Sequence[Path]) -> list[str]:
    """Return the shortest ends of the paths that differ, else numbers."""
    for depth in range(1, 12):
        names = ["/".join(file.with_suffix("").parts[-depth:]) for file in files]
        if len(set(names)) == len(names):
            return names
    return [str(number) for number, _ in enumerate(files, 1)]
