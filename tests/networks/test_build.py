import subprocess
import sys

import pytest
import timm
import torch
from torchvision.transforms import v2

from qualms.networks import load_torchvision, make_network
from qualms.spec import Part


def test_our_own_networks_come_first():
    network = make_network(Part(name="resnet_small", options={"width": 4}), channels=2)
    assert network.features == 16


@pytest.mark.parametrize(
    ("name", "channels"),
    [("resnet18", 8), ("timm:mobilenetv3_small_050", 1), ("poolformer_s12", 3)],
)
def test_any_timm_name_gives_pooled_features(name, channels):
    network = make_network(Part(name=name), channels=channels).eval()
    with torch.no_grad():
        features = network(torch.zeros(2, channels, 64, 64))
    assert features.shape == (2, network.features)


def test_timm_options_are_passed_on():
    part = Part(name="vit_tiny_patch16_224", options={"img_size": 32})
    with torch.no_grad():
        assert make_network(part, channels=3)(torch.zeros(1, 3, 32, 32)).shape == (
            1,
            192,
        )


@pytest.mark.parametrize(
    ("part", "error", "sentence"),
    [
        (Part(name="resnet34_dud"), LookupError, "Did you mean 'resnet34_ddu'?"),
        (Part(name="timm:resnet19"), LookupError, "no 'timm:resnet19' in networks"),
        (
            Part(name="resnet_small", options={"widht": 3}),
            ValueError,
            "has no option 'widht'. Did you mean 'width'? Known: width, blocks, fold.",
        ),
        (
            Part(name="resnet18", options={"colour": 3}),
            ValueError,
            "timm's 'resnet18' cannot be made with the options {'colour': 3}",
        ),
        (
            Part(name="resnet18", options={"num_classes": 3}),
            ValueError,
            "num_classes of 'resnet18' follow from the task and the data",
        ),
        (
            Part(name="gcvit_xxtiny"),
            ValueError,
            "timm's 'gcvit_xxtiny' mixes the items of a batch",
        ),
    ],
)
def test_wrong_names_and_options_end_in_a_sentence(part, error, sentence):
    with pytest.raises(error) as caught:
        make_network(part, channels=3)
    assert sentence in str(caught.value)


def test_listing_networks_does_not_load_torch():
    code = (
        "import sys; from qualms.shelf import names; names('networks'); "
        "print('torch' in sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "False"


def test_what_is_refused_for_mixing_items_does_so():
    """Once timm mends it, the networks can be allowed."""
    network = timm.create_model("gcvit_xxtiny", num_classes=0, img_size=64).eval()
    torch.manual_seed(0)
    x = torch.randn(3, 3, 64, 64)
    with torch.no_grad():
        first, other = network(x[:2])[0], network(x[[0, 2]])[0]
    assert (first - other).abs().max() > 1e-3


def test_torchvision_imports_beside_any_torch():
    load_torchvision()  # the fixtures of all tests did so already
    assert str(v2.Resize((4, 4))).startswith("Resize")
