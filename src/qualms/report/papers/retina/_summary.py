"""A handful of scores per variant: what a run shows first."""

from qualms.benchmarks import Variant
from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report.papers.retina._layouts import Column
from qualms.report.papers.retina._printed import printed
from qualms.report.papers.retina._scores import PERCENT, STANDARD, Score
from qualms.report.papers.retina._settings import TASKS, rows_of, task_of
from qualms.report.papers.retina._table import Line, Part, Table, compared

_HALF = STANDARD["accuracy"]._replace(name="accuracy@0.5", referral=0.5)
_FOUND = Score("ood_auroc", "ood_auroc", "", PERCENT)
_COLUMNS = (
    ("in_domain", STANDARD["accuracy"], "accuracy", "in-dom."),
    ("in_domain", STANDARD["auroc"], "AUROC", "in-dom."),
    ("in_domain", STANDARD["nll"], "NLL", "in-dom."),
    ("in_domain", _HALF, "acc@0.5", "in-dom."),
    ("shifted", STANDARD["accuracy"], "accuracy", "shifted"),
    ("shifted", STANDARD["auroc"], "AUROC", "shifted"),
    ("shifted", STANDARD["nll"], "NLL", "shifted"),
    ("shifted", _HALF, "acc@0.5", "shifted"),
    ("joint", _FOUND, "OOD", "AUROC"),
)


def summary_table(results: BenchmarkResults, variant: Variant, *, wide: bool) -> Table:
    """The scores of each row; a narrow one leaves out the NLL.

    The paper's numbers stand there where data and setting are the paper's.
    """
    columns = [
        Column(score, subset, head, label, task_of(variant))
        for subset, score, head, label in _COLUMNS
        if wide or score.name != "nll"
    ]
    lines = []
    for row in rows_of(results.benchmark, results.preset, variant):
        cells = []
        for column in columns:
            number = printed(results, variant, row, column.subset, column.score)
            cells.append(compared(results, variant, row, column, number))
        lines.append(Line(row.label, row, {task_of(variant): variant}, tuple(cells)))
    return Table(
        name="summary",
        title=TASKS[task_of(variant)],
        preset=results.preset,
        variants=(variant,),
        parts=(Part("", tuple(columns), tuple(lines)),),
        own=True,
    )
