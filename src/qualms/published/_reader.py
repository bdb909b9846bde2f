"""From a CSV of printed numbers to records that are found by where they stand."""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from qualms.wording import suggest

Value = str | float
Where = Mapping[str, Value]

_MEAN = ("mean", "value")
_SPREAD = {"std": "standard deviation", "stderr": "standard error"}
_ABOUT = ("unit", "note")
# Columns whose values are numbers, so that 0.1 is found however it was printed.
_NUMBERS = ("alpha", "referral", "blur_constant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One printed number: where it stands, its mean and its spread."""

    where: Where
    """The key columns of the CSV: table, dataset, method, metric ..."""
    mean: float
    spread: float | None = None
    """As `Published.spread` says; None where the paper prints none."""
    unit: str = ""
    note: str = ""
    """A remark of ours: a misprint that was corrected, a value that was inferred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """All numbers of one paper's tables."""

    name: str
    numbers: tuple[Number, ...]
    spread: str
    """What the spread is: 'standard deviation' or 'standard error'; '' for none."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Remarks on whole tables, by table."""
    _index: Mapping[frozenset[tuple[str, Value]], Number] = field(
        default_factory=dict, repr=False, compare=False
    )

    def get(self, where: Where) -> Number | None:
        """The number at exactly `where`, every key column given, or None."""
        return self._index.get(frozenset(where.items()))

    def find(self, where: Where) -> Number:
        """The one number that has all of `where`, which may leave out columns.

        >>> at = {"table": "A2", "method": "Gaussian", "metric": "test_coverage"}
        >>> published("regression").find(at).mean
        0.54402
        """
        self._check(where)
        found = self._index.get(frozenset(where.items()))
        if found is not None:
            return found
        fitting = [n for n in self.numbers if where.items() <= n.where.items()]
        if len(fitting) != 1:
            raise LookupError(
                f"{len(fitting)} numbers of {self.name} have {dict(where)}; name "
                f"values that one number has, of {', '.join(self.numbers[0].where)}"
            )
        return fitting[0]

    def _check(self, where: Where) -> None:
        for column, value in where.items():
            known = {n.where[column] for n in self.numbers if column in n.where}
            if not known:
                columns = tuple(self.numbers[0].where)
                raise LookupError(
                    f"no column {column!r} in {self.name}.{suggest(column, columns)}"
                    f" Known: {', '.join(columns)}."
                )
            if value not in known:
                hint = suggest(str(value), map(str, known))
                raise LookupError(f"no {column} {value!r} in {self.name}.{hint}")


@cache
def published(name: str) -> Published:
    """The published numbers of benchmark `name`: regression, retina, url, values.

    >>> published("regression").spread
    'standard deviation'
    """
    folder = files("qualms.published")
    known = sorted(
        entry.name.removesuffix(".csv")
        for entry in folder.iterdir()
        if entry.name.endswith(".csv")
    )
    if name not in known:
        raise LookupError(
            f"no {name!r} in published.{suggest(name, known)} "
            f"Known: {', '.join(known)}."
        )
    text = (folder / f"{name}.csv").read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    status = folder / f"{name}_published_status.json"
    said = json.loads(status.read_text("utf-8")) if status.is_file() else {}
    numbers = tuple(_corrected(_number(row), said.get("errata", ())) for row in rows)
    return Published(
        name=name,
        numbers=numbers,
        spread=next((_SPREAD[c] for c in rows[0] if c in _SPREAD), ""),
        notes=_notes(said),
        _index={frozenset(number.where.items()): number for number in numbers},
    )


def _number(row: Mapping[str, str]) -> Number:
    (mean,) = (row[column] for column in _MEAN if column in row)
    spread = next((row[column] for column in _SPREAD if column in row), "")
    keys = (c for c in row if c not in (*_MEAN, *_SPREAD, *_ABOUT))
    return Number(
        where={column: _value(column, row[column]) for column in keys},
        mean=float(mean),
        spread=float(spread) if spread else None,
        unit=row.get("unit", ""),
        note=row.get("note", ""),
    )


def _value(column: str, text: str) -> Value:
    return float(text) if column in _NUMBERS and text else text


def _corrected(number: Number, errata: Any) -> Number:
    """`number` with its misprint, if it has one, replaced by what must be true."""
    for entry in errata:
        place = {key: entry[key] for key in ("table", "dataset", "method", "metric")}
        if place.items() <= number.where.items():
            return Number(
                where=number.where,
                mean=float(entry["likely_true"]),
                spread=number.spread,
                unit=number.unit,
                note=f"misprint: the paper prints {entry['printed']}",
            )
    return number


def _notes(said: Mapping[str, Any]) -> dict[str, str]:
    return {
        table: "the text read had its row labels one line too high; corrected"
        for table, about in said.get("per_table", {}).items()
        if about["status"] == "label-shift-corrected"
    }
