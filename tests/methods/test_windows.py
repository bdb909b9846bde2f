"""Large images seen through windows: laws of what is stitched, for every method."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from methods.tiny import made
from qualms.methods import Windows, plain_head, through_windows, window_starts
from qualms.networks.unet import unet
from qualms.shelf import names
from qualms.spec import Task

METHODS = [name for name in names("methods") if "segmentation" in made(name).tasks]
OF_PIXELS = ("mc_dropout", "ssn", "evidential")
"""Methods in whose draws each pixel, or its features, has a part of its own."""
ARRAYS = ("mean_probs", "expected_entropy", "draw_labels")


class Pixelwise(nn.Module):
    """Features of a pixel that depend on this pixel alone."""

    features = 3

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 3, 1), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


def fitted(name, backbone, classes=3):
    method = made(name)
    torch.manual_seed(1)
    task = Task(name="segmentation", classes=classes, ignore=255)
    network = method.build(backbone, task).eval()
    items = _Items(torch.randn(2, 1, 16, 16))
    with torch.no_grad():
        method.after(network, items.batches)
        if method.calibrate is not None:
            method.calibrate(network, items.batches)
    return method, network, task


class _Items:
    def __init__(self, x):
        self.x = x

    def batches(self):
        from qualms.methods import Batch

        yield Batch(x=self.x, target=(self.x[:, 0] > 0).to(torch.uint8))


def predicted(case, x, windows, seed=5):
    method, network, task = case
    torch.manual_seed(seed)
    with torch.no_grad(), through_windows(network, windows):
        return method.predict(network, x, task)


@pytest.mark.parametrize("name", METHODS)
def test_one_window_that_covers_an_image_changes_nothing(name):
    case = fitted(name, unet(channels=1, space=2, width=2, levels=2))
    x = torch.randn(1, 1, 12, 10)
    plain = predicted(case, x, None)
    covered = predicted(case, x, Windows(sides=(12, 10)))
    for array in ARRAYS:
        if name == "laplace" and array != "draw_labels":  # another order of sums
            torch.testing.assert_close(covered[array], plain[array])
        else:
            assert torch.equal(covered[array], plain[array])


@pytest.mark.parametrize("blend", ["nearest", "gaussian", "flat"])
@pytest.mark.parametrize("name", [n for n in METHODS if n not in OF_PIXELS])
def test_windows_of_a_pixelwise_network_change_nothing(name, blend):
    """A draw is one network for all windows: none is told from another by its draw."""
    case = fitted(name, Pixelwise())
    x = torch.randn(1, 1, 11, 14)
    plain = predicted(case, x, None)
    windows = Windows(sides=(6, 5), overlap=0.4, blend=blend)
    seen = predicted(case, x, windows)
    for array in ARRAYS[:2]:
        torch.testing.assert_close(seen[array], plain[array], rtol=1e-5, atol=1e-6)
    assert (seen["draw_labels"] == plain["draw_labels"]).float().mean() > 0.99


@pytest.mark.parametrize("name", ["ssn", "evidential"])
def test_windows_keep_the_distribution_of_each_pixel(name):
    case = fitted(name, Pixelwise())
    network, x = case[1], torch.randn(1, 1, 11, 14)
    with torch.no_grad():
        plain = network(x)
        with through_windows(network, Windows(sides=(6, 5))):
            torch.testing.assert_close(network(x), plain)
    outputs = predicted(case, x, Windows(sides=(6, 5)))
    assert outputs["mean_probs"].shape == (1, 3, 11, 14)


def test_outputs_are_the_weighted_mean_of_the_logits_of_windows():
    torch.manual_seed(0)
    task = Task(name="segmentation", classes=3)
    network = plain_head(unet(channels=1, space=2, width=2, levels=2), task).eval()
    x = torch.randn(1, 1, 9, 14)
    windows = Windows(sides=(8, 8), overlap=0.5, blend="gaussian")
    total, weights = torch.zeros(1, 3, 9, 14), torch.zeros(9, 14)
    away = (torch.arange(8) - 3.5) / (8 / 8)
    bump = torch.exp(-(away[:, None] ** 2 + away**2) / 2)
    with torch.no_grad():
        for down in (0, 1):
            for across in (0, 3, 6):
                part = x[:, :, down : down + 8, across : across + 8]
                here = (slice(down, down + 8), slice(across, across + 8))
                total[:, :, *here] += bump * network(part)
                weights[here] += bump
        with through_windows(network, windows):
            seen = network(x)
    assert window_starts(9, 8, 0.5) == [0, 1]
    assert window_starts(14, 8, 0.5) == [0, 3, 6]
    torch.testing.assert_close(seen, total / weights, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["map", "mc_dropout", "tta", "mfvi"])
def test_how_many_windows_pass_together_changes_nothing(name):
    case = fitted(name, unet(channels=1, space=2, width=2, levels=2))
    x = torch.randn(1, 1, 13, 18)
    one = predicted(case, x, Windows(sides=(8, 8), together=1))
    many = predicted(case, x, Windows(sides=(8, 8), together=7))
    for array in ARRAYS[:2]:
        torch.testing.assert_close(one[array], many[array], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["mfvi", "rank1", "radial"])
def test_draws_of_weights_are_the_same_in_all_windows(name):
    """Windows that show the same have the same outputs in a draw, not in the next."""
    network = fitted(name, unet(channels=1, space=2, width=2, levels=2))[1]
    tile = torch.randn(1, 1, 8, 8)
    windows = Windows(sides=(8, 8), overlap=0)
    with torch.no_grad(), through_windows(network, windows):
        draws = [network(tile.repeat(1, 1, 2, 3)) for _ in range(2)]
    for draw in draws:
        assert torch.equal(draw, draw[..., :8, :8].repeat(1, 1, 2, 3))
    assert not torch.allclose(*draws)


def test_a_pixel_is_that_of_the_window_whose_centre_is_nearest():
    torch.manual_seed(0)
    task = Task(name="segmentation", classes=3)
    network = plain_head(unet(channels=1, space=2, width=2, levels=2), task).eval()
    x = torch.randn(1, 1, 8, 14)
    with torch.no_grad():
        parts = [network(x[..., start : start + 8]) for start in (0, 3, 6)]
        with through_windows(network, Windows(sides=(8, 8), overlap=0.5)):
            seen = network(x)
    # Centres lie at 3.5, 6.5 and 9.5; of pixels in the middle the first window counts.
    assert torch.equal(seen[..., :6], parts[0][..., :6])
    assert torch.equal(seen[..., 6:9], parts[1][..., 3:6])
    assert torch.equal(seen[..., 9:], parts[2][..., 3:])


def test_mutual_information_of_mc_dropout_survives_windows():
    """Averaging over windows lowers it; taking the nearest one does not."""
    case = fitted("mc_dropout", unet(channels=1, space=2, width=4, levels=2))
    x = torch.randn(1, 1, 48, 48)

    def information(blend):
        outputs = predicted(case, x, Windows(sides=(16, 16), overlap=0.5, blend=blend))
        total = torch.special.entr(outputs["mean_probs"]).sum(1)
        return float((total - outputs["expected_entropy"]).mean())

    apart = predicted(case, x, Windows(sides=(16, 16), overlap=0))
    total = torch.special.entr(apart["mean_probs"]).sum(1)
    wanted = float((total - apart["expected_entropy"]).mean())
    assert information("nearest") == pytest.approx(wanted, rel=0.2)
    assert information("flat") < 0.6 * wanted


def test_an_image_smaller_than_a_window_has_its_rim_repeated():
    torch.manual_seed(0)
    task = Task(name="segmentation", classes=3, space=3)
    network = plain_head(unet(channels=1, width=2, levels=2), task).eval()
    x = torch.randn(1, 1, 5, 12, 8)
    grown = functional.pad(x, (0, 0, 0, 0, 1, 2), mode="replicate")
    with torch.no_grad():
        plain = network(grown)[:, :, 1:6]
        with through_windows(network, Windows(sides=(8, 12, 8))):
            seen = network(x)
    assert seen.shape == (1, 3, 5, 12, 8)
    assert torch.equal(seen, plain)


def test_windows_are_for_networks_with_a_head():
    bare, windows = nn.Conv2d(1, 1, 1), Windows(sides=(4, 4))
    with through_windows(bare, None):  # it sees images as they are
        pass
    with pytest.raises(TypeError, match="plain_head"), through_windows(bare, windows):
        pass
