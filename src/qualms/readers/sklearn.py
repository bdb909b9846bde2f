"""Tables as scikit-learn users write them (Pedregosa et al., 2011).

Columns or arrays have the names of its metrics' arguments: `y_true`, and `y_prob` for
P(y=1) or `y_prob_<class>` for each class, as `predict_proba` returns them. `y_pred` of
a regression may have `y_std` beside it. An .npz file may hold `y_prob` (N, C) with
`classes`, the estimator's `classes_`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import PredictionsError, array_names, stored_columns
from qualms.readers import ForeignContents, ForeignRequest, Reader
from qualms.readers._columns import (
    Columns,
    as_class_names,
    class_columns,
    class_contents,
    is_prob,
    own_columns,
    unread_note,
)
from qualms.wording import plural

_HALF = 0.5
_TRUE, _PREDICTED, _DEVIATION, _CLASSES = "y_true", "y_pred", "y_std", "classes"


def sklearn() -> Reader:
    """Read tables or .npz with y_true, and y_prob, y_prob_<class> or y_pred."""
    return Reader(recognise=_recognise, read=_read)


def _recognise(path: Path) -> bool:
    names = array_names(path) if path.is_file() else ()
    with_probs = any(map(is_prob, names)) or bool(class_columns(names))
    return with_probs or {_TRUE, _PREDICTED} <= set(names)


def _read(path: Path, request: ForeignRequest) -> ForeignContents:
    columns = stored_columns(path)
    by_class = class_columns(list(columns))
    together = [name for name in columns if is_prob(name)]
    if by_class and together:
        raise PredictionsError(
            f"columns '{together[0]}' and '{next(iter(by_class.values()))}' say the"
            " same thing twice; keep one"
        )
    if by_class:
        return _finished(_of_columns(columns, by_class), columns, [*by_class.values()])
    if together:
        contents = _of_one_array(columns, together[0])
        return _finished(contents, columns, [together[0], _CLASSES])
    return _of_values(columns, request.task)


def _of_columns(columns: Columns, by_class: dict[str, str]) -> ForeignContents:
    """Return contents from columns with the probability of each class."""
    target = columns.get(_TRUE)
    probs = np.stack([_numbers(columns, name) for name in by_class.values()], axis=1)
    if len(by_class) > 1:
        return class_contents(probs, list(by_class), target)
    (name,) = by_class
    others = [] if target is None else sorted({*as_class_names(target)} - {name})
    if len(others) > 1:
        raise PredictionsError(
            f"a probability of one class alone ('{by_class[name]}') is for two classes,"
            f" and {_TRUE} also has {', '.join(others[:4])}; add a column for each"
        )
    other = others[0] if others else f"not {name}"
    return class_contents(np.hstack([1.0 - probs, probs]), [other, name], target)


def _of_one_array(columns: Columns, name: str) -> ForeignContents:
    """Return contents from P(y=1), or from the probabilities (N, C) of an .npz file."""
    probs, target = _numbers(columns, name), columns.get(_TRUE)
    if probs.ndim == 2 and probs.shape[1] == 1:
        probs = probs[:, 0]
    if probs.ndim == 2:
        classes = _stated_classes(columns, probs.shape[1])
        if classes is None and target is not None and target.dtype.kind == "U":
            raise PredictionsError(
                f"'{_TRUE}' holds names of classes, and nothing says which column of"
                f" '{name}' is which; save classes=model.classes_ beside them"
            )
        numbers = [str(number) for number in range(probs.shape[1])]
        return class_contents(probs, classes or numbers, target)
    classes = _stated_classes(columns, 2) or ["0", "1"]
    if target is not None and target.dtype.kind == "b":
        target = target.astype(np.int64)
    named = set() if target is None or target.ndim != 1 else {*as_class_names(target)}
    if not named <= {*classes}:
        remedy = f"call the column {name}_<class> after the class of the probability"
        if len(named) > 2:
            remedy = f"save the probabilities of all classes as {name}_<class>"
        raise PredictionsError(
            f"'{name}' is the probability of class 1, and '{_TRUE}' holds"
            f" {', '.join(sorted(named)[:4])}; {remedy}"
        )
    _refuse_predicted(columns, name, probs, classes[0])
    return class_contents(np.stack([1.0 - probs, probs], axis=1), classes, target)


def _refuse_predicted(
    columns: Columns, name: str, probs: NDArray[Any], negative: str
) -> None:
    """Raise if the probabilities are those of the predicted classes."""
    if _PREDICTED not in columns or columns[_PREDICTED].shape != probs.shape:
        return
    predicted = np.array(as_class_names(columns[_PREDICTED]))
    lowest = probs[predicted == negative].min(initial=np.inf)
    if probs.min() >= _HALF and _HALF < lowest < np.inf:
        raise PredictionsError(
            f"'{name}' is above 0.5 in every row in which {_PREDICTED} is {negative},"
            " so it seems to be the probability of the predicted class; save that of"
            " class 1, such as model.predict_proba(X)[:, 1]"
        )


def _stated_classes(columns: Columns, count: int) -> list[str] | None:
    classes = columns.get(_CLASSES)
    if classes is None:
        return None
    names = as_class_names(classes)
    if len(names) != count:
        raise PredictionsError(
            f"'{_CLASSES}' must name {count} classes, one for each probability, got"
            f" {len(names)}; save model.classes_"
        )
    return names


def _of_values(columns: Columns, task: str | None) -> ForeignContents:
    """Return contents from the predicted values of a regression."""
    if _DEVIATION not in columns and task != "regression":
        raise PredictionsError(
            f"'{_TRUE}' and '{_PREDICTED}' alone may be classes or values; for classes"
            " add their probabilities (y_prob, or y_prob_<class> for each), and for"
            " values say --task regression (task=...)"
        )
    used = {"target": _TRUE, "mean": _PREDICTED, "std": _DEVIATION}
    arrays = {
        field: _numbers(columns, name)
        for field, name in used.items()
        if name in columns
    }
    return ForeignContents(
        arrays={**arrays, **own_columns(columns, "regression")},
        notes=(
            f"read as values of scikit-learn: {len(arrays['mean'])} items",
            *unread_note(
                columns, [*used.values(), *own_columns(columns, "regression")]
            ),
        ),
    )


def _numbers(columns: Columns, name: str) -> NDArray[Any]:
    values = columns[name]
    if values.dtype.kind not in "fiub":
        raise PredictionsError(
            f"'{name}' must be numbers, got {values.flat[0].item()!r:.60}; correct the"
            " column"
        )
    return values


def _finished(
    contents: ForeignContents, columns: Columns, used: Sequence[str]
) -> ForeignContents:
    """Return the contents with the columns that have our names, and with notes."""
    own = own_columns(columns, "classification")
    probs = contents.arrays["probs"]
    classes = contents.header.get(_CLASSES) or range(probs.shape[1])
    words = ", ".join(map(str, list(classes)[:8])) + (
        " ..." if len(classes) > 8 else ""
    )
    count = len(probs)
    notes = [
        f"read as probabilities of scikit-learn: {count} {plural(count, 'item')},"
        f" classes {words}"
    ]
    if _PREDICTED in columns:
        shown = [str(name) for name in classes]
        named = as_class_names(columns[_PREDICTED])
        pairs = zip(named, probs.argmax(axis=1), strict=True)
        other = sum(name != shown[best] for name, best in pairs)
        notes.append(
            f"the predicted class is the one with the largest probability; {_PREDICTED}"
            f" has another one in {other} of {count} items"
        )
    known = [*used, *own, _TRUE, _PREDICTED]
    return replace(
        contents,
        arrays={**contents.arrays, **own},
        notes=(*notes, *unread_note(columns, known)),
    )
