"""Mistakes in data of one's own: pictures, tables, masks and TOML files."""

from collections.abc import Callable, Mapping
from pathlib import Path

from bench.mistaken import made
from bench.mistaken.mistake import Content, Kind, Mistake

PICTURES: dict[str, Content] = {
    f"pictures/{name}/{number}.png": made.picture(60 + 120 * place)
    for place, name in enumerate(("cat", "owl"))
    for number in range(20)
}
"""Two classes of twenty pictures as folders."""
QUICK = "--methods map --seeds 0 --workers 1 --dry-run"


def _own(
    what: str,
    files: Mapping[str, Content],
    kind: Kind,
    says: str,
    source: str = "own",
    options: str = QUICK,
) -> Mistake:
    return Mistake(
        what=what,
        do=f"run own --from {source} {options}",
        kind=kind,
        says=says,
        files=files,
    )


def _table(
    what: str,
    header: str,
    row: Callable[[int], str],
    kind: Kind,
    says: str,
    options: str = QUICK,
) -> Mistake:
    """A table of 40 pictures, whose lines are made by `row` from their numbers."""
    files: dict[str, Content] = {
        f"own/{k}.png": made.picture(50 + 3 * k) for k in range(40)
    }
    files["own/items.csv"] = "\n".join([header, *map(row, range(40))])
    return _own(what, files, kind, says, options=options)


def _masks(
    what: str, mask: Content, kind: Kind, says: str, **others: Content
) -> Mistake:
    """Thirty pictures with the same mask, except for some `others`."""
    files: dict[str, Content] = {
        f"own/images/{k}.png": made.picture(90 + k) for k in range(30)
    }
    files |= {f"own/masks/{k}.png": mask for k in range(30)}
    files |= {f"own/{name}": content for name, content in others.items()}
    return _own(what, files, kind, says)


def _name(k: int) -> str:
    return ("cat", "owl")[k % 2]


def _link(path: Path) -> None:
    path.symlink_to("gone.png")


def _toml(what: str, text: str, kind: Kind, says: str) -> Mistake:
    return _own(what, {**PICTURES, "own.toml": text}, kind, says, source="own.toml")


def _corrupted(what: str, options: str, says: str) -> Mistake:
    """Return a mistake in the options for corruptions, which is refused."""
    options = f"{QUICK} {options}"
    return _own(what, PICTURES, "refused", says, source="pictures", options=options)


FOLDERS = (
    _own(
        "names a folder that is missing",
        {},
        "refused",
        "expected a folder of images or a CSV",
        source="picture",
    ),
    _own(
        "names an empty folder",
        {"own/notes.txt": "nothing"},
        "refused",
        "expected items.csv, or a folder for each class",
    ),
    _own(
        "has a single class",
        {f"own/cat/{k}.png": made.picture() for k in range(9)},
        "refused",
        "there must be at least two classes",
    ),
    _own(
        "puts all pictures into one folder without targets",
        {f"own/{k}.png": made.picture() for k in range(9)},
        "refused",
        "expected items.csv, or a folder for each class",
    ),
    _own(
        "calls the training folder training",
        {
            f"own/{split}/{name}/{k}.png": made.picture(50 + k)
            for split in ("training", "test")
            for name in ("cat", "owl")
            for k in range(9)
        },
        "refused",
        "Did you mean 'train'?",
    ),
    _own(
        "has one picture in two classes",
        {
            **{n.replace("pictures", "own"): c for n, c in PICTURES.items()},
            "own/cat/same.png": made.picture(7, (8, 8)),
            "own/owl/same.png": made.picture(7, (8, 8)),
        },
        "said",
        "only one target can be right",
    ),
    _own(
        "has a picture that is cut short",
        {
            **{n.replace("pictures", "own"): c for n, c in PICTURES.items()},
            "own/cat/bad.png": b"\x89PNG\r\n\x1a\n0000",
        },
        "refused",
        "its bytes are those of no image",
    ),
    _own(
        "has a web page that is called .jpg",
        {
            **{n.replace("pictures", "own"): c for n, c in PICTURES.items()},
            "own/cat/bad.jpg": "<html>not found</html>",
        },
        "refused",
        "its bytes are those of no image",
    ),
    _own(
        "has a link that leads nowhere",
        {
            **{n.replace("pictures", "own"): c for n, c in PICTURES.items()},
            "own/cat/link.png": _link,
        },
        "refused",
        "mend or remove it",
    ),
    _own(
        "has six pictures",
        {
            f"own/{name}/{k}.png": made.picture(50 + 99 * place)
            for place, name in enumerate(("cat", "owl"))
            for k in range(3)
        },
        "said",
        "test has 1 item",
    ),
    _own(
        "has a class that only the test folder knows",
        {
            **{
                f"own/train/{name}/{k}.png": made.picture(50 + k)
                for name in ("cat", "owl")
                for k in range(12)
            },
            **{
                f"own/test/{name}/{k}.png": made.picture(60 + k)
                for name in ("cat", "fox")
                for k in range(12)
            },
        },
        "refused",
        "add some there, or leave it out",
    ),
)
TABLES = (
    _table(
        "calls the columns file and label",
        "file,label",
        lambda k: f"{k}.png,{_name(k)}",
        "refused",
        "must have the columns path",
    ),
    _table(
        "lists a picture that is missing",
        "path,target",
        lambda k: f"{k + 1}.png,{_name(k)}",
        "refused",
        "paths start from the folder of the table",
    ),
    _table(
        "lists a picture twice",
        "path,target",
        lambda k: f"{k // 2}.png,{_name(k)}",
        "refused",
        "an item has one line",
    ),
    _table(
        "adds a column for notes",
        "path,target,age",
        lambda k: f"{k}.png,{_name(k)},{k}",
        "said",
        "that are not read: age",
    ),
    _table(
        "misspells the column cluster",
        "path,target,clsuter",
        lambda k: f"{k}.png,{_name(k)},{k // 4}",
        "refused",
        "Did you mean 'cluster'?",
    ),
    _table(
        "writes decimal commas",
        "path;target".replace(";", ","),
        lambda k: f'{k}.png,"{k},5"',
        "refused",
        "numbers must have a decimal point",
    ),
    _table(
        "separates by semicolons",
        "path;target",
        lambda k: f"{k}.png;{_name(k)}",
        "refused",
        "must be separated by commas",
    ),
    _table(
        "leaves a target empty",
        "path,target",
        lambda k: f"{k}.png,{_name(k) if k else ''}",
        "refused",
        "must have a target, got none",
    ),
    _table(
        "gives the same target to every item",
        "path,target",
        lambda k: f"{k}.png,2.5",
        "refused",
        "there is nothing to learn",
    ),
    _table(
        "names a split for half of the items",
        "path,target,split",
        lambda k: f"{k}.png,{_name(k)},{'train' if k % 2 else ''}",
        "refused",
        "fill all of them, or none",
    ),
    _table(
        "calls a split validation",
        "path,target,split",
        lambda k: f"{k}.png,{_name(k)},{('train', 'validation', 'test')[k % 3]}",
        "accepted",
        "val 13",
    ),
    _table(
        "trains on shifted items",
        "path,target,split,shifted",
        lambda k: f"{k}.png,{_name(k)},{('train', 'val', 'test')[k % 3]},1",
        "refused",
        "shifted items are for testing",
    ),
    _table(
        "tests on six items",
        "path,target,split",
        lambda k: (
            f"{k}.png,{_name(k)},{'test' if k < 6 else 'val' if k < 12 else 'train'}"
        ),
        "said",
        "with fewer than 10 its scores say next to nothing",
    ),
    _table(
        "has a patient in two splits",
        "path,target,split,cluster",
        lambda k: f"{k}.png,{_name(k)},{('train', 'val', 'test')[k % 3]},p{k // 4}",
        "refused",
        "items that belong together",
    ),
    _own(
        "keeps a table of another name in the folder",
        {
            **{n.replace("pictures", "own"): c for n, c in PICTURES.items()},
            "own/labels.csv": "path,target\ncat/0.png,1.5\n",
        },
        "said",
        "is not called items.csv",
    ),
    _table(
        "asks for a method of another task",
        "path,target",
        lambda k: f"{k}.png,{_name(k)}",
        "refused",
        "serves regression; leave it out",
        options="--methods quantile --dry-run",
    ),
    _table(
        "says that names are numbers",
        "path,target",
        lambda k: f"{k}.png,{_name(k)}",
        "refused",
        "must be a finite number, got 'cat'",
        options=f"{QUICK} -o dataset.task=regression",
    ),
)
TABLES += (
    _table(
        "spells a class in two ways",
        "path,target",
        lambda k: f"{k}.png,{('cat', 'Cat', 'owl', 'owl')[k % 4]}",
        "said",
        "'Cat' and 'cat'",
    ),
    _table(
        "writes -999 for missing numbers",
        "path,target",
        lambda k: f"{k}.png,{-999 if k % 7 == 0 else k * 1.37:.2f}",
        "said",
        "targets are -999, far from the others",
    ),
    _table(
        "tests on one class only",
        "path,target,split",
        lambda k: (
            f"{k}.png,{'cat' if k < 12 else _name(k)},"
            f"{'test' if k < 12 else 'val' if k < 20 else 'train'}"
        ),
        "said",
        "no item of test is of the class owl",
    ),
)
MASKS = (
    _masks(
        "has a mask without its picture",
        made.mask(0, 1),
        "said",
        "since no image has their name",
        **{"masks/99.png": made.mask(0, 1)},
    ),
    _masks(
        "has a mask of another size",
        made.mask(0, 1),
        "refused",
        "a mask must have the size of its image",
        **{"masks/0.png": made.mask(0, 1, shape=(6, 6))},
    ),
    _masks(
        "has a mask in 0 and 255 among those in 0 and 1",
        made.mask(0, 1),
        "said",
        "save it as 1 if it marks the same",
        **{"masks/4.png": made.mask(0, 255)},
    ),
    _masks(
        "has masks that are empty",
        made.mask(0),
        "refused",
        "mark something in some of them",
    ),
    _masks(
        "saves masks in colour",
        made.picture(90, (8, 8, 3)),
        "refused",
        "a mask has one label for each pixel, got colours",
    ),
)
TOML = (
    _toml(
        "misspells a key in TOML",
        'from = "pictures"\nmethod_s = ["map"]\n',
        "refused",
        "Did you mean 'methods'?",
    ),
    _toml("forgets quotes in TOML", "from = pictures\n", "refused", "is not TOML"),
    _toml(
        "gives a side that is no number in TOML",
        'from = "pictures"\ndataset.side = "big"\n',
        "refused",
        "must be a number of pixels",
    ),
    _toml("names no data in TOML", "seeds = [1]\n", "refused", "must name the data"),
)
CORRUPTIONS = (
    _corrupted(
        "writes a corruption with a hyphen",
        "--corrupt gaussian-noise",
        "Did you mean 'gaussian_noise'?",
    ),
    _corrupted(
        "asks for severity 0, which is the items as they are",
        "--corrupt fog --severity 0-5",
        "severities must lie in 1 to 5",
    ),
    _corrupted(
        "names a severity and no corruption",
        "--severity 1-3",
        "name corruptions with --corrupt",
    ),
    _corrupted(
        "leaves only a comma of the corruptions",
        "--corrupt ,",
        "corruptions must name at least one",
    ),
    _corrupted(
        "corrupts pictures of 8 pixels in a way that needs more",
        "--corrupt patient_motion",
        "needs images of at least 16 pixels",
    ),
    _toml(
        "writes severities as on the command line in TOML",
        'from = "pictures"\ncorrupt = ["fog"]\nseverity = "1-5"\n',
        "refused",
        "must be a list such as [1, 3, 5]",
    ),
)
MISTAKES = (*FOLDERS, *TABLES, *MASKS, *TOML, *CORRUPTIONS)
