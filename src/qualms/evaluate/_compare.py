"""Comparison of several files: paired differences, and the files that may be best."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qualms.evaluate._interval_kinds import aims, with_shared_kind
from qualms.evaluate._ranking import Ranking, Rival, rankings, uncompared
from qualms.evaluate._results import Results
from qualms.evaluate.entry import Entry, ScoreOptions
from qualms.evaluate.estimates import UNKNOWN
from qualms.evaluate.notebook import (
    NotebookCell,
    notebook_lines,
    notebook_table,
    with_intervals,
)
from qualms.evaluate.rows import RowKey, ScoreRow
from qualms.labels import values_text
from qualms.predictions import pairing, same_items
from qualms.scores import Better, Difference
from qualms.wording import in_one_line

DIFFERENT_ITEMS = (
    "the files do not hold the same items in the same order, with the same targets or "
    "raters, so their differences are not paired and no tie groups are given"
)
UNRANKED = "an interval that covers too little is not better for being short"
OTHER_ORDER = (
    "the files hold the same items in another order, so their differences are not "
    "paired and no tie groups are given; qualms score, and score_files, take files of "
    "named items in one order"
)
OTHER_AIM = "the intervals of these files aim at different coverages"
OTHER_VALIDATION = "the files were calibrated on different validation items"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One score over all files that have it: the best file, and those tied with it."""

    score: str
    label: str
    subset: str
    settings: Mapping[str, Any]
    better: Better
    best: str
    tied: tuple[str, ...]
    """Files that cannot be told apart from the best, including the best itself."""
    difference: Mapping[str, Difference]
    """Each file minus the best, paired over items; with an aim, the difference of the
    distances from it."""
    aim: float | None = None
    """The best value, if it is neither the lowest nor the highest; else None."""
    reason: str = ""
    """Reason for comparing nothing; '' if files are compared."""

    @property
    def detail(self) -> str:
        """The settings, as `ScoreRow.detail` shows them."""
        return values_text(self.settings)

    @property
    def compared(self) -> str:
        """Name of the compared number: the score, or its distance from an aim."""
        if self.aim is None:
            return self.label
        return f"{self.label}, distance from {self.aim:g}"

    @property
    def key(self) -> RowKey:
        """The score, subset and settings, as in `ScoreRow.key`."""
        return (self.score, self.subset, tuple(self.settings.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The contrasts of every score that at least two files share."""

    names: tuple[str, ...]
    contrasts: tuple[Contrast, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        files = ", ".join(self.names)
        return f"<Comparison of {files}: {len(self.contrasts)} scores; see .contrasts>"

    def _repr_html_(self) -> str:
        heads = ("score", "items", "detail", *self.names)
        rows = (_html_contrast(contrast, self.names) for contrast in self.contrasts)
        title = "differences to the best; * cannot be told apart from it"
        return notebook_table(title, heads, rows) + notebook_lines(self.notes)


def _html_contrast(
    contrast: Contrast, names: Sequence[str]
) -> tuple[str | NotebookCell, ...]:
    texts = [_html_difference(contrast, name) for name in names]
    of_others = [
        None if name == contrast.best else contrast.difference.get(name)
        for name in names
    ]
    cells = with_intervals(texts, of_others, at=0.0)
    return contrast.compared, contrast.subset, contrast.detail, *cells


def _html_difference(contrast: Contrast, name: str) -> str:
    difference = contrast.difference.get(name)
    if name == contrast.best:
        return "best *"
    if difference is None or math.isnan(difference.value):
        return ""
    mark = " *" if name in contrast.tied else ""
    ends = f" ({difference.low:+.4g} to {difference.high:+.4g})"
    bounded = math.isfinite(difference.low) and math.isfinite(difference.high)
    return f"{difference.value:+.4g}{ends if bounded else ''}{mark}"


@in_one_line
def compare(results: Sequence[Results]) -> Comparison:
    """Return paired differences and tie groups of files that hold the same items.

    Files of the same name are numbered.
    """
    results = files_of_one_task(results)
    names = tuple(result.name for result in results)
    reason = unpaired(results)
    if reason:
        return Comparison(names=names, notes=(reason,))
    design = results[0].design
    if design is None:
        return Comparison(names=names)
    columns = _columns(results)
    options = ScoreOptions(
        resamples=results[0].resamples, level=results[0].level, seed=results[0].seed
    )
    rivals = rivals_of(results)
    alike = with_one_aim(rivals, results)
    ranked = rankings(alike, design, options)
    contrasts = (
        _contrast(next(iter(columns[key].values()))[0], ranking)
        for key, everyone in rivals.items()
        if (ranking := ranked.get(key) or _unranked(everyone, unlike=key not in alike))
        is not None
    )
    return Comparison(
        names=names, contrasts=tuple(contrasts), notes=tuple(_copies(results))
    )


def files_of_one_task(results: Sequence[Results]) -> list[Results]:
    """Return results with different names; raise if they are of several tasks."""
    files = _checked(results)
    if len({result.task for result in files}) > 1:
        raise ValueError(
            "files compare only within one task, got "
            + ", ".join(f"{result.name}: {result.task}" for result in files)
        )
    return list(with_shared_kind(files))


def unpaired(results: Sequence[Results]) -> str:
    """Return why items of the files are not paired; '' if they are."""
    if _same_items(results):
        return ""
    if changed := _changed_targets(results):
        return changed
    return OTHER_ORDER if _same_names(results) else DIFFERENT_ITEMS


def rivals_of(results: Sequence[Results]) -> dict[RowKey, list[Rival]]:
    """Return the rivals of each score of files with the same items."""
    return {
        key: [Rival(name, row.value, (entry,)) for name, (row, entry) in rows.items()]
        for key, rows in _columns(results).items()
    }


def with_one_aim(
    rivals: dict[RowKey, list[Rival]], results: Sequence[Results]
) -> dict[RowKey, list[Rival]]:
    """Return rivals without those of intervals that aim at different coverages."""
    if len({aim for aim in map(aims, results) if aim}) < 2:
        return rivals
    return {key: each for key, each in rivals.items() if "interval" not in dict(key[2])}


def _copies(results: Sequence[Results]) -> Iterator[str]:
    """Yield a note if files have equal values of every score, as copies have."""
    names: dict[Any, list[str]] = defaultdict(list)
    for result in results:
        names[tuple((row.key, repr(row.value)) for row in result.rows)].append(
            result.name
        )
    for rows, equal in names.items():
        if rows and len(equal) > 1:
            yield (
                f"{' and '.join(equal)} have the same value of every score: are they"
                " copies of one file?"
            )


def _checked(results: Any) -> list[Results]:
    """Return results with different names; raise unless they can be compared."""
    several = [] if isinstance(results, Results) else list(results)
    kinds = [type(each).__name__ for each in several if not isinstance(each, Results)]
    if kinds or not several:
        got = "one file" if isinstance(results, Results) else "none"
        raise TypeError(
            "compare takes a list of what qualms.score gives, got "
            f"{kinds[0] if kinds else got}; say"
            " compare([qualms.score(a), qualms.score(b)])"
        )
    names = [result.name for result in several]
    return [
        result
        if names.count(result.name) == 1
        else replace(result, name=f"{result.name} ({number})")
        for number, result in enumerate(several, 1)
    ]


def _unranked(rivals: Sequence[Rival], *, unlike: bool) -> Ranking | None:
    """Return a ranking with the reason why it is missing; None if none is expected.

    `unlike` is true if intervals aim at different coverages.
    """
    entry = rivals[0].entries[0]
    if len(rivals) < 2 or (entry.better == "neither" and entry.aim is None):
        return None
    known = [rival for rival in rivals if math.isfinite(rival.value)]
    if len(known) < 2:
        return None
    if unlike:
        return uncompared(known, OTHER_AIM)
    if not all(rival.entries[0].ranked for rival in known):
        dead = next((r.entries[0].dead for r in known if r.entries[0].dead), "")
        return uncompared(known, f"an uncertainty {dead}" if dead else UNRANKED)
    if len({len(rival.entries[0].index) for rival in known}) > 1:
        return uncompared(known, OTHER_VALIDATION)
    reason = next((r.entries[0].no_interval for r in known), "")
    return uncompared(known, reason or UNKNOWN)


def _same_items(results: Sequence[Results]) -> bool:
    """Return whether all files hold the same items."""
    pairings = [pairing(result.items) for result in results if result.items is not None]
    return all(same_items(pairings[0], other) for other in pairings[1:])


def _changed_targets(results: Sequence[Results]) -> str:
    """Return a sentence if named items are in one order, and some targets differ."""
    files = [(each.name, each.items) for each in results if each.items is not None]
    name, first = files[0][0], files[0][1].arrays
    for other_name, predictions in files[1:]:
        other = predictions.arrays
        if not {"item", "target"} <= first.keys() & other.keys():
            continue
        if not np.array_equal(first["item"], other["item"]):
            continue
        alike = np.isclose(first["target"], other["target"], rtol=1e-6, atol=0)
        if not alike.all():
            item = first["item"][np.argmin(alike)]
            return (
                f"the targets of {(~alike).sum()} of {len(alike)} items differ between"
                f" {name} and {other_name}, first of item '{item}', so the"
                " differences are not paired and no tie groups are given; correct the"
                " targets"
            )
    return ""


def _same_names(results: Sequence[Results]) -> bool:
    """Return whether all files hold items of the same names, in any order."""
    names = [
        None if result.items is None else result.items.get("item") for result in results
    ]
    if any(each is None for each in names):
        return False
    sets = [frozenset(each.tolist()) for each in names if each is not None]
    return len(set(sets)) == 1


def _columns(
    results: Sequence[Results],
) -> dict[RowKey, dict[str, tuple[ScoreRow, Entry]]]:
    """Return the rows of all files by score, subset and settings."""
    columns: dict[RowKey, dict[str, tuple[ScoreRow, Entry]]] = {}
    for result in results:
        for row in result.rows:
            if row.entry is not None:
                columns.setdefault(row.key, {})[result.name] = row, row.entry
    return columns


def _contrast(row: ScoreRow, ranking: Ranking) -> Contrast:
    return Contrast(
        score=row.score,
        label=row.label,
        subset=row.subset,
        settings=row.settings,
        better=row.better,
        best=ranking.group.best,
        tied=ranking.group.members,
        difference=ranking.differences,
        aim=None if row.entry is None else row.entry.aim,
        reason=ranking.group.reason,
    )
