"""Figure 11: how long the embeddings of upstream and downstream items are."""

from collections.abc import Iterator

from qualms.benchmarks.url._settings import UrlStudy
from qualms.evaluate.entry import Histogram
from qualms.report.figures import SERIES, Drawing, HistogramMark, Panel
from qualms.study import Variant


def norm_figure(study: UrlStudy) -> Iterator[Drawing]:
    """Yield figure 11, of InfoNCE, whose uncertainty is one over the length."""
    histograms = []
    for variant in study.backbones:
        histogram = study.results.histograms.get(
            variant=variant.name, row="infonce", name="norm"
        )
        if histogram is not None:
            histograms.append((variant, histogram))
    if not histograms:
        return
    variants = [variant for variant, _ in histograms]
    yield Drawing(
        name="figure_11",
        title="Figure 11: length of embeddings",
        caption="Shares of the items by the length of their embedding, as doublings of "
        "the median upstream one (-1 is half of it), of InfoNCE, which never trains "
        "the length and takes one over it as uncertainty. "
        f"{study.source(variants)}",
        rows=(tuple(_panel(variant, lengths) for variant, lengths in histograms),),
        simulated=any(variant.simulated for variant in variants),
        size=(3.2, 2.2),
    )


def _panel(variant: Variant, histogram: Histogram) -> Panel:
    return Panel(
        marks=tuple(
            HistogramMark(
                edges=histogram.edges,
                heights=heights,
                colour=SERIES[place % len(SERIES)],
                label=name,
            )
            for place, (name, heights) in enumerate(histogram.parts.items())
        ),
        title=variant.label,
        x_label="doublings of the median upstream length",
        y_label="share of items",
    )
