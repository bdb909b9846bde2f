"""Further mistakes of every kind: uncertainties, formulas, nesting, sizes, regions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench.mistaken import made
from bench.mistaken.mistake import Content, Kind, Mistake

from qualms.referral import ReferralOptions

OWN: dict[str, Any] = {"uncertainty/mine": made.PROB, "uncertainty/b": made.PROB}
TABLE = {
    f"pets/{name}/{k}.png": made.picture(40 + 9 * k) for name in "ab" for k in range(12)
}
QUICK = "--methods map --seeds 0 --workers 1 --device cpu --dry-run"


def _typed(what: str, do: str, kind: Kind, says: str, **files: Content) -> Mistake:
    named = {name.replace("__", "."): content for name, content in files.items()}
    return Mistake(what=what, do=do, kind=kind, says=says, files=named)


def _own(
    what: str, options: str, says: str, kind: Kind = "refused", **files: Content
) -> Mistake:
    named: dict[str, Content] = {
        **TABLE,
        **{n.replace("__", "."): c for n, c in files.items()},
    }
    source = "own.toml" if "own__toml" in files else "pets"
    return Mistake(
        what=what,
        do=f"run own --from {source} {QUICK} {options}".strip(),
        kind=kind,
        says=says,
        files=named,
    )


def _header(**fields: Any) -> dict[str, Any]:
    return {**made.two(**OWN), "header": fields}


def _deep(path: Path) -> None:
    path.write_text('from = "pets"\nx = ' + "[" * 2_000 + "]" * 2_000)


def _bomb(path: Path) -> None:
    np.savez_compressed(
        path,
        target=np.zeros(200_000_000, np.int8),
        prob=np.zeros(200_000_000, np.float16),
    )


FILES = (
    _typed(
        "names an uncertainty in the header that the file lacks",
        "score p.npz",
        "refused",
        "header 'uncertainty' must be one of",
        p__npz=_header(uncertainty="min"),
    ),
    _typed(
        "refers by a header that names a missing uncertainty",
        "refer p.npz --budget 0.2",
        "refused",
        "header 'uncertainty' must be one of",
        p__npz=_header(uncertainty="min"),
    ),
    _typed(
        "brings two uncertainties and names none",
        "refer p.npz --budget 0.2",
        "said",
        "by mine, which is taken",
        p__npz=made.two(**OWN),
    ),
    _typed(
        "stores values of 1e90",
        "score p.npz",
        "refused",
        "must stay within 1e+70",
        p__npz=made.values(mean=made.MEAN * 1e90),
    ),
    _typed(
        "compresses 200 million zeros into a small file",
        "score p.npz",
        "refused",
        "which real predictions do not",
        p__npz=_bomb,
    ),
    _typed(
        "writes null metadata into safetensors",
        "score p.safetensors",
        "refused",
        "must hold arrays of predictions, got none",
        p__safetensors=len(b'{"__metadata__":null}').to_bytes(8, "little")
        + b'{"__metadata__":null}',
    ),
    _typed(
        "states alpha as a percentage in a string",
        "score p.npz",
        "refused",
        "alpha",
        p__npz={**made.intervals(), "header": {"alpha": "10%"}},
    ),
    _typed(
        "has an uncertainty of 59 items",
        "score p.npz",
        "refused",
        "59",
        p__npz=made.two(**{"uncertainty/mine": np.arange(59.0)}),
    ),
    _typed(
        "stores an uncertainty for each class",
        "score p.npz",
        "refused",
        "uncertainty/mine",
        p__npz=made.two(**{"uncertainty/mine": made.PROBS}),
    ),
    _typed(
        "pools rules of selection under a wrong name",
        "score p.npz",
        "refused",
        "select",
        p__npz={
            **made.values(**{"select/s": made.MEAN}),
            "header": {"select": {"s": "median"}},
        },
    ),
)
OPTIONS = (
    _typed(
        "asks to judge by a misspelt uncertainty",
        "score p.npz --uncertainty minee",
        "refused",
        "Did you mean 'mine'?",
        p__npz=made.two(**OWN),
    ),
    _typed(
        "asks for an uncertainty of maps of a table",
        "score p.npz --uncertainty predictive",
        "refused",
        "uncertainty must be one of",
        p__npz=made.two(),
    ),
    _typed(
        "applies a plan to a file without its uncertainty",
        "refer p.npz --budget 0.2 --on q.npz",
        "refused",
        "and this file has none; add it, or make",
        p__npz=made.two(**OWN),
        q__npz=made.two(),
    ),
    _typed(
        "asks for the width without intervals",
        "refer p.npz --budget 0.2 --uncertainty width",
        "refused",
        "needs 'lower' and 'upper'",
        p__npz=made.values(),
    ),
    _typed(
        "asks for an accuracy of values",
        "refer p.npz --accuracy 0.9",
        "refused",
        "ask for a budget",
        p__npz=made.values(),
    ),
    _typed(
        "asks for an accuracy of 95",
        "refer p.npz --accuracy 95",
        "refused",
        "accuracy must lie between 0 and 1",
        p__npz=made.two(),
    ),
    _typed(
        "writes the items to refer into their own input",
        "refer p.npz --budget 0.2 --items p.npz",
        "refused",
        "p.npz",
        p__npz=made.two(),
    ),
    _typed(
        "writes the items into a folder that is missing",
        "refer p.npz --budget 0.2 --items gone/items.csv",
        "refused",
        "gone",
        p__npz=made.two(),
    ),
)
DATA = (
    _own(
        "writes a date as an option",
        "",
        "put a date in quotes",
        own__toml='from = "pets"\ntraining.epochs = 2024-01-01\n',
    ),
    _own(
        "nests a TOML file 2,000 deep",
        "",
        "nested more than 50 levels deep",
        own__toml=_deep,
    ),
    _own(
        "misspells a key of the TOML file",
        "",
        "Did you mean 'seeds'?",
        own__toml='from = "pets"\nseed = [1]\n',
    ),
    _own(
        "gives seeds as text in the TOML file",
        "",
        "must be a list such as [0, 1, 2]",
        own__toml='from = "pets"\nseeds = "0-2"\n',
    ),
    _own(
        "folds pictures of odd sides",
        "-o network.name=resnet_small -o network.fold=5",
        "the network fails on items of",
    ),
    _own(
        "takes a batch larger than the data without a rest",
        "-o batch=500 -o partial=false",
        "leaves no step",
    ),
    _own(
        "asks for patches of pictures with classes",
        "-o patch=8",
        "patch=8 is for segmentation",
    ),
    _own("asks for zero epochs", "-o epochs=0", "must be a whole number from 1 on"),
    _own("asks for half an epoch", "-o epochs=0.5", "epochs"),
    _own(
        "misspells the network",
        "-o network.name=resnet_smal",
        "Did you mean 'resnet_small'?",
    ),
)


def _regions(**options: Any) -> Callable[[], object]:
    def do() -> object:
        import torch

        import qualms

        torch.manual_seed(0)
        model = torch.nn.Conv2d(1, 2, 1)
        x = torch.zeros(3, 1, 4, 4)
        target = options.pop("target", torch.zeros(3, 2, 4, 4))
        end = options.pop("end", None)
        if end is not None:
            model = torch.nn.Sequential(model, torch.nn.Sigmoid())
        given = {"task": "segmentation", "regions": ["a", "b"], "out": "maps"}
        return qualms.predict(model, [(x, target)], **{**given, **options})

    return do


def _act(name: str, *arguments: Any, **options: Any) -> Callable[[], object]:
    def do() -> object:
        import qualms

        return getattr(qualms, name)(*arguments, **options)

    return do


def _python(what: str, do: Callable[[], object], says: str) -> Mistake:
    return Mistake(what=what, do=do, kind="refused", says=says)


PYTHON = (
    _python(
        "asks score for an uncertainty that is missing",
        _act("score", made.two(), uncertainty="mine"),
        "uncertainty must be one of entropy",
    ),
    _python(
        "refers with both a budget and an accuracy",
        _act("refer", made.two(), budget=0.2, accuracy=0.9),
        "got both",
    ),
    _python("refers with neither", _act("refer", made.two()), "got neither"),
    _python(
        "asks for the sensitivity of embeddings",
        _act(
            "refer",
            made.embedded(),
            options=ReferralOptions(sensitivity=0.9),
        ),
        "ask for an accuracy, which is R@1 of the kept queries",
    ),
    _python(
        "refers without targets",
        _act("refer", made.two(target=None), budget=0.2),
        "has no 'target'",
    ),
    _python(
        "asks for a confidence of 90",
        _act("refer", made.two(), budget=0.2, confidence=90),
        "confidence must lie between 0.5 and 1",
    ),
    _python("scores a level of 95", _act("score", made.two(), level=95), "level"),
    _python(
        "scores shifted items where none are marked",
        _act("score", made.two(), subset="shifted"),
        "shifted",
    ),
    _python(
        "states a header for a file",
        _act("score", "p.npz", header={}),
        "header= is for a mapping",
    ),
    _python(
        "runs a benchmark on a device that is missing",
        _act("run", "regression/cells", device="cuda:77", seeds="0"),
        "device must be there",
    ),
)
MODELS = (
    _python(
        "names regions in one text",
        _regions(regions="whole"),
        "regions must be a list of names",
    ),
    _python(
        "names a region twice",
        _regions(regions=["a", "a"]),
        "must have different names",
    ),
    _python(
        "names three regions of two maps",
        _regions(regions=["a", "b", "c"]),
        "regions names 3, and the model returns 2",
    ),
    _python(
        "gives label maps for regions",
        _regions(target=np.zeros((3, 4, 4))),
        "must have shape (B, 2, 4, 4)",
    ),
    _python(
        "gives masks of 0 and 255 for regions",
        _regions(target=np.full((3, 2, 4, 4), 255)),
        "1 inside of a region and 0 outside",
    ),
    _python(
        "forgets to name regions of sigmoids",
        _regions(regions=(), end=1, outputs="probabilities"),
        "name the regions that overlap",
    ),
    _python(
        "names regions for classes of pictures",
        _regions(task="classification", out=None),
        "regions are for segmentation",
    ),
)
