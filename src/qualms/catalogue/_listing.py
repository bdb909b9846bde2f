"""`qualms.list_runs`: the runs below a folder, chosen by labels, options and scores."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from qualms.atomic import replacing
from qualms.catalogue._filters import parse_filters, refuse_unknown
from qualms.catalogue._index import indexed_runs
from qualms.catalogue._record import RunRecord, Value
from qualms.results import harmless
from qualms.wording import in_one_line, plural, suggest

OWN = ("run", "folder", "status", "error")
"""Names that every run has, besides labels, options and scores."""
ENDINGS = (".csv", ".json", ".parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunListing:
    """Runs in some order; iterate over it, or make a frame of it."""

    records: tuple[RunRecord, ...]
    total: int
    """Runs below the folder, whether they were chosen or not."""

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[RunRecord]:
        return iter(self.records)

    def __repr__(self) -> str:
        """Return a summary in words."""
        runs = plural(self.total, "run")
        return f"<RunListing: {len(self):,} of {self.total:,} {runs}>"

    def where(self, *filters: str) -> "RunListing":
        """Return the runs that fulfil every filter, such as `"auroc>0.9"`.

        Raises:
            LookupError: If no run has the name that a filter is about.
        """
        parsed = parse_filters(filters)
        if self.records:
            refuse_unknown([each.name for each in parsed], self.names)
        chosen = [r for r in self.records if all(each.fits(r) for each in parsed)]
        return replace(self, records=tuple(chosen))

    def sorted(self, *names: str) -> "RunListing":
        """Return the runs sorted by names; `-auroc` sorts from the highest down.

        Runs that lack a name come last.
        """
        records = list(self.records)
        plain = [name.removeprefix("-") for name in names]
        if records:
            refuse_unknown(plain, self.names)
        for name, signed_name in reversed(list(zip(plain, names, strict=True))):
            records.sort(key=lambda r: _order(r.get(name)), reverse=signed_name != name)
            records.sort(key=lambda r: r.get(name) is None)
        return replace(self, records=tuple(records))

    @property
    def names(self) -> dict[str, None]:
        """Every name that any of the runs has, in the order of columns."""
        parts = (
            (record.labels, record.scores, record.options) for record in self.records
        )
        by_part: list[dict[str, None]] = [{}, {}, {}]
        for part in parts:
            for names, values in zip(by_part, part, strict=True):
                names.update(dict.fromkeys(values))
        return {
            name: None for names in (dict.fromkeys(OWN), *by_part) for name in names
        }

    def differing(self) -> dict[str, tuple[Value | None, ...]]:
        """Return the values of each name that differ between these runs."""
        columns = {
            name: tuple(record.get(name) for record in self.records)
            for name in self.names
        }
        return {
            name: values
            for name, values in columns.items()
            if len({(type(value), value) for value in values}) > 1
        }

    def rows(self) -> list[dict[str, Value | None]]:
        """Return a row for each run, all with the same columns."""
        names = self.names
        return [{name: r.get(name) for name in names} for r in self.records]

    def to_frame(self) -> Any:
        """Return a pandas frame with a row for each run."""
        import pandas as pd  # type: ignore[import-untyped]

        return pd.DataFrame(self.rows(), columns=list(self.names))

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the runs to a .csv, .json or .parquet file, and return its path."""
        file = Path(path)
        if file.suffix not in ENDINGS:
            raise ValueError(
                f"runs are exported to {', '.join(ENDINGS)}, got {file.name!r}."
                f"{suggest(file.suffix, ENDINGS)} Choose one of these endings"
            )
        with replacing(file) as temporary:
            if file.suffix == ".json":
                rows: list[Any] = [record.to_json() for record in self.records]
                temporary.write_text(json.dumps(rows, indent=1), encoding="utf-8")
            elif file.suffix == ".parquet":
                self.to_frame().to_parquet(temporary)
            else:
                _write_csv(temporary, list(self.names), self.rows())
        return file


@in_one_line
def list_runs(
    folder: str | PathLike[str] = "runs",
    filters: str | Iterable[str] = (),
    *,
    sort: str | Sequence[str] = (),
) -> RunListing:
    """Return the runs below a folder, as `qualms runs` lists them.

    Args:
        folder: Where runs are: `--out` of `qualms run`, or a benchmark in it.
        filters: Conditions such as `"method=mfvi"`, `"auroc>0.9"`, `"status=failed"`.
        sort: Names to sort by; `"-auroc"` sorts from the highest down.
    """
    place = Path(folder)
    if not place.is_dir():
        beside = place.parent.iterdir() if place.parent.is_dir() else ()
        hint = suggest(place.name, [other.name for other in beside if other.is_dir()])
        raise ValueError(
            f"there is no folder {str(place)!r} with runs.{hint} Name the folder that"
            " qualms run wrote to"
        )
    records = indexed_runs(place)
    everything = RunListing(records=tuple(records), total=len(records))
    texts = [filters] if isinstance(filters, str) else list(filters)
    names = [sort] if isinstance(sort, str) else list(sort)
    # Names are checked against all runs, not only against those that pass the filters.
    if everything.records:
        refuse_unknown([n.removeprefix("-") for n in names], everything.names)
    return everything.where(*texts).sorted(*names)


def _order(value: Value | None) -> tuple[bool, float, str]:
    """Return a key that sorts numbers before texts."""
    if isinstance(value, int | float):
        return False, float(value), ""
    return True, 0.0, str(value)


def _write_csv(path: Path, names: list[str], rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for row in rows:
            writer.writerow({name: harmless(value) for name, value in row.items()})
