"""`qualms.predict`: from a trained torch module to a predictions file, in one call."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
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
from qualms.shelf import tasks_with, traits
from qualms.spec import Task
from qualms.trained._backbone import TrainedBackbone, make_backbone
from qualms.trained._batches import ItemBatch, ItemLoader, Unpack, as_loader
from qualms.trained._outputs import CLASS_FORMS, OutputReader, make_reader
from qualms.trained._passes import TrainedPasses
from qualms.trained._posthoc import PLAIN, PosthocMethod, make_method, posthoc_method
from qualms.trained._regions import check_regions
from qualms.trained._several_inputs import SeveralInputs
from qualms.training.machine import hardware
from qualms.training.seeds import seed as seed_part
from qualms.wording import in_one_line, suggest

_PROBED = 8
"""Items on which the last layer of a model is searched."""
_TABLES = (".csv", ".parquet")
"""Files that hold one draw of each item."""
_VOLUME = 5
"""Axes of a batch of volumes."""


@in_one_line
def predict(  # noqa: PLR0913 - a model and its items have many properties
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
    regions: Sequence[str] = (),
    unpack: Unpack | None = None,
    views: bool = True,
    seed: int = 0,
    header: Mapping[str, Any] | None = None,
) -> Predictions:
    """Predict all items of `loader` with a trained model, with draws.

    The model itself is not changed: a copy of it predicts, in evaluation mode, on the
    device of the model.

    Args:
        model: Any torch module that maps a batch (B, ...) to class scores (B, C), to
            values (B,), to maps of class scores (B, C, *space), or to embeddings
            (B, D).
        loader: A DataLoader, a Dataset, or a list of batches: x, (x, target),
            (x, target, mapping) or a mapping with the keys x, target, item, group,
            cluster, shifted and thumbnail. `x` may be several inputs: a tuple that the
            model takes by position, or a mapping that it takes by name.
        task: "classification", "regression", "segmentation" or "embedding".
        method: The name of a method, "plain" for the model as it is, or a `Method`.
            Methods that a network must be trained with are refused.
        options: Options of the method, such as {"draws": 30}.
        fit: The training items, for methods that are fitted to them, such as "laplace".
        val: Held-out items, for methods that are calibrated, such as "temperature".
        out: Where to write the predictions; a folder for segmentation, which needs one.
        outputs: What the model returns: "logits" (the default) or "probabilities"; for
            regression "mean" (the default), "mean_variance", "mean_log_variance" or
            "mean_deviation". For embeddings "embeddings" (the default), or "logits" or
            "probabilities" of a classifier, whose embeddings are the inputs of its last
            linear layer, and the entropy one of their uncertainties.
        last: The name of the last linear layer, where the search fails; False to take
            the model as a whole.
        ignore: The label of pixels that are compared with nothing (segmentation).
        regions: Names of regions that may overlap, where the model returns a logit of
            each, (B, K, *space), for a sigmoid. Targets are masks (B, K, *space) of 0
            and 1, or (B, R, K, *space) of R raters.
        unpack: A function from a batch of the loaders to one of the forms above.
        views: Embeddings of images: whether images are also seen mirrored
            (`uncertainty/flips`) and cropped (`uncertainty_cropped/<name>`), which
            takes four times as long.
        seed: Seed of all random numbers.
        header: Further fields of the file's header, such as {"dataset": "mine"}.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"model must be a torch module, got {type(model).__name__}; write what it"
            " predicts with qualms.predictions.write"
        )
    if not isinstance(method, str | Method):
        raise ValueError(
            "method must be a name such as 'mc_dropout', or a Method, got"
            f" {type(method).__name__}"
        )
    named = check_regions(regions, task, last)
    reader = make_reader(task, outputs, regions=len(named))
    last = _last(reader, last)
    _check_out(out, task)
    _check_header(header or {})
    request = _ModelRequest(
        model=model,
        method=method,
        options=options or {},
        unpack=unpack,
        seed=seed,
        regions=named,
    )
    items = request.items("loader", loader)
    started = time.perf_counter()
    # Torch's generators are left as they were.
    devices = [items.device] if items.device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.no_grad():
        seed_part(seed, "look")
        items.check_order()
        first = items.first()
        x = first.x[:_PROBED]
        backbone, first_outputs = make_backbone(
            _reading(_copied(model), first, request), x, reader, last
        )
        of_model = _task(reader, first_outputs, x, ignore)
        _check_embeds(of_model, backbone)
        posthoc = posthoc_method(request.name, request.build(), backbone, of_model)
        posthoc.network.to(items.device)
        notes = _fit(posthoc, request, of_model, {"fit": fit, "val": val}, items)
        table = str(out).lower().endswith(_TABLES)
        passes = TrainedPasses(
            posthoc=posthoc, task=of_model, items=items, one_draw=table, views=views
        )
        make_header = partial(request.header, posthoc, of_model, header or {})
        seed_part(seed, "predict")
        predictions = _predicted(passes, make_header, out, started)
        return replace(predictions, notes=(*predictions.notes, *notes))


def _last(reader: OutputReader, last: str | bool | None) -> str | bool | None:
    """Return the last layer that is sought: none in a model of embeddings."""
    if reader.form != "embeddings":
        return last
    if last not in (None, False):
        raise ValueError(
            "last is for classifiers, and this model returns embeddings; say"
            " outputs='logits', or leave it out"
        )
    return False


def _predicted(
    passes: TrainedPasses,
    make_header: Callable[[float | None], Header],
    out: str | PathLike[str] | None,
    started: float,
) -> Predictions:
    """Predict all items, and write the predictions to `out` if it is not None."""
    task = passes.task.name
    if out is not None and "pixels" in traits(task):
        passes.write_maps(out, make_header(None))
        return read(out)
    arrays = passes.arrays()
    seconds = time.perf_counter() - started
    predictions = build(arrays, header=make_header(seconds), task=task)
    if out is not None:
        write(out, predictions)
    return predictions


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelRequest:
    """Arguments of `predict` on the model and the method."""

    model: nn.Module
    method: str | Method
    options: Mapping[str, Any]
    unpack: Unpack | None
    seed: int
    regions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.method if isinstance(self.method, str) else "own"

    def build(self) -> Method:
        if isinstance(self.method, Method):
            if self.options:
                raise ValueError(
                    "options are for a method by its name; this one is made already,"
                    " so state them when it is made"
                )
            return self.method
        return make_method(PLAIN if self.name == "plain" else self.name, self.options)

    def items(self, name: str, loader: Iterable[Any]) -> ItemLoader:
        first = _first_tensor(self.model)
        floats = first is not None and first.is_floating_point()
        return ItemLoader(
            loader=as_loader(loader),
            name=name,
            device=torch.device("cpu") if first is None else first.device,
            dtype=first.dtype if first is not None and floats else torch.float32,
            unpack=self.unpack,
            regions=len(self.regions),
        )

    def header(
        self,
        posthoc: PosthocMethod,
        task: Task,
        more: Mapping[str, Any],
        seconds: float | None,
    ) -> Header:
        """Return the header of the predictions file."""
        first = _first_tensor(self.model)
        fields: dict[str, Any] = {
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
            "regions": self.regions,
            "select": posthoc.method.select,
        }
        return Header(**{**fields, **posthoc.method.header, **more})


def _check_out(out: str | PathLike[str] | None, task: str) -> None:
    if out is not None:
        check_destination(out, task=task)
    elif task in tasks_with("pixels"):
        raise ValueError("segmentation is written item by item; say out=FOLDER")


def _check_header(header: Mapping[str, Any]) -> None:
    """Raise unless the fields that a user states are those of a header."""
    known = [field.name for field in fields(Header)]
    for name in header:
        if name not in known:
            raise ValueError(
                f"header has no field {str(name)!r:.60}.{suggest(str(name), known)}"
                " Rename it, or write it inside 'about' to keep it"
            )


def _fit(
    posthoc: PosthocMethod,
    request: _ModelRequest,
    task: Task,
    loaders: Mapping[str, Iterable[Any] | None],
    predicted: ItemLoader,
) -> list[str]:
    """Fit what the method fits after training, and on held-out items.

    Returns:
        Notes on items that are fitted on and also predicted.
    """
    notes = []
    steps = {"fit": posthoc.method.after if posthoc.fits else None}
    steps["val"] = posthoc.method.calibrate
    kinds = {
        "fit": "training items",
        "val": "held-out items, which training did not see",
    }
    for name, step in steps.items():
        if step is None:
            continue
        loader = loaders[name]
        if loader is None:
            raise ValueError(
                f"method {request.name!r} is fitted to {kinds[name]}; say"
                f" {name}=LOADER, or --{name} DIR on the command line"
            )
        items = request.items(name, loader)
        if items.begins_like(predicted):
            notes.append(
                f"{name} seems to hold the very items that are predicted: what is"
                " fitted on them makes their scores too good"
            )
        seed_part(request.seed, name)
        step(posthoc.network, partial(items.fitting, task))
        posthoc.network.eval()
    return notes


def _check_embeds(task: Task, backbone: TrainedBackbone) -> None:
    """Raise if a classifier does not show the layer whose inputs are embeddings."""
    if "vectors" in traits(task.name) and task.classes and backbone.last is None:
        raise ValueError(
            "no last linear layer was seen in the model, whose inputs would be the"
            " embeddings; name it by last=..., or pass a model that returns embeddings"
        )


def _task(reader: OutputReader, outputs: Tensor, x: Tensor, ignore: int | None) -> Task:
    """Return the task of a model with `outputs` (B, K, *space)."""
    name = reader.task
    if ignore is not None and "pixels" not in traits(name):
        raise ValueError(f"ignore is for segmentation, and this task is {name}")
    has_classes = reader.form in CLASS_FORMS
    classes = max(2, outputs.shape[1]) if has_classes else None
    space = 3 if x.ndim == _VOLUME else 2
    return Task(name=name, classes=classes, ignore=ignore, space=space)


def _reading(model: nn.Module, first: ItemBatch, request: _ModelRequest) -> nn.Module:
    """Return the model as a module that reads the `x` of its batches."""
    if first.layout is None:
        return model
    if request.name == "tta":
        raise ValueError(
            "tta changes images, and these items have several inputs; wrap the model"
            " in a module that takes the image alone"
        )
    return SeveralInputs(model, first.layout)


def _copied(model: nn.Module) -> nn.Module:
    # A wrapper for speed hides the layers of a module.
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
    tensors = (*model.parameters(), *model.buffers())
    return next((t for t in tensors if t.is_floating_point()), None)
