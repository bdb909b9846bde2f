"""Filters of runs such as `method=mfvi`, `auroc>0.9` and `status=failed`."""

import operator
import re
from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from qualms.catalogue._record import STATUSES, RunRecord, Value
from qualms.wording import suggest

_FORM = re.compile(r"(?P<name>[^=<>!]+?)\s*(?P<sign>>=|<=|!=|=|>|<)\s*(?P<value>.*)")
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_SHOWN = 12
"""Known names that a message lists."""


class Filter(NamedTuple):
    """A condition on one label, option or score."""

    name: str
    sign: str
    values: tuple[str, ...]
    """Values of which one must match for `=`, and none for `!=`."""

    def fits(self, record: RunRecord) -> bool:
        """Return whether a run fulfils the condition; runs without the name do not."""
        value = record.get(self.name)
        if self.sign in _ORDERS:
            number = _number(value)
            limit = _number(self.values[0])
            if number is None or limit is None:
                return False
            return _ORDERS[self.sign](number, limit)
        if value is None:
            return self.sign == "!="
        return any(_same(value, each) for each in self.values) == (self.sign == "=")


def parse_filters(texts: Sequence[str]) -> tuple[Filter, ...]:
    """Parse filters; raise a ValueError with a sentence on an invalid one.

    >>> parse_filters(["method=map,mfvi", "auroc > 0.9"])[1].values
    ('0.9',)
    """
    return tuple(map(_parsed, texts))


def _parsed(text: str) -> Filter:
    match = _FORM.fullmatch(text.strip())
    if match is None or not match["value"]:
        raise ValueError(
            "a filter must read like method=mfvi, auroc>0.9 or status=failed, got"
            f" {text!r}; quote it where it has < or >, which a shell reads otherwise"
        )
    name, sign, value = match["name"].strip(), match["sign"], match["value"].strip()
    parts = value.split(",") if sign in ("=", "!=") else [value]
    values = tuple(part.strip() for part in parts)
    if sign in _ORDERS and _number(values[0]) is None:
        raise ValueError(
            f"{name} {sign} must be followed by a number, got {value!r}; compare text"
            " with = or !="
        )
    if name == "status":
        for each in values:
            _check_status(each)
    return Filter(name, sign, values)


def refuse_unknown(names: Sequence[str], known: Collection[str]) -> None:
    """Raise unless each name is known; the message suggests the closest one."""
    for name in names:
        if name not in known:
            shown = ", ".join(sorted(known)[:_SHOWN])
            more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
            raise LookupError(
                f"no run has a label, option or score {name!r}."
                f"{suggest(name, known)} Known: {shown}{more}."
            )


def _check_status(status: str) -> None:
    if "*" not in status and status not in STATUSES:
        raise LookupError(
            f"no status {status!r}.{suggest(status, STATUSES)} Known: "
            f"{', '.join(STATUSES)}."
        )


def _same(value: Value, text: str) -> bool:
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if isinstance(value, int | float):
        return _number(text) == value
    return fnmatchcase(value, text)


def _number(value: Value | None) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except ValueError:
        return None
