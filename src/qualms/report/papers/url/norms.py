"""Figure 11: how long the embeddings of upstream and downstream items are."""

from collections.abc import Iterator

from qualms.benchmarks import Variant
from qualms.evaluate.entry import Histogram
from qualms.report.figures import SERIES, Drawing, HistogramMark, Panel
from qualms.report.papers.url.settings import UrlStudy


def norm_figure(study: UrlStudy) -> Iterator[Drawing]:
    """For InfoNCE, whose uncertainty is one over the length; else for the first row."""
    shown = []
    for variant in study.backbones:
        found = _lengths(study, variant)
        if found is not None:
            shown.append((variant, found))
    if not shown:
        return
    variants = [variant for variant, _ in shown]
    yield Drawing(
        name="figure_11",
        title="Figure 11: length of embeddings",
        caption="Shares of the items by the length of their embedding, in units of the "
        "median upstream one, of InfoNCE, which never trains the length and takes one "
        "over it as uncertainty. Longer ones than the axis shows are in the last bin. "
        f"{study.source(variants)}",
        rows=(tuple(_panel(variant, found) for variant, found in shown),),
        simulated=any(variant.simulated for variant in variants),
        size=(3.2, 2.2),
    )


def _lengths(study: UrlStudy, variant: Variant) -> Histogram | None:
    for key, histogram in study.results.histograms.items():
        if (key.variant, key.row, key.name) == (variant.name, "infonce", "norm"):
            return histogram
    return None


def _panel(variant: Variant, found: Histogram) -> Panel:
    return Panel(
        marks=tuple(
            HistogramMark(
                edges=found.edges,
                heights=heights,
                colour=SERIES[place % len(SERIES)],
                label=name,
            )
            for place, (name, heights) in enumerate(found.parts.items())
        ),
        title=variant.label,
        x_label="length of the embedding",
        y_label="share of items",
    )
