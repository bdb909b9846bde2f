"""Tables whose columns may have any names: a clinic's list, a database's export.

No column is recognised. Options of `qualms convert table` name the columns, so that
nothing is guessed from values. Columns may be separated by commas, semicolons, tabs
or bars: the separator is the one under which the first line has these names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import (
    PredictionsError,
    array_names,
    as_floats,
    stored_columns,
)
from qualms.readers import ForeignContents, ForeignRequest, Reader
from qualms.readers._columns import (
    Columns,
    as_class_names,
    class_contents,
    unread_note,
)
from qualms.wording import plural

_SEPARATORS = ",;\t|"
_DEFAULTS = {"0", "1"}
"""Classes of a target for which `positive` is not needed."""


@dataclass(frozen=True, kw_only=True)
class _Names:
    """Names of the columns; "" and () for columns that the table does not have."""

    target: str
    prob: str
    positive: str
    probs: Mapping[str, str]
    values: Mapping[str, str]
    alpha: float | None
    item: str
    cluster: str
    groups: Sequence[str]
    shifted: str
    decimal: str

    @property
    def columns(self) -> list[str]:
        """Columns that are read, without repeats."""
        shifted = self.shifted.partition("=")[0]
        single = [self.target, self.prob, self.item, self.cluster, shifted]
        every = [*single, *self.probs.values(), *self.values.values(), *self.groups]
        return list(dict.fromkeys(filter(None, every)))


def table(  # noqa: PLR0913 - an option for each column
    *,
    target: str = "",
    prob: str = "",
    positive: str = "",
    probs: Mapping[str, str] | None = None,
    mean: str = "",
    std: str = "",
    lower: str = "",
    upper: str = "",
    alpha: float | None = None,
    item: str = "",
    cluster: str = "",
    groups: str | Sequence[str] = (),
    shifted: str = "",
    decimal: str = ".",
) -> Reader:
    """Read a table by the names of its columns.

    Args:
        target: Column of the truth.
        prob: Column with the probability of the class `positive`.
        positive: Name in `target` of the class whose probability `prob` is; default 1.
        probs: Columns with probabilities, by class: {"healthy": "p_healthy", ...}.
        mean: Column of predicted values, for a regression.
        std: Column of their standard deviations.
        lower: Column of lower ends of intervals.
        upper: Column of upper ends.
        alpha: Share of values that the intervals aim to miss, 0.1 for 90 % intervals.
        item: Column that names items.
        cluster: Column with the cluster of each item, such as the patient.
        groups: Columns with groups that are scored separately.
        shifted: Column of truth values; or "hospital=partner", a column and the value
            that marks shifted items.
        decimal: The decimal mark, "." or ",".
    """
    values = {"mean": mean, "std": std, "lower": lower, "upper": upper}
    columns = _Names(
        target=target,
        prob=prob,
        positive=str(positive),
        probs={str(name): column for name, column in (probs or {}).items()},
        values={name: column for name, column in values.items() if column},
        alpha=alpha,
        item=item,
        cluster=cluster,
        groups=(groups,) if isinstance(groups, str) else tuple(groups),
        shifted=shifted,
        decimal=decimal,
    )
    return Reader(recognise=lambda _path: False, read=partial(_read, columns))


def _read(names: _Names, path: Path, _request: ForeignRequest) -> ForeignContents:
    _check(names)
    columns = _stored(names, path)
    contents = _values(names, columns) if names.values else _classes(names, columns)
    read = [*names.columns]
    count = len(next(iter(contents.arrays.values())))
    return ForeignContents(
        arrays={**contents.arrays, **_described(names, columns)},
        header=contents.header,
        notes=(
            f"read as a table: {count} {plural(count, 'item')}, {_taken(names)}",
            *unread_note(columns, read),
        ),
    )


def _check(names: _Names) -> None:
    kinds = {"prob": names.prob, "probs": names.probs, "mean": names.values}
    used_kinds = [kind for kind, value in kinds.items() if value]
    if len(used_kinds) != 1:
        got = " and ".join(used_kinds) or "none of them"
        raise PredictionsError(
            "say which columns hold predictions: -o prob=COLUMN for two classes, -o"
            ' \'probs={"CLASS": "COLUMN", ...}\' for more, or -o mean=COLUMN,'
            f" or -o lower=COLUMN and -o upper=COLUMN, for values; got {got}"
        )
    if names.decimal not in {".", ","}:
        raise PredictionsError(f"decimal must be . or , got {names.decimal!r:.20}")
    if (names.alpha is not None) != bool({"lower", "upper"} & {*names.values}):
        raise PredictionsError(
            "alpha says what share the intervals aim to miss, 0.1 for 90 % intervals;"
            " say -o lower=COLUMN, -o upper=COLUMN and -o alpha=0.1 together"
        )
    if names.positive and not names.prob:
        raise PredictionsError("positive says which class prob is of; say prob, too")


def _stored(names: _Names, path: Path) -> Columns:
    if path.suffix.lower() == ".npz":
        raise PredictionsError(
            "a table must be .csv or .parquet, got '.npz'; name its arrays as"
            " `qualms docs predictions` says"
        )
    separator = _separator(names, path) if path.suffix.lower() == ".csv" else ","
    columns = stored_columns(
        path,
        separator=separator,
        decimal=names.decimal,
        text=(names.item,),
    )
    for name in names.columns:
        if name not in columns:
            raise PredictionsError(
                f"no column '{name:.60}'; there are {', '.join(columns):.300}"
            )
    return columns


def _separator(names: _Names, path: Path) -> str:
    """Return the separator under which the first line has most of the stated names."""
    return max(
        _SEPARATORS,
        key=lambda mark: len({*names.columns} & {*array_names(path, separator=mark)}),
    )


def _classes(names: _Names, columns: Columns) -> ForeignContents:
    target = _truth(names, columns)
    if names.probs:
        each = [_shares(columns, name, names.decimal) for name in names.probs.values()]
        return class_contents(np.stack(each, axis=1), list(names.probs), target)
    if target is not None and target.dtype.kind == "b":
        # True is class 1, unless `positive` names the class as the table does.
        target = np.where(target, "true", "false") if names.positive else target * 1
    prob = _shares(columns, names.prob, names.decimal)
    classes = _two_classes(names, target)
    return class_contents(np.stack([1.0 - prob, prob], axis=1), classes, target)


def _truth(names: _Names, columns: Columns) -> NDArray[Any] | None:
    """Return the true classes; None if the table has none."""
    target = columns.get(names.target)
    if target is not None and target.dtype.kind == "U" and np.any(target == ""):
        row = int(np.argmax(target == ""))
        raise PredictionsError(
            f"column '{names.target}', row {row} is empty, so its class is not known;"
            " fill it, or leave the row out"
        )
    return target


def _two_classes(names: _Names, target: NDArray[Any] | None) -> list[str]:
    """Return the names of the other class and of the positive one."""
    classes = set() if target is None else {*as_class_names(target)}
    if not names.positive and classes <= _DEFAULTS:
        return ["0", "1"]
    listed = ", ".join(sorted(classes)[:4])
    if not names.positive:
        raise PredictionsError(
            f"column '{names.target}' holds {listed}; say which of them"
            f" '{names.prob}' is the probability of: -o positive=NAME"
        )
    positive = names.positive
    if positive not in classes:
        matches = [name for name in classes if name.casefold() == positive.casefold()]
        positive = matches[0] if len(matches) == 1 else positive
    others = sorted(classes - {positive})
    if len(others) == len(classes) == 2:
        raise PredictionsError(
            f"column '{names.target}' holds {listed}, and positive is"
            f" {positive!r:.60}; say one of them"
        )
    if len(others) > 1:
        raise PredictionsError(
            f"column '{names.target}' holds {listed}, which are more than two classes;"
            ' say -o \'probs={"CLASS": "COLUMN", ...}\' with a column for each'
        )
    return [others[0] if others else f"not {positive}", positive]


def _values(names: _Names, columns: Columns) -> ForeignContents:
    used = dict(names.values)
    if names.target:
        used["target"] = names.target
    return ForeignContents(
        arrays={
            field: _numbers(columns, name, names.decimal)
            for field, name in used.items()
        },
        header={} if names.alpha is None else {"alpha": names.alpha},
    )


def _described(names: _Names, columns: Columns) -> dict[str, NDArray[Any]]:
    """Return further arrays: names of items, clusters, groups, and `shifted`."""
    arrays: dict[str, NDArray[Any]] = {}
    if names.item:
        arrays["item"] = columns[names.item]
    if names.cluster:
        arrays["cluster"] = columns[names.cluster]
    for name in names.groups:
        arrays[f"group/{name}"] = np.array(as_class_names(columns[name]))
    if names.shifted:
        arrays["shifted"] = _shifted(names.shifted, columns)
    return arrays


def _shifted(rule: str, columns: Columns) -> NDArray[Any]:
    name, equals, wanted = rule.partition("=")
    values = columns[name]
    if equals:
        texts = as_class_names(values)
        if wanted not in texts:
            raise PredictionsError(
                f"no row of column '{name}' is {wanted!r:.60}; it holds"
                f" {', '.join(sorted({*texts})[:6])}"
            )
        return np.array([value == wanted for value in texts])
    if values.dtype.kind == "b" or set(values.tolist()) <= {0, 1}:
        return values.astype(bool)
    example = as_class_names(values)[0]
    raise PredictionsError(
        f"column '{name}' is no truth value; say which value is shifted: -o"
        f" shifted={name}={example:.40}"
    )


def _numbers(columns: Columns, name: str, decimal: str) -> NDArray[Any]:
    values = columns[name]
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    texts = [str(value) for value in values.tolist()]
    if (numbers := as_floats(texts, decimal=decimal)) is not None:
        return np.array(numbers)  # 007, or a whole number of very many digits
    row = next(
        r for r, text in enumerate(texts) if not as_floats([text], decimal=decimal)
    )
    remedy = "correct it, or leave the row out"
    if texts[row].endswith("%"):
        remedy = "write a share, such as 0.25 for 25%"
    elif as_floats([texts[row]], decimal=(other := "," if decimal == "." else ".")):
        remedy = f"say -o decimal={other} if that is the decimal mark"
    raise PredictionsError(
        f"column '{name}', row {row} must be a number, it is"
        f" {texts[row]!r:.60}; {remedy}"
    )


def _shares(columns: Columns, name: str, decimal: str) -> NDArray[Any]:
    """Return probabilities; whether they are finite is checked with all arrays."""
    values = _numbers(columns, name, decimal)
    outside = (values < 0.0) | (values > 1.0)
    if outside.any():
        row = int(np.argmax(outside))
        raise PredictionsError(
            f"column '{name}', row {row} must be a probability from 0 to 1, it is"
            f" {values[row]:g}; divide per cents by 100"
        )
    return values


def _taken(names: _Names) -> str:
    probs = {f"P({name})": column for name, column in names.probs.items()}
    if names.prob:
        probs = {f"P({names.positive or 1})": names.prob}
    pairs = {"truth": names.target, **probs, **names.values}
    pairs |= {"item": names.item, "cluster": names.cluster, "shifted": names.shifted}
    words = [f"{what} from {column}" for what, column in pairs.items() if column]
    words += [f"group from {name}" for name in names.groups]
    return ", ".join(words)
