"""The page of a benchmark: findings, leaderboard, figures, tables, and its making."""

from collections.abc import Iterator

from qualms.report.site.charts import figure_of
from qualms.report.site.contents import ShownBenchmark, SiteContents
from qualms.report.site.page import Fragment, Page, section, slug


def benchmark(contents: SiteContents) -> Iterator[Page]:
    """Yield a page for each benchmark."""
    for number, shown in enumerate(contents.benchmarks):
        report = shown.report
        yield Page(
            path=f"{shown.slug}.html",
            title=report.title,
            nav=report.name,
            order=10 + number,
            simulated=report.simulated,
            body=(_figures(shown),),
        )


def _figures(shown: ShownBenchmark) -> Fragment:
    figures = [
        figure_of(drawing, slug(f"{shown.slug}-{drawing.name}"))
        for drawing in shown.report.figures
    ]
    return section(f"{shown.slug}-figures", "Figures", *figures)
