"""A small benchmark that declares no tables, with results of every kind."""

from qualms.evaluate.benchmark_results import BenchmarkResults, Cost
from qualms.results import Result, ResultsTable, result
from qualms.spec import Part
from qualms.study import Benchmark, Preset, TableRow, Variant

SETTINGS = (
    {"subset": "all", "score": "accuracy"},
    {"subset": "shifted", "score": "accuracy"},
    {"uncertainty": "entropy", "subset": "all", "score": "aurc"},
)


def small_study(*, label="Mine", **more):
    """Results of two rows at two values of alpha, and a row that was not run."""
    rows = (
        TableRow(name="a", label=label, method=Part(name="map"), labels={"head": "x"}),
        TableRow(name="b", label="Other", method=Part(name="mc_dropout"), pool=2),
        TableRow(name="c", label="Not run", method=Part(name="swag")),
    )
    at = ({"alpha": 0.1}, {"alpha": 0.05})
    variants = (
        Variant(name="clinic", label=label, dataset=Part(name="mine"), at=at),
        Variant(
            name="night",
            label="Night",
            dataset=Part(name="mine"),
            simulated=True,
            labels={"shift": "night"},
        ),
    )
    preset = Preset(
        name="demo",
        variants=variants,
        rows=("a", "b", "c"),
        network=Part(name="resnet50"),
        training={"epochs": 3},
        seeds=(0, 1),
        pools=((0, 1),),
    )
    plan = Benchmark(
        name="mine",
        version=1,
        title="My question",
        paper="nobody",
        task="classification",
        rows=rows,
        presets={"demo": preset},
    ).plan("demo")
    return BenchmarkResults(
        plan=plan,
        table=ResultsTable.of(number for line in plan.lines for number in of(line)),
        costs={("clinic", "a"): Cost(12.5, 1000)},
        **more,
    )


def of(line):
    """The numbers of a line."""
    if line.row.name == "c":
        yield Result(labels=line.labels, why="was not run")
        return
    for settings in SETTINGS:
        labels = {**line.labels, **settings}
        if settings["score"] == "aurc":
            yield result(labels, (0.3,), no_interval="one repeat, too few items")
        else:
            yield result(
                labels,
                (0.8, 0.9),
                released_values=(0.7, 0.75),
                low=0.7,
                high=0.95,
                interval_method="=SUM(1)",
                best="a",
                tied=line.row.name == "a",
                difference=-0.1,
            )
