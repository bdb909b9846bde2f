"""Items and queries of a page as files: a line of CSV for each, and a LaTeX table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qualms.report._csv_files import records_csv
from qualms.report._latex import latex_table
from qualms.report.site.page import Download
from qualms.report.table import Column, Table, TableCell, TableLine

_FIRST = ("kind", "item", "right")
_NEIGHBOURS = "neighbours"


def item_files(
    value: Mapping[str, Any], name: str, title: str
) -> tuple[Download, Download]:
    """Return the tiles of a source as CSV and LaTeX.

    Args:
        value: The groups of tiles, as `telling_items` and `query_gallery` return them.
        name: Of the files.
        title: Title of the table.
    """
    records = list(_with_equal_keys([*_records(value)]))
    texts = {
        "csv": records_csv(records),
        "tex": latex_table(_table(records, title, str(value["about"]))),
    }
    csv, tex = (
        Download(name=f"{name}.{ending}", content=text.encode("utf-8", "replace"))
        for ending, text in texts.items()
    )
    return csv, tex


def _records(value: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield each tile as a record, with its neighbours in one text."""
    for group in value["groups"]:
        for tile in group["tiles"]:
            yield {
                "kind": group["title"],
                "item": tile["name"],
                "right": "yes" if tile["right"] else "no",
                **{
                    f"value of {key}" if key in _FIRST else key: words
                    for key, words in tile["lines"]
                },
                **_neighbours(tile.get(_NEIGHBOURS, ())),
            }


def _neighbours(tiles: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    if not tiles:
        return {}
    words = (
        f"{tile['name']} ({', '.join(text for _, text in tile['lines'])})"
        for tile in tiles
    )
    return {_NEIGHBOURS: "; ".join(words)}


def _with_equal_keys(records: Sequence[dict[str, str]]) -> Iterator[dict[str, str]]:
    keys = dict.fromkeys(key for record in records for key in record)
    for record in records:
        yield {key: record.get(key, "") for key in keys}


def _table(records: Sequence[Mapping[str, str]], title: str, about: str) -> Table:
    names = [key for key in (records[0] if records else ()) if key not in _FIRST]
    return Table(
        name="items",
        title=title,
        notes=(about,),
        left=("item", "right"),
        columns=tuple(Column(label=name) for name in names),
        lines=tuple(
            TableLine(
                labels=(record["item"], record["right"]),
                cells=tuple(TableCell(text=record[name]) for name in names),
                section=record["kind"],
            )
            for record in records
        ),
    )
