"""Mistakes in predictions files: CSV, npz, parquet, safetensors and folders of maps."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
from bench.mistaken import made
from bench.mistaken.mistake import Content, Kind, Mistake


def _scored(
    what: str, content: Content, kind: Kind, says: str, file: str = "p.npz", **more: str
) -> Mistake:
    """A file that is scored, or checked with `verb="check"`."""
    verb = more.pop("verb", "score")
    words = f"{verb} {file} {more.pop('options', '')}".strip()
    files: dict[str, Content] = {file: content, **more}
    return Mistake(what=what, do=words, kind=kind, says=says, files=files)


def _csv(what: str, text: Content, kind: Kind, says: str, **more: str) -> Mistake:
    return _scored(what, text, kind, says, file="p.csv", **more)


def _npy() -> bytes:
    held = io.BytesIO()
    np.save(held, made.PROBS)
    return held.getvalue()


def _cut(path: Path) -> None:
    np.savez(path, **made.classes())
    path.write_bytes(path.read_bytes()[:700])


def _saved_by_torch() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("p/data.pkl", b"\x80\x02}q\x00.")
        archive.writestr("p/version", "3\n")
    return held.getvalue()


def _weights(path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"fc.weight": np.zeros((3, 4), np.float32)}, path)


def _float32_names(path: Path) -> None:
    from safetensors.numpy import save_file

    arrays = {name: np.asarray(a, np.float32) for name, a in made.classes().items()}
    save_file(arrays, path)


def _maps(**changes: object):
    """Return a function that writes a folder of one item without the package."""

    def write(path: Path) -> None:
        path.mkdir()
        np.savez(path / "a.npz", **made.maps(**changes))
        np.savez(path / "b.npz", **made.maps())
        items = [{"item": "b", "file": "b.npz"}, {"item": "a", "file": "a.npz"}]
        (path / "index.json").write_text(json.dumps({"header": {}, "items": items}))

    return write


def _listed(items: object):
    """Return a function that writes a folder whose index lists `items`."""

    def write(path: Path) -> None:
        path.mkdir()
        np.savez(path / "a.npz", **made.maps())
        (path / "index.json").write_text(json.dumps({"header": {}, "items": items}))

    return write


def _pictures(path: Path) -> None:
    path.mkdir()
    made.mask(0, 1)(path / "case1.png")


CSV = (
    _csv(
        "separates columns by semicolons",
        made.table("target;prob", sep=";"),
        "refused",
        "columns must be separated by commas",
    ),
    _csv(
        "writes decimal commas",
        made.table("target,prob", ['0,"0,25"', '1,"0,75"']),
        "refused",
        "numbers have a decimal point and no comma",
    ),
    _csv(
        "leaves out the header line",
        made.table("0,0.25"),
        "refused",
        "the first line must name the columns",
    ),
    _csv(
        "keeps the index that pandas writes",
        made.table(",target,prob", ["0,0,0.2", "1,1,0.8", "2,1,0.7"]),
        "said",
        "a column without a name",
    ),
    _csv(
        "calls the columns label and score",
        made.table("label,score"),
        "refused",
        "'label' is called 'target' here",
    ),
    _csv(
        "numbers the probabilities p0, p1, p2",
        made.table("target,p0,p1,p2", ["0,.5,.2,.3", "2,.1,.2,.7"]),
        "refused",
        "'p0' is called 'prob_0' here",
    ),
    _csv(
        "starts the columns of probabilities at 1",
        made.table("target,prob_1,prob_2,prob_3", ["0,.5,.2,.3", "2,.1,.2,.7"]),
        "refused",
        "columns must be numbered prob_0, prob_1",
    ),
    _csv(
        "writes percent signs",
        made.table("target,prob", ["0,25%", "1,75%"]),
        "refused",
        "write a share, such as 0.25 for 25%",
    ),
    _csv(
        "leaves cells empty",
        made.table("target,prob", ["0,", "1,0.7"]),
        "refused",
        "must be a number, it is empty",
    ),
    _csv(
        "writes names of classes",
        made.table("target,prob", ["cat,0.2", "dog,0.7"]),
        "refused",
        "number the classes from 0",
    ),
    _csv(
        "counts classes from 1",
        made.table("target,prob_0,prob_1,prob_2", ["1,.5,.2,.3", "3,.1,.2,.7"]),
        "refused",
        "number the classes from 0",
    ),
    _csv(
        "separates by tabs",
        made.table("target\tprob", sep="\t"),
        "refused",
        "columns must be separated by commas",
    ),
    _csv(
        "saves as Unicode from a spreadsheet (UTF-16)",
        made.table("target,prob").encode("utf-16"),
        "refused",
        "save it as UTF-8",
    ),
    _csv(
        "saves with a byte order mark",
        b"\xef\xbb\xbf" + made.table("target,prob").encode(),
        "accepted",
        "classification, 60 items",
    ),
    _csv(
        "names an item twice",
        made.table("item,target,prob", ["a,0,0.2", "a,1,0.7"]),
        "refused",
        "rows 0 and 1 are both 'a'",
    ),
    _csv(
        "has a row with a cell too many",
        made.table("target,prob", ["0,0.2", "1,0.7,x"]),
        "refused",
        "row 1 has 3 cells",
    ),
    _csv(
        "joins two tables with their headers",
        made.table("target,prob", ["0,0.2", "target,prob", "1,0.7"]),
        "refused",
        "row 1 must be a number, it is 'target'",
    ),
    _csv(
        "has a header line alone",
        "target,prob\n",
        "refused",
        "there must be at least one",
    ),
    _csv(
        "marks shifted items by words",
        made.table("target,prob,shifted", ["0,0.2,no", "1,0.7,yes"]),
        "refused",
        "must be true or false (1 or 0), it is 'no'",
    ),
    _csv(
        "calls a deviation sd",
        made.table("target,mean,sd", ["1.5,1.2,.3", "2.5,2.9,.3"]),
        "refused",
        "Did you mean 'std'?",
    ),
    _csv(
        "writes true and false as targets",
        made.table("target,prob", ["false,0.2", "true,0.7", "true,0.9"]),
        "refused",
        "it is 'false'; write 0",
    ),
    _csv(
        "misspells alpha in the header",
        made.table("target,lower,upper", ["1.5,1,2", "3,2,4"]),
        "refused",
        "need the header's 'alpha'",
        **{"p.csv.json": '{"alfa": 0.1}'},
    ),
    _csv(
        "writes a broken header beside the table",
        made.table("target,prob"),
        "refused",
        "must be a JSON object, got '{method: mine}'",
        **{"p.csv.json": "{method: mine}"},
    ),
    _scored(
        "saves a spreadsheet instead of a CSV",
        b"PK\x03\x04 xl/workbook.xml",
        "refused",
        "must end in .safetensors, .npz, .csv",
        file="p.xlsx",
    ),
)
ARRAYS = (
    _scored(
        "saves one array with numpy.save",
        _npy(),
        "refused",
        "must end in .safetensors, .npz",
        file="p.npy",
    ),
    _scored(
        "saves arrays without names",
        {"arr_0": made.TARGET, "arr_1": made.PROBS},
        "refused",
        "Name the arrays: np.savez(",
    ),
    _scored(
        "saves names as Python objects",
        made.classes(item=np.array([f"i{k}" for k in range(made.N)], object)),
        "refused",
        "holds Python objects, which are never loaded",
    ),
    _scored(
        "stores logits as probs",
        made.classes(probs=made.LOGITS),
        "refused",
        "if these are logits, say so",
    ),
    _scored(
        "stores log-probabilities as probs",
        made.classes(probs=np.log(made.PROBS)),
        "refused",
        "must lie in [0, 1]",
    ),
    _scored(
        "stores percentages",
        made.classes(probs=100 * made.PROBS),
        "refused",
        "these are percentages",
    ),
    _scored(
        "stores sigmoids that do not sum to 1",
        made.classes(probs=1 / (1 + np.exp(-made.LOGITS))),
        "refused",
        "a sigmoid of its own",
    ),
    _scored(
        "stores probabilities with two decimals",
        made.classes(probs=made.PROBS.round(2)),
        "said",
        "was renormalised",
    ),
    _scored(
        "stores probs with the classes first",
        made.classes(probs=made.PROBS.T),
        "refused",
        "np.transpose(probs, (1, 0))",
    ),
    _scored(
        "stores draws last",
        made.classes(probs=np.stack([made.PROBS] * 4, -1)),
        "refused",
        "np.transpose(probs, ",
    ),
    _scored(
        "stores draws after items",
        made.classes(probs=np.stack([made.PROBS] * 4, 1)),
        "refused",
        "np.transpose(probs, (1, 0, 2))",
    ),
    _scored(
        "stores targets one-hot",
        made.classes(target=np.eye(3)[made.TARGET]),
        "refused",
        "take its argmax over the last axis",
    ),
    _scored(
        "stores targets in a column (N, 1)",
        made.classes(target=made.TARGET[:, None]),
        "refused",
        "drop the last axis",
    ),
    _scored(
        "leaves nan in probs",
        made.classes(
            probs=np.where(np.arange(made.N)[:, None] == 7, np.nan, made.PROBS)
        ),
        "refused",
        "must be finite, row 7, class 0 is nan",
    ),
    _scored(
        "drops the last batch of probs",
        made.classes(probs=made.PROBS[:56]),
        "refused",
        "has 56 items",
    ),
    _scored(
        "marks the two classes by -1 and 1",
        made.two(target=2 * made.BINARY - 1),
        "refused",
        "number two classes 0 and 1",
    ),
    _scored(
        "stores classes as 0.0 and 1.0",
        made.two(target=made.BINARY.astype(float)),
        "accepted",
        "classification, 60 items",
    ),
    _scored(
        "stores predicted classes in place of probs",
        made.two(prob=(made.PROB > 0.5).astype(int)),
        "said",
        "is constant",
    ),
    _scored(
        "stores P(y=0) as prob",
        made.two(prob=1 - made.PROB),
        "said",
        "than guessing: 7%",
    ),
    _scored(
        "stores a confidence as an uncertainty",
        made.classes(uncertainty__mine=made.PROBS.max(1)),
        "said",
        "If it is a confidence, store its negative",
    ),
    _scored(
        "stores a constant uncertainty",
        made.classes(uncertainty__mine=np.ones(made.N)),
        "said",
        "is constant: it orders nothing",
    ),
    _scored(
        "writes uncertianty/mine",
        made.classes(uncertianty__mine=np.ones(made.N)),
        "refused",
        "Did you mean 'uncertainty/mine'?",
    ),
    _scored(
        "calls the arrays y_true and y_prob",
        {"y_true": made.BINARY, "y_prob": made.PROB},
        "said",
        "read as probabilities of scikit-learn",
    ),
    _scored(
        "forgets the target",
        made.classes(target=None),
        "refused",
        "add the true classes or values as 'target'",
    ),
    _scored(
        "has items of one class only",
        made.two(target=np.ones(made.N, int)),
        "said",
        "only one class occurs",
    ),
    _scored(
        "marks every item as shifted",
        made.classes(shifted=np.ones(made.N, bool)),
        "said",
        "no item is marked as shifted, or all are",
    ),
    _scored(
        "stores a negative variance",
        made.values(var=np.where(np.arange(made.N) == 7, -1.2, 9.0)),
        "refused",
        "'var' must be at least 0",
    ),
    _scored(
        "stores a logarithm of the variance as var",
        made.values(var=np.full(made.N, np.log(0.3))),
        "refused",
        "store np.exp(var)",
    ),
    _scored(
        "stores intervals upside down",
        made.intervals(lower=made.MEAN + 5, upper=made.MEAN - 5),
        "refused",
        "must not be above 'upper'",
    ),
    _scored(
        "forgets the alpha of intervals",
        made.intervals(header=None),
        "refused",
        "0.1 for 90 % intervals",
    ),
    _scored(
        "states a coverage of 90 as alpha",
        made.intervals(header={"alpha": 90}),
        "refused",
        "must be between 0 and 1",
    ),
    _scored(
        "states the coverage 0.9 as alpha",
        made.intervals(header={"alpha": 0.9}),
        "said",
        "aim 10±5%",
    ),
    _scored(
        "puts the header into an array of objects",
        {**made.classes(), "header": np.array({"seed": 1}, object)},
        "refused",
        "array 'header' holds Python objects",
    ),
    _scored(
        "misspells a field of the header",
        {**made.classes(), "header": {"metod": "map"}},
        "said",
        "Did you mean 'method'?",
    ),
    _scored(
        "states the wrong task in the header",
        {**made.classes(), "header": {"task": "regression"}},
        "refused",
        "state that task, or none",
    ),
    _scored("uploads an empty file", b"", "refused", "it is empty"),
    _scored("interrupts a download", _cut, "refused", "it may be cut short"),
    _scored(
        "scores the pointer that Git LFS leaves",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "refused",
        "run git lfs pull",
    ),
    _scored(
        "saves with torch.save",
        _saved_by_torch(),
        "refused",
        "it ends in '.pt'",
        file="p.pt",
    ),
    _scored(
        "saves with torch.save under the name p.npz",
        _saved_by_torch(),
        "refused",
        "was written by torch.save",
    ),
    _scored(
        "scores weights instead of predictions",
        _weights,
        "refused",
        "fit no task",
        file="p.safetensors",
    ),
    _scored(
        "stores all tensors as float32",
        _float32_names,
        "accepted",
        "classification, 60 items",
        file="p.safetensors",
    ),
    _scored(
        "keeps a list of probabilities in each cell",
        made.parquet({"target": made.TARGET, "probs": list(made.PROBS)}),
        "refused",
        "must be several columns of one number each",
        file="p.parquet",
    ),
    _scored(
        "stores draws of a regression with the draws last",
        made.values(mean=np.stack([made.MEAN] * 4, 1), var=None),
        "refused",
        "np.transpose(mean, (1, 0))",
    ),
    _scored(
        "stores embeddings without an uncertainty",
        made.embedded(uncertainty__u=None),
        "said",
        "the file has no 'uncertainty/<name>', so that one over the length",
    ),
    _scored(
        "stores infinite uncertainties",
        made.embedded(uncertainty__u=np.full(made.N, np.inf)),
        "refused",
        "must be finite, row 0 is inf",
    ),
    _scored(
        "stores 60 items with 60 different targets",
        made.embedded(target=np.arange(made.N)),
        "said",
        "R@1 0%",
    ),
)
FOLDERS = (
    _scored(
        "scores a folder of pictures of masks",
        _pictures,
        "refused",
        "is a folder without index.json",
        file="maps",
    ),
    _scored(
        "scores an empty folder",
        lambda path: path.mkdir(),
        "refused",
        "is a folder without index.json",
        file="maps",
    ),
    _scored(
        "lists an item whose file is missing",
        _listed([{"item": "a", "file": "c.npz"}]),
        "refused",
        "names 'c.npz', which is not there",
        file="maps",
    ),
    _scored(
        "lists an item twice",
        _listed([{"item": "a", "file": "a.npz"}] * 2),
        "refused",
        "name the same file 'a.npz'",
        file="maps",
    ),
    _scored(
        "lists files by name alone",
        _listed(["a.npz"]),
        "refused",
        "must have 'item' and 'file'",
        file="maps",
    ),
    _scored(
        "stores the classes of maps last",
        _maps(mean_probs=np.full((6, 8, 2), 0.5, np.float32)),
        "refused",
        "np.moveaxis(mean_probs, -1, 0)",
        file="maps",
    ),
    _scored(
        "stores maps of one channel",
        _maps(mean_probs=np.full((1, 6, 8), 0.5, np.float32)),
        "refused",
        "np.concatenate([1 - mean_probs, mean_probs])",
        file="maps",
    ),
    _scored(
        "stores one map of a rater without its axis",
        _maps(raters=np.zeros((6, 8), np.uint8)),
        "refused",
        "add the rater axis",
        file="maps",
    ),
    _scored(
        "marks unknown pixels by 255 without saying so",
        _maps(raters=np.full((1, 6, 8), 255, np.uint8)),
        "refused",
        "state 'ignore' in the header",
        file="maps",
    ),
    _scored(
        "stores entropy in bits",
        _maps(expected_entropy=np.full((6, 8), 0.97, np.float32)),
        "refused",
        "use natural logarithms",
        file="maps",
    ),
    _scored(
        "stores masks of another size than the maps",
        _maps(raters=np.zeros((1, 8, 6), np.uint8)),
        "refused",
        "got (1, 8, 6)",
        file="maps",
    ),
    _scored(
        "stores probabilities as draw_labels",
        _maps(draw_labels=np.full((2, 6, 8), 0.4)),
        "refused",
        "must be whole numbers in 0..255",
        file="maps",
    ),
)
MISTAKES = (*CSV, *ARRAYS, *FOLDERS)
