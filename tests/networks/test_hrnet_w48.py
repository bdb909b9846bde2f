import pytest
import timm
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch.nn import functional

from methods.tiny import made, moment
from qualms.methods import Batch
from qualms.methods._dropout_layers import InsertedDropout
from qualms.networks import make_network
from qualms.networks.hrnet_w48 import hrnet_w48
from qualms.spec import Part, Task

SMALL = "hrnet_w18_small"
TASK = Task(name="segmentation", classes=5, ignore=255)


def small(seed=0, **options):
    torch.manual_seed(seed)
    return hrnet_w48(channels=3, variant=SMALL, **options)


def test_parameters_are_those_of_the_published_segmenter():
    """65,859,379 for the 19 classes of Cityscapes (HRNetV2-W48)."""
    with torch.device("meta"):
        network = make_network(Part(name="hrnet_w48"), channels=3)
        head = nn.Conv2d(network.features, 19, 1)
    count = sum(w.numel() for part in (network, head) for w in part.parameters())
    assert network.features == 48 + 96 + 192 + 384
    assert count == 65_859_379


@pytest.mark.parametrize("size", [(64, 64), (64, 120), (33, 50)])
def test_any_size_ends_at_a_quarter_of_it(size):
    with torch.no_grad():
        maps = small().eval()(torch.randn(1, 3, *size))
    assert maps.shape == (1, 240, -(-size[0] // 4), -(-size[1] // 4))


def test_all_weights_of_timm_have_their_place(tmp_path):
    plain = timm.create_model(SMALL, features_only=True, feature_location="")
    torch.save(plain.state_dict(), tmp_path / "weights.pth")
    network = small(seed=3, weights=str(tmp_path / "weights.pth"))
    held = network.network.state_dict()
    assert held.keys() == plain.state_dict().keys()
    for name, weight in plain.state_dict().items():
        assert torch.equal(held[name], weight), name


def test_branches_are_interpolated_as_by_hand():
    """Where nothing is rounded, only the kind of interpolation differs from timm's."""
    plain = timm.create_model(
        SMALL, features_only=True, feature_location="", out_indices=(1, 2, 3, 4)
    ).eval()
    network = small().eval()
    network.network.load_state_dict(plain.state_dict())
    for layer in plain.modules():
        if isinstance(layer, nn.Upsample):
            layer.mode, layer.align_corners = "bilinear", False
    x = torch.randn(2, 3, 64, 96)
    with torch.no_grad():
        branches = plain(x)
        size = branches[0].shape[2:]
        maps = [
            functional.interpolate(found, size=size, mode="bilinear")
            for found in branches
        ]
        torch.testing.assert_close(network(x), network.mix(torch.cat(maps, 1)))


def test_dropout_acts_on_the_four_branches():
    network = made("mc_dropout", {"rate": 0.5}).build(small(), TASK)
    dropped = [n for n, m in network.named_modules() if isinstance(m, InsertedDropout)]
    assert dropped == [f"backbone.branches.{i}" for i in range(4)]


@pytest.mark.parametrize("name", ["map", "mc_dropout", "ssn", "tta"])
def test_a_method_predicts_street_scenes_in_their_size(name):
    method = made(name)
    network = method.build(small(), TASK)
    x = torch.randn(2, 3, 32, 60)
    batch = Batch(x=x, target=torch.randint(0, 5, (2, 32, 60)))
    method.loss(network.train(), batch, moment(9)).backward()
    with torch.no_grad():
        arrays = method.predict(network.eval(), x, TASK)
    assert arrays["mean_probs"].shape == (2, 5, 32, 60)


def test_predictions_depend_on_the_batch_only_if_asked():
    x = torch.randn(4, 3, 32, 32)
    with torch.no_grad():
        plain = small().eval()
        torch.testing.assert_close(plain(x)[:2], plain(x[:2]), rtol=1e-3, atol=1e-4)
        released = small(batch_statistics=True).eval()
        assert (released(x)[:2] - released(x[:2])).abs().max() > 0.01
        assert torch.equal(released(x), released.train()(x))
        torch.testing.assert_close(released(x), small().train()(x))


def test_it_compiles_into_one_graph():
    counter = CompileCounter()
    network = torch.compile(small().eval(), backend=counter, fullgraph=True)
    with torch.no_grad():
        maps = network(torch.zeros(1, 3, 32, 36))
    assert maps.shape == (1, 240, 8, 9)
    assert counter.frame_count == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"variant": "resnet18"}, "must be an HRNet of timm, such as 'hrnet_w48', got"),
        ({"weights": "nowhere.pth"}, "got 'nowhere.pth', which is no file"),
    ],
)
def test_wrong_options_end_in_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        hrnet_w48(channels=3, **{"variant": SMALL, **options})


def test_a_file_without_weights_ends_in_a_sentence(tmp_path):
    (tmp_path / "weights.pth").write_text("nothing")
    with pytest.raises(ValueError, match="cannot be read: "):
        small(weights=str(tmp_path / "weights.pth"))
