"""Scores that find items unlike the training items, after training.

Trained as `map`, whose weights it can take over. The probabilities are those of the
plain network. Beside them stand the scores of eight papers, each of which is an
uncertainty: the largest logit (Hendrycks et al., 2022, arXiv:1911.11132), the energy
(Liu et al., 2020, arXiv:2010.03759), GradNorm (Huang et al., 2021, arXiv:2110.00218),
the k-th nearest neighbour (Sun et al., 2022, arXiv:2204.06507), the Mahalanobis
distance of the last features (Lee et al., 2018, arXiv:1807.03888) and the relative one
(Ren et al., 2021, arXiv:2106.09022), ViM (Wang et al., 2022, arXiv:2203.10807), and the
energy of clipped features, ReAct (Sun et al., 2021, arXiv:2111.12797).

`_ood_scores.py` has the mathematics. One pass gives all scores; the last five need
features of training items.
"""

from functools import partial

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batches
from qualms.methods._headed import (
    Draw,
    FittedBuffers,
    Headed,
    Readout,
    headed,
    last_inputs,
)
from qualms.methods._method import Method
from qualms.methods._ood_scores import (
    FeatureGaussians,
    Gaussians,
    Residual,
    energy,
    even_logits,
    fit_clip,
    fit_gaussians,
    fit_residual,
    gradnorm,
    knn,
    mahalanobis,
    max_logit,
    relative_mahalanobis,
    vim,
)
from qualms.methods._plain import (
    classes_of,
    plain_head,
    summarise,
)
from qualms.methods._training_features import training_features
from qualms.spec import Task

_GAUSSIANS = ("class_means", "class_whitening", "centre", "whitening")
_BUFFERS = (*_GAUSSIANS, *Residual._fields, "clip", "reference")


def ood(
    *,
    neighbours: int = 50,
    principal: int | None = None,
    clip: float = 0.9,
    items: int = 50_000,
) -> Method:
    """Predict as the plain network, and eight scores that find unlike items.

    Args:
        neighbours: k of `uncertainty/knn`; of fewer training items, all of them.
        principal: dimensions of the principal space of `uncertainty/vim`; None for
            the choice of its authors, by the number of features.
        clip: share of the activations that `uncertainty/react` leaves as they are.
        items: most training items that the scores are fitted to, a random choice if
            there are more. A checkpoint holds their features.
    """
    if min(neighbours, items) < 1 or (principal is not None and principal < 0):
        raise ValueError(
            "neighbours and items must be at least 1 and principal at least 0, got "
            f"{neighbours}, {items} and {principal}"
        )
    if not 0 < clip <= 1:
        raise ValueError(f"clip is a share, above 0 and at most 1, got {clip}")
    return Method(
        build=_build,
        predict=partial(_predict, neighbours),
        after=partial(_after, principal, clip, items),
        trained_as="map",
        needs=("items classes",),
    )


def _build(backbone: nn.Module, task: Task) -> Headed:
    classes_of(task, "ood")
    network = plain_head(backbone, task)
    if not isinstance(_last(network), nn.Linear):
        raise ValueError(
            "ood reads the features before the last linear layer, and none was found; "
            "say which it is, or take scores of the probabilities alone"
        )
    network.fitted = FittedBuffers(_BUFFERS)
    return network


def _after(
    principal: int | None, clip: float, items: int, network: nn.Module, batches: Batches
) -> None:
    network = headed(network)
    features, target = training_features(network, batches, items, method="ood")
    last, buffers = _last(network), _buffers(network)
    assert isinstance(last, nn.Linear)
    width = last.weight.shape[1]
    if principal is not None and principal >= width:
        raise ValueError(
            f"principal must be below the number of features, {width}, got {principal}"
        )
    bias = last.weight.new_zeros(len(last.weight)) if last.bias is None else last.bias
    fitted = fit_gaussians(features, target)
    residual = fit_residual(features, last.weight, bias, principal)
    values = (*fitted.classes, *fitted.background, *residual, fit_clip(features, clip))
    for name, value in zip(_BUFFERS, (*values, features), strict=True):
        buffers.keep(name, value)


def _predict(
    neighbours: int, network: nn.Module, x: Tensor, task: Task
) -> dict[str, Tensor]:
    network = headed(network)
    features = last_inputs(network, x)
    with torch.autocast(features.device.type, enabled=False):
        outputs: Tensor = _last(network)(features)
        scores = _scores(neighbours, network, features, outputs)
    named = {f"uncertainty/{name}": values for name, values in scores.items()}
    return {**summarise([Draw(outputs, features)], task), **named}


def _scores(
    neighbours: int, network: Headed, features: Tensor, outputs: Tensor
) -> dict[str, Tensor]:
    """Return the scores (B,) by name; before training ends, those of no fit."""
    logits = even_logits(outputs)
    of_logits = {
        "max_logit": max_logit(logits),
        "energy": energy(logits),
        "gradnorm": gradnorm(features, logits),
    }
    buffers = _buffers(network)
    if not buffers.ready:
        return of_logits
    class_gaussians, background = (
        Gaussians(*map(buffers.get, names))
        for names in (_GAUSSIANS[:2], _GAUSSIANS[2:])
    )
    residual = Residual(*map(buffers.get, Residual._fields))
    clipped = features.minimum(buffers.get("clip").to(features))
    return {
        **of_logits,
        "knn": knn(features, buffers.get("reference"), neighbours),
        "mahalanobis": mahalanobis(features, class_gaussians),
        "relative_mahalanobis": relative_mahalanobis(
            features, FeatureGaussians(class_gaussians, background)
        ),
        "vim": vim(features, logits, residual),
        "react": energy(even_logits(_last(network)(clipped))),
    }


def _last(network: Headed) -> nn.Module:
    head = network.head
    assert isinstance(head, Readout)
    return head.last


def _buffers(network: Headed) -> FittedBuffers:
    assert isinstance(network.fitted, FittedBuffers)
    return network.fitted
