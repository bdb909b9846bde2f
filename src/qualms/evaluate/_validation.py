"""Checks that validation predictions belong to the run that is scored.

A temperature, an offset or a threshold that was fitted on the predictions of another
model looks like any other number in a table, so headers are compared before anything is
fitted. Only fields that both headers state are compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate._repeated import shared_rows
from qualms.predictions import Header, Maps, Predictions, pairing, same_items

FIELDS = ("method", "seed", "benchmark", "dataset")
RUN_OPTIONS = ("network", "method", "training")
"""Options of a run that are equal in its predictions of all splits."""
OURS = ("run", "dataset", *RUN_OPTIONS)
"""Options that only runs of this package state."""
INSIST = "insist with --force-val (force_val=True)"


class _Discrepancy(NamedTuple):
    """A field with different values in both headers."""

    field: str
    value: Any
    val_value: Any


def check_validation(
    predictions: Predictions, val: Predictions, *, force: bool, shared: bool = False
) -> tuple[str, ...]:
    """Return notes on `val`; raise if the headers show that it is of another run.

    If `val` is `shared` by several files, the headers must state that it is of the same
    run. With `force`, notes replace these errors.
    """
    _check_task(predictions, val)
    of_training = (val.header.split or "").split("/")[0] == "train"
    if of_training and not force:
        raise ValueError(
            f"val must hold items that the network has not seen, and {val.source} says"
            f" that its split is {val.header.split!r}: what is fitted on training items"
            f" is too sure; give validation predictions, or {INSIST}"
        )
    differing = next(_discrepancies(predictions.header, val.header), None)
    notes = list(_same_items_note(predictions, val))
    if of_training:
        notes.append(f"{val.source} holds training items, as was insisted")
    if differing is not None:
        field, value, val_value = differing
        difference = f"{field} is {value!r}, that of {val.source} {val_value!r}"
        if not force:
            raise ValueError(
                f"val must be of the run that made {predictions.source}: its"
                f" {difference}; give the validation predictions of the same run, or"
                f" {INSIST}"
            )
        notes.append(f"val is of another run, as was insisted: the {difference}")
    elif shared and not _stated_run(predictions.header, val.header):
        if not force:
            raise ValueError(
                "several files take one --val each, in the same order: "
                f"{val.source} was given for all of them, and their headers do not say "
                f"that they are of one run; give one --val per file, or {INSIST}"
            )
        notes.append(f"{val.source} serves several files, as was insisted")
    return tuple(notes)


def _check_task(predictions: Predictions, val: Predictions) -> None:
    if val.task != predictions.task:
        raise ValueError(
            f"val must hold {predictions.task} predictions like {predictions.source}, "
            f"got {val.task} in {val.source}"
        )


def _discrepancies(test: Header, val: Header) -> Iterator[_Discrepancy]:
    """Yield the fields with different values, the most important first."""
    if _stated_run(test, val):
        return  # one run may predict splits of several datasets
    yield from _compare("run", test.options.get("run"), val.options.get("run"))
    for name in FIELDS:
        yield from _compare(name, getattr(test, name), getattr(val, name))
    yield from _compare("number of pooled runs", _runs(test), _runs(val))
    for name in RUN_OPTIONS:
        options = test.options.get(name), val.options.get(name)
        yield from _compare_options(f"{name} option", *options)
    foreign = (
        {name: value for name, value in header.options.items() if name not in OURS}
        for header in (test, val)
    )
    yield from _compare_options("option", *foreign)


def _stated_run(test: Header, val: Header) -> bool:
    """Return whether both headers name the same run."""
    run = test.options.get("run")
    return run is not None and run == val.options.get("run")


def _runs(header: Header) -> int | None:
    return header.pooled or (None if header.seed is None else 1)


def _compare(field: str, value: Any, val_value: Any) -> Iterator[_Discrepancy]:
    if value is not None and val_value is not None and value != val_value:
        yield _Discrepancy(field, value, val_value)


def _compare_options(
    field: str, options: Any, val_options: Any
) -> Iterator[_Discrepancy]:
    if not isinstance(options, Mapping) or not isinstance(val_options, Mapping):
        yield from _compare(field, options, val_options)
        return
    for name in options:
        yield from _compare(f"{field} '{name}'", options[name], val_options.get(name))


def _same_items_note(predictions: Predictions, val: Predictions) -> Iterator[str]:
    if predictions.maps and val.maps:
        same = _same_maps(predictions.maps, val.maps)
    else:
        named = not {"target", "item"}.isdisjoint(predictions.arrays)
        same = named and same_items(pairing(predictions), pairing(val))
    shared = 0 if same else shared_rows(predictions, val)
    if same or shared:
        held = "the very items" if same else f"{shared} of the items"
        yield (
            f"{val.source} seems to hold {held} that are scored: what is fitted on "
            "them makes their scores too good"
        )


def _same_maps(maps: Sequence[Maps], others: Sequence[Maps]) -> bool:
    """Return whether the first, the middle and the last item are the same.

    Items are compared by their raters, or by their predictions if they have no labels.
    """
    if len(maps) != len(others):
        return False
    rows = {0, len(maps) // 2, len(maps) - 1}
    pairs = [(_telling(maps[row]), _telling(others[row])) for row in rows]
    # Different items are equal here if their raters mark nothing.
    drawn = [pair for pair in pairs if np.ptp(pair[0])]
    return bool(drawn) and all(np.array_equal(*pair) for pair in drawn)


def _telling(maps: Maps) -> NDArray[Any]:
    return maps.raters if len(maps.raters) else maps.mean_probs
