"""Predictions that pages show item by item: files, and the first runs of benchmarks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

from qualms.report.site.charts import source_chart
from qualms.report.site.contents import ShownBenchmark, SiteContents
from qualms.report.site.first_runs import FirstRun, first_runs
from qualms.report.site.markup import Html, name
from qualms.report.site.page import DataFile, Download, Fragment, fragment, slug
from qualms.runs import stored
from qualms.spec import parse_split


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSource:
    """Predictions whose items are shown."""

    label: str
    group: str
    """Its group: a benchmark with its variant, or the files of a user."""
    path: Path
    gallery: Path | None = None
    """Embeddings among which neighbours are sought; None for its own."""
    simulated: bool = False
    draws: str | None = None
    """What several draws vary, where the user said it."""
    background: str | int | None = None
    """The class that is background, where the user said it."""


def item_sources(
    contents: SiteContents, tasks: Collection[str]
) -> Iterator[ItemSource]:
    """Yield the predictions of a site that are of one of these tasks, files first.

    Of benchmarks, the first test split of every run comes before the others, so that a
    page that shows only some of them shows as many runs as possible.
    """
    for file in contents.files:
        if file.path is not None and file.results.task in tasks:
            yield ItemSource(
                label=file.results.name,
                group="Files",
                path=file.path,
                gallery=file.gallery,
                draws=file.results.header.draws,
                background=file.results.header.background,
            )
    shown = [each for each in contents.benchmarks if each.report.task in tasks]
    # In turn, so that no benchmark takes the places of the others.
    for sources in zip_longest(*map(_of_benchmark, shown)):
        yield from (source for source in sources if source is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageItems:
    """The data of a source, and data that are loaded when it is shown."""

    value: dict[str, Any]
    richness: int = 0
    """Number of things shown of an item, such as a picture; the richest is first."""
    cases: tuple[DataFile, ...] = ()
    downloads: tuple[Download, ...] = ()
    """Files that hold the same."""


def source_key(page: str, number: int) -> str:
    """Return the name of the data of a source of a page."""
    return slug(f"{page} source {number}")


def source_figure(  # noqa: PLR0913 - the parts of a figure
    kind: str,
    page: str,
    sources: Sequence[ItemSource],
    shown: Sequence[PageItems | str],
    *,
    rules: str,
    tools: Sequence[str] = (),
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Fragment]:
    """Yield a figure in which a source is chosen, its rules, and what is not shown.

    Args:
        kind: The function of `qualms.charts` that draws it.
        page: Slug of the page, with which names of data begin.
        sources: The sources of the site.
        shown: What is shown of the first of them, or why it cannot be.
        rules: How it is read.
        tools: What readers can do with what is shown, as for `source_chart`.
        more: Data that all sources share.
    """
    entries: list[tuple[int, dict[str, str]]] = []
    data: list[DataFile] = []
    reasons: list[Fragment] = []
    downloads: dict[str, tuple[Download, ...]] = {}
    for number, (source, items) in enumerate(zip(sources, shown, strict=False)):
        if isinstance(items, str):
            reasons.append(fragment(name(source.label), f": {items}", tag="li"))
            continue
        key = source_key(page, number)
        downloads[key] = items.downloads
        data += [DataFile(name=key, value=items.value, on_demand=True), *items.cases]
        entry = {"data": key, "label": source.label, "group": source.group}
        entries.append((items.richness, entry))
    if entries:
        # The reader sees the first source before choosing one.
        entries.sort(key=lambda each: -each[0])
        ordered = [entry for _, entry in entries]
        spec = DataFile(name=f"{page}-sources", value={"sources": ordered, **more})
        figure = source_chart(
            kind, page, spec, tools=tools, downloads=downloads, note=rules
        )
        yield fragment(figure, Fragment(html=Html(), data=tuple(data)))
    if reasons:
        yield fragment("These cannot be shown:", tag="p")
        yield fragment(*reasons, tag="ul")
    if len(sources) > len(shown):
        words = f"The first {len(shown)} of {len(sources)} predictions are shown here."
        yield fragment(words, tag="p", class_="small")


def _of_benchmark(shown: ShownBenchmark) -> Iterator[ItemSource]:
    simulated = shown.report.simulated
    splits = [list(_splits(run, simulated=simulated)) for run in first_runs(shown)]
    for place in range(max(map(len, splits), default=0)):
        for sources in splits:
            yield from islice(sources, place, place + 1)


def _splits(run: FirstRun, *, simulated: bool) -> Iterator[ItemSource]:
    for split in run.spec.splits:
        if parse_split(split)[1].partition("/")[0] != "test":
            continue
        file = stored(run.folder.resolve().parent, split)
        if file is not None:
            yield ItemSource(
                label=f"{run.label}, {split}",
                group=run.group,
                path=run.folder / file.name,
                simulated=simulated,
            )
