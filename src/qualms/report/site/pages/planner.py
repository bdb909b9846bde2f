"""The planner: which items should an expert see, by budget or by target."""

from collections.abc import Iterator
from itertools import islice

from qualms.report.site.charts import TOOLS, on_paper, source_chart
from qualms.report.site.contents import SiteContents
from qualms.report.site.markup import Html, element, name
from qualms.report.site.page import (
    DataFile,
    Download,
    Fragment,
    Page,
    fragment,
    slug,
)
from qualms.report.site.plan_figure import plan_drawing
from qualms.report.site.plans import MOST, PlanSource, plan_data, plan_sources

LEAD = (
    "Items at or above a threshold on the uncertainty go to an expert, the network"
    " decides the rest. Choose what you need."
)
RULES = (
    "A promise is about new items like those that the threshold is chosen on, and"
    " holds with the stated confidence for a request that was made without looking at"
    " them. It says nothing of another population: the other sets show what becomes of"
    " it there. Items of equal uncertainty are referred together or not at all."
    " The command qualms docs promise prints the proof."
)


def planner(contents: SiteContents) -> Iterator[Page]:
    """Yield the planner of all predictions that a plan can be made on, if any."""
    sources = list(plan_sources(contents))
    entries: list[tuple[bool, dict[str, str]]] = []
    data: list[DataFile] = []
    reasons: list[Fragment] = []
    files: dict[str, tuple[Download, ...]] = {}
    for source in islice(sources, MOST):
        try:
            choices = source.choices()
        except ValueError as error:
            reasons.append(_reason(source, str(error)))
            continue
        value = plan_data(choices, source.command)
        keys = [each.name for each in data]
        key = slug(f"plan {source.label}", keys)
        data.append(DataFile(name=key, value=value, on_demand=True))
        if contents.on_paper:
            drawing = plan_drawing(choices, source.label, simulated=source.simulated)
            files[key] = on_paper(drawing, key, None)
        entry = {"data": key, "label": source.label, "group": source.group}
        entries.append((not value["scores"], entry))
    if not sources:
        return
    yield Page(
        path="planner.html",
        title="Which items should an expert see?",
        nav="Planner",
        order=50,
        lead=LEAD,
        simulated=contents.simulated,
        body=(
            # Those with a target to promise come first, as the first one is shown.
            *([_figure(_first_false(entries), data, files)] if entries else []),
            *_missing(sources, reasons),
        ),
    )


def _first_false(entries: list[tuple[bool, dict[str, str]]]) -> list[dict[str, str]]:
    return [entry for _, entry in sorted(entries, key=lambda each: each[0])]


def _figure(
    entries: list[dict[str, str]],
    data: list[DataFile],
    files: dict[str, tuple[Download, ...]],
) -> Fragment:
    """Return the element that `assets/charts/planner.js` fills."""
    spec = DataFile(name="planner-plans", value={"plans": entries})
    figure = source_chart(
        "planner", "planner", spec, tools=TOOLS, downloads=files, note=RULES
    )
    return fragment(figure, Fragment(html=Html(), data=tuple(data)))


def _reason(source: PlanSource, error: str) -> Fragment:
    return fragment(name(source.label), f": {error}", tag="li")


def _missing(sources: list[PlanSource], reasons: list[Fragment]) -> Iterator[Fragment]:
    """Yield what has no plan, and why."""
    if reasons:
        yield fragment("No plan can be made of:", tag="p")
        yield fragment(*reasons, tag="ul")
    if len(sources) > MOST:
        first = sources[MOST]
        before, after = first.command
        yield fragment(
            f"The first {MOST} of {len(sources)} predictions have a plan here; for the"
            " others, such as ",
            name(first.label),
            ", ask the command line: ",
            element("code", f"{before} --accuracy 0.95{after}"),
            tag="p",
        )
