import pytest
import torch
from torch import nn

from qualms.networks import Backbone, as_backbone, make_network
from qualms.shelf import names
from qualms.spec import Part


@pytest.mark.parametrize("name", [*names("networks"), "timm:resnet10t"])
def test_every_network_keeps_the_contract(name):
    options = {"space": 2} if name == "unet" else {}
    if name == "hrnet_w48":
        options = {"variant": "hrnet_w18_small"}
    network = make_network(Part(name=name, options=options), channels=3)
    backbone = as_backbone(network)
    features = network.eval()(torch.randn(2, 3, 64, 64))
    assert features.shape[:2] == (2, backbone.features)
    for path in backbone.dropout_after:
        assert isinstance(network.get_submodule(path), nn.Module)
    assert backbone.trained_head is None
    assert isinstance(backbone.note, str)


def test_a_module_gets_the_defaults_of_what_it_leaves_out():
    network = nn.Linear(4, 3)
    network.features, network.head_sd = 3, 0.5
    backbone = as_backbone(network)
    assert backbone is network
    assert (backbone.features, backbone.head_sd) == (3, 0.5)
    assert backbone.dropout_after == Backbone.dropout_after == ()
    assert (backbone.classifier, backbone.trained_head, backbone.note) == (
        *(None, None),
        "",
    )
    assert [*network.state_dict()] == ["weight", "bias"]
