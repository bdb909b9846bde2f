"""Which rows of what a layer sees belong to one item.

Within a network axis 0 need not count items: Swin cuts every image into windows and
hands them to its linear layers as rows, those of an image side by side. What an item
has of its own has to be the same for all of its rows. Side by side is how networks that
cut images into parts order them; from the numbers of rows alone nobody could tell.
"""

from torch import Tensor, nn


class Items:
    """How many items the batch has that a network sees, for layers within."""

    def __init__(self) -> None:
        self._count: int | None = None

    def watch(self, network: nn.Module) -> None:
        """Take note of every batch that enters `network`."""
        network.register_forward_pre_hook(self._note)

    def among(self, rows: int) -> int:
        """How many items have `rows` in all; as many where no batch was noted."""
        count = rows if self._count is None else self._count
        if rows % count:
            raise ValueError(
                "a layer whose weights are random for every item must see a whole "
                f"number of rows of each, got {rows} rows of {count} items; choose a "
                "network whose layers have items along their first axis"
            )
        return count

    def _note(self, _network: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        # A compiler takes it for a constant, and compiles anew for another size.
        self._count = len(inputs[0])


def spread(values: Tensor, rows: int) -> Tensor:
    """`values` (B, ...) of items as those of their `rows`, which lie side by side."""
    count = len(values)
    return values if count == rows else values.repeat_interleave(rows // count, 0)
