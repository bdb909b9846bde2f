"""Whether validation predictions are of the run whose test predictions are scored.

A temperature, an offset or a threshold that was fitted on another model's predictions
looks like any other number in a table, so headers are compared before anything is
fitted. A header need not say anything: only what both of them state is compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from qualms.predictions import Header, Maps, Predictions, pairing, same_items

FIELDS = ("method", "seed", "benchmark", "dataset")
RUN_OPTIONS = ("network", "method", "training")
"""Options of a run that its predictions of every split share."""
INSIST = "insist with --force-val (force_val=True)"


class _Unlike(NamedTuple):
    """Something that both headers state, differently."""

    what: str
    mine: Any
    theirs: Any


def check_validation(
    predictions: Predictions, val: Predictions, *, force: bool, shared: bool = False
) -> tuple[str, ...]:
    """Notes on `val`; it is refused where headers show that it is of another run.

    `shared` says that other files were given the same `val`; then the headers must
    state that it is of the same run. With `force` a note stands in for each refusal.
    """
    _refuse_task(predictions, val)
    unlike = next(_differences(predictions.header, val.header), None)
    notes = list(_same_items_note(predictions, val))
    if unlike is not None:
        said = (
            f"{unlike.what} is {unlike.mine!r}, that of {val.source} {unlike.theirs!r}"
        )
        if not force:
            raise ValueError(
                f"val must be of the run that made {predictions.source}: its {said}; "
                f"give the validation predictions of the same run, or {INSIST}"
            )
        notes.append(f"val is of another run, as was insisted: the {said}")
    elif shared and not _stated_run(predictions.header, val.header):
        if not force:
            raise ValueError(
                "several files take one --val each, in the same order: "
                f"{val.source} was given for all of them, and their headers do not say "
                f"that they are of one run; give one --val per file, or {INSIST}"
            )
        notes.append(f"{val.source} serves several files, as was insisted")
    return tuple(notes)


def _refuse_task(predictions: Predictions, val: Predictions) -> None:
    if val.task != predictions.task:
        raise ValueError(
            f"val must hold {predictions.task} predictions like {predictions.source}, "
            f"got {val.task} in {val.source}"
        )


def _differences(mine: Header, theirs: Header) -> Iterator[_Unlike]:
    """What both headers state differently, the most telling first."""
    if _stated_run(mine, theirs):
        return  # one run may predict splits of several datasets
    yield from _unlike("run", mine.options.get("run"), theirs.options.get("run"))
    for name in FIELDS:
        yield from _unlike(name, getattr(mine, name), getattr(theirs, name))
    yield from _unlike("number of pooled runs", _runs(mine), _runs(theirs))
    for name in RUN_OPTIONS:
        options = mine.options.get(name), theirs.options.get(name)
        yield from _unlike_options(f"{name} option", *options)
    foreign = (
        {name: value for name, value in header.options.items() if name not in OURS}
        for header in (mine, theirs)
    )
    yield from _unlike_options("option", *foreign)


OURS = ("run", "dataset", *RUN_OPTIONS)
"""Options that runs of this package state, which are compared one by one."""


def _stated_run(mine: Header, theirs: Header) -> bool:
    """Whether both headers name the same run."""
    own = mine.options.get("run")
    return own is not None and own == theirs.options.get("run")


def _runs(header: Header) -> int | None:
    return header.pooled or (None if header.seed is None else 1)


def _unlike(what: str, mine: Any, theirs: Any) -> Iterator[_Unlike]:
    if mine is not None and theirs is not None and mine != theirs:
        yield _Unlike(what, mine, theirs)


def _unlike_options(what: str, mine: Any, theirs: Any) -> Iterator[_Unlike]:
    if not isinstance(mine, Mapping) or not isinstance(theirs, Mapping):
        yield from _unlike(what, mine, theirs)
        return
    for name in mine:
        yield from _unlike(f"{what} '{name}'", mine[name], theirs.get(name))


def _same_items_note(predictions: Predictions, val: Predictions) -> Iterator[str]:
    if predictions.maps and val.maps:
        same = _same_maps(predictions.maps, val.maps)
    else:
        told = not {"target", "item"}.isdisjoint(predictions.arrays)
        same = told and same_items(pairing(predictions), pairing(val))
    if same:
        yield (
            f"{val.source} seems to hold the very items that are scored: what is "
            "fitted on them makes their scores too good"
        )


def _same_maps(maps: Sequence[Maps], others: Sequence[Maps]) -> bool:
    """Whether raters drew the same on the first, the middle and the last item."""
    if len(maps) != len(others):
        return False
    rows = {0, len(maps) // 2, len(maps) - 1}
    pairs = [(maps[row].raters, others[row].raters) for row in rows]
    # Where nothing is drawn, different items look alike.
    drawn = [pair for pair in pairs if np.ptp(pair[0])]
    return bool(drawn) and all(np.array_equal(*pair) for pair in drawn)
