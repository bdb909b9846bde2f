"""How much a KL term counts while training goes on.

Band et al. (2021) write of a cyclical schedule after Bowman et al. (2015), whose own
rises once, and give no constants; their runs rose linearly over 200 epochs and stopped
after 90, at 0.45. Here "cyclical" is the schedule that has the name (Fu et al., 2019,
arXiv:1903.10145) with its authors' four cycles, each rising in its first half.
"""

from typing import Literal, get_args

from torch import Tensor

from qualms.methods._batch import Moment

Annealing = Literal["linear", "cyclical", "none"]


def kl_weight(
    moment: Moment,
    *,
    annealing: Annealing,
    epochs: int = 200,
    cycles: int = 4,
    rising: float = 0.5,
    tempering: float = 1.0,
) -> Tensor:
    """What the KL term is multiplied by in this step, 0-d, at most `tempering`.

    Args:
        moment: where training stands.
        annealing: "linear" rises from 0 over `epochs` and stays, "cyclical" starts
            anew in each of `cycles` equal parts of training, "none" is constant.
        epochs: length of the linear rise, which training need not reach.
        cycles: parts of the cyclical schedule.
        rising: share of a cycle in which its weight rises.
        tempering: weight at the end of a rise; below 1 for a cold posterior.
    """
    match annealing:
        case "linear":
            weight = moment.progress * (moment.epochs / epochs)
        case "cyclical":
            # Progress counts this step, so a cycle has positions in (0, 1].
            position = moment.progress * cycles
            weight = (position - position.ceil() + 1) / rising
        case "none":
            weight = moment.progress.new_ones(())
    return weight.clamp(max=1.0) * tempering


def check_annealing(*, annealing: str, epochs: int, tempering: float) -> None:
    """Refuse a schedule that does not exist, or numbers that make none."""
    if annealing not in get_args(Annealing):
        raise ValueError(
            f"annealing must be 'linear', 'cyclical' or 'none', got {annealing!r}"
        )
    if epochs < 1:
        raise ValueError(
            f"a linear rise takes at least 1 epoch, got {epochs}; choose annealing "
            "'none' for no rise"
        )
    if not tempering >= 0:
        raise ValueError(f"tempering must not be negative, got {tempering}")
