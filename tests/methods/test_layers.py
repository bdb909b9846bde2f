import torch
from torch import nn

from qualms.methods._layers import replaced


class Wrapped(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer


class Subclass(nn.Conv2d):
    pass


def network():
    return nn.Sequential(
        nn.Conv2d(1, 2, 3),
        nn.Sequential(nn.Conv3d(2, 2, 1), nn.ReLU(), nn.Linear(4, 4)),
        Subclass(2, 2, 1),
        nn.Conv1d(2, 2, 1),
        nn.Linear(4, 1),
    )


def test_convolutions_and_linear_layers_are_replaced_wherever_they_stand():
    plain = network()
    whole = replaced(plain, Wrapped)
    assert whole is plain
    kinds = [type(layer).__name__ for layer in (*whole[1], *whole)]
    assert kinds == [
        *("Wrapped", "ReLU", "Wrapped"),
        *("Wrapped", "Sequential", "Subclass", "Conv1d", "Wrapped"),
    ]
    assert isinstance(whole[0].layer, nn.Conv2d)


def test_none_keeps_a_layer():
    whole = replaced(
        network(), lambda layer: Wrapped(layer) if type(layer) is nn.Conv3d else None
    )
    assert type(whole[0]) is nn.Conv2d
    assert type(whole[1][0]) is Wrapped
    assert type(whole[4]) is nn.Linear


def test_a_layer_in_two_places_stays_one():
    layer = nn.Linear(2, 2)
    calls = []
    whole = replaced(
        nn.Sequential(layer, nn.Sequential(layer)),
        lambda given: calls.append(given) or Wrapped(given),
    )
    assert whole[0] is whole[1][0]
    assert calls == [layer]


def test_a_network_that_is_one_layer_is_exchanged():
    layer = nn.Linear(2, 2)
    assert replaced(layer, Wrapped).layer is layer


def test_a_compiled_network_runs_its_new_layers():
    plain = nn.Sequential(nn.Linear(2, 3))
    plain.compile(backend="eager")
    replaced(plain, lambda _: nn.Linear(2, 5))
    assert plain(torch.zeros(1, 2)).shape == (1, 5)
