"""`qualms.predict`: from a trained torch module to a predictions file, in one call."""

import time
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn

import qualms
from qualms.methods import Method
from qualms.predictions import (
    Header,
    Predictions,
    build,
    check_destination,
    read,
    write,
)
from qualms.spec import Task, TaskName
from qualms.trained.backbone import make_backbone
from qualms.trained.batches import GivenItems, Unpack
from qualms.trained.outputs import make_reader
from qualms.trained.passes import TrainedPasses
from qualms.trained.suitable import PLAIN, Suited, make_method, suited
from qualms.training.machine import hardware
from qualms.training.seeds import seed as seed_part

_SEEN = 8
"""Items on which the last layer of a model is looked for."""
_TABLES = (".csv", ".parquet")
"""Files that hold one draw of each item."""
_VOLUME = 5
"""Axes of a batch of volumes."""


def predict(  # noqa: PLR0913 - what can be said of a model and its items
    model: nn.Module,
    loader: Iterable[Any],
    *,
    task: str,
    method: str | Method = "plain",
    options: Mapping[str, Any] | None = None,
    fit: Iterable[Any] | None = None,
    val: Iterable[Any] | None = None,
    out: str | PathLike[str] | None = None,
    outputs: str | None = None,
    last: str | bool | None = None,
    ignore: int | None = None,
    unpack: Unpack | None = None,
    seed: int = 0,
    header: Mapping[str, Any] | None = None,
) -> Predictions:
    """The predictions of a trained model for all items of `loader`, with draws.

    The model itself is not changed: a copy of it predicts, in evaluation mode, on the
    device where the model lies.

    Args:
        model: Any torch module that maps a batch (B, ...) to class scores (B, C), to
            values (B,), or to maps of class scores (B, C, *space).
        loader: A DataLoader, or a list of batches: x, (x, target), (x, target, mapping)
            or a mapping with the keys x, target, item, group, cluster and shifted.
        task: "classification", "regression" or "segmentation".
        method: The name of a method, "plain" for the model as it is, or a `Method`.
            Methods that a network must be trained with are refused.
        options: Of the method, such as {"draws": 30}.
        fit: The training items, for methods that are fitted to them, such as "laplace".
        val: Held-out items, for methods that are calibrated, such as "temperature".
        out: Where to write the predictions; a folder for segmentation, which needs one.
        outputs: What the model returns: "logits" (the default) or "probabilities"; for
            regression "mean" (the default), "mean_variance", "mean_log_variance" or
            "mean_deviation".
        last: The name of the last linear layer, where it is not found; False to leave
            the model whole.
        ignore: The label of pixels that are compared with nothing (segmentation).
        unpack: A function from a batch of the loaders to one of the forms above.
        seed: Of everything that is drawn.
        header: What else the file shall say, such as {"dataset": "mine"}.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"model must be a torch module, got {type(model).__name__}; write what it"
            " predicts with qualms.predictions.write"
        )
    reader = make_reader(task, outputs)
    _check_out(out, task)
    asked = _OwnModel(
        model=model, method=method, options=options or {}, unpack=unpack, seed=seed
    )
    items = asked.items("loader", loader)
    started = time.perf_counter()
    # Torch's generators are given back as they were.
    devices = [items.device] if items.device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.no_grad():
        seed_part(seed, "look")
        items.check_order()
        some = items.first().x[:_SEEN]
        backbone, seen = make_backbone(_copied(model), some, reader, last)
        about = _task(reader.task, seen, some, ignore)
        suit = suited(asked.name, asked.made(), backbone, about)
        suit.network.to(items.device)
        _fit(suit, asked, about, {"fit": fit, "val": val})
        table = str(out).lower().endswith(_TABLES)
        passes = TrainedPasses(suited=suit, task=about, items=items, one_draw=table)
        stated = partial(asked.header, suit, about, header or {})
        seed_part(seed, "predict")
        return _kept(passes, stated, out, started)


def _kept(
    passes: TrainedPasses,
    stated: Callable[[float | None], Header],
    out: str | PathLike[str] | None,
    started: float,
) -> Predictions:
    """The predictions of all items, written to `out` where that is given."""
    task = passes.task.name
    if out is not None and task == "segmentation":
        passes.write_maps(out, stated(None))
        return read(out)
    arrays = passes.arrays()
    taken = time.perf_counter() - started
    found = build(arrays, header=stated(taken), task=task)
    if out is not None:
        write(out, found)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnModel:
    """What the user asks for, apart from the items."""

    model: nn.Module
    method: str | Method
    options: Mapping[str, Any]
    unpack: Unpack | None
    seed: int

    @property
    def name(self) -> str:
        return self.method if isinstance(self.method, str) else "own"

    def made(self) -> Method:
        if isinstance(self.method, Method):
            if self.options:
                raise ValueError(
                    "options are for a method by its name; this one is made already,"
                    " so state them when it is made"
                )
            return self.method
        return make_method(PLAIN if self.name == "plain" else self.name, self.options)

    def items(self, name: str, loader: Iterable[Any]) -> GivenItems:
        first = _first_tensor(self.model)
        floats = first is not None and first.is_floating_point()
        return GivenItems(
            loader=loader,
            name=name,
            device=torch.device("cpu") if first is None else first.device,
            dtype=first.dtype if first is not None and floats else torch.float32,
            unpack=self.unpack,
        )

    def header(
        self, suit: Suited, task: Task, more: Mapping[str, Any], seconds: float | None
    ) -> Header:
        """What the file says of itself."""
        first = _first_tensor(self.model)
        stated: dict[str, Any] = {
            "task": task.name,
            "method": PLAIN if self.name == "plain" else self.name,
            "seed": self.seed,
            "options": {
                "network": {"name": type(self.model).__name__},
                "method": dict(self.options),
            },
            "version": qualms.__version__,
            "hardware": hardware(
                torch.device("cpu") if first is None else first.device
            ),
            "seconds": seconds,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "ignore": task.ignore,
            "select": suit.method.select,
        }
        return Header(**{**stated, **suit.method.header, **more})


def _check_out(out: str | PathLike[str] | None, task: str) -> None:
    if out is not None:
        check_destination(out, task=task)
    elif task == "segmentation":
        raise ValueError("segmentation is written item by item; say out=FOLDER")


def _fit(
    suit: Suited,
    asked: _OwnModel,
    task: Task,
    given: Mapping[str, Iterable[Any] | None],
) -> None:
    """Fit what the method fits after training, and on held-out items."""
    steps = {"fit": suit.method.after if suit.fits else None}
    steps["val"] = suit.method.calibrate
    what = {
        "fit": "training items",
        "val": "held-out items, which training did not see",
    }
    for name, step in steps.items():
        if step is None:
            continue
        loader = given[name]
        if loader is None:
            raise ValueError(
                f"method {asked.name!r} is fitted to {what[name]}; say {name}=LOADER,"
                f" or --{name} DIR on the command line"
            )
        items = asked.items(name, loader)
        seed_part(asked.seed, name)
        step(suit.network, partial(items.fitting, task))
        suit.network.eval()


def _task(name: TaskName, outputs: Tensor, x: Tensor, ignore: int | None) -> Task:
    """The task that the outputs (B, K, *space) of a model are of."""
    if ignore is not None and name != "segmentation":
        raise ValueError(f"ignore is for segmentation, and this task is {name}")
    classes = None if name == "regression" else max(2, outputs.shape[1])
    space = 3 if x.ndim == _VOLUME else 2
    return Task(name=name, classes=classes, ignore=ignore, space=space)


def _copied(model: nn.Module) -> nn.Module:
    # What wraps a module for speed hides the layers in it.
    inner = getattr(model, "_orig_mod", model)
    if isinstance(inner, nn.DataParallel | nn.parallel.DistributedDataParallel):
        inner = inner.module
    try:
        return deepcopy(inner).eval()
    except Exception as error:
        raise ValueError(
            f"the model cannot be copied ({type(error).__name__}: {error}); pass the"
            " torch module that computes its outputs, without what is around it"
        ) from error


def _first_tensor(model: nn.Module) -> Tensor | None:
    held = (*model.parameters(), *model.buffers())
    return next((t for t in held if t.is_floating_point()), None)
