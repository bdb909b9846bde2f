"""Two quantiles for every item (Koenker & Bassett, 1978).

As trained by Gustafsson et al. (2023, arXiv:2302.03679): two separate heads, whose
order is not enforced. Both learn the mean first, and then one quantile each. The level
is part of training, so every level needs its own runs.
"""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from qualms.methods._batch import Batch, Moment
from qualms.methods._headed import Headed, TwoHeads, features_of, headed
from qualms.methods._method import Method
from qualms.methods._plain import check_epochs, weighted_mean
from qualms.spec import Task


def quantile(*, alpha: float = 0.1, warmup: int = 20) -> Method:
    """Predict the quantiles alpha / 2 and 1 - alpha / 2, as `lower` and `upper`.

    Args:
        alpha: share of targets that the interval may miss.
        warmup: epochs of squared error before the quantile loss.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha}")
    check_epochs(warmup=warmup)
    phase = partial(_phase, warmup)
    return Method(
        build=_build,
        loss=partial(_loss, alpha, phase),
        predict=_predict,
        phase=phase,
        needs=("values",),
        header={"alpha": alpha},
    )


def _phase(warmup: int, epoch: int) -> str:
    return "warmup" if epoch < warmup else "quantiles"


def _build(backbone: nn.Module, task: Task) -> Headed:
    return Headed(backbone, TwoHeads(features_of(backbone)), task)


def _loss(
    alpha: float,
    phase: Callable[[int], str],
    network: nn.Module,
    batch: Batch,
    moment: Moment,
) -> Tensor:
    lower, upper = (batch.target.float()[:, None] - network(batch.x)).unbind(1)
    if phase(moment.epoch) == "warmup":
        losses = lower.square() + upper.square()
    else:
        losses = _pinball(lower, alpha / 2) + _pinball(upper, 1 - alpha / 2)
    return weighted_mean(losses / 2, batch)


def _pinball(error: Tensor, level: float) -> Tensor:
    """Return the quantile loss of `error`, target minus output, at `level`."""
    return (level * error).maximum((level - 1) * error)


def _predict(network: nn.Module, x: Tensor, _task: Task) -> dict[str, Tensor]:
    lower, upper = headed(network)(x).unbind(1)
    return {"lower": lower, "upper": upper}
