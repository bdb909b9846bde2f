"""What `after` finds, kept in buffers so that a checkpoint holds it."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn


class Found(nn.Module):
    """Named buffers that are empty until something is kept in them.

    Their shapes may depend on the training split, which nobody knows when a network is
    built; so on loading they take the shapes and dtypes of what is loaded.
    """

    device_of: Tensor

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.register_buffer("device_of", torch.empty(0), persistent=False)
        for name in self.names:
            self.register_buffer(name, None)
        self.register_load_state_dict_pre_hook(  # type: ignore[no-untyped-call]
            _take_shapes
        )

    def keep(self, name: str, values: Tensor) -> None:
        """Hold `values` under `name`."""
        assert name in self.names
        self.register_buffer(name, values.detach().clone())

    def held(self, name: str) -> Tensor:
        """What is held under `name`."""
        values = self._buffers[name]
        assert values is not None
        return values

    @property
    def ready(self) -> bool:
        """Whether something is kept under every name."""
        return all(self._buffers[name] is not None for name in self.names)


def _take_shapes(
    module: nn.Module, state: Mapping[str, Tensor], prefix: str, *_: object
) -> None:
    assert isinstance(module, Found)
    for name in module.names:
        given = state.get(prefix + name)
        empty = (
            None
            if given is None
            else torch.empty_like(given, device=module.device_of.device)
        )
        module.register_buffer(name, empty)
