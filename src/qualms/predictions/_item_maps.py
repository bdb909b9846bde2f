"""The maps of one segmented item: their names, shapes and values.

Shapes are compared before anything is loaded. A pixel has one class of several, or lies
in any number of regions that overlap; then the header names the `regions`, and each of
them has a probability of its own.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import inf, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError, listed, shortened
from qualms.predictions._foreign import to_array
from qualms.predictions._names import spelling_hint
from qualms.predictions._probabilities import checked_probs, unit_interval
from qualms.predictions._record import Grid, Maps
from qualms.predictions._values import as_numbers, finite_span, to_bytes, where_in
from qualms.predictions.schema import folder_task
from qualms.wording import plural, suggest

NEEDED = ("mean_probs", "expected_entropy", "draw_labels")
ARRAYS = (*NEEDED, "raters")
OWN = "uncertainty/"
"""Prefix of the names of a user's own maps."""

_DIRECTIONS = ("RL", "AP", "SI")
_AXES = {
    "mean_probs": "C",
    "expected_entropy": "",
    "draw_labels": "M",
    "raters": "R",
}
_AXES_OF_REGIONS = {
    "mean_probs": "K",
    "expected_entropy": "",
    "draw_labels": "MK",
    "raters": "RK",
}
_CALLED = {"C": "class", "M": "draw", "R": "rater", "K": "region"}
_LABELS = ("target", "label", "labels", "mask", "masks", "y", "gt", "seg")
"""Names that other programs give to the labels of raters."""
_REMEDY = (
    "store probabilities averaged over draws, not logits; for sigmoids of regions that "
    "overlap, name these in the header: 'regions'"
)
_REGION_REMEDY = "store the sigmoid of each region, averaged over draws"


class ItemForm(NamedTuple):
    """Properties that all items of a file share; None until the first item is read."""

    ignore: int | None = None
    regions: tuple[str, ...] = ()
    classes: int | None = None
    own: frozenset[str] | None = None
    """Names of the user's own maps."""


def check_maps(maps: Maps, form: ItemForm) -> Maps:
    """Return `maps` in the normal dtypes, with probabilities renormalised."""
    if not isinstance(maps, Maps):
        raise PredictionsError(
            f"must be a Maps record, got {type(maps).__name__}; build it with "
            "qualms.predictions.Maps(mean_probs=..., ...)"
        )
    if not isinstance(maps.uncertainty, Mapping):
        raise PredictionsError(
            "uncertainty must be a mapping of names to maps, got "
            f"{type(maps.uncertainty).__name__}; write uncertainty={{'mine': ...}}"
        )
    fields = {name: getattr(maps, name) for name in ARRAYS}
    fields |= {f"{OWN}{name}": own for name, own in maps.uncertainty.items()}
    arrays = {
        name: to_array(name, values)
        for name, values in fields.items()
        if values is not None
    }
    shapes = {name: array.shape for name, array in arrays.items()}
    return with_grid(load_maps(shapes, arrays.__getitem__, form), maps.grid)


def with_grid(maps: Maps, grid: Any) -> Maps:
    """Return checked `maps` with their grid: a `Grid`, its fields, or None."""
    if grid is None:
        return maps
    sides = maps.expected_entropy.ndim
    fields = grid._asdict() if isinstance(grid, Grid) else grid
    try:
        found = Grid(**fields)
        spacing = tuple(map(float, found.spacing))
        pairs = [next(p for p in _DIRECTIONS if axis in p) for axis in found.axes]
        fits = len(spacing) == len(set(pairs)) == len(pairs) == sides
        fits &= all(0.0 < side < inf for side in spacing)
        tilt = float(found.tilt)
        fits &= 0.0 <= tilt <= 90.0
    except (TypeError, ValueError, AttributeError, StopIteration):
        fits = False
    if not fits:
        raise PredictionsError(
            f"the grid of an item must have a letter of R/L, A/P and S/I and a spacing"
            f" above 0 in mm for each of its {sides} axes, such as {{'axes': 'RAS',"
            f" 'spacing': [0.8, 0.8, 5]}}, got {fields!r:.90}; correct it or leave it"
            " out"
        )
    return replace(maps, grid=Grid(found.axes, spacing, tilt))


def stored_arrays(maps: Maps) -> dict[str, NDArray[Any]]:
    """Return the arrays of checked `maps` by the names in their file."""
    arrays = {name: getattr(maps, name) for name in ARRAYS}
    if not len(maps.raters):
        del arrays["raters"]
    return arrays | {f"{OWN}{name}": own for name, own in maps.uncertainty.items()}


def form_of(maps: Maps, form: ItemForm) -> ItemForm:
    """Return `form` with the classes and own maps that all items must share."""
    return form._replace(
        classes=maps.mean_probs.shape[0], own=frozenset(maps.uncertainty)
    )


def is_map_name(name: str) -> bool:
    """Return whether the file of an item may hold an array of this name."""
    return name in ARRAYS or (name.startswith(OWN) and len(name) > len(OWN))


def load_maps(
    shapes: Mapping[str, tuple[int, ...]],
    load: Callable[[str], NDArray[Any]],
    form: ItemForm,
) -> Maps:
    """Load and check the maps of one item; shapes are compared before loading."""
    missing = [name for name in NEEDED if name not in shapes]
    if missing:
        raise PredictionsError(
            f"a segmented item needs {listed(NEEDED)}, found only {listed(shapes)}; "
            f"add {listed(missing)}"
        )
    _refuse_misspelt(shapes)
    used = {name: shape for name, shape in shapes.items() if is_map_name(name)}
    if used.get("raters", (0,))[:1] == (0,):
        used.pop("raters", None)  # nobody labelled the item
    _check_shapes(used, form)
    _check_shared(used, form)
    classes = shapes["mean_probs"][0]
    highest = classes * log(2) if form.regions else log(classes)
    with np.errstate(all="ignore"):
        return Maps(
            mean_probs=_mean_probs(load("mean_probs"), form),
            expected_entropy=_entropy(load("expected_entropy"), highest, form),
            draw_labels=_labels("draw_labels", load("draw_labels"), classes, form),
            raters=_labels("raters", load("raters"), classes, form)
            if "raters" in used
            else _no_raters(used, form),
            uncertainty={
                name.removeprefix(OWN): _own_map(name, load(name))
                for name in used
                if name.startswith(OWN)
            },
        )


def _no_raters(
    shapes: Mapping[str, tuple[int, ...]], form: ItemForm
) -> NDArray[np.uint8]:
    regions = (len(form.regions),) if form.regions else ()
    return np.empty((0, *regions, *shapes["expected_entropy"]), np.uint8)


def _refuse_misspelt(names: Collection[str]) -> None:
    """Raise if an array seems to be misspelt: it would be lost."""
    absent = [name for name in ARRAYS if name not in names]
    for name in names:
        if is_map_name(name):
            continue
        hint = suggest(name, absent, cutoff=0.8) if len(name) < 40 else ""
        if OWN[:-1] in (family := spelling_hint(folder_task(), name)):
            hint = family
        if name in _LABELS and "raters" in absent:
            hint = " The labels are called 'raters' here, (R, space)."
        if hint:
            raise PredictionsError(
                f"array '{shortened(name)}' is not part of a segmented item.{hint} "
                "Rename it, or leave it out"
            )


def _check_shapes(shapes: Mapping[str, tuple[int, ...]], form: ItemForm) -> None:
    space = shapes["expected_entropy"]
    if not space or 0 in space:
        raise PredictionsError(
            f"array 'expected_entropy' must have the shape of the image, got {space}"
        )
    axes = _AXES_OF_REGIONS if form.regions else _AXES
    for name, shape in shapes.items():
        lead = axes.get(name, "")
        if len(shape) != len(lead) + len(space) or shape[len(lead) :] != space:
            raise PredictionsError(_misshapen(name, shape, lead, space))
        for axis, size in zip(lead, shape, strict=False):
            if size == 0:
                raise PredictionsError(
                    f"array '{name}' has no {_CALLED[axis]} (shape {shape}); there "
                    "must be at least one"
                )


def _misshapen(
    name: str, shape: tuple[int, ...], lead: str, space: tuple[int, ...]
) -> str:
    wanted = ", ".join([*lead, *map(str, space)]) + ("," if len(space) == 1 else "")
    if name.startswith(OWN) and np.prod(shape, dtype=int) == 1:
        return (
            f"array '{shortened(name)}' is one number and no map; state it in the entry"
            " of the item in index.json (add(..., uncertainty={...}) of the writer)"
        )
    if not lead:
        remedy = "store a value for every pixel"
    elif len(lead) > 1:
        remedy = f"put the {_CALLED[lead[0]]} axis first, then the regions, then space"
    elif len(shape) == len(space) + 1 and shape[:-1] == space:
        remedy = f"put the {_CALLED[lead]} axis first: np.moveaxis({name}, -1, 0)"
    elif shape == space:
        remedy = {
            "C": f"for P(y=1) alone store np.stack([1 - {name}, {name}])",
            "K": f"add the axis of regions: {name}[np.newaxis]",
        }.get(lead, f"add the {_CALLED[lead]} axis: {name}[np.newaxis]")
    else:
        remedy = f"put the {_CALLED[lead]} axis first, then space"
    return (
        f"array '{shortened(name)}' must have shape ({wanted}) to fit "
        f"'expected_entropy', got {shape}; {remedy}"
    )


def _check_shared(shapes: Mapping[str, tuple[int, ...]], form: ItemForm) -> None:
    """Raise unless the item has the classes, or regions, and own maps of the others."""
    size = shapes["mean_probs"][0]
    if form.regions:
        _check_regions(shapes, form.regions)
    elif size < 2:
        raise PredictionsError(
            "array 'mean_probs' must have at least two classes on its first axis, got "
            f"shape {shapes['mean_probs']}; for P(y=1) alone store "
            "np.concatenate([1 - mean_probs, mean_probs]), or name the one region in "
            "the header: 'regions'"
        )
    if form.classes not in (None, size):
        raise PredictionsError(
            f"array 'mean_probs' has {size} classes, the first item has {form.classes};"
            " all items of one file must agree"
        )
    own = frozenset(name.removeprefix(OWN) for name in shapes if name.startswith(OWN))
    if form.own is not None and own != form.own:
        name = min(own ^ form.own)
        own_count, first_count = ("an", "none") if name in own else ("no", "one")
        raise PredictionsError(
            f"the item has {own_count} own map '{OWN}{shortened(name)}', the first"
            f" item has {first_count}; give it for all items of a file or for none"
        )


def _check_regions(
    shapes: Mapping[str, tuple[int, ...]], regions: tuple[str, ...]
) -> None:
    for name, axes in _AXES_OF_REGIONS.items():
        if "K" in axes and name in shapes:
            size = shapes[name][axes.index("K")]
            if size != len(regions):
                raise PredictionsError(
                    f"array '{name}' has {size} {plural(size, 'region')} (shape "
                    f"{shapes[name]}), the header names {len(regions)}: "
                    f"{listed(regions)}; correct the header's 'regions', or the array"
                )


def _mean_probs(array: NDArray[Any], form: ItemForm) -> NDArray[Any]:
    name, axes = "mean_probs", "K" if form.regions else "C"
    numbers = as_numbers(name, array)
    finite_span(name, numbers, axes)
    probs = numbers.astype(np.float32, copy=False)
    if form.regions:
        probs = unit_interval(name, probs, axes, remedy=_REGION_REMEDY)
        return np.ascontiguousarray(probs)
    return np.ascontiguousarray(
        checked_probs(name, probs, axes, remedy=_REMEDY, dtype=np.float32).array
    )


def _entropy(array: NDArray[Any], highest: float, form: ItemForm) -> NDArray[Any]:
    name = "expected_entropy"
    entropy = as_numbers(name, array)
    low, high = finite_span(name, entropy, "")
    # Half precision rounds. An entropy in bits exceeds the limit by far more.
    slack = 2e-3 * (1.0 + highest)
    if low < -slack or high > highest + slack:
        wrong = (entropy < -slack) | (entropy > highest + slack)
        where = tuple(np.argwhere(wrong)[0])
        bound = f"log 2 for each of {len(form.regions)} regions"
        raise PredictionsError(
            f"array '{name}' must lie in [0, {highest:.4g}] "
            f"({bound if form.regions else 'log C'}, in nats), "
            f"{where_in('', where)} is {float(entropy[where]):.6g}; use natural "
            "logarithms"
        )
    return np.ascontiguousarray(np.maximum(entropy.astype(np.float32, copy=False), 0))


def _own_map(name: str, array: NDArray[Any]) -> NDArray[Any]:
    shown = shortened(name)
    numbers = as_numbers(shown, array)
    finite_span(shown, numbers, "")
    single = numbers.astype(np.float32, copy=False)
    finite_span(shown, single, "")
    return np.ascontiguousarray(single)


def _labels(
    name: str, array: NDArray[Any], classes: int, form: ItemForm
) -> NDArray[Any]:
    axes = (_AXES_OF_REGIONS if form.regions else _AXES)[name]
    limit = 2 if form.regions else classes
    labels = np.ascontiguousarray(to_bytes(name, array, axes))
    if labels.max() < limit:
        return labels
    wrong = labels >= limit
    if name == "raters" and form.ignore is not None:
        wrong &= labels != form.ignore
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must {_label_rule(name, limit, form)}, "
            f"{where_in(axes, where)} is {labels[where]}; {_label_remedy(name, form)}"
        )
    return labels


def _label_rule(name: str, limit: int, form: ItemForm) -> str:
    rule = f"lie in 0..{limit - 1}"
    if form.regions:
        rule = "be 1 inside a region and 0 outside"
    if name == "raters":
        rule += f" or be the header's 'ignore' ({form.ignore})"
    return rule


def _label_remedy(name: str, form: ItemForm) -> str:
    if name == "raters":
        return "correct it, or state 'ignore' in the header"
    if form.regions:
        return "store 1 where the draw's sigmoid is above 0.5"
    return "store a class for every pixel; 'ignore' is for raters alone"
