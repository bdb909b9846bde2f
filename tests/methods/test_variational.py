"""What methods with random kernels share."""

import io

import pytest
import torch
from torch import nn

from methods.tiny import TASKS, backbone, batches, built, made, moment, predicted
from qualms.methods import Batch, Moment, plain_loss
from qualms.methods._flipout import Flipout, divergence
from qualms.spec import Task

CLASSES = TASKS["classification"]
METHODS = ["mfvi", "radial"]
each_method = pytest.mark.parametrize("name", METHODS)


class Volumes(nn.Module):
    """Features for every voxel."""

    features = 5

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(1, 5, 3, padding=1), nn.BatchNorm3d(5), nn.ReLU()
        )

    def forward(self, x):
        return self.layers(x)


def layers(network):
    return [layer for layer in network.modules() if isinstance(layer, Flipout)]


def one_batch(weight=None):
    batch = next(batches(CLASSES)())
    return Batch(x=batch.x, target=batch.target, weight=weight)


def loss_of(method, network, batch, at=None):
    torch.manual_seed(4)
    return method.loss(network.eval(), batch, at or moment()).detach()


@each_method
@pytest.mark.parametrize("prior", ["tied", "centred", 0.2])
def test_the_loss_is_likelihood_and_weighted_kl(name, prior):
    method = made(name, {"prior": prior, "tempering": 0.5, "l2": 0.01})
    network, batch = built(method, CLASSES), one_batch()
    actual = loss_of(method, network, batch, moment(step=60))
    torch.manual_seed(4)
    likelihood = plain_loss(network, batch, moment())
    kl = sum(
        divergence(
            layer,
            stddev=prior if prior == 0.2 else (2 / layer.weight[0].numel()) ** 0.5,
            tied=prior == "tied",
        )
        for layer in layers(network)
    )
    fixed = [w for n, w in network.named_parameters() if "bias" in n or w.ndim == 1]
    squares = sum(weight.square().sum() for weight in fixed)
    # After 60 of 100 epochs the rise over 200 is at 0.3.
    expected = likelihood + 0.5 * 0.3 * kl / 48 + 0.01 * squares
    torch.testing.assert_close(actual, expected)


@each_method
def test_items_count_by_their_weight(name):
    method = made(name, {"tempering": 0.0})
    network = built(method, CLASSES)
    full = loss_of(method, network, one_batch())
    weight = torch.zeros(16)
    weight[:4] = 4.0
    some = loss_of(method, network, one_batch(weight))
    doubled = loss_of(method, network, one_batch(2 * weight))
    assert doubled.item() == pytest.approx(2 * some.item(), rel=1e-5)
    assert some.item() != pytest.approx(full.item(), rel=1e-3)


@each_method
def test_kernels_alone_are_random_and_no_weight_changes_its_name(name):
    plain = built(made("map"), CLASSES).state_dict()
    network = built(made(name), CLASSES)
    state = network.state_dict()
    assert set(plain) == {key for key in state if not key.endswith(".rho")}
    kernels = {key for key, value in plain.items() if value.ndim > 1}
    random = {key.replace(".rho", ".weight") for key in state if key.endswith(".rho")}
    assert random == kernels


@each_method
def test_draws_differ_from_each_other_and_from_item_to_item(name):
    method = made(name, {"stddev_mean": 0.1, "draws": 3})
    network = built(method, CLASSES).eval()
    torch.manual_seed(0)
    x = torch.randn(1, 1, 16, 16).expand(4, -1, -1, -1)
    with torch.no_grad():
        probs = method.predict(network, x, CLASSES)["probs"]
    assert probs.shape == (3, 4, 3)
    assert len(probs.flatten(0, 1).unique(dim=0)) == 12


@each_method
def test_almost_no_noise_gives_the_plain_network(name):
    plain = built(made("map"), CLASSES)
    method = made(name, {"stddev_mean": 1e-12, "draws": 2})
    network = built(method, CLASSES)
    network.load_state_dict(plain.state_dict(), strict=False)
    expected = predicted(made("map"), plain, CLASSES)["probs"]
    actual = predicted(method, network, CLASSES)["probs"]
    torch.testing.assert_close(actual, expected.expand(2, -1, -1))


@each_method
@pytest.mark.parametrize(("prior", "means_decay"), [("tied", True), (0.1, False)])
def test_weight_decay_leaves_deviations_and_regularised_means(name, prior, means_decay):
    method = made(name, {"prior": prior})
    network = built(method, CLASSES)
    groups = method.groups(network)
    steady = {
        id(w) for g in groups if g.get("weight_decay") == 0.0 for w in g["params"]
    }
    everything = [id(w) for group in groups for w in group["params"]]
    assert sorted(everything) == sorted(id(w) for w in network.parameters())
    for layer in layers(network):
        assert id(layer.rho) in steady
        assert (id(layer.weight) not in steady) == means_decay
    assert id(network.head.last.bias) in steady


@each_method
def test_two_classes_have_one_logit(name):
    task = Task(name="classification", classes=2)
    method = made(name)
    network = built(method, task)
    assert network.head.last.rho.shape[0] == 1
    probs = predicted(method, network, task)["probs"]
    assert probs.shape == (5, 48, 2)
    torch.testing.assert_close(probs.sum(-1), torch.ones(5, 48))


@each_method
def test_volumes_are_segmented(name):
    task = Task(name="segmentation", classes=2, ignore=255, space=3)
    method = made(name, {"draws": 3})
    torch.manual_seed(0)
    network = method.build(Volumes(), task).train()
    assert len(layers(network)) == 2
    x = torch.randn(6, 1, 5, 6, 7)
    batch = Batch(x=x, target=(x[:, 0] > 0).long())
    optimiser = torch.optim.Adam(method.groups(network), lr=0.05)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        loss = method.loss(network, batch, moment())
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    first, again = (_maps(method, network, x, task) for _ in range(2))
    assert first["draw_labels"].shape == (3, 6, 5, 6, 7)
    other = method.build(Volumes(), task)
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    loaded = _maps(method, other, x, task)
    for key, array in first.items():
        assert torch.equal(array, again[key])
        assert torch.equal(array, loaded[key])


@torch.no_grad()
def _maps(method, network, x, task):
    torch.manual_seed(9)
    return method.predict(network.eval(), x, task)


@each_method
def test_draws_are_taken_one_after_the_other(name):
    """So that memory does not grow with their number."""
    method = made(name, {"draws": 4})
    network = built(method, TASKS["segmentation"]).eval()
    sizes = []

    class Watched(nn.Module):
        def forward(self, x):
            sizes.append(len(x))
            return x

    network.head.trunk = Watched()
    x = torch.randn(7, 1, 16, 16)
    with torch.no_grad():
        method.predict(network, x, TASKS["segmentation"])
    assert sizes == [7] * 4


@each_method
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"stddev_mean": 0.0}, "stddev_mean must be positive .* got 0.0 and 0.1"),
        ({"stddev_stddev": -1.0}, "stddev_stddev not negative, got 0.001 and -1.0"),
        ({"prior": "he"}, "'tied', 'centred' or a standard deviation, got 'he'"),
        ({"prior": 0.0}, "the prior's standard deviation must be positive, got 0.0"),
        ({"annealing": "step"}, "annealing must be .* got 'step'"),
        ({"annealing_epochs": 0}, "a linear rise takes at least 1 epoch, got 0"),
        ({"tempering": -0.1}, "tempering must not be negative, got -0.1"),
        ({"l2": -1.0}, "l2 must not be negative, got -1.0"),
        ({"draws": 0}, "draws must be at least 1, got 0"),
    ],
)
def test_options_out_of_range_are_refused(name, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        made(name, options)


def test_the_backbone_is_random_too():
    network = built(made("mfvi"), CLASSES)
    plain = [type(m) for m in backbone(CLASSES).modules() if isinstance(m, nn.Conv2d)]
    assert len(layers(network.backbone)) == len(plain)
    assert len(layers(network.head)) == 1


class Same(nn.Module):
    """Pixels as they are."""

    features = 4

    def forward(self, x):
        return x


@pytest.mark.parametrize("name", [*METHODS, "rank1"])
@pytest.mark.parametrize("unlabelled", [0, 3])
def test_a_pixel_weighs_as_much_as_an_item_of_a_classification(name, unlabelled):
    """As it is one, for a network of convolutions that see a pixel each."""
    torch.manual_seed(0)
    maps = torch.randn(5, 4, 8, 8)
    labels = torch.randint(0, 3, (5, 8, 8))
    labels[1:, :unlabelled] = 255
    pixels = maps.movedim(1, -1)[labels != 255]
    there = Batch(x=maps, target=labels)
    here = Batch(x=pixels, target=labels[labels != 255])
    items = 40
    found = _loss_and_gradients(name, TASKS["segmentation"], there, items)
    alike = _loss_and_gradients(name, CLASSES, here, items * len(pixels) // 5)
    for one, other in zip(found, alike, strict=True):
        torch.testing.assert_close(one, other.view_as(one))


def _loss_and_gradients(name, task, batch, items):
    """Of a network with as good as no noise, and with a prior that moves its means."""
    prior = {} if name == "rank1" else {"prior": "centred"}
    method = made(name, {"annealing": "none", **prior})
    torch.manual_seed(1)
    network = method.build(Same(), task)
    with torch.no_grad():
        for key, weight in network.named_parameters():
            weight.fill_(-25.0) if key.endswith("rho") else None
    when = Moment(
        epoch=0, epochs=1, items=items, batch=len(batch.x), progress=torch.ones(())
    )
    loss = method.loss(network, batch, when)
    return [loss.detach(), *torch.autograd.grad(loss, list(network.parameters()))]
