"""The record `Method`: a few functions whose defaults are the plain network.

A method states only its difference from the plain network. `build` owns the head,
`loss` the training objective, `predict` the arrays of the predictions file. The same
record serves every task that a method claims.

The caller prepares each hook. `loss` runs in training mode; `epoch`, `after`,
`calibrate` and `predict` run in evaluation mode and without gradients, and a hook that
changes this sets it back. Random numbers come from torch's own generator of the device,
which the caller seeds before `build`, training, `after` and each split.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from qualms.methods._batch import Batch, Batches, Moment
from qualms.methods._plain import (
    kernels_decay,
    plain_head,
    plain_loss,
    plain_predict,
)
from qualms.shelf import tasks_with
from qualms.spec import Task


def _one_phase(_epoch: int) -> Hashable:
    return 0


def _nothing(_network: nn.Module, _moment: Moment, _batches: Batches) -> None:
    return None


def _done(_network: nn.Module, _batches: Batches) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """Functions that build a network, train it, fit it afterwards, and predict.

    Attributes:
        build: From (backbone, task) to the network that is trained, with its heads and
            replaced layers. Heads for an uncertainty and parameters of a loss are parts
            of it too.
        loss: From (network, batch, moment) to the objective of one batch, a scalar.
        predict: From (network, x, task) to arrays named as in the predictions schema,
            with the axis of draws first: probs (M, B, C), mean and var (M, B), lower
            and upper (B,), select/<name> (M, B); embedding (B, D), predicted (B,),
            uncertainty/<name> (B,), of every task; for segmentation mean_probs (B, C,
            *space), expected_entropy (B, *space), draw_labels (M, B, *space), and
            uncertainty/<name> (B, *space) or (B,). Every uncertainty/<name> is judged
            beside the built-in measures of the benchmark. A large image is passed as
            one `x`, and `network(x)` sees it through windows. Validation calls this
            hook before `after`; it then predicts without what `after` fits.
        groups: Parameter groups for the optimiser; `lr_scale` multiplies the learning
            rate, and any other option, such as `weight_decay`, replaces the run's. By
            default only kernels decay.
        phase: From an epoch to a name for the form of `loss` in it. When the name
            changes, a captured step is recorded anew, and gradients are set to None
            first: a parameter that a phase does not train must not be moved by the
            momentum of the phase before.
        epoch: Called at the start of every epoch, e.g. to reset a covariance, to
            collect a moment of the weights, or to scale an output before the first
            step.
        after: Called once after training, e.g. to fit a mixture or a Laplace posterior.
            Results go to buffers of the network, so that a checkpoint holds them.
        calibrate: Called once after `after`, with the items of the split `val`, which
            training did not see, e.g. to fit a temperature. A method with this hook
            needs that split. Results go to buffers too.
        schedule: From (time, epochs) to factors of the run's learning rate, which
            replace its schedule but not its warm-up; `time` (steps,) counts epochs from
            0, with fractions.
        trained_as: Name of the method that trains the same network by the same loss. A
            run can then take the weights of a finished run of that method: only
            `after`, `calibrate` and `predict` differ. '' for a method with a training
            of its own.
        trains: Whether training changes the network. If not, a run predicts with the
            weights that its network starts from: it has no epochs, and `after` and
            `calibrate` are called as after a training.
        selects: Whether the run may choose the weights of one epoch. False where
            members come from several epochs: the run then keeps the last one, whatever
            `select_by` says.
        needs: What a task must have for this method, as `qualms.shelf.traits` calls it:
            "items classes" for both. Of several such texts one is enough; () for a
            method of every task.
        views: Augmented versions of each item in a batch (two for contrastive losses).
        select: Pooling rule of each select/<name> that `predict` returns.
        header: Entries for the header of the predictions, e.g. {"alpha": 0.1}. A method
            with several draws says what they vary: {"draws": "models"} of one truth, as
            dropout does, or {"draws": "labels"} that raters could have drawn, as a
            probabilistic U-Net does. Aleatoric and epistemic measures depend on it.
    """

    build: Callable[[nn.Module, Task], nn.Module] = plain_head
    loss: Callable[[nn.Module, Batch, Moment], Tensor] = plain_loss
    predict: Callable[[nn.Module, Tensor, Task], Mapping[str, Tensor]] = plain_predict
    groups: Callable[[nn.Module], list[dict[str, Any]]] = kernels_decay
    phase: Callable[[int], Hashable] = _one_phase
    epoch: Callable[[nn.Module, Moment, Batches], None] = _nothing
    after: Callable[[nn.Module, Batches], None] = _done
    calibrate: Callable[[nn.Module, Batches], None] | None = None
    schedule: Callable[[Tensor, int], Tensor] | None = None
    trained_as: str = ""
    trains: bool = True
    selects: bool = True
    needs: tuple[str, ...] = ()
    views: int = 1
    select: Mapping[str, str] = field(default_factory=dict)
    header: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tasks(self) -> frozenset[str]:
        """Tasks that the method serves."""
        return frozenset(tasks_with(*self.needs))
