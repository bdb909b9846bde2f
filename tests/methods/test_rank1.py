import math

import pytest
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.nn import functional

from methods.tiny import TASKS, Volumes, batches, built, made, moment, predicted
from qualms.methods import Batch, likelihood_loss
from qualms.methods.rank1 import _divergence, _layers, _ScaledLayer
from qualms.spec import Task

LAYERS = {
    "convolution": (lambda: nn.Conv2d(4, 6, 3), (4, 7, 7)),
    "strided": (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=(1, 0)), (4, 9, 8)),
    "grouped": (lambda: nn.Conv2d(4, 6, 3, groups=2, bias=False), (4, 7, 7)),
    "depthwise": (lambda: nn.Conv2d(4, 4, 3, padding=2, groups=4), (4, 7, 7)),
    "dilated": (lambda: nn.Conv2d(4, 6, 3, dilation=2, padding="same"), (4, 7, 7)),
    "reflected": (
        lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"),
        (4, 7, 7),
    ),
    "volumes": (lambda: nn.Conv3d(4, 6, 3, stride=2, padding=1), (4, 5, 6, 7)),
    "grouped volumes": (lambda: nn.Conv3d(4, 6, 3, groups=2), (4, 5, 6, 7)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 2, stride=2), (4, 5, 4)),
    "transposed volumes": (
        lambda: nn.ConvTranspose3d(4, 6, 3, stride=2, bias=False),
        (4, 3, 2, 4),
    ),
    "linear": (lambda: nn.Linear(4, 6), (4,)),
    "tokens": (lambda: nn.Linear(4, 6, bias=False), (5, 4)),
}
each_layer = pytest.mark.parametrize(("make", "shape"), LAYERS.values(), ids=LAYERS)


def scaled_by_hand(layer, x, before, after):
    """One item through `layer` with the weight W * (r s^T), channel by channel."""
    weight = layer.weight.detach().clone()
    turned = isinstance(layer, nn.ConvTranspose2d | nn.ConvTranspose3d)
    weight = weight.transpose(0, 1) if turned else weight
    out, per_group = weight.shape[:2]
    for o in range(out):
        group = o // (out // getattr(layer, "groups", 1))
        for i in range(per_group):
            weight[o, i] *= after[o] * before[group * per_group + i]
    state = {"weight": weight.transpose(0, 1) if turned else weight}
    if layer.bias is not None:
        state["bias"] = layer.bias.detach()
    return torch.func.functional_call(layer, state, (x[None],))[0]


@each_layer
def test_fixed_vectors_are_the_layer_with_a_scaled_weight(make, shape):
    torch.manual_seed(0)
    layer, x = make(), torch.randn(3, *shape)
    scaled = _ScaledLayer(layer, 0.1)
    before, after = scaled._channels
    with torch.no_grad():
        scaled.mean.copy_(torch.randn(before + after))
        scaled.rho.fill_(-200.0)  # no spread at all
        image = scaled(x)
    for item, out in zip(x, image, strict=True):
        expected = scaled_by_hand(
            layer, item, scaled.mean.detach()[:before], scaled.mean.detach()[before:]
        )
        torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)


@each_layer
def test_every_item_has_vectors_of_its_own(make, shape):
    torch.manual_seed(0)
    layer, x = make(), torch.randn(3, *shape)
    scaled = _ScaledLayer(layer, 0.5)
    before, after = scaled._channels
    with torch.no_grad():
        torch.manual_seed(1)
        image = scaled(x)
        torch.manual_seed(1)
        noise = torch.randn(3, before + after)
        vectors = scaled.mean + functional.softplus(scaled.rho) * noise
    for item, out, vector in zip(x, image, vectors, strict=True):
        expected = scaled_by_hand(layer, item, vector[:before], vector[before:])
        torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)


def test_vectors_begin_with_the_paper_s_signs_and_spread():
    torch.manual_seed(0)
    task = Task(name="classification", classes=2)
    (layer,) = _layers(made("rank1").build(_Wide(), task))
    assert layer.mean.abs().eq(1).all()
    assert layer.mean.gt(0).double().mean().item() == pytest.approx(0.75, abs=0.01)
    middle = math.log(math.expm1(math.sqrt(1e-3 / (1 - 1e-3))))
    assert middle == pytest.approx(-3.4375, abs=1e-4)
    assert layer.rho.mean().item() == pytest.approx(middle, abs=0.005)
    assert (layer.rho - middle).abs().max().item() <= 0.2001
    assert functional.softplus(layer.rho).mean().item() == pytest.approx(
        0.0316, abs=2e-4
    )


class _Wide(nn.Module):
    features = 20_000


def test_divergence_is_that_of_gaussians_around_one():
    torch.manual_seed(0)
    network = built(made("rank1"), TASKS["classification"])
    found = _divergence(network, 0.3).item()
    prior = Normal(1.0, 0.3)
    pairs = [
        Normal(layer.mean, functional.softplus(layer.rho)) for layer in _layers(network)
    ]
    expected = sum(kl_divergence(pair, prior).sum() for pair in pairs).item()
    assert found == pytest.approx(expected, rel=1e-5)
    sampled = 0.0
    for pair in pairs:
        vectors = pair.sample((2000,))
        sampled += (pair.log_prob(vectors) - prior.log_prob(vectors)).mean(0).sum()
    assert found == pytest.approx(sampled.item(), rel=0.01)


def test_loss_is_the_likelihood_and_a_growing_share_of_the_divergence():
    task = TASKS["classification"]
    method = made("rank1", {"annealing_epochs": 50})
    network = built(method, task)
    batch = next(batches(task)())
    for step, share in ((1, 0.02), (25, 0.5), (80, 1.0)):
        now = moment(step=step, steps=100)  # of 100 epochs
        torch.manual_seed(2)
        plain = likelihood_loss(network(batch.x), batch, task)
        torch.manual_seed(2)
        found = method.loss(network, batch, now) - plain
        expected = share * _divergence(network, 0.05) / 48
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_only_vectors_learn_at_their_own_rate_and_only_kernels_decay():
    network = built(made("rank1", {"fast_lr": 0.6}), TASKS["regression"])
    kernels, steady, fast = made("rank1", {"fast_lr": 0.6}).groups(network)
    assert fast["lr_scale"] == 0.6
    assert fast["weight_decay"] == steady["weight_decay"] == 0.0
    assert "lr_scale" not in kernels | steady
    assert "weight_decay" not in kernels
    names = {id(p): name for name, p in network.named_parameters()}
    assert all(names[id(p)].endswith(("mean", "rho")) for p in fast["params"])
    assert all(names[id(p)].endswith("weight") for p in kernels["params"])
    count = sum(len(group["params"]) for group in (kernels, steady, fast))
    assert count == len(names)


def test_all_convolutions_and_linear_layers_are_scaled_heads_included():
    network = built(made("rank1"), TASKS["regression"])
    inside = {id(layer.layer) for layer in _layers(network)}
    kinds = nn.Conv2d | nn.Linear
    assert inside == {id(m) for m in network.modules() if isinstance(m, kinds)}
    assert len(inside) == 5 + 2


def test_draws_have_the_moments_of_the_vectors():
    """One output r * sum_i w_i s_i x_i, whose mean and variance are known."""
    torch.manual_seed(0)
    scaled = _ScaledLayer(nn.Linear(3, 1, bias=False), 0.5)
    x = torch.tensor([0.3, -1.0, 2.0])
    image = scaled(x.expand(200_000, 3))[:, 0].double()
    mean, variance = scaled.mean.double(), functional.softplus(scaled.rho).square()
    weighed = scaled.layer.weight[0] * x
    inner, spread = (weighed * mean[:3]).sum(), (weighed.square() * variance[:3]).sum()
    second = (inner**2 + spread) * (mean[3] ** 2 + variance[3])
    assert image.mean().item() == pytest.approx((inner * mean[3]).item(), abs=0.01)
    assert image.square().mean().item() == pytest.approx(second.item(), rel=0.02)


def test_scaling_keeps_precision_and_layout():
    scaled = _ScaledLayer(nn.Conv2d(4, 6, 3, padding=1), 0.1)
    scaled = scaled.to(memory_format=torch.channels_last)
    x = torch.rand(2, 4, 8, 8).to(memory_format=torch.channels_last)
    calls = []
    with torch.autocast("cpu", torch.bfloat16), _dtypes(calls):
        y = scaled(x.bfloat16())
    assert y.dtype == torch.bfloat16
    assert y.is_contiguous(memory_format=torch.channels_last)
    # Nothing of the size of an image is ever in 32 bits.
    assert {dtype for dtype, size in calls if size >= x.numel()} == {torch.bfloat16}


class _dtypes(torch.utils._python_dispatch.TorchDispatchMode):  # noqa: N801
    """Notes dtype and size of whatever an operation makes."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made_of = func(*args, **(kwargs or {}))
        for out in made_of if isinstance(made_of, tuple | list) else (made_of,):
            self.seen.append((out.dtype, out.numel()))
        return made_of


def test_volumes_are_learned_and_drawn():
    task = Task(name="segmentation", classes=3, space=3)
    method = made("rank1", {"draws": 3, "fast_lr": 0.5})
    torch.manual_seed(0)
    network = method.build(Volumes(), task)
    x = torch.rand(4, 1, 6, 6, 6)
    batch = Batch(x=x, target=(3 * x[:, 0]).long())
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    losses = []
    for _ in range(40):
        optimiser.zero_grad()
        loss = method.loss(network, batch, moment())
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert min(losses[-5:]) < 0.9 * losses[0]
    with torch.no_grad():
        arrays = method.predict(network.eval(), x, task)
    assert arrays["draw_labels"].shape == (3, 4, 6, 6, 6)


def test_draws_differ_in_evaluation_mode():
    method = made("rank1", {"draws": 4})
    task = TASKS["regression"]
    mean = predicted(method, built(method, task), task)["mean"]
    assert mean.shape[0] == 4
    assert (mean.std(0) > 0).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dropout_rate": 0.0}, "dropout_rate must lie between 0 and 1, got 0.0"),
        ({"prior_stddev": 0.0}, "must be positive, got 0.0 and 1.0"),
        ({"fast_lr": -1.0}, "must be positive, got 0.05 and -1.0"),
        ({"draws": 0}, "draws must be at least 1, got 0"),
        ({"annealing": "slow"}, "annealing must be .* got 'slow'"),
    ],
)
def test_options_out_of_range_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        made("rank1", options)


def test_a_scaled_network_compiles_as_one_graph():
    """A break would cost more than the scaling does."""
    torch.manual_seed(0)
    network = built(made("rank1"), TASKS["regression"])
    network.backbone.compile(fullgraph=True, backend="eager")
    assert torch.isfinite(network(torch.rand(2, 1, 16, 16))).all()
    torch._dynamo.reset()
