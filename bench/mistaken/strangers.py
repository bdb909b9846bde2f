"""Mistakes of strangers: folders, columns and options that mean something else."""

from collections.abc import Callable, Mapping

import numpy as np
from bench.mistaken import made
from bench.mistaken.mistake import Content, Kind, Mistake
from bench.mistaken.models import _batches, _net, _predict, _torch
from bench.mistaken.own_data import PICTURES, QUICK

import qualms

PATIENTS = np.arange(made.N) // 4
FEATURES = np.stack([made.PROB, made.PROB[::-1]], 1)
PLAIN = {"p.npz": made.two()}
OWN = {name.replace("pictures", "own"): content for name, content in PICTURES.items()}
BROKEN = (
    "from qualms.methods import Method\n\n"
    "def mine() -> Method:\n"
    "    def predict(network, x, task):\n"
    "        return {'probs': network(x).softmax(1)[None]}\n"
    "    return Method(predict=predict)\n"
)


def _typed(
    what: str,
    do: str,
    says: str,
    kind: Kind = "refused",
    files: Mapping[str, Content] = PLAIN,
) -> Mistake:
    return Mistake(what=what, do=do, kind=kind, says=says, files=files, typed=True)


def _own(
    what: str, files: Mapping[str, Content], says: str, kind: Kind = "refused"
) -> Mistake:
    return Mistake(
        what=what, do=f"run own --from own {QUICK}", kind=kind, says=says, files=files
    )


def _pair(images: str, masks: str, **others: Content) -> dict[str, Content]:
    """Thirty pictures and their masks in two folders."""
    return {
        **{f"own/{images.format(k)}.png": made.picture(90 + k) for k in range(30)},
        **{f"own/{masks.format(k)}.png": made.mask(0, 1) for k in range(30)},
        **{f"own/{name}": content for name, content in others.items()},
    }


def _listed(header: str, row: Callable[[int, str], str]) -> dict[str, Content]:
    """A table of 40 pictures, whose lines are made from numbers and classes."""
    pictures = {f"own/{k}.png": made.picture(50 + 3 * k) for k in range(40)}
    lines = [row(k, ("cat", "owl")[k % 2]) for k in range(40)]
    return {**pictures, "own/items.csv": "\n".join([header, *lines])}


def _python(
    what: str, do: Callable[[], object], says: str, kind: Kind = "refused"
) -> Mistake:
    return Mistake(what=what, do=do, kind=kind, says=says)


def _fitted(module: str, name: str) -> object:
    """Score an estimator of scikit-learn that is fitted to two classes."""
    from importlib import import_module

    estimator = getattr(import_module(f"sklearn.{module}"), name)()
    return qualms.score(estimator.fit(FEATURES, made.BINARY), FEATURES, made.BINARY)


FILES = (
    _typed(
        "keeps a column of patients beside predictions",
        "score p.npz",
        "call 'patient_id' 'cluster' if its items belong together",
        "said",
        {"p.npz": made.two(patient_id=PATIENTS)},
    ),
    _typed(
        "leaves a column of patients out of a conversion",
        "convert table p.csv --out p.npz -o target=y -o prob=p",
        "call 'patient' 'cluster'",
        "said",
        {
            "p.csv": made.table(
                "y,p,patient",
                [
                    f"{y},{p},{patient}"
                    for y, p, patient in zip(
                        made.BINARY, made.PROB, PATIENTS, strict=True
                    )
                ],
            )
        },
    ),
    _typed(
        "converts intervals and forgets what they aim at",
        "convert table p.csv --out p.npz -o lower=low -o upper=high",
        "-o alpha=0.1 together",
        files={"p.csv": "low,high\n1,2\n3,4\n"},
    ),
    _typed(
        "names a column by its number",
        "convert table p.csv --out p.npz -o target=0 -o prob=1",
        "no column '0'; there are y, p",
        files={"p.csv": made.table("y,p")},
    ),
    _typed("separates files by commas", "score p.npz,q.npz", "several files by spaces"),
)
OPTIONS = (
    _typed("gives a seed twice", "score p.npz --seed 1 --seed 2", "must be given once"),
    _typed(
        "names methods twice",
        "run regression --methods map --methods gaussian --dry-run",
        "--methods must be given once",
    ),
    _typed("writes the page as a PDF", "score p.npz --html p.pdf", "call it p.html"),
    _typed("writes curves as a picture", "score p.npz --curves roc.png", "roc.csv"),
    _typed(
        "writes a site of one file as a PDF",
        "report p.npz --single --out p.pdf",
        "call it p.html",
    ),
    _typed("asks for auc", "score p.npz --scores auc", "Did you mean 'auroc'?"),
    _typed("asks for log_loss", "score p.npz --scores log_loss", "mean 'nll'?"),
    _typed(
        "asks for recall without a threshold",
        "score p.npz --scores recall",
        "'sensitivity' may need other arrays, --threshold or --val",
    ),
    _typed("names no score", "score p.npz --scores=", "scores must name at least one"),
    _typed(
        "gives a threshold in percent",
        "score p.npz --threshold 50",
        "write 0.5 for 50 %",
    ),
    _typed(
        "gives a negative threshold",
        "score p.npz --threshold -1",
        "must lie between 0 and 1, got '-1'",
    ),
    _typed(
        "asks for grades of values",
        "score p.npz --ordinal",
        "and grades, are for classification",
        files={"p.npz": made.values()},
    ),
    _typed(
        "writes a plan over settings",
        "refer p.npz --budget 0.2 --plan settings.json",
        "would replace settings.json",
        files={**PLAIN, "settings.json": '{"lr": 0.1}'},
    ),
    _typed(
        "writes items over a list of patients",
        "refer p.npz --budget 0.2 --items patients.csv",
        "would replace patients.csv",
        files={**PLAIN, "patients.csv": "id,name\n1,Ada\n"},
    ),
    _typed(
        "writes a plan as a table",
        "refer p.npz --budget 0.2 --plan plan.csv",
        "call it plan.json",
    ),
    _typed("asks for the runs of a file", "runs p.npz", "no folder 'p.npz' with runs"),
    _typed(
        "separates methods by a space",
        "run regression --methods 'gaussian quantile' --dry-run",
        "write gaussian,quantile",
    ),
    _typed(
        "trains with a rate of 0",
        "run regression/cells -o lr=0 --dry-run",
        "'lr' must be above 0",
    ),
    _typed(
        "predicts probabilities where maps are needed",
        "run values/toy_1 --methods mine --include mine.py --seeds 0 --dry-run",
        "use summarise(draws, task)",
        files={"mine.py": BROKEN},
    ),
    _typed(
        "predicts with a name that is not defined",
        "run retina/country --methods mine --include mine.py --seeds 0 --dry-run",
        "predict of the method fails on made-up items of classification",
        files={"mine.py": BROKEN.replace("network(x)", "net(x)")},
    ),
)
DATA = (
    _own(
        "calls the folders imgs and labels",
        _pair("imgs/{}", "labels/{}"),
        "own: segmentation, 2 classes",
        "accepted",
    ),
    _own(
        "lays out images and labels as nnU-Net",
        _pair("imagesTr/{}_0000", "labelsTr/{}"),
        "own: segmentation, 2 classes",
        "accepted",
    ),
    _own(
        "has each channel in a file of its own",
        _pair("imagesTr/{}_0001", "labelsTr/{}"),
        "an image is one file with all its channels",
    ),
    _own(
        "has test images without labels",
        _pair("imagesTr/{}", "labelsTr/{}", **{"imagesTs/1.png": made.picture()}),
        "since they have no masks: imagesTs",
        "said",
    ),
    _own(
        "calls the folders train and train_masks",
        _pair("train/{}", "train_masks/{}"),
        "looks like masks of the images in 'train'",
    ),
    _own(
        "has a third folder beside images and masks",
        _pair("images/{}", "masks/{}", **{"preview/1.png": made.picture()}),
        "got 'preview' beside them",
    ),
    _own(
        "has splits inside images and masks",
        _pair("images/train/{}", "masks/train/{}"),
        "as train/images and train/masks",
    ),
    _own(
        "has a class called train",
        {**OWN, **{f"own/train/{k}.png": made.picture(9 + k) for k in range(20)}},
        "'train' is a class here",
        "said",
    ),
    _own(
        "keeps pictures of patients in folders of their own",
        {
            f"own/{name}/p{k // 4}/{k}.png": made.picture(60 + 3 * k)
            for name in ("cat", "owl")
            for k in range(20)
        },
        "so that none is trained and tested on",
        "said",
    ),
    _own(
        "has a column patient_id",
        _listed("path,target,patient_id", lambda k, n: f"{k}.png,{n},{k // 4}"),
        "rename the column to 'cluster'",
    ),
    _own(
        "has dates as targets",
        _listed("path,target", lambda k, _: f"{k}.png,2020-01-{k % 28 + 1:02}"),
        "write a number, such as days",
    ),
    _own(
        "gives names of items as targets",
        _listed("path,target", lambda k, _: f"{k}.png,case {k}"),
        "got a class for each of 40 items",
    ),
    Mistake(
        what="asks for sides of a thousand million pixels",
        do=f"run own --from own {QUICK} -o dataset.side=1000000000",
        kind="refused",
        says="state a smaller side",
        files=OWN,
    ),
)
PYTHON = (
    _python(
        "scores a LinearSVC of classes 0 and 1",
        lambda: _fitted("svm", "LinearSVC"),
        "predicts classes without probabilities",
    ),
    _python(
        "scores a RidgeClassifier",
        lambda: _fitted("linear_model", "RidgeClassifier"),
        "predicts classes without probabilities",
    ),
    _python(
        "scores an IsolationForest",
        lambda: _fitted("ensemble", "IsolationForest"),
        "finds clusters or outliers",
    ),
    _python(
        "passes targets and probabilities as two arguments",
        lambda: qualms.score(made.BINARY, made.PROB),  # type: ignore[arg-type]
        "write qualms.score({'target': ..., 'prob': ...})",
    ),
    _python(
        "gives thresholds as one number",
        lambda: qualms.evaluate.PointOptions(thresholds=0.5),  # type: ignore[arg-type]
        "write thresholds=[0.5]",
    ),
    _python(
        "gives a budget as text",
        lambda: qualms.refer(made.two(), budget="20%"),  # type: ignore[arg-type]
        "budget must be a number such as 0.2",
    ),
)
MODELS = (
    _python(
        "has a sigmoid of each class",
        lambda: _predict(_net(last=_torch().nn.Sigmoid())),
        "look like a sigmoid of each class",
    ),
    _python(
        "calls sigmoids of each class probabilities",
        lambda: _predict(_net(last=_torch().nn.Sigmoid()), outputs="probabilities"),
        "return a softmax if each class has a sigmoid",
    ),
    _python(
        "passes a module as the method",
        lambda: _predict(_net(), _batches(), method=qualms),
        "method must be a name such as 'mc_dropout'",
    ),
)
