"""Figure 11: how long the embeddings of upstream and downstream items are."""

from collections.abc import Iterator

from qualms.benchmarks.url._settings import UrlStudy
from qualms.evaluate.entry import Histogram
from qualms.report.figures import SERIES, Drawing, HistogramMark, Panel
from qualms.study import Variant


def norm_figure(study: UrlStudy) -> Iterator[Drawing]:
    """Of InfoNCE, whose uncertainty is one over the length."""
    shown = []
    for variant in study.backbones:
        lengths = study.results.histograms.get(
            variant=variant.name, row="infonce", name="norm"
        )
        if lengths is not None:
            shown.append((variant, lengths))
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
