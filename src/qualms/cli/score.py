"""`qualms score`: scores of one or more predictions files, with intervals."""

import gc
import json
import shlex
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qualms.cli._complete import complete_scores
from qualms.cli._include import Include
from qualms.cli._outputs import check_ending, refuse_overwriting
from qualms.cli._raters import Background, Draws, Raters
from qualms.progress import showing

if TYPE_CHECKING:
    from qualms.evaluate import Scored


def score(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Predictions files or folders."),
    ],
    include: Include = None,  # noqa: ARG001 - its callback takes it
    task: Annotated[
        str | None, typer.Option(help="What the arrays are, where that is unclear.")
    ] = None,
    val: Annotated[
        list[Path] | None,
        typer.Option(help="Validation predictions of the same run, one per file."),
    ] = None,
    force_val: Annotated[
        bool,
        typer.Option("--force-val", help="Take --val although it is of another run."),
    ] = False,
    logits: Annotated[
        bool, typer.Option("--logits", help="The class scores are logits.")
    ] = False,
    renormalise: Annotated[
        bool,
        typer.Option("--renormalise", help="Divide class scores by their sums."),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print JSON (`qualms docs json`) and nothing else."
        ),
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write one offline page here.")
    ] = None,
    curves: Annotated[
        Path | None, typer.Option(help="Write every curve at full length as CSV here.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Side by side, with differences to the best."),
    ] = False,
    by_group: Annotated[
        bool, typer.Option("--by-group", help="Also each group on its own.")
    ] = False,
    subset: Annotated[
        str,
        typer.Option(
            metavar="in_domain|shifted|all",
            help="Items that everything is about; by default in-domain ones with the"
            " shifted ones beside them, or all.",
        ),
    ] = "",
    uncertainty: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What the verdict judges: the <name> of an array, or entropy; by"
            " default the header's, else the file's first, else entropy.",
        ),
    ] = "",
    chosen: Annotated[
        list[str] | None,
        typer.Option(
            "--scores",
            metavar="NAME,...",
            help="Only these scores, e.g. ece,aurc; see `qualms list scores`.",
            autocompletion=complete_scores,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Print every score, and the curves.")
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option(help="What to call the files in tables, once for each in order."),
    ] = None,
    resamples: Annotated[
        int,
        typer.Option(
            min=0,
            help="Bootstrap replicates of scores of your own that declare no influence;"
            " no other score needs any.",
        ),
    ] = 1000,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    alpha: Annotated[
        list[float] | None,
        typer.Option(
            help="Intervals aim at coverage 1 - alpha, where the header states no"
            " alpha; 0.1 by default. May be repeated."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Two classes: also sensitivity, PPV ... where P(y=1) is at least 0.3,"
            " or where --val says: sensitivity=0.9, specificity=0.8, youden, cost=5,"
            " promised-sensitivity=0.9. May be repeated. See `qualms docs "
            "operating_points`.",
        ),
    ] = None,
    meets: Annotated[
        str,
        typer.Option(
            metavar="sensitivity=0.85,specificity=0.8",
            help="Target that every threshold, or the ROC curve, is compared with.",
        ),
    ] = "",
    prevalence: Annotated[
        list[float] | None,
        typer.Option(help="PPV and NPV where this share is positive, too."),
    ] = None,
    per_cluster: Annotated[
        bool,
        typer.Option(
            "--per-cluster", help="Thresholds also per cluster, by its worst item."
        ),
    ] = False,
    positive: Annotated[
        list[int] | None,
        typer.Option(help="Number of a class that is positive; 1 of two classes."),
    ] = None,
    ordinal: Annotated[
        bool, typer.Option("--ordinal", help="Classes are grades: quadratic kappa.")
    ] = False,
    confidence: Annotated[float, typer.Option(help="Of promised thresholds.")] = 0.9,
    gallery: Annotated[
        Path | None,
        typer.Option(help="Embeddings: seek neighbours among the items of this file."),
    ] = None,
    nearest: Annotated[
        list[int] | None,
        typer.Option(help="Embeddings: also R@k for this k; may be repeated."),
    ] = None,
    map_at_r: Annotated[
        bool, typer.Option("--map-at-r", help="Embeddings: also MAP@R.")
    ] = False,
    raters: Raters = None,
    draws: Draws = None,
    background: Background = None,
) -> None:
    """Score predictions files, with intervals.

    Prints a verdict in words (`qualms docs verdict`) and the ten scores that matter
    most for the task; --all prints every score and the curves. Several files stand side
    by side, and those that cannot be told apart from the best are marked. The task is
    read off the arrays.
    """
    gc.disable()
    from qualms.evaluate import PointOptions, ScoreOptions, score_files, with_scores
    from qualms.evaluate.operating_points import targets
    from qualms.report import print_results, to_json, write_curves

    # Modules stay; searching them for garbage takes a fifth of a short command.
    gc.freeze()
    gc.enable()
    _check_writable(html, curves, [*files, *(val or ()), gallery])
    more: dict[str, Any] = {
        "resamples": resamples,
        "level": level,
        "seed": seed,
        "nearest": tuple(nearest or ()),
        "map_at_r": map_at_r,
        "ordinal": ordinal,
        "points": PointOptions(
            thresholds=tuple(threshold or ()),
            meets=targets(meets),
            prevalences=tuple(prevalence or ()),
            per_cluster=per_cluster,
            positive=tuple(positive or ()),
            confidence=confidence,
        ),
        "curve_points": _curve_points(every=every or curves is not None),
    }
    options = ScoreOptions(
        by_group=by_group, subset=subset, uncertainty=uncertainty, **more
    )
    scores_of = partial(
        score_files,
        files,
        val=val,
        names=name,
        task=task,
        logits=logits,
        renormalise=renormalise,
        alpha=alpha or None,
        raters=raters or (),
        draws=draws,
        background=background,
    )
    with showing("scoring") as advance:
        scored = scores_of(
            options=replace(options, progress=advance),
            force_val=force_val,
            gallery=gallery,
        )
    if chosen:
        scored = with_scores(scored, ",".join(chosen).split(","))
    written: list[Path] = []
    try:
        if curves is not None:
            write_curves(scored.results, curves)
            written.append(curves)
        if html is not None:
            with showing("writing the page"):
                _write_page(scored, html, files, gallery)
            written.insert(0, html)
    finally:  # scores are printed even if the disk is full
        if as_json:
            typer.echo(json.dumps(to_json(scored)))
        else:
            print_results(
                scored,
                brief=not (every or chosen),
                chosen=bool(chosen),
                differences=compare,
                written=written,
            )


def _write_page(
    scored: "Scored", html: Path, files: list[Path], gallery: Path | None
) -> None:
    from qualms.launch import data_root
    from qualms.report.site import write_page

    write_page(
        scored,
        html,
        command=_command(),
        sources=files,
        data=data_root(),
        gallery=gallery,
    )


def _curve_points(*, every: bool) -> int | None:
    """Return how many points of a curve are needed: JSON and pages hold no more."""
    from qualms.evaluate.drawings import CURVE_POINTS

    return None if every else CURVE_POINTS


def _check_writable(
    html: Path | None, curves: Path | None, inputs: list[Path | None]
) -> None:
    """Raise before the work if a file cannot be written."""
    from qualms.report import check_room

    refuse_overwriting([html, curves], inputs)
    check_ending("--html", html, ".html", ".htm")
    check_ending("--curves", curves, ".csv")
    if html is not None:
        from qualms.report.site import PAGE_BYTES

        check_room(html, PAGE_BYTES)
    if curves is not None:
        check_room(curves, 1_000_000)


def _command() -> str:
    return shlex.join(["qualms", *sys.argv[1:]])
