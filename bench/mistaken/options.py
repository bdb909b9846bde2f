"""Mistakes in the commands and their options."""

from pathlib import Path

import numpy as np
from bench.mistaken import made
from bench.mistaken.mistake import Content, Kind, Mistake

FILES: dict[str, Content] = {
    "p.npz": made.classes(),
    "q.npz": made.classes(probs=np.roll(made.PROBS, 1, axis=1)),
    "two.npz": made.two(),
    "values.npz": made.values(),
    "few.npz": {"target": [0, 1, 1], "prob": [0.2, 0.7, 0.9]},
    "unnamed.npz": made.classes(probs=made.PROBS[:50], target=made.TARGET[:50]),
    "train.npz": {**made.classes(), "header": {"split": "train"}},
    "other.npz": {**made.classes(), "header": {"dataset": "moths", "split": "val"}},
    "mine.npz": {**made.classes(), "header": {"dataset": "birds", "split": "test"}},
    "bare.npz": made.classes(target=None),
}


def _command(
    what: str, do: str, kind: Kind, says: str, status: int | None = None
) -> Mistake:
    used = {name: FILES[name] for name in FILES if name in do.split()}
    return Mistake(
        what=what, do=do, kind=kind, says=says, files=used, status=status, typed=True
    )


def _plan(what: str, change, says: str) -> Mistake:
    """A plan that somebody changed by hand, applied to new items."""

    def write(path: Path) -> None:
        import qualms

        qualms.refer(made.two(), budget=0.2).save(path)
        path.write_text(change(path.read_text()))

    files: dict[str, Content] = {"plan.json": write, "new.npz": made.two(target=None)}
    return Mistake(
        what=what,
        do="refer --apply plan.json new.npz",
        kind="refused",
        says=says,
        files=files,
    )


SCORE = (
    _command(
        "misspells the command", "scroe p.npz", "refused", "Did you mean 'score'?"
    ),
    _command(
        "misspells an option",
        "score p.npz --aplha 0.1",
        "refused",
        "Possible options: --all, --alpha, --val",
    ),
    _command("names no file", "score", "refused", "Missing argument 'FILE'"),
    _command(
        "misspells the name of a file",
        "score pp.npz",
        "refused",
        "there is no such file",
    ),
    _command(
        "gives a level in percent",
        "score p.npz --level 95",
        "refused",
        "level must lie between 0 and 1",
    ),
    _command(
        "writes a word for a number",
        "score p.npz --level high",
        "refused",
        "should be a valid number",
    ),
    _command(
        "asks for a score by its label", "score p.npz --scores ECE", "accepted", "↓ ECE"
    ),
    _command(
        "misspells a score",
        "score p.npz --scores ece,aurcc",
        "refused",
        "Did you mean 'aurc'?",
    ),
    _command(
        "asks for a score of another task",
        "score p.npz --scores dice",
        "refused",
        "no score 'dice' here",
    ),
    _command(
        "states the wrong task",
        "score p.npz --task regression",
        "refused",
        "these are arrays of classification",
    ),
    _command(
        "misspells the task",
        "score p.npz --task clasification",
        "refused",
        "Did you mean 'classification'?",
    ),
    _command(
        "says --logits of probabilities",
        "score p.npz --logits",
        "refused",
        "leave out --logits",
    ),
    _command(
        "says --logits of values",
        "score values.npz --logits",
        "refused",
        "logits are for classification only",
    ),
    _command(
        "asks for scores by group without groups",
        "score p.npz --by-group",
        "said",
        "need an array 'group'",
    ),
    _command(
        "calibrates on training items",
        "score p.npz --val train.npz",
        "refused",
        "give validation predictions",
    ),
    _command(
        "calibrates on the file itself",
        "score p.npz --val p.npz",
        "said",
        "seems to hold the very items that are scored",
    ),
    _command(
        "calibrates on another dataset",
        "score mine.npz --val other.npz",
        "refused",
        "give the validation predictions of the same run",
    ),
    _command(
        "calibrates on a file of another task",
        "score p.npz --val values.npz",
        "refused",
        "must hold classification predictions",
    ),
    _command(
        "compares files of different tasks",
        "score p.npz values.npz --compare",
        "refused",
        "files compare only within one task",
    ),
    _command(
        "compares files of different items",
        "score p.npz unnamed.npz --compare",
        "said",
        "their differences are not paired",
    ),
    _command(
        "compares a file with itself",
        "score p.npz p.npz --compare",
        "said",
        "are they copies of one file?",
    ),
    _command(
        "compares a single file",
        "score p.npz --compare",
        "said",
        "--compare needs a second file",
    ),
    _command(
        "gives two names for one file",
        "score p.npz --name a --name b",
        "refused",
        "1 file, got 2 names",
    ),
    _command(
        "writes the page into a folder that is missing",
        "score p.npz --html nowhere/page.html",
        "refused",
        "create it first",
    ),
    _command(
        "asks for an alpha of 90",
        "score values.npz --alpha 90",
        "refused",
        "alpha must lie between 0 and 1",
    ),
    _command(
        "asks for R@k of classes",
        "score p.npz --nearest 5",
        "refused",
        "are for embeddings",
    ),
    _command("scores three items", "score few.npz", "said", "only 3 items"),
    _command(
        "asks for a negative number of replicates",
        "score p.npz --resamples -5",
        "refused",
        "greater than or equal to 0",
    ),
    _command(
        "scores a file without targets",
        "score bare.npz",
        "refused",
        "add the true classes or values as 'target'",
    ),
    _command(
        "includes a file that is missing",
        "score p.npz --include parts.py",
        "refused",
        "there is no such file; check the path",
    ),
)
REFER = (
    _command(
        "asks for no budget and no accuracy", "refer two.npz", "refused", "got neither"
    ),
    _command(
        "asks for a budget in percent",
        "refer two.npz --budget 20",
        "refused",
        "budget must lie in [0, 1]",
    ),
    _command(
        "asks for a budget and an accuracy",
        "refer two.npz --budget 0.2 --accuracy 0.9",
        "refused",
        "got both",
    ),
    _command(
        "asks three classes for a sensitivity",
        "refer p.npz --sensitivity 0.9",
        "refused",
        "needs two classes",
    ),
    _command(
        "asks for an accuracy of 1",
        "refer two.npz --accuracy 1",
        "refused",
        "no number of items can promise more",
    ),
    _command(
        "asks more than 60 items can promise",
        "refer two.npz --accuracy 0.99",
        "said",
        "No threshold on the entropy can promise that",
        status=1,
    ),
    _command(
        "misspells the uncertainty",
        "refer two.npz --budget 0.2 --uncertainty entropie",
        "refused",
        "Did you mean 'entropy'?",
    ),
    _command(
        "asks one draw for the epistemic part",
        "refer two.npz --budget 0.2 --uncertainty epistemic",
        "refused",
        "needs several draws",
    ),
    _command(
        "chooses the threshold without targets",
        "refer bare.npz --budget 0.2",
        "refused",
        "add it as 'target'",
    ),
    _command(
        "chooses the threshold on training items",
        "refer train.npz --budget 0.2",
        "said",
        "use items that it was not trained on",
    ),
    _command(
        "judges the plan on the items it was made from",
        "refer two.npz --budget 0.2 --on two.npz",
        "said",
        "it is no check of the plan",
    ),
    _command(
        "applies predictions as if they were a plan",
        "refer --apply two.npz bare.npz",
        "refused",
        "is not the JSON of a plan",
    ),
    _command(
        "writes the plan over the predictions",
        "refer two.npz --budget 0.2 --plan two.npz",
        "refused",
        "this command reads it, and it would be lost",
    ),
    _plan(
        "changes the threshold of a plan by hand",
        lambda text: text.replace('"threshold": 0.', '"threshold": 0.1', 1),
        "take the original, or make the plan again",
    ),
    _plan(
        "applies half a plan",
        lambda text: text[: len(text) // 2],
        "is not the JSON of a plan",
    ),
)
RUN = (
    _command(
        "misspells a benchmark",
        "run retinaa --dry-run",
        "refused",
        "Did you mean 'retina'?",
    ),
    _command(
        "misspells a variant",
        "run retina/contry --dry-run",
        "refused",
        "Did you mean 'country'?",
    ),
    _command(
        "misspells a preset",
        "run retina --preset dmeo --dry-run",
        "refused",
        "Did you mean 'demo'?",
    ),
    _command(
        "misspells a method",
        "run retina --methods mc-dropout --dry-run",
        "refused",
        "Did you mean 'mc_dropout'?",
    ),
    _command(
        "misspells an option of training",
        "run retina -o epoch=3 --dry-run",
        "refused",
        "Did you mean 'epochs'?",
    ),
    _command(
        "forgets the value of an option",
        "run retina -o epochs --dry-run",
        "refused",
        "must read name=value",
    ),
    _command(
        "gives a word for a number of epochs",
        "run retina -o epochs=many --dry-run",
        "refused",
        "must be a whole number, got 'many'",
    ),
    _command(
        "asks for a rate of 20",
        "run retina --methods mc_dropout -o method.rate=20 --dry-run",
        "refused",
        "rate must lie between 0 and 1, got 20",
    ),
    _command(
        "writes seeds as words",
        "run retina --seeds one --dry-run",
        "refused",
        "seeds must read like 0-4 or 0,2,7",
    ),
    _command(
        "asks for a GPU that is not there",
        "run retina --device cuda --dry-run",
        "refused",
        "train with --device cpu",
    ),
    _command(
        "asks for a method of another task",
        "run retina --methods quantile --dry-run",
        "refused",
        "leave it out",
    ),
    _command(
        "asks for the paper's data before preparing them",
        "run regression/asset_wealth --preset paper --dry-run",
        "refused",
        "prepare",
    ),
    _command(
        "asks for own data without naming them",
        "run own --dry-run",
        "refused",
        "with --from",
    ),
    _command(
        "gives own data to a benchmark",
        "run retina --from pictures --dry-run",
        "refused",
        "leave out --from, or run own",
    ),
    _command(
        "tunes a benchmark without a variant",
        "tune retina --method mc_dropout --dry-run",
        "refused",
        "name one variant to search on",
    ),
)
OTHERS = (
    _command(
        "prepares a dataset that does not exist",
        "prepare fashion-mnist",
        "refused",
        "Did you mean 'fashion_mnist'?",
    ),
    _command(
        "prepares a real dataset without its files",
        "prepare eyepacs",
        "refused",
        "name their folder with --from",
    ),
    _command(
        "gives a simulator a folder",
        "prepare cells --from files",
        "refused",
        "leave out --from",
    ),
    _command(
        "gives a dataset an option that it does not have",
        "prepare cells -o size=3",
        "refused",
        "Did you mean 'sizes'?",
    ),
    _command("lists something else", "list models", "refused", "no shelf 'models'"),
    _command(
        "writes a new part of an unknown kind",
        "new metric mine",
        "refused",
        "Known: method, dataset, network, score, benchmark",
    ),
    _command(
        "calls a new part like one of the package",
        "new method map",
        "refused",
        "choose another name",
    ),
    _command(
        "calls a new part with a hyphen",
        "new method my-method",
        "refused",
        "must be named like a Python function",
    ),
    _command(
        "checks three files, of which one is missing",
        "check p.npz gone.npz two.npz",
        "refused",
        "there is no such file",
    ),
)
MISTAKES = (*SCORE, *REFER, *RUN, *OTHERS)
