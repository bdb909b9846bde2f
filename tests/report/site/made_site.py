"""The contents of a site with every kind of page, and names of strangers."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from qualms import score
from qualms.report.figures import (
    SERIES,
    BarMark,
    CloudMark,
    CurveMark,
    Drawing,
    HistogramMark,
    OutlineMark,
    Panel,
    PictureMark,
    PointMark,
    RuleMark,
    WordMark,
)
from qualms.report.presented import report_of
from qualms.report.site._read import contents_of_parts
from qualms.report.site.contents import ScoredFile, SiteGap
from qualms.results import ResultsTable, result
from report.small_study import small_study

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "../../etc/passwd",
    "C:\\Users\\someone\\run.npz",
    "x" * 3000,
    "word " * 400,
    "مرحبا بالعالم، هذا نموذج طويل جدا",
    "\u202egnp.tnecca\u202c",
    "\x1b[31mred\x1b[0m\x07",
    "=HYPERLINK(1)",
    "+1+1",
    "{{ 7 * 7 }} ${7 * 7} {% raw %}",
    "&lt;b&gt; &amp;",
    "\ud800 half a letter",
    "line\nbreak\ttab\x08back",
    "]]> <!-- --> --!>",
    "\u2028\u2029",
    "\U0001d54c\U0001d55f e\u0301 \U0001f469\u200d\U0001f52c " * 9,
)
X = np.linspace(0, 1, 3000)


def drawing(name="figure_1", title="Every mark", label="a <b> name"):
    """A figure with every kind of mark."""
    curves = tuple(
        CurveMark(
            x=X,
            y=X ** (0.5 + number),
            low=X ** (0.5 + number) - 0.05,
            high=X ** (0.5 + number) + 0.05,
            colour=SERIES[number],
            label=f"{label} {number}",
        )
        for number in range(3)
    )
    bars = tuple(
        BarMark(
            x=number,
            height=0.5 + number / 10,
            low=0.4,
            high=0.9,
            colour=SERIES[number],
            label=f"bar {number}",
        )
        for number in range(3)
    )
    histogram = HistogramMark(
        edges=np.arange(6.0), heights=np.arange(5.0), colour=SERIES[0], label="right"
    )
    cloud = CloudMark(x=X[::10], y=X[::10] ** 2, colour=SERIES[1], label="items")
    rule = RuleMark((0.0, 0.2), (1.0, 0.2), line="--", label="promised")
    point = PointMark(x=0.3, y=0.4, low=0.3, high=0.5, label="recommended")
    picture = PictureMark(pixels=np.arange(64.0).reshape(8, 8), heat=True)
    outline = OutlineMark(region=np.eye(8, dtype=bool), colour="#ffffff", label="r")
    return Drawing(
        name=name,
        title=title,
        caption="How it is read.",
        rows=(
            (
                Panel(
                    marks=(*curves, rule, point),
                    title="curves",
                    x_label="share",
                    y_label="value",
                ),
                Panel(marks=(*bars, WordMark(1, 0.8, "words")), title="bars"),
            ),
            (
                Panel(marks=(histogram, cloud), title="both"),
                Panel(marks=(picture, outline), title="picture", bare=True),
            ),
            (Panel(title="nothing", empty="it was not run"), Panel()),
        ),
    )


def severities(label="frost"):
    """Numbers of fog and another corruption at severities 1 and 3."""
    numbers = []
    for place, corruption in enumerate(("fog", label)):
        for severity in (1, 3):
            at = {
                "variant": f"clinic_{corruption}_{severity}",
                "corruption": corruption,
                "severity": severity,
            }
            for which, row in enumerate("abdef"):
                lost = 0.1 * severity + 0.02 * place
                for name, subset, value in (
                    ("accuracy", "in_domain", 0.9 - 0.1 * which),
                    ("accuracy", "shifted", 0.9 - 0.1 * which - lost),
                    ("brier", "shifted", 0.2 + 0.1 * which + lost),
                    ("ood_auroc", "all", 0.5 + lost),
                ):
                    if name == "accuracy" and which > 1:
                        continue
                    labels = {**at, "row": row, "subset": subset, "score": name}
                    bounds = {"low": value - 0.05, "high": value + 0.05}
                    if name == "ood_auroc":
                        labels["uncertainty"] = "entropy"
                        bounds = {"no_interval": "one repeat"}
                    numbers.append(result(labels, (value,), **bounds))
    return ResultsTable.of(numbers)


def report(label="Mine", title="My question", **more):
    """A judged benchmark as pages show it, with a figure of every mark."""
    made = report_of(small_study(label=label), command="qualms run mine")
    seconds = {("clinic", "a"): 5.0, ("clinic", "b"): 20.0}
    figures = (drawing(label=label),)
    made = replace(made, title=title, figures=figures, seconds_each=seconds)
    made = replace(made, unlisted=severities(label))
    return replace(made, **more)


def scored_file(name="careful", noise=0.1, n=120):
    """A scored file, with shifted items, in two groups."""
    rng = np.random.default_rng(0)
    target = np.arange(n) % 2
    prob = np.clip(0.3 + 0.4 * target + rng.normal(0, noise, n), 0.01, 0.99)
    arrays = {
        "target": target,
        "prob": prob,
        "shifted": np.arange(n) >= 80,
        "group": np.where(np.arange(n) % 3, "clinic", "home"),
    }
    results = score(arrays, name=name, resamples=0, by_group=n == 120)
    return ScoredFile(slug="", results=results)


def contents(labels=("Mine",), names=("careful", "careless"), gaps=()):
    """The contents of a site with these benchmarks and files."""
    files = [  # five with the same items share a page
        scored_file(name, noise=0.1 + i / 20, n=120 + 6 * (i // 5))
        for i, name in enumerate(names)
    ]
    reports = [report(label=label, title=label) for label in labels]
    made = contents_of_parts(
        reports,
        files,
        command="qualms report " + " ".join(names[:3]),
        gaps=gaps,
    )
    return replace(made, on_paper=False)  # drawing takes most of the time


def hostile_contents():
    """The contents of a site where every name is one of a stranger."""
    gap = SiteGap(what=HOSTILE[0], why=HOSTILE[1], remedy=HOSTILE[7], group=HOSTILE[6])
    return contents(labels=HOSTILE[:4], names=HOSTILE, gaps=(gap,))


@contextmanager
def undrawn():
    """Write sites without drawing figures for paper, which takes long; yield them."""
    drawings = []

    def drawn(drawing):
        drawings.append(drawing)
        return b"%PDF"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qualms.report.site.shell.drawn_pdf", drawn)
        patch.setattr("qualms.report.site.shell.MANY", 10**6)  # in this process
        yield drawings
