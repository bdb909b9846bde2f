"""Figure 11: how long the embeddings of upstream and downstream items are."""

from collections.abc import Iterator

from qualms.benchmarks import Variant
from qualms.evaluate.entry import Histogram
from qualms.report.figures import SERIES, Drawing, HistogramMark, Panel
from qualms.report.papers.url.settings import UrlStudy


def norm_figure(study: UrlStudy) -> Iterator[Drawing]:
    """Of InfoNCE, whose uncertainty is one over the length."""
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
        caption="Shares of the items by the length of their embedding, as doublings of "
        "the median upstream one (-1 is half of it), of InfoNCE, which never trains "
        "the length and takes one over it as uncertainty. "
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
        x_label="doublings of the median upstream length",
        y_label="share of items",
    )
