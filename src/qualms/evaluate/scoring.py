"""From predictions files to results: check, judge by task, resample, tabulate."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate._compare import Comparison, compare
from qualms.evaluate._declared_scores import with_declared_scores
from qualms.evaluate._estimates import Estimated, estimated
from qualms.evaluate._results import Results
from qualms.evaluate._validation import check_validation
from qualms.evaluate._verdict import verdict_of
from qualms.evaluate.entry import Judgement, ScoreOptions
from qualms.evaluate.rows import ScoreRow
from qualms.evaluate.segmented import measuring
from qualms.predictions import Frame, Header, Predictions, build, read
from qualms.scores import about, shared_sorts
from qualms.shelf import find

Source = str | Path | Mapping[str, Any] | Frame | Predictions
TaskJudge = Callable[[Predictions, Predictions | None, ScoreOptions], Judgement]

# Fourth powers and sums of larger numbers would no longer be finite.
LARGEST = 1e70
LONGEST = 40
"""Characters that tell runs of the same name apart; else their files do."""
NO_GROUPS = "scores by group need an array 'group', and there is none"
PAIRED = ("item", "target", "cluster", "shifted", "known")
"""Arrays by which two files are found to hold the same items."""


def score(  # noqa: PLR0913 - the options of the command
    source: Source,
    *,
    val: Source | None = None,
    options: ScoreOptions | None = None,
    task: str | None = None,
    logits: bool = False,
    name: str | None = None,
    header: Header | Mapping[str, Any] | None = None,
    force_val: bool = False,
    gallery: Source | None = None,
    resamples: int | None = None,
    level: float | None = None,
    seed: int | None = None,
    alpha: float | None = None,
    by_group: bool | None = None,
) -> Results:
    """Every score of a predictions file, with intervals: the twin of `qualms score`.

    Args:
        source: A path, a mapping of arrays, a frame of pandas or polars with the
            columns of a .csv file, or predictions already read.
        val: Validation predictions of the same run; recalibration, conformal offsets,
            selection thresholds and Platt scaling are fitted on them.
        options: Resamples, level, seed, groups; the defaults of `ScoreOptions`.
        task: Says what the arrays are where that is ambiguous.
        logits: The class scores are logits; never guessed.
        name: What to call the file in tables.
        header: What a mapping of arrays is of, as in `qualms.predictions.build`.
        force_val: Take `val` although headers say that it is of another run.
        gallery: Embeddings among which neighbours are sought, instead of the file's.
        resamples: Bootstrap replicates of your own scores that declare no influence.
        level: That of the intervals.
        seed: Of everything that is drawn.
        alpha: Intervals and conformal sets aim at a coverage of 1 - alpha.
        by_group: Score every group, too.

    The last five take the place of what `options` says.
    """
    given = {
        "resamples": resamples,
        "level": level,
        "seed": seed,
        "alpha": alpha,
        "by_group": by_group,
    }
    stated: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    asked = _Asked(task=task, logits=logits)
    predictions = asked.take(source, header)
    return _scored(
        predictions,
        None if val is None else asked.take(val),
        asked.with_gallery(replace(options or ScoreOptions(), **stated), gallery),
        name=name,
        check=_PairCheck(force=force_val),
    )


class _PairCheck(NamedTuple):
    """How validation predictions are checked."""

    force: bool = False
    shared: bool = False
    """Whether other files have the same ones."""


def _scored(
    predictions: Predictions,
    val: Predictions | None,
    options: ScoreOptions,
    *,
    name: str | None,
    check: _PairCheck,
) -> Results:
    notes = () if val is None else check_validation(predictions, val, **check._asdict())
    if options.by_group and predictions.get("group") is None:
        notes = (*notes, NO_GROUPS)
    with shared_sorts(), measuring(options) as options:
        judgement = judge_file(predictions, val, options)
        found = estimated([judgement], options)
    results = Results(
        name=name or _name_of(predictions),
        header=predictions.header,
        task=predictions.task,
        n=predictions.n,
        draws=predictions.draws,
        rows=tuple(map(_row, found)),
        curves=judgement.curves,
        histograms=judgement.histograms,
        notes=(*predictions.notes, *notes, *judgement.notes, *judgement.warnings),
        level=options.level,
        resamples=options.resamples,
        seed=options.seed,
        items=_without_predictions(predictions, judgement.drawn),
        design=judgement.design,
    )
    return replace(results, verdict=verdict_of(results))


class _Asked(NamedTuple):
    """How files are read."""

    task: str | None
    logits: bool

    def take(
        self, source: Source, header: Header | Mapping[str, Any] | None = None
    ) -> Predictions:
        """The predictions of `source`, which can be scored."""
        if header is not None and isinstance(source, (str, Path, Predictions)):
            raise ValueError(
                "header= is for a mapping of arrays; a file, and predictions already "
                "read, have their own"
            )
        taken = taken_from(source, header=header, task=self.task, logits=self.logits)
        taken.require_target()
        refuse_huge(taken)
        return taken

    def with_gallery(
        self, options: ScoreOptions | None, gallery: Source | None
    ) -> ScoreOptions:
        """The options, with the items among which neighbours are sought."""
        given = options or ScoreOptions()
        return given if gallery is None else replace(given, gallery=self.take(gallery))


def taken_from(
    source: Source,
    *,
    header: Header | Mapping[str, Any] | None = None,
    task: str | None = None,
    logits: bool = False,
) -> Predictions:
    """The predictions of `source`; those already read are taken as they are."""
    if isinstance(source, Predictions):
        return source
    if isinstance(source, (str, Path)):
        return read(source, task=task, logits=logits)
    return build(source, header=header, task=task, logits=logits)


def refuse_huge(predictions: Predictions) -> None:
    """Raise if a number is too large to compute with."""
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
    if predictions.task != "embedding" and (options.gallery or options.nearest):
        raise ValueError(
            f"{predictions.source} holds {predictions.task}; a gallery and the nearest "
            "items are for embeddings, leave them out"
        )
    judge: TaskJudge = find("evaluate.tasks", predictions.task)
    return with_declared_scores(judge(predictions, val, options), predictions, options)


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


def _without_predictions(
    predictions: Predictions, drawn: NDArray[np.float64] | None
) -> Predictions:
    """What tells the items of files apart, and nothing that is large."""
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
    """Results of one or more files, and how they compare."""

    results: tuple[Results, ...]
    comparison: Comparison | None = None

    def _repr_html_(self) -> str:
        compared = "" if self.comparison is None else self.comparison._repr_html_()
        return "".join(each._repr_html_() for each in self.results) + compared


def score_files(  # noqa: PLR0913 - the options of the command
    files: Sequence[Path],
    *,
    val: Sequence[Path] | None = None,
    options: ScoreOptions | None = None,
    task: str | None = None,
    logits: bool = False,
    force_val: bool = False,
    gallery: Path | None = None,
    names: Sequence[str] | None = None,
) -> Scored:
    """Score each file; `val` is one validation file for each.

    One `val` may serve several files that say they are of one run; `force_val` insists
    on validation files of other runs, too. `gallery` holds the embeddings among which
    those of all files seek their neighbours. `names` are those of the files in tables:
    by default method and seed where a file states both, else the file's own name.
    """
    asked = _Asked(task=task, logits=logits)
    options = asked.with_gallery(options, gallery)
    vals = _one_each(val or (), len(files))
    if names and len(names) != len(files):
        raise ValueError(
            f"--name must be given once per file, in the same order: {len(files)} "
            f"files, got {len(names)} names"
        )
    check = _PairCheck(force=force_val, shared=len(val or ()) == 1 < len(files))
    with measuring(options) as shared:
        results = tuple(
            _scored(
                asked.take(file),
                None if known is None else asked.take(known),
                shared,
                name="",
                check=check,
            )
            for file, known in zip(files, vals, strict=True)
        )
    called = names or [
        _run_name(r.header) or f.stem for r, f in zip(results, files, strict=True)
    ]
    told = _told_apart(called, results, files)
    results = tuple(replace(r, name=n) for r, n in zip(results, told, strict=True))
    comparison = compare(results) if len(results) > 1 else None
    return Scored(results=results, comparison=comparison)


def _one_each(val: Sequence[Path], files: int) -> Sequence[Path | None]:
    if len(val) == 0:
        return [None] * files
    if len(val) == 1:
        return [val[0]] * files
    if len(val) != files:
        raise ValueError(
            f"--val must be given once per file, in the same order: {files} files, "
            f"got {len(val)} validation files"
        )
    return val


def _run_name(header: Header) -> str:
    """Method and seed of a run; '' for files that do not say so."""
    if not header.method or header.seed is None:
        return ""
    return f"{header.method} seed {header.seed}"


def _told_apart(
    names: Sequence[str], results: Sequence[Results], files: Sequence[Path]
) -> list[str]:
    """`names`, with what tells files apart added to those that are the same."""
    told = list(names)
    for name in [n for n, count in Counter(names).items() if count > 1]:
        places = [place for place, own in enumerate(names) if own == name]
        headers = [results[place].header for place in places]
        more = _differing(headers) or _path_names([files[place] for place in places])
        for place, own in zip(places, more, strict=True):
            # A path that ends in the name says it already.
            told[place] = own if own.endswith(f"/{name}") else f"{name} ({own})"
    return told


def _differing(headers: Sequence[Header]) -> list[str]:
    """What of the headers differs, in words; [] unless few tell all of them apart."""
    stated: list[dict[str, Any]] = [
        {
            "": header.method,
            "seed ": header.seed,
            "dataset ": header.dataset,
            "split ": header.split,
            **{f"{name}=": value for name, value in header.options.items()},
        }
        for header in headers
    ]
    keys = dict.fromkeys(key for each in stated for key in each)
    unlike = [k for k in keys if len({str(each.get(k)) for each in stated}) > 1]
    known = [{k: each[k] for k in unlike if each.get(k) is not None} for each in stated]
    words = [", ".join(f"{k}{value}" for k, value in each.items()) for each in known]
    short = all(0 < len(each) <= LONGEST for each in words)
    return words if short and len(set(words)) == len(words) else []


def _path_names(files: Sequence[Path]) -> list[str]:
    """As much of each path as tells the files apart, else their number."""
    for depth in range(1, 12):
        names = ["/".join(file.with_suffix("").parts[-depth:]) for file in files]
        if len(set(names)) == len(names):
            return names
    return [str(number) for number, _ in enumerate(files, 1)]
