"""A study with a protocol, a table and published numbers of its own.

It stands for a benchmark after a paper (nobody, 2026), in a file of a user.
"""

from pathlib import Path

import numpy as np

from qualms import scores
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.evaluate.entry import Judgement, entry_of
from qualms.evaluate.protocol import Protocol, Repeat
from qualms.evaluate.subsets import design_of
from qualms.report.judged import only_judged
from qualms.report.layout import Layout, LayoutColumn, layout_table
from qualms.report.presentation import Presentation
from qualms.report.table import Table
from qualms.spec import Part
from qualms.study import Benchmark, Preset, TableRow, Variant

TABLE = Layout(
    name="1",
    title="Table 1: is the network right, and does it know when?",
    columns=(
        LayoutColumn(
            label="Accuracy ↑", labels={"score": "accuracy"}, unit="%", scale=100.0
        ),
        LayoutColumn(
            label="AURC ↓",
            labels={"score": "aurc", "uncertainty": "margin"},
            decimals=3,
        ),
    ),
    printed_in={"table": "1"},
    main=True,
)


def paper_study() -> Benchmark:
    """Version 1: one network on spots."""
    variant = Variant(
        name="spots", label="Spots", dataset=Part(name="spots"), simulated=True
    )
    preset = Preset(
        name="demo",
        variants=(variant,),
        rows=("map",),
        network=Part(name="tiny"),
        training={"epochs": 2, "batch": 8, "lr": 0.01},
        seeds=(0, 1),
        pools=((0,), (1,)),
    )
    return Benchmark(
        name="paper_study",
        version=1,
        title="A study of spots",
        paper="nobody (2026)",
        task="classification",
        rows=(TableRow(name="map", label="Plain", method=Part(name="map")),),
        presets={"demo": preset},
        published=Path(__file__).with_name("paper_study.csv"),
        protocol=_protocol,
        presentation=_presentation,
    )


def _protocol() -> Protocol:
    return Protocol(judge=_judge)


def _judge(repeat: Repeat) -> Judgement:
    """Judge the test items by accuracy, and by AURC of how close the classes are."""
    test = repeat.read("test")
    probs, target = test.arrays["probs"].mean(axis=0), test.arrays["target"]
    ordered = np.sort(probs, axis=1)
    margin = ordered[:, -2] - ordered[:, -1]
    wrong = (probs.argmax(axis=1) != target).astype(float)
    items, at = np.arange(test.n), {"uncertainty": "margin"}
    return Judgement(
        entries=(
            entry_of(scores.accuracy, (probs, target), items),
            entry_of(scores.aurc, (wrong, margin), items, settings=at),
        ),
        design=design_of(test),
    )


def _presentation() -> Presentation:
    return Presentation(tables=_tables)


def _tables(results: BenchmarkResults) -> tuple[Table, ...]:
    about = f"simulated; preset {results.plan.preset_text}"
    return only_judged([layout_table(results, TABLE, about=about, simulated=True)])
