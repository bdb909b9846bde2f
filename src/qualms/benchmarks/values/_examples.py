"""Figures 4 and 5, and items of the other datasets, from prepared data."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks.values._maps import RATER_COLOURS
from qualms.benchmarks.values._settings import Study, stands_in, study_source
from qualms.datasets import Dataset, Split
from qualms.report.figures import Drawing, OutlineMark, Panel, PictureMark
from qualms.report.pictures import label_picture, prepared_dataset, slice_picture
from qualms.scores import rater_variance
from qualms.study import Variant

_ROWS = 3
_COLUMNS = 6


def example_items(study: Study, data: Path | None) -> Iterator[Drawing]:
    """Yield pictures of the items of each judged dataset."""
    for variant in study.variants:
        dataset = prepared_dataset(variant, data)
        if dataset is None:
            continue
        if variant.label == "Toy 1":
            yield _ambiguous(study, variant, dataset)
        elif variant.label == "Toy 2":
            yield _unseen(study, variant, dataset)
        elif variant.label != "Toy 3a":
            yield _both_subsets(study, variant, dataset)


def _ambiguous(study: Study, variant: Variant, dataset: Dataset) -> Drawing:
    """Return figure 4: blurred objects whose raters disagree."""
    train, test = dataset.split("train"), dataset.split(variant.test)
    rows = []
    for place in range(min(_ROWS, len(train), len(test))):
        at = _place(train, place)
        raters = [rater if at is None else rater[at] for rater in train.target[place]]
        masks = [
            _panel(label_picture(rater), title=f"rater {number}" if not place else "")
            for number, rater in enumerate(raters, start=1)
        ]
        expected = rater_variance(np.asarray(test.target[place]))
        test_at = _place(test, place)
        disagreement = expected if test_at is None else expected[test_at]
        rows.append(
            (
                _item_panel(train, place, title="training item" if not place else ""),
                *masks,
                _item_panel(test, place, title="test item" if not place else ""),
                Panel(
                    marks=(PictureMark(pixels=disagreement, heat=True),),
                    title="disagreement" if not place else "",
                    bare=True,
                ),
            )
        )
    return Drawing(
        name="figure_4",
        title="Figure 4: toy items whose border is ambiguous",
        caption="Blurred objects, and three raters who end them at different places: "
        "they mark 10 %, 55 % and all of the volume that is bright enough. Right: "
        "where the raters of a test item disagree, which is where aleatoric "
        f"uncertainty is expected. {_slices(train)}"
        f"{study_source(study.results, [variant])}",
        rows=tuple(rows),
        simulated=stands_in(variant),
        size=(1.0, 1.05),
    )


def _unseen(study: Study, variant: Variant, dataset: Dataset) -> Drawing:
    """Return figure 5: sharp objects in noise, and test items unlike them."""
    train, test = dataset.split("train"), dataset.split(variant.test)
    groups = np.asarray(test.extra["group"]).astype(str)
    kinds = ("plain", "grey", "cube", "border")
    by_kind = {kind: np.flatnonzero(groups == kind)[:_ROWS] for kind in kinds}
    rows = []
    for place in range(min(_ROWS, len(train))):
        at = _place(train, place)
        rater = train.target[place][0]
        row = [
            _item_panel(train, place, title="" if place else "training item"),
            _panel(
                label_picture(rater if at is None else rater[at]),
                title="" if place else "target",
            ),
        ]
        for kind, items in by_kind.items():
            if place < len(items):
                title = "" if place else f"test, {kind}"
                row.append(_item_panel(test, int(items[place]), title=title))
        rows.append(tuple(row))
    return Drawing(
        name="figure_5",
        title="Figure 5: toy items unlike those of training",
        caption="Sharp bright objects in noise, as in training, with their target; and "
        "test items: as in training (plain), of another grey value, of another shape, "
        "and cut by the border. The last three are shifted: epistemic uncertainty is "
        f"expected there. {_slices(train)}{study_source(study.results, [variant])}",
        rows=tuple(rows),
        simulated=stands_in(variant),
        size=(1.0, 1.05),
    )


def _both_subsets(study: Study, variant: Variant, dataset: Dataset) -> Drawing:
    """Return in-domain and shifted test items, with the labels of raters."""
    test = dataset.split(variant.test)
    shifted = np.asarray(test.extra.get("shifted", np.zeros(len(test))), np.bool_)
    many = dataset.task.classes is not None and dataset.task.classes > 2
    count = 4 if many else _COLUMNS
    rows: list[tuple[Panel, ...]] = []
    sides: list[str] = []
    for side, flags in (("in domain", ~shifted), ("shifted", shifted)):
        # Spread over the split: neighbours are alike.
        places = np.flatnonzero(flags)
        items = places[
            np.linspace(0, len(places) - 1, min(count, len(places))).astype(int)
        ]
        if not len(items):
            continue
        if many:
            rows.append(tuple(_item_panel(test, int(item)) for item in items))
            rows.append(
                tuple(_panel(_street_labels(test, int(item))) for item in items)
            )
            sides += [side, "labels"]
        else:
            rows.append(tuple(_rated_panel(test, int(item)) for item in items))
            sides.append(side)
    labels = "one of five label draws below" if many else "outlined by each rater"
    sets = [side for side in ("in domain", "shifted") if side in sides]
    return Drawing(
        name=f"figure_items_{variant.name}",
        title=f"Items of {variant.label}",
        caption=f"Test items, {' and '.join(sets)}, {labels}. {_slices(test)}"
        f"{f'Shifted: {variant.shift}. ' if 'shifted' in sets else ''}"
        f"{study_source(study.results, [variant])}",
        rows=tuple(rows),
        sides=tuple(sides),
        simulated=stands_in(variant),
        size=(1.7, 1.0) if many else (1.0, 1.05),
        legend_columns=5,
    )


def _street_labels(split: Split, item: int) -> NDArray[np.uint8]:
    return label_picture(np.asarray(split.target[item][0]), background=False)


def _slices(split: Split) -> str:
    return "Of each volume the slice with most foreground. " if _volumes(split) else ""


def _volumes(split: Split) -> bool:
    return split.target.ndim == 5


def _place(split: Split, item: int) -> int | None:
    """Return the slice with most foreground; None for a picture."""
    if not _volumes(split):
        return None
    target = np.asarray(split.target[item])
    return int(np.argmax((target > 0).sum(axis=(0, 2, 3))))


def _item_panel(split: Split, item: int, *, title: str = "") -> Panel:
    image = np.asarray(split.image[item])
    return _panel(slice_picture(image, _place(split, item)), title=title)


def _rated_panel(split: Split, item: int) -> Panel:
    at = _place(split, item)
    raters: Sequence[NDArray[Any]] = [
        rater if at is None else rater[at] for rater in np.asarray(split.target[item])
    ]
    outlines = tuple(
        OutlineMark(
            region=rater == 1,
            colour=RATER_COLOURS[number % len(RATER_COLOURS)],
            label=f"rater {number + 1}",
        )
        for number, rater in enumerate(raters)
    )
    picture = PictureMark(pixels=slice_picture(np.asarray(split.image[item]), at))
    return Panel(marks=(picture, *outlines), bare=True)


def _panel(pixels: NDArray[Any], *, title: str = "") -> Panel:
    return Panel(marks=(PictureMark(pixels=pixels),), title=title, bare=True)
