"""Mistakes with a trained network: `qualms.predict` and `qualms predict`."""

from collections.abc import Callable
from typing import Any

from bench.mistaken import made
from bench.mistaken.mistake import Content, Kind, Mistake


def _model(what: str, do: Callable[[], object], kind: Kind, says: str) -> Mistake:
    return Mistake(what=what, do=do, kind=kind, says=says)


def _torch():
    import torch

    return torch


def _net(outputs: int = 3, *, last: Any = None) -> Any:
    nn = _torch().nn
    _torch().manual_seed(0)
    layers = [nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, outputs)]
    return nn.Sequential(*layers, *([last] if last is not None else []))


def _items(n: int = 12, *, target: Any = None, width: int = 4) -> Any:
    torch = _torch()
    x = torch.randn(n, width, generator=torch.Generator().manual_seed(0))
    return x, (torch.arange(n) % 3 if target is None else target)


def _batches(**more: Any) -> list:
    return [_items(**more)]


def _predict(
    model: Any = None, loader: Any = None, task: str = "classification", **options: Any
) -> object:
    import qualms

    return qualms.predict(
        _net() if model is None else model,
        _batches() if loader is None else loader,
        task=task,
        **options,
    )


def _loader(**options: Any) -> Any:
    from torch.utils.data import DataLoader, TensorDataset

    return DataLoader(TensorDataset(*_items()), **options)


def _training() -> Any:
    return _net().train()


def _broken(what: str) -> Any:
    torch = _torch()

    class Broken(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            if what == "none":
                return None
            if what == "numpy":
                return self.layer(x).detach().numpy()
            if what == "list":
                return [self.layer(x), self.layer(x), self.layer(x)]
            if what == "nan":
                return self.layer(x) * float("nan")
            return self.layer(x)[:1]

    return Broken()


def _predicted(model: Any) -> str:
    found: Any = _predict(model)
    return f"{found.n} items, {found.task}"


PYTHON = (
    _model(
        "passes the name of a model",
        lambda: _predict("resnet50"),
        "refused",
        "model must be a torch module, got str",
    ),
    _model(
        "passes a state dict",
        lambda: _predict(_net().state_dict()),
        "refused",
        "model must be a torch module, got OrderedDict",
    ),
    _model(
        "misspells the task",
        lambda: _predict(task="classify"),
        "refused",
        "Did you mean 'classification'?",
    ),
    _model(
        "misspells the method",
        lambda: _predict(method="mcdropout"),
        "refused",
        "Did you mean 'mc_dropout'?",
    ),
    _model(
        "asks a model without dropout for MC dropout",
        lambda: _predict(method="mc_dropout"),
        "refused",
        "has no dropout layer",
    ),
    _model(
        "forgets the training items of Laplace",
        lambda: _predict(method="laplace"),
        "refused",
        "say fit=LOADER",
    ),
    _model(
        "forgets the held-out items of temperature scaling",
        lambda: _predict(method="temperature"),
        "refused",
        "say val=LOADER",
    ),
    _model(
        "asks for a method that a network is trained with",
        lambda: _predict(method="swag"),
        "refused",
        "these can: laplace, map",
    ),
    _model(
        "misspells an option of the method",
        lambda: _predict(method="laplace", options={"draw": 5}),
        "refused",
        "Did you mean 'draws'?",
    ),
    _model(
        "has a softmax in the model",
        lambda: _predict(_net(last=_torch().nn.Softmax(1))),
        "refused",
        "say outputs='probabilities'",
    ),
    _model(
        "calls logits probabilities",
        lambda: _predict(outputs="probabilities"),
        "refused",
        "say outputs='logits'",
    ),
    _model(
        "misspells outputs",
        lambda: _predict(outputs="logit"),
        "refused",
        "Did you mean 'logits'?",
    ),
    _model(
        "has three outputs and four classes",
        lambda: _predict(loader=_batches(target=_torch().arange(12) % 4)),
        "refused",
        "must be classes 0..2",
    ),
    _model(
        "gives targets one-hot",
        lambda: _predict(
            loader=_batches(target=_torch().eye(3)[_torch().arange(12) % 3])
        ),
        "refused",
        "must have one target for each item",
    ),
    _model(
        "gives inputs of another width",
        lambda: _predict(loader=_batches(width=5)),
        "refused",
        "the model fails on inputs of shape (8, 5)",
    ),
    _model(
        "shuffles unnamed items",
        lambda: _predict(loader=_loader(batch_size=4, shuffle=True)),
        "refused",
        "shuffle=False",
    ),
    _model(
        "drops the last items",
        lambda: _predict(loader=_loader(batch_size=5, drop_last=True)),
        "refused",
        "drop_last=False",
    ),
    _model(
        "passes an empty loader",
        lambda: _predict(loader=[]),
        "refused",
        "there must be items in it",
    ),
    _model(
        "passes a tensor as the loader",
        lambda: _predict(loader=_items()[0]),
        "refused",
        "pass a DataLoader, or a list of batches",
    ),
    _model(
        "passes a generator",
        lambda: _predict(loader=(b for b in _batches())),
        "refused",
        "can be gone through only once",
    ),
    _model(
        "passes batches of five things",
        lambda: _predict(loader=[(*_items(), 1, 2, 3)]),
        "refused",
        "say unpack=lambda batch",
    ),
    _model(
        "passes a mapping with other keys",
        lambda: _predict(loader=[{"image": _items()[0], "label": _items()[1]}]),
        "refused",
        "Say for example unpack=lambda batch",
    ),
    _model(
        "predicts with a model that returns None",
        lambda: _predict(_broken("none")),
        "refused",
        "a model must return a tensor",
    ),
    _model(
        "predicts with a model that returns arrays of NumPy",
        lambda: _predict(_broken("numpy")),
        "refused",
        "a model must return a tensor",
    ),
    _model(
        "predicts with a model that returns a list",
        lambda: _predict(_broken("list")),
        "refused",
        "a model must return a tensor",
    ),
    _model(
        "predicts with a model that returns nan",
        lambda: _predict(_broken("nan")),
        "refused",
        "predictions must be finite",
    ),
    _model(
        "predicts with a model that returns one item of a batch",
        lambda: _predict(_broken("one")),
        "refused",
        "a model must return class scores (B, C)",
    ),
    _model(
        "forgets out= for segmentation",
        lambda: _predict(task="segmentation"),
        "refused",
        "say out=FOLDER",
    ),
    _model(
        "writes draws into a CSV",
        lambda: _predict(method="laplace", fit=_batches(), out="p.csv"),
        "refused",
        "say out=FILE.npz",
    ),
    _model(
        "writes into a folder that is missing",
        lambda: _predict(out="nowhere/p.npz"),
        "refused",
        "make it first, or choose another",
    ),
    _model(
        "misspells a field of the header",
        lambda: _predict(header={"datset": "birds"}),
        "refused",
        "Did you mean 'dataset'?",
    ),
    _model(
        "takes two outputs for a mean",
        lambda: _predict(
            _net(2), _batches(target=_torch().rand(12)), task="regression"
        ),
        "refused",
        "must return one number for each item, got 2",
    ),
    _model(
        "predicts with a network that is left in training mode",
        lambda: _predicted(_training()),
        "accepted",
        "12 items, classification",
    ),
)


def _fitted_on_itself() -> Any:
    same = _batches()
    return _predict(loader=same, val=same, method="temperature")


FITTED = (
    _model(
        "fits a temperature on the items that are predicted",
        _fitted_on_itself,
        "said",
        "val seems to hold the very items that are predicted",
    ),
)
PICTURES: dict[str, Content] = {
    f"birds/{name}/{k}.png": made.picture(90 + k, (32, 32, 3))
    for name in ("owl", "wren")
    for k in range(2)
}


def _timm(what: str, do: str, kind: Kind, says: str, **more: Content) -> Mistake:
    files = {
        **PICTURES,
        **{name.replace("__", "."): content for name, content in more.items()},
    }
    return Mistake(
        what=what, do=f"predict {do}", kind=kind, says=says, files=files, typed=True
    )


COMMAND = (
    _timm(
        "misspells the network",
        "timm:resnet5 --from birds --out p.npz",
        "refused",
        "Did you mean 'resnet50'?",
    ),
    _timm(
        "forgets the pictures",
        "timm:resnet18 --out p.npz",
        "refused",
        "Missing option '--from'",
    ),
    _timm(
        "names a folder that is missing",
        "timm:resnet18 --from bird --out p.npz",
        "refused",
        "expected a folder of images or a CSV",
    ),
    _timm(
        "gives a file of weights that is missing",
        "timm:resnet18 --from birds --out p.npz --weights mine.pt",
        "refused",
        "which is no file",
    ),
    _timm(
        "gives a file of weights that is none",
        "timm:resnet18 --from birds --out p.npz --weights mine.pt",
        "refused",
        "must be a state dict of torch",
        mine__pt="weights",
    ),
    _timm(
        "misspells the ending of the predictions",
        "timm:resnet18 --from birds --out p.numpy",
        "refused",
        "choose one of these",
    ),
)
MISTAKES = (*PYTHON, *FITTED, *COMMAND)
