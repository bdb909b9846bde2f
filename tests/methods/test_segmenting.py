"""Methods on the U-Net, for images and for volumes, and on maps that are coarse."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from methods.tiny import made, moment
from qualms.methods import Batch, laplace, plain_head
from qualms.networks.unet import unet
from qualms.shelf import names
from qualms.spec import Task

METHODS = [name for name in names("methods") if "segmentation" in made(name).tasks]
SIDE = 8


def task(space, classes=2):
    return Task(name="segmentation", classes=classes, ignore=255, space=space)


def batch(space):
    torch.manual_seed(0)
    x = torch.randn(4, 1, *(SIDE,) * space)
    target = (x[:, 0] > 0).to(torch.uint8)
    target[:, 0] = 255
    return Batch(x=x, target=target)


def network_of(method, space, seed=0):
    torch.manual_seed(seed)
    backbone = unet(channels=1, space=space, width=2, levels=2)
    return method.build(backbone, task(space))


@pytest.mark.parametrize("space", [2, 3])
@pytest.mark.parametrize("name", METHODS)
def test_a_method_learns_and_predicts_with_the_u_net(name, space):
    method, items = made(name), batch(space)
    network = network_of(method, space).train()
    optimiser = torch.optim.Adam(method.groups(network), lr=0.02)
    losses = []
    with torch.no_grad():
        method.epoch(network.eval(), moment(0), lambda: iter([items]))
    network.train()
    for _ in range(12):
        optimiser.zero_grad()
        loss = method.loss(network, items, moment(60))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert sum(losses[-3:]) < sum(losses[:3])
    with torch.no_grad():
        method.after(network.eval(), lambda: iter([items]))
        arrays = method.predict(network, items.x, task(space))
    probs = arrays["mean_probs"]
    assert probs.shape == (4, 2, *items.x.shape[2:])
    torch.testing.assert_close(probs.sum(1), torch.ones_like(probs[:, 0]))
    assert arrays["draw_labels"].shape[1:] == (4, *items.x.shape[2:])


def test_without_dropout_the_u_net_is_not_random():
    network = network_of(made("map"), 2).eval()
    x = batch(2).x
    assert torch.equal(network(x), network(x))
    other = network_of(made("mc_dropout", {"rate": 0.5}), 2).eval()
    assert not torch.equal(other(x), other(x))


class Coarse(nn.Module):
    """Features for every square of pixels."""

    features = 5

    def __init__(self, space=2):
        super().__init__()
        kind = nn.Conv2d if space == 2 else nn.Conv3d
        self.layer = nn.Sequential(kind(1, self.features, 2, stride=2), nn.ReLU())

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize("space", [2, 3])
def test_outputs_of_coarse_maps_have_the_size_of_the_image(space):
    network = plain_head(Coarse(space), task(space, classes=3))
    x = torch.randn(2, 1, *(6,) * space)
    mode = "bilinear" if space == 2 else "trilinear"
    fine = functional.interpolate(network.backbone(x), size=x.shape[2:], mode=mode)
    torch.testing.assert_close(network(x), network.head(fine))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_can_read_coarse_maps(name):
    method, items = made(name), batch(2)
    network = method.build(Coarse(), task(2))
    method.loss(network.train(), items, moment(60)).backward()
    with torch.no_grad():
        method.after(network.eval(), lambda: iter([items]))
        arrays = method.predict(network, items.x, task(2))
    assert arrays["mean_probs"].shape == (4, 2, SIDE, SIDE)


def test_laplace_holds_few_pixels_at_a_time(monkeypatch):
    """In parts the curvature is the same, and no part is longer than asked for."""
    add, seen = laplace._add_curvature, []

    def watched(curvature, rows, probs):
        add(curvature, rows, probs)
        seen.append((len(rows), curvature))

    monkeypatch.setattr(laplace, "_add_curvature", watched)
    curvatures = []
    for most in (10**6, 7):
        monkeypatch.setattr(laplace, "_ROWS", most)
        seen.clear()
        method = made("laplace")
        with torch.no_grad():
            method.after(network_of(method, 2).eval(), lambda: iter([batch(2)]))
        sizes = [size for size, _ in seen]
        assert max(sizes) <= most
        assert sum(sizes) == 4 * SIDE * (SIDE - 1)
        curvatures.append(seen[-1][1])
    torch.testing.assert_close(*curvatures)
