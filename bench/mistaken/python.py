"""Mistakes in Python: scoring, collecting batches, and parts from outside."""

from collections.abc import Callable

import numpy as np
from bench.mistaken import made
from bench.mistaken.mistake import Content, Kind, Mistake

import qualms


def _python(
    what: str, do: Callable[[], object], kind: Kind, says: str, **files: Content
) -> Mistake:
    named = {name.replace("__", "."): content for name, content in files.items()}
    return Mistake(what=what, do=do, kind=kind, says=says, files=named)


def _part(what: str, text: str, do: str, says: str, kind: Kind = "refused") -> Mistake:
    """A file with a part of a user's own."""
    files: dict[str, Content] = {"my_part.py": text, "p.npz": made.classes()}
    return Mistake(
        what=what, do=f"{do} --include my_part.py", kind=kind, says=says, files=files
    )


def _score(
    body: str,
    name: str = "mine",
    parameters: str = "probs, target",
    better: str = "lower",
) -> str:
    return (
        "from qualms.scores import as_score\n\n"
        f'@as_score(label="Mine", better="{better}")\n'
        f"def {name}({parameters}):\n    {body}\n"
    )


def _method(body: str, options: str = "", name: str = "mine") -> str:
    return (
        "from qualms.methods import Method\n\n"
        f"def {name}({options}) -> Method:\n    {body}\n"
    )


def _collected(
    *batches: dict, task: str = "classification", header: object = None
) -> object:
    collected = qualms.Accumulator(task, header=header)
    for batch in batches:
        collected.update(**batch)
    return collected.compute()


def _row(results: object, name: str) -> object:
    return results[name]


def _frame():
    import pandas as pd

    return pd.DataFrame({"label": made.BINARY, "prob": made.PROB})


SCORE = (
    _python(
        "passes a list",
        lambda: qualms.score([0.2, 0.7]),
        "refused",
        "must be a mapping of names to arrays, got list",
    ),
    _python(
        "passes None",
        lambda: qualms.score(None),
        "refused",
        "must be a mapping of names to arrays, got NoneType",
    ),
    _python(
        "passes an empty mapping",
        lambda: qualms.score({}),
        "refused",
        "must hold arrays of predictions, got none",
    ),
    _python(
        "passes a frame with a column label",
        lambda: qualms.score(_frame()),
        "refused",
        "is called 'target' here",
    ),
    _python(
        "passes a header with a file",
        lambda: qualms.score("p.npz", header={"seed": 1}),
        "refused",
        "header= is for a mapping of arrays",
        p__npz=made.classes(),
    ),
    _python(
        "passes lists of unequal lengths",
        lambda: qualms.score({"target": [0, 1, 1], "prob": [0.2, 0.7]}),
        "refused",
        "but array 'target' has 3",
    ),
    _python(
        "passes rows of unequal lengths",
        lambda: qualms.score({"target": [0, 1], "probs": [[0.2, 0.8], [1.0]]}),
        "refused",
        "pass numbers in a rectangular shape",
    ),
    _python(
        "asks the results for a score by its label",
        lambda: qualms.score(made.classes())["ECE"],
        "refused",
        "no 'ECE'",
    ),
    _python(
        "misspells a score of the results",
        lambda: qualms.score(made.classes())["acuracy"],
        "refused",
        "Did you mean 'accuracy'?",
    ),
    _python(
        "writes an array with an unknown name",
        lambda: qualms.predictions.write("p.npz", made.classes(features=made.PROBS)),
        "refused",
        "write it as 'extra/features' to keep it",
    ),
    _python(
        "writes under an unknown ending",
        lambda: qualms.predictions.write("p.json", made.classes()),
        "refused",
        "choose one of these",
    ),
    _python(
        "writes draws into a CSV",
        lambda: qualms.predictions.write(
            "p.csv", made.classes(probs=np.stack([made.PROBS] * 4))
        ),
        "refused",
        "has 4 draws, a table holds one",
    ),
    _python(
        "pools files of other items",
        lambda: qualms.predictions.pool([made.built(), made.built(50)]),
        "refused",
        "pool only runs on the same items",
    ),
    _python(
        "pools nothing",
        lambda: qualms.predictions.pool([]),
        "refused",
        "give at least one source",
    ),
    _python(
        "refers with a budget of 20",
        lambda: qualms.refer(made.two(), budget=20),
        "refused",
        "budget must lie in [0, 1]",
    ),
    _python(
        "compares results of different tasks",
        lambda: qualms.compare(
            [qualms.score(made.classes()), qualms.score(made.values())]
        ),
        "refused",
        "files compare only within one task",
    ),
    _python(
        "transposes the probabilities of a score",
        lambda: qualms.scores.ece(made.PROBS.T, made.TARGET),
        "refused",
        "must sum to 1 over the last axis",
    ),
    _python(
        "counts classes from 1 in a score",
        lambda: str(qualms.scores.accuracy(made.PROBS, made.TARGET + 1)),
        "refused",
        "target must lie in 0..2",
    ),
    _python(
        "calls a score in the order of scikit-learn",
        lambda: str(qualms.scores.ppv(made.TARGET == 1, made.TARGET == 2)),
        "refused",
        "ppv(called=y_pred, positive=y_true)",
    ),
    _python(
        "passes labels first and probabilities second",
        lambda: str(qualms.scores.ece(made.TARGET == 1, made.PROB)),
        "refused",
        "probabilities come first",
    ),
    _python(
        "passes arrays of unequal lengths to a score",
        lambda: str(qualms.scores.aurc(risk=made.PROB[:50], uncertainty=made.PROB)),
        "refused",
        "must have 50 items, got 60",
    ),
)
COLLECTED = (
    _python(
        "computes before the first batch",
        lambda: _collected(),
        "refused",
        "call update(...) first",
    ),
    _python(
        "misspells the task of an accumulator",
        lambda: qualms.Accumulator("clasification"),
        "refused",
        "Did you mean 'classification'?",
    ),
    _python(
        "collects maps",
        lambda: qualms.Accumulator("segmentation"),
        "refused",
        "qualms.predictions.SegmentationWriter",
    ),
    _python(
        "gives batches of other classes",
        lambda: _collected(made.classes(), made.two()),
        "refused",
        "every batch must have the draws and classes",
    ),
    _python(
        "leaves an array out of a later batch",
        lambda: _collected(
            made.classes(item=[f"i{k}" for k in range(made.N)]), made.classes()
        ),
        "refused",
        "every batch must have the arrays of the first",
    ),
    _python(
        "gives the same named batch twice",
        lambda: _collected(*[made.classes(item=[f"i{k}" for k in range(made.N)])] * 2),
        "refused",
        "rows 0 and 60 are both 'i0'",
    ),
    _python(
        "gives logits to an accumulator",
        lambda: _collected(made.classes(probs=made.LOGITS)),
        "refused",
        "if these are logits, say so",
    ),
    _python(
        "gives one item without its axis",
        lambda: _collected({"target": 1, "prob": 0.7}),
        "refused",
        "must have shape (N,), got ()",
    ),
)
BENCHMARKS = (
    _python(
        "misspells a benchmark",
        lambda: qualms.run("retinaa"),
        "refused",
        "Did you mean 'retina'?",
    ),
    _python(
        "misspells a preset",
        lambda: qualms.run("retina", preset="tiny"),
        "refused",
        "Known: demo, small, paper",
    ),
    _python(
        "misspells an option",
        lambda: qualms.run("retina", options={"epoch": 3}),
        "refused",
        "Did you mean 'epochs'?",
    ),
    _python(
        "gives methods as a mapping of options",
        lambda: qualms.run("retina", methods={"mc_drop": 1}),
        "refused",
        "Did you mean 'mc_dropout'?",
    ),
    _python(
        "gives seeds that are no whole numbers",
        lambda: qualms.run("retina", seeds=[0.5]),
        "refused",
        "seeds must be whole numbers",
    ),
    _python(
        "judges runs that were never made",
        lambda: qualms.judge("retina"),
        "refused",
        "there must be runs to judge",
    ),
    _python(
        "reads a plan that is missing",
        lambda: qualms.read_plan("plan.json"),
        "refused",
        "check the path",
    ),
)
PARTS = (
    _part(
        "calls a score of one's own ece",
        _score("return 0.5", "ece"),
        "score p.npz",
        "rename the one in",
    ),
    _part(
        "returns an array from a score",
        _score("return probs"),
        "score p.npz",
        "must return a number, got ndarray",
    ),
    _part(
        "divides by zero in a score",
        _score("return 1 / 0"),
        "score p.npz",
        "score 'mine': ZeroDivisionError",
    ),
    _part(
        "names an array that no file has",
        _score("return 0.5", parameters="logit, target"),
        "score p.npz",
        "mine is left out: it reads logit",
        kind="said",
    ),
    _part(
        "says better='less'",
        _score("return 0.5", better="less"),
        "score p.npz",
        "better must be one of higher, lower, neither",
    ),
    _part(
        "forgets the type that a method returns",
        "def mine():\n    return 1\n",
        "list methods",
        "must say that it returns Method",
    ),
    _part(
        "makes a mistake in the syntax", "def mine(:\n", "list methods", "SyntaxError"
    ),
    _part(
        "imports a package that is not installed",
        "import lightningg\n",
        "list methods",
        "No module named 'lightningg'",
    ),
    _part(
        "returns nothing from a method",
        _method("return None"),
        "run regression/cells --methods mine --dry-run",
        "must return a Method, got NoneType",
    ),
    _part(
        "asks a method for an option that it does not have",
        _method("return Method(needs=('values',))", "*, rate=0.1"),
        "run regression/cells --methods mine -o method.rat=0.2 --dry-run",
        "Did you mean 'method.rate'?",
    ),
    _part(
        "calls a method map",
        _method("return Method()", name="map"),
        "list methods",
        "rename the one in",
    ),
    _part(
        "passes an argument to a Method that it does not have",
        _method("return Method(losss=None)"),
        "run regression/cells --methods mine --dry-run",
        "method 'mine': TypeError",
    ),
)
MISTAKES = (*SCORE, *COLLECTED, *BENCHMARKS, *PARTS)
