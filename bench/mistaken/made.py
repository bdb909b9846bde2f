"""Small predictions that users get wrong in one place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from qualms.predictions import Predictions, build

N = 60

_stream = np.random.default_rng(0)
TARGET = np.arange(N) % 3
"""Classes of 60 items."""
LOGITS = _stream.normal(0, 1, (N, 3)) + 2.0 * np.eye(3)[TARGET]
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
BINARY = np.arange(N) % 2
"""Classes of 60 items of two classes."""
PROB = np.clip(0.25 + 0.5 * BINARY + _stream.normal(0, 0.2, N), 0.02, 0.98).round(4)
VALUES = _stream.normal(50, 10, N).round(3)
"""Targets of a regression."""
MEAN = (VALUES + _stream.normal(0, 3, N)).round(3)


def classes(**changes: Any) -> dict[str, Any]:
    """Return predictions of three classes; None leaves an array out."""
    return _changed({"target": TARGET, "probs": PROBS}, changes)


def two(**changes: Any) -> dict[str, Any]:
    """Return predictions of two classes."""
    return _changed({"target": BINARY, "prob": PROB}, changes)


def values(**changes: Any) -> dict[str, Any]:
    """Return predictions of values, with a variance."""
    return _changed({"target": VALUES, "mean": MEAN, "var": np.full(N, 9.0)}, changes)


def intervals(**changes: Any) -> dict[str, Any]:
    """Return predicted intervals at alpha 0.1."""
    plain = {"target": VALUES, "lower": MEAN - 5, "upper": MEAN + 5}
    return _changed({**plain, "header": {"alpha": 0.1}}, changes)


def embedded(**changes: Any) -> dict[str, Any]:
    """Return embeddings with an uncertainty."""
    place = np.random.default_rng(1).normal(size=(N, 4)) + 3 * np.eye(4)[TARGET]
    plain = {"target": TARGET, "embedding": place, "uncertainty/u": np.arange(N) / N}
    return _changed(plain, changes)


def built(n: int = N) -> Predictions:
    """Return predictions of the first `n` items."""
    return build({"target": TARGET[:n], "probs": PROBS[:n]})


def table(header: str, rows: list[str] | None = None, *, sep: str = ",") -> str:
    """Return a CSV with these rows, by default target and P(y=1) of 60 items."""
    if rows is None:
        rows = [f"{t}{sep}{p}" for t, p in zip(BINARY, PROB, strict=True)]
    return "\n".join([header, *rows]) + "\n"


def maps(**changes: Any) -> dict[str, Any]:
    """Return the maps of one item of two classes and two draws."""
    rng = np.random.default_rng(0)
    share = rng.uniform(0.05, 0.95, (6, 8))
    plain = {
        "mean_probs": np.stack([1 - share, share]).astype(np.float32),
        "expected_entropy": np.full((6, 8), 0.1, np.float32),
        "draw_labels": np.stack([share > 0.5, share > 0.6]).astype(np.uint8),
        "raters": (share > 0.55)[None].astype(np.uint8),
    }
    return _changed(plain, changes)


def parquet(columns: dict[str, Any]) -> Callable[[Path], object]:
    """Return a function that writes a table as pandas does."""

    def write(path: Path) -> None:
        import pandas as pd

        pd.DataFrame(columns).to_parquet(path)

    return write


def picture(
    level: float = 128, shape: tuple[int, ...] = (8, 8)
) -> Callable[[Path], object]:
    """Return a function that writes a grey picture."""

    def write(path: Path) -> None:
        from PIL import Image

        rng = np.random.default_rng(
            int(level) + len(path.stem) + sum(path.stem.encode())
        )
        pixels = np.clip(rng.normal(level, 12, shape), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(path)

    return write


def mask(*labels: int, shape: tuple[int, int] = (8, 8)) -> Callable[[Path], object]:
    """Return a function that writes a mask of these labels, in stripes."""

    def write(path: Path) -> None:
        from PIL import Image

        rows = np.array(labels)[np.arange(shape[0]) * len(labels) // shape[0]]
        whole = np.broadcast_to(rows[:, None], shape).astype(np.uint8)
        Image.fromarray(np.ascontiguousarray(whole)).save(path)

    return write


def _changed(plain: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    named = {name.replace("__", "/"): array for name, array in changes.items()}
    whole = {**plain, **named}
    return {name: array for name, array in whole.items() if array is not None}
