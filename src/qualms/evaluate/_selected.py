"""Results with some of their rows: the main scores, or those that a user names."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from qualms import scores
from qualms.evaluate.main_scores import (
    OTHER_NAMES,
    Kind,
    kind_of,
    main_kinds,
    score_hint,
)
from qualms.evaluate.rows import RowKey
from qualms.evaluate.scoring import Scored


def with_main_scores(scored: Scored) -> Scored:
    """Return `scored` with only the rows of the main scores, in their order."""
    kinds = [
        kind
        for result in scored.results
        for kind in main_kinds(result.task, result.rows, result.uncertainty)
    ]
    # Files may have uncertainties of different names; their rows stand together.
    order = list(dict.fromkeys(score for score, _ in kinds))
    unique = dict.fromkeys(kinds)
    return _with_kinds(scored, sorted(unique, key=lambda kind: order.index(kind[0])))


def with_scores(scored: Scored, score_names: Iterable[str]) -> Scored:
    """Return `scored` with only the rows of these scores, at all settings.

    Raises:
        LookupError: If no file has such a score.
    """
    rows = [row for result in scored.results for row in result.rows]
    available = dict.fromkeys(row.score for row in rows)
    by_label = {row.label.lower(): row.score for row in rows}
    named = [name for name in score_names if name.strip()]
    if not named:
        raise ValueError("scores must name at least one, such as ece,aurc; got none")
    chosen = []
    for name in named:
        plain = name.strip().lower()
        score = plain if plain in available else by_label.get(plain)
        if score is None:
            others = [*OTHER_NAMES.get(plain, ()), plain]
            absent = next((score for score in others if score in scores.__all__), "")
            known = plain in scores.__all__
            hint = "" if known else score_hint(plain, available)
            if absent and not hint:
                hint = f" {absent!r} may need other arrays, --threshold or --val."
            raise LookupError(
                f"no score {name!r} here.{hint} These predictions have"
                f" {', '.join(available)}."
            )
        chosen.append(score)
    order = {score: number for number, score in enumerate(dict.fromkeys(chosen))}
    kinds = dict.fromkeys(kind_of(row) for row in rows if row.score in order)
    return _with_kinds(scored, sorted(kinds, key=lambda kind: order[kind[0]]))


def with_shown_items(scored: Scored) -> Scored:
    """Return `scored` with only the parts about the items that each file shows.

    Scores, curves and histograms of in-domain and shifted items together are included
    if they exist only for both together, or if the user chose them.
    """
    results = [result.shown() for result in scored.results]
    keys = [row.key for result in results for row in result.rows]
    return with_rows(Scored(results=tuple(results), comparison=scored.comparison), keys)


def _with_kinds(scored: Scored, kinds: Sequence[Kind]) -> Scored:
    """Return `scored` with only the rows of these scores and settings, in order."""
    order = {kind: number for number, kind in enumerate(kinds)}
    rows = [row for result in scored.results for row in result.rows]
    keys = dict.fromkeys(row.key for row in rows if kind_of(row) in order)
    return with_rows(scored, sorted(keys, key=lambda key: order[key[::2]]))


def with_rows(scored: Scored, keys: Iterable[RowKey]) -> Scored:
    """Return `scored` with only the rows and contrasts of these keys, in order."""
    order = dict.fromkeys(keys)
    results = []
    for result in scored.results:
        rows = {row.key: row for row in result.rows}
        chosen = tuple(rows[key] for key in order if key in rows)
        results.append(replace(result, rows=chosen))
    comparison = scored.comparison
    if comparison is not None:
        contrasts = {contrast.key: contrast for contrast in comparison.contrasts}
        comparison = replace(
            comparison,
            contrasts=tuple(contrasts[key] for key in order if key in contrasts),
        )
    return Scored(results=tuple(results), comparison=comparison)
