"""Uncertainties of embeddings that need no training: their length, and mirror images.

Many networks give images that they cannot place shorter embeddings (Scott et al., 2021,
arXiv:2103.15718; Kirchhof et al., 2022), and an image and its mirror image mean the
same.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional

_OWN = "uncertainty/"


def with_untrained(
    embed: Callable[[Tensor], Mapping[str, Tensor]], x: Tensor, *, mirrored: bool
) -> dict[str, Tensor]:
    """Return what `embed` gives for `x`, with uncertainties that need no training.

    `uncertainty/inverse_norm` (B,) is one over the length of the embedding, and comes
    before all others. `uncertainty/flips` (B,) is one minus the cosine between the
    embeddings of an image and of its mirror image, if `mirrored`.
    """
    arrays = dict(embed(x))
    embedding = arrays.pop("embedding").double()
    length = torch.linalg.vector_norm(embedding, dim=1)
    tiny = torch.finfo(torch.float32).tiny
    first = {
        "embedding": embedding.float(),
        f"{_OWN}inverse_norm": 1 / length.clamp(min=tiny),
    }
    arrays = first | {n: v for n, v in arrays.items() if n not in first}
    if mirrored:
        mirror = embed(x.flip(-1))["embedding"].double()
        arrays[f"{_OWN}flips"] = 1 - functional.cosine_similarity(embedding, mirror)
    return arrays
