"""LAMB (You et al., 2020, arXiv:1904.00962) as the URL benchmark used it.

The whole gradient is clipped to norm 1 before anything else, moments are corrected for
their bias, and the layer-wise trust ratio is applied only where weights decay.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer


class _GroupTensors(NamedTuple):
    """Tensors of the weights of one group that have a gradient."""

    weights: list[Tensor]
    grads: list[Tensor]
    first: list[Tensor]
    second: list[Tensor]
    step: Tensor
    """Number of the step, from 1 on."""


class Lamb(Optimizer):
    """LAMB whose step never waits for the device, so that a CUDA graph can hold it."""

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: Tensor,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        max_norm: float = 1.0,
    ) -> None:
        shared = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(groups, {**shared, "max_norm": max_norm})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move the weights once."""
        assert closure is None
        grads = [p.grad for g in self.param_groups for p in g["params"]]
        shrink = _clipping([g for g in grads if g is not None], self.defaults)
        for group in self.param_groups:
            tensors = self._tensors(group)
            if tensors.weights:
                _move(tensors, group, shrink)

    def _tensors(self, group: dict[str, Any]) -> _GroupTensors:
        weights = [p for p in group["params"] if p.grad is not None]
        for weight in weights:
            if not self.state[weight]:
                self.state[weight] = {
                    "first": torch.zeros_like(weight),
                    "second": torch.zeros_like(weight),
                    "count": torch.zeros((), device=weight.device),
                }
        states = [self.state[weight] for weight in weights]
        for state in states:
            state["count"].add_(1)
        return _GroupTensors(
            weights,
            [p.grad for p in weights if p.grad is not None],
            [state["first"] for state in states],
            [state["second"] for state in states],
            states[0]["count"] if states else torch.zeros(()),
        )


def _clipping(grads: list[Tensor], defaults: dict[str, Any]) -> Tensor:
    norms = torch.stack(torch._foreach_norm(grads))
    ratio: Tensor = defaults["max_norm"] / torch.linalg.vector_norm(norms)
    return ratio.clamp(max=1)


def _move(tensors: _GroupTensors, group: dict[str, Any], shrink: Tensor) -> None:
    (beta1, beta2), decay = group["betas"], group["weight_decay"]
    grads = torch._foreach_mul(tensors.grads, shrink)
    torch._foreach_lerp_(tensors.first, grads, 1 - beta1)
    torch._foreach_mul_(tensors.second, beta2)
    torch._foreach_addcmul_(tensors.second, grads, grads, 1 - beta2)
    root = torch._foreach_sqrt(tensors.second)
    torch._foreach_div_(root, _unbiased(beta2, tensors).sqrt())
    torch._foreach_add_(root, group["eps"])
    update = torch._foreach_div(tensors.first, root)
    torch._foreach_div_(update, _unbiased(beta1, tensors))
    if decay:
        torch._foreach_add_(update, tensors.weights, alpha=decay)
        torch._foreach_mul_(update, _trust(tensors.weights, update))
    torch._foreach_mul_(update, -group["lr"])
    torch._foreach_add_(tensors.weights, update)


def _unbiased(beta: float, tensors: _GroupTensors) -> Tensor:
    # In float32 the first steps would lose four digits.
    return (1 - beta ** tensors.step.double()).to(tensors.weights[0].dtype)


def _trust(weights: list[Tensor], update: tuple[Tensor, ...]) -> list[Tensor]:
    ratios = zip(torch._foreach_norm(weights), torch._foreach_norm(update), strict=True)
    return [
        torch.where((weight > 0) & (step > 0), weight / step, 1.0)
        for weight, step in ratios
    ]
