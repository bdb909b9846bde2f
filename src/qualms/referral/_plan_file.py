"""The file of a plan: JSON with its kind and a checksum."""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

KIND = "qualms referral plan"
FILE_FORMAT = 1
LISTS = ("uncertainty", "predicted")
"""Long lists of the reference, each of which is written on one line."""
# A plan holds at most twice 5,000 numbers; a far larger file is no plan.
LARGEST_BYTES = 8_000_000


class PlanError(ValueError):
    """A file that is no plan, or not a complete one; the message says why."""


def file_text(plan: Mapping[str, Any]) -> str:
    """Return the text of the file that holds `plan`."""
    data = {"kind": KIND, "format": FILE_FORMAT, **plan}
    data["checksum"] = checksum(data)
    reference = data["reference"]
    data["reference"] = reference | {name: f"@{name}" for name in LISTS}
    text = json.dumps(data, indent=2, allow_nan=False)
    for name in LISTS:
        # The last occurrence, because an uncertainty may have any name.
        head, _, tail = text.rpartition(f'"@{name}"')
        text = head + json.dumps(reference[name], allow_nan=False) + tail
    return text + "\n"


def checksum(data: Mapping[str, Any]) -> str:
    """Return a hash of all fields of a plan's file except `checksum`."""
    rest = {name: value for name, value in data.items() if name != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_fields(file: Path) -> "Fields":
    """Return the content of a plan's file.

    Raises:
        PlanError: If it is no plan, damaged, changed, or of a newer version.
    """
    data = _load(file)
    _check_file(data, file)
    return Fields(data)


class Fields:
    """The values of a JSON object, each checked for its kind."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    @property
    def names(self) -> list[str]:
        """The names of the values, in the order of the file."""
        return list(self._data)

    def check_names(self, names: set[str]) -> None:
        """Raise if there is a value with another name."""
        others = sorted(set(self._data) - names)
        if others:
            raise ValueError(f"unknown {', '.join(map(repr, others))}")

    def under(self, name: str) -> "Fields":
        """Return the object called `name`."""
        return Fields(self.of(name, dict))

    def of(self, name: str, kind: Any) -> Any:
        """Return the value called `name`; raise unless it is of this `kind`."""
        value = self._data[name]
        if not isinstance(value, kind) or (
            isinstance(value, bool) and kind is not bool
        ):
            raise TypeError(f"'{name}' is {value!r:.40}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"'{name}' is {value}")
        return value

    def share(self, name: str) -> float:
        """Return a number between 0 and 1."""
        share = float(self.of(name, (int, float)))
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"'{name}' is {share:g}, which is no share")
        return share

    def text(self, name: str) -> str | None:
        """Return a text; None for null."""
        text: str | None = self.of(name, (str, type(None)))
        return text

    def number(self, name: str, *, otherwise: float = math.nan) -> float:
        """Return a number; `otherwise` for null."""
        value = self.number_or_none(name)
        return otherwise if value is None else value

    def number_or_none(self, name: str) -> float | None:
        """Return a number; None for null."""
        value = self.of(name, (int, float, type(None)))
        return None if value is None else float(value)

    def count(self, name: str) -> int | None:
        """Return an integer; None for null."""
        count: int | None = self.of(name, (int, type(None)))
        return count


def _load(file: Path) -> dict[str, Any]:
    try:
        large = file.stat().st_size > LARGEST_BYTES
        text = "" if large else file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        _refuse(file, f"cannot be read ({error.strerror})", "check the path")
    if large:
        _refuse(file, "is too large for a plan", "give the file of --plan")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        _refuse(
            file,
            "is not the JSON of a plan; it may be cut short, or something else",
            "give the file that qualms refer --plan wrote, or make it again",
        )
    if not isinstance(data, dict):
        _refuse(file, "is JSON, but not of a plan", "give the file of --plan")
    return data


def _check_file(data: dict[str, Any], file: Path) -> None:
    """Raise unless `data` is a plan of this format with the right checksum."""
    if data.get("kind") != KIND:
        printed = {"request", "outcomes"} <= set(data)
        what = "is what --json prints, which is" if printed else "is JSON, but"
        _refuse(file, f"{what} not the file of a plan", "write one with --plan FILE")
    version = data.get("format")
    if isinstance(version, int) and version > FILE_FORMAT:
        _refuse(
            file,
            f"was written in format {version} by a newer qualms, this one reads up to "
            f"{FILE_FORMAT}",
            "upgrade with pip install -U qualms-bench",
        )
    if data.get("checksum") != checksum(data):
        _refuse(
            file,
            "was changed after it was written, so that nobody knows what it promises",
            "take the original, or make the plan again",
        )


def _refuse(file: Path, problem: str, remedy: str) -> NoReturn:
    raise PlanError(f"{file}: {problem}; {remedy}") from None
