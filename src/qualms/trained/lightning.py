"""A callback of Lightning that collects what a trained module predicts.

It fills a `qualms.Accumulator`, or writes segmented items to a `SegmentationWriter`,
with what `test_step`, `validation_step` or `predict_step` returns. Lightning itself is
imported when a callback is made.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from qualms.predictions import Maps, SegmentationWriter
from qualms.scores import sufficient_statistics
from qualms.wording import suggest

STAGES = ("test", "validation", "predict")
_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


@runtime_checkable
class Collector(Protocol):
    """A collector of batches, such as `qualms.Accumulator`."""

    def update(self, **arrays: Any) -> None:
        """Add a batch of arrays by name."""

    def reset(self) -> None:
        """Remove all batches."""


def lightning_callback(
    into: Collector | SegmentationWriter, *, stage: str = "test"
) -> Any:
    """Return a callback that fills `into` with what the steps of `stage` return.

    A step returns a mapping of arrays by name, as `Accumulator.update` takes them. For
    a `SegmentationWriter` it returns `item` (B,), `probs` (B, C, *space) or `draws` (M,
    B, C, *space), and may return `target` (B, *space) or `raters` (B, R, *space).

    Raises:
        ImportError: If Lightning is not installed.
    """
    if stage not in STAGES:
        raise ValueError(
            f"stage must be one of {', '.join(STAGES)}, got {stage!r}."
            f"{suggest(str(stage), STAGES)}"
        )
    if not isinstance(into, Collector | SegmentationWriter):
        raise TypeError(
            "a callback fills a qualms.Accumulator or a SegmentationWriter, got"
            f" {type(into).__name__}"
        )

    def on_start(_callback: Any, trainer: Any, _module: Any) -> None:
        if trainer.world_size > 1:
            raise ValueError(
                f"each of {trainer.world_size} processes would collect its own items;"
                " test with Trainer(devices=1)"
            )
        if isinstance(into, Collector) and not trainer.sanity_checking:
            into.reset()

    def on_batch_end(
        _callback: Any,
        trainer: Any,
        _module: Any,
        outputs: Any,
        _batch: Any,
        _batch_idx: int,
        _dataloader_idx: int = 0,
    ) -> None:
        if not trainer.sanity_checking:
            _add(into, _checked(outputs, stage))

    hooks = {f"on_{stage}_start": on_start, f"on_{stage}_batch_end": on_batch_end}
    return type("CollectingCallback", (_callback_class(),), hooks)()


def _callback_class() -> type:
    """Return the class of callbacks of the Lightning that is in use."""
    loaded = [name for name in _PACKAGES if name in sys.modules]
    for name in (*loaded, *_PACKAGES):
        try:
            callback: type = import_module(name).Callback
        except ModuleNotFoundError:
            continue
        return callback
    raise ImportError(
        "the callback needs Lightning, which is not installed: pip install lightning"
    )


def _checked(outputs: Any, stage: str) -> Mapping[str, Any]:
    if isinstance(outputs, Mapping):
        return outputs
    raise ValueError(
        f"{stage}_step must return a mapping of arrays, such as {{'probs': probs,"
        f" 'target': y}}, got {type(outputs).__name__}"
    )


def _add(into: Collector | SegmentationWriter, arrays: Mapping[str, Any]) -> None:
    if isinstance(into, Collector):
        # Lightning's own entry, which a step may return as well.
        into.update(**{name: a for name, a in arrays.items() if name != "loss"})
        return
    if "item" not in arrays or ("probs" in arrays) == ("draws" in arrays):
        raise ValueError(
            "for a SegmentationWriter a step must return 'item', and 'probs' or"
            f" 'draws', got {', '.join(map(repr, arrays))}"
        )
    drawn = "draws" in arrays
    draws = _as_numpy(arrays["draws"]) if drawn else _as_numpy(arrays["probs"])[None]
    raters = _raters(arrays)
    for row, name in enumerate(arrays["item"]):
        statistics = sufficient_statistics(draws[:, row])
        labels = np.empty(0, np.uint8) if raters is None else raters[row]
        into.add(str(name), Maps(**statistics._asdict(), raters=labels))


def _raters(arrays: Mapping[str, Any]) -> NDArray[Any] | None:
    """Return the labels (B, R, *space) of a batch; None if it has none."""
    if "raters" in arrays:
        return _as_numpy(arrays["raters"])
    return _as_numpy(arrays["target"])[:, None] if "target" in arrays else None


def _as_numpy(values: Any) -> NDArray[Any]:
    return np.asarray(torch.as_tensor(values).detach().cpu().numpy())
