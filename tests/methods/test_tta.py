import pytest
import torch
from torch import nn

from methods.tiny import TASKS, built, made, predicted
from qualms.methods import Headed, headed
from qualms.networks.unet import unet
from qualms.spec import Task

VOLUMES = Task(name="segmentation", classes=2, space=3)


class PerVoxel(nn.Module):
    """Features that depend on one voxel alone, so they are flipped with the image."""

    features = 2

    def forward(self, x):
        return torch.cat([x, x.square()], 1)


def recorded(method, task, x):
    """What the network sees in each pass, and what is predicted."""
    torch.manual_seed(0)
    network = method.build(PerVoxel(), task).eval()
    calls = []
    network.register_forward_pre_hook(lambda _, inputs: calls.append(inputs[0]))
    torch.manual_seed(0)
    with torch.no_grad():
        return calls, method.predict(network, x, task)


def test_a_volume_has_eight_flips_clean_and_noisy():
    x = torch.randn(2, 1, 4, 5, 6)
    seen, arrays = recorded(made("tta"), VOLUMES, x)
    assert len(seen) == 16
    assert arrays["draw_labels"].shape == (16, 2, 4, 5, 6)
    assert torch.equal(seen[0], x)
    flips = {tuple(axes) for axes in _flips(seen[:8], x)}
    assert len(flips) == 8
    noise = seen[8] - x
    scale = noise.flatten(1).std(1)
    assert (scale > 0).all()
    assert (scale < 0.12).all()
    # One draw of the noise, which is flipped with its volume.
    assert {tuple(axes) for axes in _flips(seen[8:], seen[8])} == flips


def _flips(views, x):
    """Along which axes each view is a flip of `x`."""
    for view in views:
        yield next(
            axes
            for axes in ((), (2,), (3,), (4,), (2, 3), (2, 4), (3, 4), (2, 3, 4))
            if torch.equal(x.flip(axes), view)
        )


def test_an_image_is_flipped_from_left_to_right():
    task = Task(name="segmentation", classes=3)
    x = torch.randn(2, 1, 4, 5)
    seen, _ = recorded(made("tta"), task, x)
    assert len(seen) == 4
    assert torch.equal(seen[1], x.flip(3))
    assert torch.equal(seen[3], seen[2].flip(3))


def test_noise_has_the_deviations_asked_for():
    x = torch.zeros(200, 1, 8, 8, 8)
    seen, _ = recorded(made("tta", {"noise": [0.2, 0.4], "flips": "none"}), VOLUMES, x)
    assert len(seen) == 2
    scale = seen[1].flatten(1).std(1)
    assert 0.18 < scale.min() < 0.23
    assert 0.37 < scale.max() < 0.43
    assert scale.mean() == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("flips", ["all", "horizontal"])
def test_a_network_that_flips_with_its_image_has_equal_draws(flips):
    method = made("tta", {"flips": flips, "noise": (0.0, 0.0)})
    x = torch.randn(2, 1, 4, 5, 6)
    _, arrays = recorded(method, VOLUMES, x)
    labels = arrays["draw_labels"]
    assert len(labels) == (8 if flips == "all" else 2)
    assert torch.equal(labels, labels[:1].expand_as(labels))
    _, once = recorded(made("map"), VOLUMES, x)
    torch.testing.assert_close(arrays["mean_probs"], once["mean_probs"])
    torch.testing.assert_close(arrays["expected_entropy"], once["expected_entropy"])


def test_maps_are_flipped_back_before_the_softmax():
    task = Task(name="segmentation", classes=3, space=2)
    torch.manual_seed(3)
    network = made("tta").build(unet(channels=1, space=2, width=2, levels=2), task)
    x = torch.randn(2, 1, 8, 8)
    with torch.no_grad():
        found = made("tta", {"noise": (0, 0)}).predict(network, x, task)
        wanted = [network(x), network(x.flip(3)).flip(3)]
    probs = torch.stack([logits.softmax(1) for logits in wanted]).mean(0)
    torch.testing.assert_close(found["mean_probs"], probs)
    assert (wanted[0] - wanted[1]).abs().max() > 1e-3


@pytest.mark.parametrize("task", sorted(TASKS))
def test_it_predicts_with_the_weights_of_map(task):
    trained = built(made("map"), TASKS[task], seed=1)
    other = built(made("tta"), TASKS[task], seed=2)
    assert isinstance(headed(other), Headed)
    other.load_state_dict(trained.state_dict())
    still = made("tta", {"flips": "none", "noise": (0, 0)})
    wanted = predicted(made("map"), trained, TASKS[task])
    for name, values in predicted(still, other, TASKS[task]).items():
        torch.testing.assert_close(values, wanted[name])


def test_items_have_a_draw_for_every_view():
    for name, key in (("classification", "probs"), ("regression", "mean")):
        arrays = predicted(made("tta"), built(made("tta"), TASKS[name]), TASKS[name])
        assert arrays[key].shape[0] == 4


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"flips": "vertical"}, "must be 'all', 'horizontal' or 'none', got 'vert"),
        ({"noise": (0.2, 0.1)}, "the smaller one first, got"),
        ({"noise": (0.1,)}, "must be two standard deviations"),
    ],
)
def test_wrong_options_end_in_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        made("tta", options)
