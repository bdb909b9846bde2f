"""Scores of unlike items against hand computations, NumPy and pytorch-ood's outputs."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from methods.tiny import TASKS, N, batches, built, data, made, predicted, trained
from qualms.methods import Batch
from qualms.methods._ood_scores import (
    Residual,
    energy,
    even_logits,
    fit_clip,
    fit_gaussians,
    fit_residual,
    gradnorm,
    knn,
    mahalanobis,
    max_logit,
    relative_mahalanobis,
    vim,
)
from qualms.spec import Task

SCORES = {
    *("max_logit", "energy", "gradnorm", "knn", "mahalanobis"),
    *("relative_mahalanobis", "vim", "react"),
}
FITTED = SCORES - {"max_logit", "energy", "gradnorm"}


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.fixture(scope="module")
def stored():
    with np.load(Path(__file__).with_name("pytorch_ood.npz")) as file:
        return {name: torch.tensor(file[name]) for name in file.files}


class TestAgainstPytorchOod:
    """`bench/ood_scores.py` stored the case; units differ as `docs/ood.md` says."""

    @pytest.fixture
    @classmethod
    def ours(cls, stored):
        train, test, target = (stored[name] for name in ("train", "test", "target"))
        weight, bias = stored["weight"], stored["bias"]
        logits = (test @ weight.T + bias).double()
        gaussians = fit_gaussians(train, target)
        principal = stored["principal"].item()
        residual = fit_residual(train, weight, bias, principal)
        clip = fit_clip(train, stored["clip"].item())
        clipped = test.double().minimum(clip) @ weight.double().T + bias
        n = len(train)
        return {
            "max_logit": max_logit(logits),
            "energy": energy(logits),
            "gradnorm": gradnorm(test, logits),
            "knn": knn(test, train, stored["neighbours"].item()),
            "mahalanobis": mahalanobis(test, gaussians.classes) / (2 * n),
            "relative_mahalanobis": relative_mahalanobis(test, gaussians) / n,
            "vim": vim(test, logits, residual),
            "react": energy(clipped),
        }

    @pytest.mark.parametrize("name", sorted(SCORES))
    def test_the_scores_agree_to_rounding(self, stored, ours, name):
        theirs = stored[f"score/{name}"].double()
        size = theirs.abs().max()
        assert torch.allclose(ours[name] / size, theirs / size, rtol=0, atol=5e-5)


def test_scores_of_logits_by_hand():
    logits = tensor([[1.0, 3.0, 2.0], [0.0, 0.0, 0.0]])
    assert max_logit(logits).tolist() == [-3.0, 0.0]
    expected = [-np.log(np.e + np.e**3 + np.e**2), -np.log(3)]
    assert energy(logits).numpy() == pytest.approx(expected)


def test_saturated_logits_in_float32_keep_their_order():
    logits = torch.tensor([[1e4, -1e4], [2e4, -2e4], [3e38, -3e38]])
    for score in (max_logit(logits), energy(logits)):
        assert score.isfinite().all()
        assert (score.diff() < 0).all()


def test_one_logit_serves_both_classes_alike():
    outputs = tensor([[2.0], [-2.0], [0.0]])
    logits = even_logits(outputs)
    assert torch.allclose(logits.softmax(1)[:, 1], outputs[:, 0].sigmoid())
    for score in (max_logit(logits), energy(logits)):
        assert score[0] == score[1] < score[2]


@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_gradnorm_is_the_length_of_the_gradient(outputs):
    torch.manual_seed(0)
    last = nn.Linear(4, outputs).double()
    features = torch.randn(6, 4, dtype=torch.float64)
    sizes = []
    for row in features:
        last.zero_grad()
        if outputs == 1:
            # The weights of both even logits, which autograd does not know.
            weight = torch.cat([-last.weight / 2, last.weight / 2]).detach()
            bias = torch.cat([-last.bias / 2, last.bias / 2]).detach()
            weight.requires_grad_()
            functional.linear(row, weight, bias).log_softmax(0).mean().backward()
            sizes.append(weight.grad.abs().sum())
        else:
            last(row).log_softmax(0).mean().backward()
            sizes.append(last.weight.grad.abs().sum())
    score = gradnorm(features, even_logits(last(features).detach()))
    assert torch.allclose(score, -torch.stack(sizes))


def test_the_distance_to_the_kth_neighbour_by_hand():
    reference = tensor([[2.0, 0.0], [0.0, 5.0], [-1.0, 0.0]])
    features = tensor([[7.0, 0.0], [0.0, 0.0]])
    root = np.sqrt(2)
    for k, expected in ((1, [0, root]), (2, [root, root]), (3, [2, root])):
        assert knn(features, reference, k).numpy() == pytest.approx(expected)
    # Fewer training items than neighbours: the farthest of them.
    assert torch.equal(knn(features, reference, 50), knn(features, reference, 3))


def test_distances_to_means_by_hand():
    features = tensor([[-1.0], [1.0], [9.0], [11.0]])
    fitted = fit_gaussians(features, torch.tensor([0, 0, 1, 1]))
    asked = tensor([[0.0], [2.0], [13.0]])
    # The variance within classes is 1; that of all items 26, around 5.
    within = np.array([0, 4, 9])
    total = np.array([25, 9, 64]) / 26
    assert mahalanobis(asked, fitted.classes).numpy() == pytest.approx(within, rel=1e-5)
    relative = relative_mahalanobis(asked, fitted).numpy()
    assert relative == pytest.approx(within - total, rel=1e-5)


def test_the_covariance_is_that_of_numpy():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3)) @ rng.normal(size=(3, 3)) + 100
    target = np.arange(90) % 3
    means = np.stack([x[target == c].mean(0) for c in range(3)])
    inverse = np.linalg.inv(np.cov((x - means[target]).T, bias=True))
    gaps = x[:, None] - means
    expected = np.einsum("ncd,de,nce->nc", gaps, inverse, gaps).min(1)
    fitted = fit_gaussians(tensor(x), torch.tensor(target))
    score = mahalanobis(tensor(x), fitted.classes).numpy()
    assert score == pytest.approx(expected, rel=1e-3)


def test_one_class_has_a_relative_distance_of_zero():
    torch.manual_seed(0)
    features = torch.randn(30, 4) + 0.1
    fitted = fit_gaussians(features, torch.full((30,), 2))
    assert relative_mahalanobis(features * 3, fitted).eq(0).all()
    assert fitted.classes.means.shape == (1, 4)


def test_classes_without_items_have_no_mean():
    features = tensor([[0.0], [1.0], [4.0], [5.0]])
    fitted = fit_gaussians(features, torch.tensor([7, 7, 2, 2]))
    assert fitted.classes.means.flatten().tolist() == [4.5, 0.5]


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_fewer_items_than_features_shrink_the_covariance(n):
    torch.manual_seed(0)
    features = torch.randn(n, 40)
    fitted = fit_gaussians(features, torch.arange(n) % 3)
    near, far = features + 0.01, features + 10
    for gaussians in fitted:
        close, away = (mahalanobis(x, gaussians) for x in (near, far))
        assert close.isfinite().all()
        assert (away > close).all()
    # No direction outweighs another by more than shrinking allows.
    if n == 10:
        widths = torch.linalg.svdvals(fitted.background.whitening)
        assert widths.max() / widths.min() < 100


def test_shrinking_is_the_formula_of_its_paper():
    """Equation 23 of Chen et al. (2010), for nine independent items of thirty axes."""
    n, p = 9, 30
    x = np.random.default_rng(0).normal(size=(n + 1, p)) * np.linspace(0.1, 5, p)
    covariance = np.cov(x.T, bias=True)
    trace, square = np.trace(covariance), np.trace(covariance @ covariance)
    above = (1 - 2 / p) * square + trace**2
    share = above / ((n + 1 - 2 / p) * (square - trace**2 / p))
    assert 0 < share < 1
    expected = (1 - share) * covariance + share * trace / p * np.eye(p)
    fitted = fit_gaussians(tensor(x), torch.zeros(n + 1, dtype=torch.long))
    whitening = fitted.background.whitening.numpy()
    ours = np.linalg.inv(whitening @ whitening.T)
    assert ours == pytest.approx(expected, rel=1e-5, abs=1e-4)


def test_constant_features_give_finite_scores():
    features = torch.full((20, 6), 0.1)
    features[:, 5] = torch.linspace(0, 1, 20)
    _finite(features)
    _finite(torch.full((20, 6), 0.1))
    _finite(torch.zeros(20, 6))


def _finite(features):
    target = torch.arange(len(features)) % 2
    fitted = fit_gaussians(features, target)
    weight, bias = torch.ones(2, 6), torch.tensor([1.0, -1.0])
    residual = fit_residual(features, weight, bias, None)
    unlike = torch.cat([features, features + 1])
    logits = unlike @ weight.T + bias
    for score in (
        mahalanobis(unlike, fitted.classes),
        relative_mahalanobis(unlike, fitted),
        vim(unlike, logits, residual),
        knn(unlike, features, 5),
    ):
        assert score.isfinite().all()
        assert score.abs().max() < torch.finfo(torch.float32).max
    distances = mahalanobis(unlike, fitted.classes)
    assert distances[20:].min() > distances[:20].max()


def test_the_virtual_logit_by_hand():
    # Logits are the first two features; the third is the residual.
    residual = Residual(tensor([0.0] * 3), tensor([[0.0], [0.0], [1.0]]), tensor(2.0))
    features = tensor([[1.0, 2.0, -3.0]])
    expected = 6 - np.log(np.e + np.e**2)
    assert vim(features, features[:, :2], residual).item() == pytest.approx(expected)


def test_the_principal_space_and_the_scale_by_hand():
    # Spread along the first axis, less along the second, least along the third.
    features = torch.diag(torch.tensor([9.0, 3.0, 1.0])).repeat(2, 1)
    features[3:] *= -1
    weight, bias = torch.tensor([[1.0, 0, 0], [-1.0, 0, 0]]), torch.zeros(2)
    residual = fit_residual(features, weight, bias, 1)
    assert residual.basis[0].abs().max() < 1e-9
    # Mean of the largest logits, 9 for two of six items; mean length 3, 1 and 0.
    assert residual.scale.item() == pytest.approx((18 / 6) / (8 / 6))
    assert fit_residual(features, weight, bias, None).basis.shape == (3, 2)


def test_dependent_weights_have_a_small_origin():
    """Rows that sum to zero but for rounding, as those of many classifiers."""
    torch.manual_seed(0)
    weight = torch.randn(4, 16)
    weight -= weight.mean(0)
    residual = fit_residual(torch.randn(50, 16), weight, torch.randn(4), 6)
    assert residual.origin.norm() < 10


def test_the_principal_space_leaves_something_of_few_items():
    torch.manual_seed(0)
    weight, bias = torch.randn(2, 30), torch.zeros(2)
    few = fit_residual(torch.randn(6, 30), weight, bias, None)
    assert few.basis.shape == (30, 27)
    assert 0 < few.scale < 100
    many = fit_residual(torch.randn(80, 30), weight, bias, None)
    assert many.basis.shape == (30, 15)


def test_clipping_is_by_the_quantile_of_all_activations():
    features = torch.arange(20.0).view(5, 4)
    assert fit_clip(features, 0.9).item() == pytest.approx(np.quantile(range(20), 0.9))
    assert fit_clip(features, 1.0).item() == 19


@pytest.fixture(scope="module")
def network():
    return trained(made("ood"), TASKS["classification"])


def test_the_scores_stand_beside_the_plain_probabilities(network):
    task = TASKS["classification"]
    arrays = predicted(made("ood"), network, task)
    plain = predicted(made("map"), network, task)
    assert torch.equal(arrays["probs"], plain["probs"])
    assert set(arrays) == {"probs", *(f"uncertainty/{name}" for name in SCORES)}
    assert all(arrays[f"uncertainty/{name}"].shape == (N,) for name in SCORES)


def test_react_of_all_activations_is_the_energy():
    task = TASKS["classification"]
    arrays = predicted(made("ood", {"clip": 1.0}), _fitted(clip=1.0), task)
    assert torch.allclose(arrays["uncertainty/react"], arrays["uncertainty/energy"])


def test_before_training_ends_there_are_the_scores_of_no_fit():
    task = TASKS["classification"]
    arrays = predicted(made("ood"), built(made("ood"), task), task)
    assert set(arrays) == {
        "probs",
        *(f"uncertainty/{name}" for name in SCORES - FITTED),
    }


def test_unlike_pictures_score_higher(network):
    method, task = made("ood"), TASKS["classification"]
    x = data(task)[0]
    with torch.no_grad():
        known = method.predict(network, x, task)
        unlike = method.predict(network, 20 * torch.randn_like(x), task)
    for name in ("mahalanobis", "vim"):
        low, high = (a[f"uncertainty/{name}"].median() for a in (known, unlike))
        assert high > low


def test_at_most_so_many_items_are_kept():
    reference = _fitted(items=10).fitted.get("reference")
    assert reference.shape[0] == 10
    everything = _fitted().fitted.get("reference")
    rows = [
        [bool((row == other).all()) for other in everything].index(True)
        for row in reference
    ]
    assert rows == sorted(set(rows))
    assert rows != list(range(10))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_training_items_are_enough(n):
    task = TASKS["classification"]
    method = made("ood")
    network = built(method, task).eval()
    x, target = data(task)
    with torch.no_grad():
        method.after(network, lambda: iter([Batch(x=x[:n], target=target[:n])]))
    arrays = predicted(method, network, task)
    assert all(values.isfinite().all() for values in arrays.values())


def test_items_of_no_known_class_are_left_out():
    task = TASKS["classification"]
    x, target = data(task)
    unknown = target.clone()
    unknown[::3] = -1
    method, network = made("ood"), built(made("ood"), task).eval()
    with torch.no_grad():
        method.after(network, lambda: iter([Batch(x=x, target=unknown)]))
    assert len(network.fitted.get("reference")) == N - len(target[::3])
    nobody = Batch(x=x, target=torch.full((N,), -1))
    with (
        torch.no_grad(),
        pytest.raises(ValueError, match="needs training items with a known class"),
    ):
        method.after(network, lambda: iter([nobody]))


def test_diverged_features_are_refused():
    task, method = TASKS["classification"], made("ood")
    network = built(method, task).eval()
    x, target = data(task)
    bad = Batch(x=x * torch.nan, target=target)
    with torch.no_grad(), pytest.raises(ValueError, match="features must be finite"):
        method.after(network, lambda: iter([bad]))


def test_wrong_options_are_refused():
    for options in ({"neighbours": 0}, {"items": 0}, {"principal": -1}):
        with pytest.raises(ValueError, match="must be at least 1"):
            made("ood", options)
    for clip in (0, 1.5):
        with pytest.raises(ValueError, match="clip is a share"):
            made("ood", {"clip": clip})
    with pytest.raises(ValueError, match="principal must be below the number"):
        _fitted(principal=1000)
    with pytest.raises(ValueError, match="ood needs a number of classes"):
        built(made("ood"), Task(name="embedding"))


def _fitted(**options):
    """A network that was not trained, and what is fitted to its features."""
    method, task = made("ood", options), TASKS["classification"]
    network = built(method, task).eval()
    torch.manual_seed(1)
    with torch.no_grad():
        method.after(network, batches(task))
    return network
