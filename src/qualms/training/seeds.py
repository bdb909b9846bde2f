"""Random numbers of a run: each part has its own seed, made from that of the run."""

import hashlib

import torch
from torch import Tensor


def seed(run: int, *part: str | int) -> None:
    """Seed torch's own generators for one part of the run with seed `run`.

    Only the training loop does so: before a network is built, before each epoch,
    before `after`, and before each split is predicted.
    """
    torch.manual_seed(_number(run, *part))


def shuffled(rows: Tensor, run: int, epoch: int) -> Tensor:
    """Return `rows` in the order in which `epoch` visits them."""
    generator = torch.Generator().manual_seed(_number(run, "order", epoch))
    return rows[torch.randperm(len(rows), generator=generator)]


def _number(run: int, *part: str | int) -> int:
    text = "/".join(map(str, (run, *part)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
