"""A trained network with a sigmoid for each of several regions that overlap."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from torch import nn

import qualms
from qualms import predictions, scores

NAMES = ["whole", "core"]
N, SIDE = 5, 6


def data(raters=()):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 1, SIDE, SIDE, generator=generator)
    masks = torch.rand(N, *raters, 2, SIDE, SIDE, generator=generator) < 0.4
    return [(x[:3], masks[:3].long()), (x[3:], masks[3:].long())]


def network(outputs=2, *, dropout=False):
    torch.manual_seed(2)
    extra = [nn.Dropout(0.4)] if dropout else []
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), *extra, nn.Conv2d(4, outputs, 1)
    ).eval()


def predicted(folder, model=None, batches=None, **options):
    return qualms.predict(
        model or network(),
        batches or data(),
        task="segmentation",
        regions=NAMES,
        out=folder,
        **options,
    )


def sigmoids(model, batches):
    with torch.no_grad():
        return torch.cat([model(x) for x, _ in batches]).sigmoid().double().numpy()


def test_each_region_has_its_sigmoid_and_its_masks(tmp_path):
    found = predicted(tmp_path / "p")
    assert found.header.regions == tuple(NAMES)
    expected = sigmoids(network(), data())
    masks = np.concatenate([mask.numpy() for _, mask in data()])
    for maps, probs, mask in zip(found.maps, expected, masks, strict=True):
        statistics = scores.region_statistics(probs[np.newaxis])
        np.testing.assert_allclose(maps.mean_probs, statistics.mean_probs, atol=1e-6)
        np.testing.assert_allclose(
            maps.expected_entropy, statistics.expected_entropy, atol=1e-5
        )
        np.testing.assert_array_equal(maps.draw_labels, statistics.draw_labels)
        np.testing.assert_array_equal(maps.raters, mask[np.newaxis])
    assert qualms.score(tmp_path / "p")["dice"].value > 0


def test_probabilities_raters_and_draws(tmp_path):
    model = nn.Sequential(network(), nn.Sigmoid())
    batches = data(raters=(3,))
    found = predicted(tmp_path / "p", model, batches, outputs="probabilities")
    plain = predicted(tmp_path / "q", batches=batches)
    for one, other in zip(found.maps, plain.maps, strict=True):
        np.testing.assert_allclose(one.mean_probs, other.mean_probs, atol=1e-6)
        assert one.raters.shape == (3, 2, SIDE, SIDE)
    drawn = predicted(
        tmp_path / "r", network(dropout=True), method="mc_dropout", options={"draws": 7}
    )
    assert drawn.maps[0].draw_labels.shape == (7, 2, SIDE, SIDE)
    flipped = predicted(tmp_path / "t", method="tta", options={"noise": (0, 0)})
    both = [
        network()(x).sigmoid() + network()(x.flip(-1)).flip(-1).sigmoid()
        for x, _ in data()
    ]
    mean = torch.cat(both).detach().numpy() / 2
    np.testing.assert_allclose(flipped.maps[4].mean_probs, mean[4], atol=1e-6)


def test_one_temperature_is_fitted_to_all_regions(tmp_path):
    found = predicted(tmp_path / "p", method="temperature", val=data())
    with torch.no_grad():
        logits = torch.cat([network()(x) for x, _ in data()]).double().numpy()
    masks = np.concatenate([mask.numpy() for _, mask in data()])
    signs = np.where(masks == 1, 1.0, -1.0)

    def nll(log_t):
        return np.logaddexp(0, -signs * logits / np.exp(log_t)).mean()

    best = np.exp(minimize_scalar(nll, bounds=(-4, 4), method="bounded").x)
    expected = 1 / (1 + np.exp(-logits / best))
    np.testing.assert_allclose(found.maps[1].mean_probs, expected[1], atol=2e-3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"regions": "whole"}, r"regions must be a list of names"),
        ({"regions": ["a", "a"]}, r"must have different names"),
        ({"regions": ["a"]}, r"regions names 1, and the model returns 2 maps"),
        ({"last": "2"}, r"a model with regions is taken as a whole"),
        ({"task": "classification"}, r"regions are for segmentation"),
        ({"regions": (), "outputs": "probabilities"}, r"name the regions that overlap"),
    ],
)
def test_what_does_not_fit_regions_is_refused(tmp_path, options, sentence):
    model = network()
    if options.get("outputs"):
        model = nn.Sequential(model, nn.Sigmoid())
    asked = {"task": "segmentation", "regions": NAMES, "out": tmp_path / "p"}
    if options.get("task"):
        asked["out"] = None
    with pytest.raises(ValueError, match=sentence):
        qualms.predict(model, data(), **asked | options)


def test_masks_of_other_shapes_or_values_are_refused(tmp_path):
    x = data()[0][0]
    labels = torch.ones(3, SIDE, SIDE, dtype=torch.long)
    with pytest.raises(ValueError, match=r"must have shape \(B, 2, 6, 6\)"):
        predicted(tmp_path / "p", batches=[(x, labels)])
    bright = 255 * torch.ones(3, 2, SIDE, SIDE, dtype=torch.long)
    with pytest.raises(ValueError, match="must be 1 inside of a region and 0 outside"):
        predicted(tmp_path / "q", batches=[(x, bright)])
    assert predictions.read(predicted(tmp_path / "r", batches=[x]).source).n == 3
