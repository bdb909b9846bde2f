"""Networks stored in ONNX (onnx.ai), run by onnxruntime.

Such a file has an input of fixed size and the outputs, and does not say how pictures
are prepared: the user states the colours.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from qualms.networks._pictures import PictureNetwork

_IMAGE = 4
"""Axes of a batch of pictures."""
_GREY, _COLOURS = 1, 3
_BYTE = 255.0


def onnx_classifier(
    path: Path, *, mean: tuple[float, ...], deviation: tuple[float, ...]
) -> PictureNetwork:
    """Return the network at `path` for pictures.

    Their colours from 0 to 1 are normalised by `mean` and `deviation`.

    Raises:
        ValueError: If the file cannot be read, or takes something else than pictures of
            a fixed size.
    """
    network = OnnxNetwork(path)
    channels, high, wide = network.picture()
    with torch.no_grad():
        outputs = network(torch.zeros(1, channels, high, wide))
    if outputs.ndim != 2:
        raise ValueError(
            f"{path} must return class scores (B, K) or embeddings (B, D), got shape"
            f" {tuple(outputs.shape)}; export the network with its classifier"
        )
    colours = [
        np.resize(np.array(each, np.float32), channels) for each in (mean, deviation)
    ]
    prepare = _Preparation(channels, (wide, high), colours[0], colours[1])
    note = (
        f"pictures were resized to {wide} x {high} pixels, as {path.name} takes them,"
        f" and normalised by mean {_listed(mean)} and deviation {_listed(deviation)}"
    )
    return PictureNetwork(network, outputs.shape[1], prepare, note)


class OnnxNetwork(nn.Module):
    """The network of an ONNX file as a module; it predicts, and is not trained."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._session = _session(path)

    def __deepcopy__(self, _memory: dict[int, Any]) -> Self:
        """Return another network of the same file; sessions cannot be copied."""
        return type(self)(self.path)

    def picture(self) -> tuple[int, int, int]:
        """Return channels, height and width of the pictures that it takes."""
        inputs = self._session.get_inputs()
        shape: list[Any] = list(inputs[0].shape) if len(inputs) == 1 else []
        sides = shape[1:]
        fixed = all(isinstance(side, int) for side in sides)
        if len(shape) != _IMAGE or not fixed or sides[0] not in (_GREY, _COLOURS):
            raise ValueError(
                f"{self.path} must take one input, pictures (batch, channels, height,"
                " width) of a fixed size in grey or colour, got"
                f" {[each.shape for each in inputs]}; export it so"
            )
        channels, high, wide = sides
        return channels, high, wide

    def forward(self, x: Tensor) -> Tensor:
        """Return the first output for a batch, item by item if it takes single ones."""
        (pictures,) = self._session.get_inputs()
        kind = np.float16 if "float16" in pictures.type else np.float32
        images = x.detach().cpu().numpy().astype(kind)
        single = pictures.shape[0] == 1
        batches = (
            [images[k : k + 1] for k in range(len(images))] if single else [images]
        )
        outputs = [self._session.run(None, {pictures.name: b})[0] for b in batches]
        return torch.from_numpy(np.concatenate(outputs).astype(np.float32)).to(x.device)


@dataclass(frozen=True, slots=True)
class _Preparation:
    """Preparation of a picture for a network: channels, size and normalisation."""

    channels: int
    size: tuple[int, int]
    mean: np.ndarray[Any, np.dtype[np.float32]]
    deviation: np.ndarray[Any, np.dtype[np.float32]]

    def __call__(self, picture: Any) -> Tensor:
        """Return a picture of Pillow as (C, H, W)."""
        mode = "L" if self.channels == _GREY else "RGB"
        pixels = np.asarray(picture.convert(mode).resize(self.size), np.float32) / _BYTE
        colours = pixels.reshape(*pixels.shape[:2], self.channels)
        return torch.from_numpy(
            ((colours - self.mean) / self.deviation).transpose(2, 0, 1)
        )


def _session(path: Path) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ValueError(
            f"{path} is run by onnxruntime, which is not installed; install"
            " 'qualms-bench[onnx]'"
        ) from error
    if not path.is_file():
        raise ValueError(f"there is no file {path}; check the path of the network")
    try:
        return onnxruntime.InferenceSession(
            str(path), providers=["CPUExecutionProvider"]
        )
    # onnxruntime has an exception of its own for every status.
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read as ONNX"
            f" ({str(error).splitlines()[0]:.200}); export the network again"
        ) from error


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)
