import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch._subclasses.fake_tensor import FakeTensorMode

from methods.tiny import made
from qualms.methods._dropout_layers import InsertedDropout
from qualms.networks import make_network
from qualms.networks.unet import grouped_convolution, unet
from qualms.spec import Part, Task

TASKS = {
    space: Task(name="segmentation", classes=2, space=space, ignore=255)
    for space in (2, 3)
}


def count(network):
    return sum(weight.numel() for weight in network.parameters())


def small(space, **options):
    return unet(channels=1, space=space, **{"width": 2, "levels": 2, **options})


@pytest.mark.parametrize(("width", "published"), [(8, 1_411_787), (16, 5_644_947)])
def test_parameters_are_those_that_the_released_code_counts(width, published):
    backbone = unet(channels=1, width=width)
    classes = count(made("map").build(backbone, TASKS[3]))
    assert classes == count(backbone) + 2 * (width + 1)
    unused = nn.Conv3d(width, 1, 1)
    assert classes + count(unused) == published


@pytest.mark.parametrize("space", [2, 3])
@pytest.mark.parametrize("side", [16, 11])
def test_a_map_has_the_size_of_its_image(space, side):
    network = small(space)
    x = torch.randn(2, 1, *(side + axis for axis in range(space)))
    assert network(x).shape == (2, network.features, *x.shape[2:])


@pytest.mark.parametrize("space", [2, 3])
def test_dropout_acts_at_the_declared_places_alone(space):
    backbone = make_network(Part(name="unet", options={"space": space}), channels=1)
    assert len(backbone.dropout_after) == 17
    acts = [backbone.get_submodule(name) for name in backbone.dropout_after]
    assert sum(isinstance(act, nn.LeakyReLU) for act in acts) == 16
    assert acts[8] is backbone.bottom[-1]
    network = made("mc_dropout", {"rate": 0.5}).build(backbone, TASKS[space])
    dropped = [n for n, m in network.named_modules() if isinstance(m, InsertedDropout)]
    assert dropped == [f"backbone.{name}" for name in backbone.dropout_after]


def test_a_pass_is_the_same_in_training_and_in_evaluation():
    network = small(3)
    x = torch.randn(2, 1, 8, 8, 8)
    assert torch.equal(network.train()(x), network.eval()(x))


def test_items_of_a_batch_do_not_meet():
    network = small(2).eval()
    x = torch.randn(3, 1, 16, 16)
    torch.testing.assert_close(network(x)[1], network(x[1:2])[0])


def test_layers_are_those_of_the_paper():
    network = unet(channels=1)
    kinds = [type(m).__name__ for m in network.modules() if not list(m.children())]
    assert kinds.count("Conv3d") == 18
    assert kinds.count("ConvTranspose3d") == 4
    assert kinds.count("InstanceNorm3d") == 8
    assert kinds.count("LeakyReLU") == 16
    assert kinds.count("ReLU") == 3
    norms = [m for m in network.modules() if isinstance(m, nn.InstanceNorm3d)]
    assert not any(m.affine or m.track_running_stats for m in norms)
    widths = [level[0].layers[0].out_channels for level in network.down]
    assert widths == [8, 16, 32, 64]
    assert network.bottom[0].out_channels == 128


def test_what_was_decoded_comes_before_what_was_seen():
    """The order in which weights of the released code read their input."""
    network = small(2, levels=1)
    x = torch.randn(1, 1, 8, 8)
    seen = network.down[0](x)
    decoded = network.bottom(network.pool(seen))
    expected = network.up[0](torch.cat([decoded, seen], 1))
    torch.testing.assert_close(network(x), expected)


@pytest.mark.parametrize("space", [2, 3])
def test_memory_layout_changes_rounding_alone(space):
    layout = torch.channels_last if space == 2 else torch.channels_last_3d
    network = small(space).eval()
    x = torch.randn(2, 1, *(8,) * space)
    plain = network(x)
    other = network.to(memory_format=layout)(x.contiguous(memory_format=layout))
    torch.testing.assert_close(other, plain, rtol=1e-4, atol=1e-5)


def test_it_compiles_into_one_graph():
    counter = CompileCounter()
    network = torch.compile(small(3), backend=counter, fullgraph=True)
    network(torch.randn(2, 1, 8, 8, 8)).sum().backward()
    assert counter.frame_count == 1


def test_a_step_never_looks_at_a_value():
    with FakeTensorMode():
        network = small(3)
        network(torch.randn(2, 1, 8, 8, 8)).sum().backward()


@pytest.mark.parametrize("space", [2, 3])
@pytest.mark.parametrize("group", [2, 4, 8])
def test_a_convolution_over_groups_of_voxels_is_the_same(space, group):
    kind = nn.Conv2d if space == 2 else nn.Conv3d
    layer = kind(3, 5, 3, padding=1).double()
    x = torch.randn(2, 3, *(4,) * (space - 1), 8, dtype=torch.float64)
    x.requires_grad_()
    found = grouped_convolution(x, layer.weight, layer.bias, group)
    wanted = layer(x)
    torch.testing.assert_close(found, wanted)
    ways = torch.randn_like(wanted)
    inputs = [x, layer.weight, layer.bias]
    ours, theirs = (torch.autograd.grad(y, inputs, ways) for y in (found, wanted))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_groups_change_rounding_alone():
    torch.manual_seed(0)
    plain = small(3, levels=3)
    grouped = small(3, levels=3, group=4)
    grouped.load_state_dict(plain.state_dict())
    assert [level[0].group for level in grouped.down] == [4, 2, 1]
    assert [level[1].group for level in grouped.up] == [1, 2, 4]
    for side in (16, 18):  # groups of four do not fit into a side of 18
        x = torch.randn(2, 1, 8, 8, side)
        torch.testing.assert_close(grouped(x), plain(x), rtol=1e-4, atol=1e-5)


def test_random_kernels_stay_random_in_groups():
    network = made("mfvi").build(small(3, group=4), TASKS[3])
    x = torch.randn(2, 1, 8, 8, 8)
    assert not torch.equal(network(x), network(x))


def test_wrong_options_end_in_a_sentence():
    with pytest.raises(ValueError, match="space must be 2 or 3, got 4"):
        unet(channels=1, space=4)
    with pytest.raises(ValueError, match="at least 1, got 0, 4 and 1"):
        unet(channels=1, width=0)
    with pytest.raises(ValueError, match="images of 3 axes, got 2; set its option"):
        small(3)(torch.zeros(1, 1, 8, 8))
    with pytest.raises(ValueError, match="at least 4 pixels a side, got 8 x 3; set"):
        unet(channels=1, space=2, levels=2)(torch.zeros(1, 1, 8, 3))
