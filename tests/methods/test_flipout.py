import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch.nn import functional

from qualms.methods import _flipout
from qualms.methods._flipout import Flipout, Noise, random_signs
from qualms.methods.mfvi import GAUSSIAN
from qualms.methods.radial import NOISES

RADIAL, RELEASED = NOISES["layer"], NOISES["output_channels"]
B = 3
LAYERS = {
    "conv2d": (lambda: nn.Conv2d(4, 6, 3), (4, 9, 8)),
    "strided": (lambda: nn.Conv2d(4, 6, 3, stride=(2, 1), padding=(1, 0)), (4, 9, 8)),
    "dilated": (lambda: nn.Conv2d(4, 6, 3, dilation=2, padding="same"), (4, 9, 8)),
    "grouped": (lambda: nn.Conv2d(4, 6, 3, groups=2, bias=False), (4, 9, 8)),
    "depthwise": (lambda: nn.Conv2d(4, 8, 3, groups=4, padding=1), (4, 9, 8)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 3, stride=2, padding=1), (2, 5, 6, 7)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 2, stride=2), (4, 5, 4)),
    "transposed3d": (
        lambda: nn.ConvTranspose3d(2, 3, 3, stride=2, padding=1, output_padding=1),
        (2, 3, 4, 5),
    ),
    "linear": (lambda: nn.Linear(5, 4), (5,)),
    "tokens": (lambda: nn.Linear(5, 4, bias=False), (7, 2, 5)),
}
each_layer = pytest.mark.parametrize("name", LAYERS)
each_noise = pytest.mark.parametrize(
    "noise",
    [GAUSSIAN, RADIAL, RELEASED],
    ids=["mfvi", "radial", "released"],
)


def flipout(layer, noise=GAUSSIAN, rho=-1.0, spread=0.3):
    values = rho + spread * torch.randn_like(layer.weight)
    return Flipout(layer, noise, values.detach())


def case(name, dtype=torch.float64):
    torch.manual_seed(1)
    make, shape = LAYERS[name]
    return make().to(dtype), torch.randn(B, *shape, dtype=dtype)


def item_weights(random, noise, incoming, outgoing):
    """Weights of one item, from its signs of input and output channels."""
    weight, stddev = map(random.outputs_first, (random.weight, random.stddev))
    groups = len(incoming) // weight.shape[1]
    own = incoming.view(groups, weight.shape[1]).repeat_interleave(
        len(weight) // groups, 0
    )
    axes = (1,) * (weight.ndim - 2)
    signs = own.view(*own.shape, *axes) * outgoing.view(-1, 1, *axes)
    return random.outputs_first(weight + stddev * noise * signs)


@each_layer
def test_each_item_has_the_weights_its_signs_say(name, monkeypatch):
    layer, x = case(name)
    fixed = torch.randn_like(flipout(layer).outputs_first(layer.weight))
    noise = Noise(lambda _: fixed, lambda signs: signs, None, None)
    random = flipout(layer, noise)
    kept = []
    monkeypatch.setattr(
        _flipout,
        "random_signs",
        lambda shape, like: kept.append(random_signs(shape, like)) or kept[0],
    )
    outputs = random(x)
    signs = kept[0].flatten(1)
    count = x.shape[-1] if isinstance(layer, nn.Linear) else x.shape[1]
    for item in range(B):
        incoming, outgoing = signs[item, :count], signs[item, count:]
        weight = item_weights(random, fixed, incoming, outgoing)
        state = {"weight": weight, "bias": layer.bias}
        state = {key: value for key, value in state.items() if value is not None}
        one = torch.func.functional_call(layer, state, x[item : item + 1])
        torch.testing.assert_close(outputs[item : item + 1], one)


def test_directions_of_a_transposed_convolution_are_over_its_outputs():
    layer, x = nn.ConvTranspose2d(4, 6, 2, stride=2), torch.randn(1, 4, 3, 3)
    calls = []

    def shared(like):
        calls.append(like.shape)
        return RELEASED.shared(like)

    flipout(layer, RELEASED._replace(shared=shared))(x)
    assert calls == [(6, 4, 2, 2)]


def test_an_output_of_a_transposed_convolution_sees_the_mean_share_of_its_kernel():
    assert flipout(nn.ConvTranspose2d(4, 6, 2, stride=2)).fan_in == 4
    assert flipout(nn.ConvTranspose3d(4, 6, 4, stride=2)).fan_in == 4 * 8
    assert flipout(nn.Conv2d(4, 6, 3, stride=2)).fan_in == 4 * 9


def test_signs_are_fair_and_their_own_for_every_item_and_channel():
    torch.manual_seed(0)
    signs = random_signs((20_000, 3, 1), torch.zeros(1, dtype=torch.bfloat16))
    assert signs.dtype == torch.bfloat16
    signs = signs.double().view(20_000, 3)
    assert signs.unique().tolist() == [-1, 1]
    moments = signs.T @ signs / len(signs)
    assert (moments - torch.eye(3)).abs().max() < 0.03
    assert signs.mean(0).abs().max() < 0.03


@pytest.mark.parametrize(
    "name", ["strided", "grouped", "conv3d", "transposed", "linear"]
)
def test_the_gradient_is_unbiased(name):
    """Against E[y^2] = (x mean)^2 + x^2 variance, whose gradient is known."""
    layer, x = case(name)
    random = flipout(layer)
    weights = [random.weight, random.rho]
    run = random._run
    exact = run(x, random.weight, random.bias).square()
    exact = exact + run(x.square(), random.stddev.square(), None)
    expected = torch.autograd.grad(exact.mean(), weights)
    found = _gradients(random, x, lambda y: y.square().mean(), 3000)
    for mean, draws in zip(expected, found, strict=True):
        error = draws.std(0) / len(draws) ** 0.5
        assert ((draws.mean(0) - mean).abs() < 5 * error).all()
        # Sharp enough to see an error of a tenth.
        assert error.norm() < 0.1 * mean.norm()


@each_noise
def test_the_gradient_varies_less_than_with_one_draw_for_all_items(noise):
    torch.manual_seed(2)
    # Activations after a rectifier point the same way, so shared noise adds up.
    layer, x = nn.Conv2d(4, 6, 3), torch.randn(16, 4, 5, 5).abs()
    target = torch.randn(16, 6, 3, 3)
    random = flipout(layer, noise, rho=3.0 if noise is RADIAL else -1.0)

    def loss(y):
        return (functional.softplus(y) - target).square().mean()

    apart = _gradients(random, x, loss, 300)
    together = _gradients(random, x, loss, 300, _shared_pass)
    for own, shared in zip(apart, together, strict=True):
        error = (own.var(0) / 300 + shared.var(0) / 300).sqrt()
        assert (own.mean(0) - shared.mean(0)).abs().lt(5 * error).all()
        assert own.var(0).sum() < 0.25 * shared.var(0).sum()


def _shared_pass(random, x):
    """All items with the same draw of the weights."""
    one = random.noise.per_item(torch.ones(1, *(1,) * (random.rho.ndim - 1)))
    noise = random.noise.shared(random.rho) * one
    return random._run(x, random.weight + random.stddev * noise, random.bias)


def _gradients(random, x, loss, draws, run=None):
    """`draws` estimates of the gradient of both kinds of weights."""
    torch.manual_seed(3)
    found = [
        torch.autograd.grad(
            loss(random(x) if run is None else run(random, x)),
            [random.weight, random.rho],
        )
        for _ in range(draws)
    ]
    return [torch.stack(parts) for parts in zip(*found, strict=True)]


@each_noise
def test_outputs_keep_precision_and_layout(noise):
    layer, x = case("conv2d", torch.float32)
    random = flipout(layer, noise).to(memory_format=torch.channels_last)
    x = x.to(torch.bfloat16, memory_format=torch.channels_last)
    with torch.autocast("cpu", torch.bfloat16):
        outputs = random(x)
    assert outputs.dtype == torch.bfloat16
    assert outputs.is_contiguous(memory_format=torch.channels_last)
    outputs.float().square().mean().backward()
    assert random.rho.grad.dtype == torch.float32
    assert random.rho.grad.is_contiguous(memory_format=torch.channels_last)


@each_noise
def test_a_layer_compiles_into_one_graph(noise):
    layer, x = case("strided", torch.float32)
    counter = CompileCounter()
    random = torch.compile(flipout(layer, noise), backend=counter, fullgraph=True)
    random(x).mean().backward()
    random(x)
    assert counter.frame_count == 1


def test_padding_other_than_with_zeros_is_refused():
    layer = nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect")
    with pytest.raises(
        ValueError, match="must pad with zeros, got padding_mode 'reflect'"
    ):
        flipout(layer)
