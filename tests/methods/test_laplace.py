import numpy as np
import pytest
import torch
from sklearn.linear_model import BayesianRidge
from torch.nn import functional

from methods.tiny import TASKS, batches, built, data, made, predicted, trained
from qualms.methods import last_inputs
from qualms.methods.laplace import (
    _add_curvature,
    _full,
    _kron,
    _output_covariance,
    _output_probs,
    _outputs,
    _rows,
    linear_posterior,
    prior_precision,
    to_weights,
)
from qualms.spec import Task

REGRESSION = TASKS["regression"]


def design(n=60, p=5, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) * [5, 1, 1, 0.3, 0]
    x[:, -1] = 1
    return x, x @ rng.normal(size=p) * 3 + rng.normal(size=n) * 0.7


def fitted(x, y):
    sums = (x.T @ x, x.T @ y, np.asarray(y @ y))
    return linear_posterior(*map(torch.as_tensor, sums), len(y))


def log_evidence(x, y, prior, noise):
    """Of targets alone: Gaussian with all weights integrated out."""
    covariance = noise * np.eye(len(y)) + x @ x.T / prior
    _, logdet = np.linalg.slogdet(covariance)
    return -0.5 * (logdet + y @ np.linalg.solve(covariance, y))


def test_regression_is_bayesian_linear_regression():
    x, y = design()
    fit = fitted(x, y)
    noise = fit.noise.item()
    covariance = (fit.factor @ fit.factor.T).numpy()
    prior = np.linalg.eigvalsh(np.linalg.inv(covariance) - x.T @ x / noise).mean()
    explicit = np.linalg.inv(x.T @ x / noise + prior * np.eye(x.shape[1]))
    np.testing.assert_allclose(covariance, explicit, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(fit.mean, explicit @ x.T @ y / noise, rtol=1e-6)


def test_prior_and_noise_have_the_largest_evidence():
    x, y = design()
    fit = fitted(x, y)
    noise = fit.noise.item()
    precision = np.linalg.inv((fit.factor @ fit.factor.T).numpy())
    prior = np.linalg.eigvalsh(precision - x.T @ x / noise).mean()
    best = log_evidence(x, y, prior, noise)
    for factor in (0.9, 1.1):
        assert log_evidence(x, y, prior * factor, noise) < best
        assert log_evidence(x, y, prior, noise * factor) < best


def test_regression_agrees_with_scikit_learn():
    x, y = design(seed=3)
    reference = BayesianRidge(
        fit_intercept=False,
        alpha_1=0,
        alpha_2=0,
        lambda_1=0,
        lambda_2=0,
        tol=1e-12,
        max_iter=5000,
    ).fit(x, y)
    mean, std = reference.predict(x, return_std=True)
    fit = fitted(x, y)
    np.testing.assert_allclose(x @ fit.mean.numpy(), mean, rtol=1e-5)
    var = ((x @ fit.factor.numpy()) ** 2).sum(1) + fit.noise.item()
    np.testing.assert_allclose(var, std**2, rtol=1e-4)


def test_more_weights_than_items_still_has_an_answer():
    x, y = design(n=4)
    fit = fitted(x, y)
    assert all(torch.isfinite(part).all() for part in fit)
    assert fit.noise > 0


def test_predictions_use_the_last_layer_of_the_trained_network():
    method = made("laplace")
    network = trained(method, REGRESSION)
    x, target = data(REGRESSION)
    with torch.no_grad():
        rows = _rows(last_inputs(network, x))
        trunk = network.head.trunk(network.backbone(x))
    torch.testing.assert_close(rows[:, :-1], trunk.double())
    fit = fitted(rows.numpy(), target.double().numpy())
    arrays = predicted(method, network, REGRESSION)
    var = (rows @ fit.factor).square().sum(1) + fit.noise
    torch.testing.assert_close(arrays["mean"][0], rows @ fit.mean, rtol=1e-6, atol=0)
    torch.testing.assert_close(arrays["var"][0], var, rtol=1e-4, atol=0)


def test_variance_grows_away_from_the_training_items():
    method = made("laplace")
    network = trained(method, REGRESSION)
    x, _ = data(REGRESSION)
    with torch.no_grad():
        near, far = (method.predict(network, z, REGRESSION)["var"] for z in (x, 30 * x))
    assert far.mean() > 2 * near.mean()


def test_curvature_is_the_hessian_of_the_cross_entropy():
    torch.manual_seed(0)
    rows = torch.randn(7, 4, dtype=torch.float64)
    weights = torch.randn(3, 4, dtype=torch.float64)
    target = torch.tensor([0, 1, 2, 0, 1, 2, 0])

    def loss(weights):
        return functional.cross_entropy(rows @ weights.T, target, reduction="sum")

    reference = torch.autograd.functional.hessian(loss, weights)
    curvature = torch.zeros(3, 4, 3, 4, dtype=torch.float64)
    _add_curvature(curvature, rows, (rows @ weights.T).softmax(1))
    torch.testing.assert_close(curvature, reference)


def test_one_logit_for_two_classes_has_the_curvature_of_the_logistic_loss():
    torch.manual_seed(0)
    rows = torch.randn(7, 4, dtype=torch.float64)
    weights = torch.randn(1, 4, dtype=torch.float64)
    target = torch.tensor([0.0, 1, 1, 0, 1, 0, 0]).double()

    def loss(weights):
        return functional.binary_cross_entropy_with_logits(
            (rows @ weights.T)[:, 0], target, reduction="sum"
        )

    reference = torch.autograd.functional.hessian(loss, weights)
    curvature = torch.zeros(1, 4, 1, 4, dtype=torch.float64)
    _add_curvature(curvature, rows, _output_probs(rows @ weights.T))
    torch.testing.assert_close(curvature, reference)


def test_prior_precision_has_the_largest_evidence():
    values, norm = torch.tensor([0.0, 0.5, 3.0, 40.0]).double(), 2.5

    def evidence(precision):
        return 0.5 * (len(values) * np.log(precision) - precision * norm) - 0.5 * float(
            (values + precision).log().sum()
        )

    found = prior_precision(values, torch.tensor(norm).double()).item()
    assert evidence(found) > max(evidence(found * 0.95), evidence(found * 1.05))


@pytest.mark.parametrize("task", ["classification", "segmentation"])
def test_draws_have_the_covariance_of_the_posterior(task):
    task = TASKS[task]
    method = made("laplace", {"draws": 4000, "mean": "draws"})
    network = trained(method, task)
    last = network.head.last
    mean = torch.cat([last.weight.flatten(1), last.bias[:, None]], 1).detach().double()
    curvature = torch.zeros(*mean.shape * 2).double()
    for batch in batches(task)():
        with torch.no_grad():
            inputs = network.backbone(batch.x)
        kept = batch.target.flatten() != 255
        rows = _rows(inputs)[kept]
        _add_curvature(curvature, rows, (rows @ mean.T).softmax(1))
    values, basis = torch.linalg.eigh(curvature.view(mean.numel(), -1))
    prior = prior_precision(values, mean.square().sum())
    drawn = network.fitted.weights.double() - mean
    turned = drawn.flatten(1) @ basis
    expected = 1 / (values + prior)
    torch.testing.assert_close(turned.var(0), expected, rtol=0.12, atol=0)
    assert turned.mean(0).abs().max() < 0.1 * expected.max().sqrt()


def test_too_many_last_layer_weights_are_refused():
    task = Task(name="classification", classes=2000)
    with pytest.raises(ValueError, match="at most 12000 last-layer weights, got"):
        built(made("laplace"), task)


def test_no_draws_are_refused():
    with pytest.raises(ValueError, match="draws must be at least 1, got 0"):
        made("laplace", {"draws": 0})


def covariance(curvature, scale):
    """Of the weights of a last layer whose weights are `scale` of the initial ones."""
    task = TASKS["classification"]
    method = made("laplace", {"curvature": curvature})
    network = built(method, task).eval()
    with torch.no_grad():
        for weight in network.head.last.parameters():
            weight *= scale
        last = network.head.last
        trained = torch.cat([last.weight, last.bias[:, None]], 1).double()
        parts = (_rows(last_inputs(network, b.x)) for b in batches(task)())
        values, *bases = (_full if curvature == "full" else _kron)(trained, parts)
        along = torch.diag(1 / (values.clamp(min=0.0) + 0.5).sqrt())
        shifts = to_weights(tuple(bases), along, trained)
        flat = shifts.flatten(1)
        return (flat.T @ flat).numpy()


def test_kronecker_factors_are_exact_where_all_items_have_the_same_probabilities():
    np.testing.assert_allclose(
        covariance("kron", 0.0), covariance("full", 0.0), atol=1e-9
    )
    assert not np.allclose(
        covariance("kron", 20.0), covariance("full", 20.0), atol=0.01
    )


def test_kronecker_factors_are_those_of_the_definition():
    task = TASKS["classification"]
    network = built(made("laplace"), task).eval()
    with torch.no_grad():
        rows = _rows(last_inputs(network, data(task)[0])).numpy()
        probs = network(data(task)[0]).double().softmax(1).numpy()
    slopes = np.stack([np.diag(p) - np.outer(p, p) for p in probs])
    factors = np.kron(slopes.mean(0), rows.T @ rows)
    expected = np.linalg.inv(factors + 0.5 * np.eye(len(factors)))
    np.testing.assert_allclose(covariance("kron", 1.0), expected, atol=1e-6)


def test_a_large_last_layer_is_for_kronecker_factors():
    task = Task(name="classification", classes=2000)
    with pytest.raises(ValueError, match="say curvature='kron'"):
        built(made("laplace"), task)
    assert built(made("laplace", {"curvature": "kron"}), task) is not None
    with pytest.raises(ValueError, match="must be 'full' or 'kron', got 'diag'"):
        made("laplace", {"curvature": "diag"})


def refitted(network, options, seed, task=TASKS["classification"]):
    """The weights of `network` with Laplace's posterior around them."""
    method = made("laplace", options)
    whole = built(method, task).eval()
    whole.load_state_dict(network.state_dict(), strict=False)
    torch.manual_seed(seed)
    with torch.no_grad():
        method.after(whole, batches(task))
    return whole


@pytest.mark.parametrize("curvature", ["full", "kron"])
@pytest.mark.parametrize("task", ["classification", "embedding"])
def test_mean_probabilities_do_not_depend_on_chance(task, curvature):
    """With draws of the weights that all items share they did."""
    task, options = TASKS[task], {"curvature": curvature}
    network = trained(made("map"), task)
    found = []
    for seed in (1, 2):
        whole = refitted(network, options, seed, task)
        arrays = predicted(made("laplace", options), whole, task)
        if task.name == "classification":
            assert len(arrays["probs"]) == 20
            found.append(arrays["probs"].mean(0))
        else:
            assert len(whole.fitted.get("noise")) == 200
            found.append(arrays["uncertainty/entropy"])
            assert arrays["uncertainty/mutual_information"].min() > -1e-12
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


def test_a_wide_posterior_costs_no_accuracy():
    """Twenty shared draws lose a tenth of the items that the network has right."""
    task = TASKS["classification"]
    x, _ = data(task)
    agree = {"probit": [], "draws": []}
    network = trained(made("map"), task, epochs=range(1))
    with torch.no_grad():
        plain = network(x).argmax(1)
    for mean, shares in agree.items():
        for seed in range(5):
            whole = refitted(network, {"mean": mean}, seed)
            arrays = predicted(made("laplace", {"mean": mean}), whole, task)
            same = arrays["probs"].mean(0).argmax(1) == plain
            shares.append(same.double().mean().item())
    assert min(agree["probit"]) > 0.9
    assert min(agree["probit"]) >= np.mean(agree["draws"])


@pytest.mark.parametrize("curvature", ["full", "kron", "sampled"])
def test_outputs_have_the_covariance_of_the_weights(curvature, monkeypatch):
    task = TASKS["classification"]
    network = trained(made("map"), task)
    if curvature == "sampled":
        monkeypatch.setattr("qualms.methods.laplace._EXACT", 1)
    kind = "kron" if curvature == "kron" else "full"
    whole = refitted(network, {"curvature": kind}, 3)
    drawn = refitted(network, {"curvature": kind, "mean": "draws", "draws": 20_000}, 4)
    with torch.no_grad():
        rows = _rows(last_inputs(whole, data(task)[0])[:4]).float()
        found = _output_covariance(whole.fitted, rows)
        outputs = torch.einsum("bp,mkp->mbk", rows, drawn.fitted.get("weights"))
    centred = (outputs - outputs.mean(0)).double()
    exact = torch.einsum("mbk,mbj->bkj", centred, centred) / len(centred)
    size = exact.diagonal(dim1=1, dim2=2).mean()
    atol = (0.2 if curvature == "sampled" else 0.06) * size
    torch.testing.assert_close(found, exact, rtol=0, atol=float(atol))


def test_checkpoints_that_hold_draws_alone_predict_by_them():
    task = TASKS["classification"]
    network = trained(made("laplace", {"mean": "draws"}), task)
    state = network.state_dict()
    assert [name for name in state if name.startswith("fitted")] == ["fitted.weights"]
    method = made("laplace")
    again = built(method, task, seed=5)
    again.load_state_dict(state)
    with torch.no_grad():
        inputs = last_inputs(network, data(task)[0])
        outputs = torch.stack(
            [_outputs(inputs, weights) for weights in network.fitted.get("weights")]
        )
    probs = predicted(method, again, task)["probs"]
    torch.testing.assert_close(probs, outputs.softmax(2))


@pytest.mark.parametrize("curvature", ["full", "kron"])
def test_a_checkpoint_holds_the_posterior(curvature):
    task = TASKS["classification"]
    method = made("laplace", {"curvature": curvature})
    network = trained(method, task)
    again = built(method, task, seed=5)
    again.load_state_dict(network.state_dict())
    one, other = (predicted(method, each, task)["probs"] for each in (network, again))
    assert torch.equal(one, other)


def test_draws_of_pixels_mirror_each_other():
    task = TASKS["segmentation"]
    network = trained(made("laplace", {"draws": 6}), task)
    last = network.head.last
    weights = torch.cat([last.weight.flatten(1), last.bias[:, None]], 1)
    drawn = network.fitted.get("weights")
    torch.testing.assert_close(drawn.mean(0), weights.detach(), atol=1e-5, rtol=0)
    assert drawn.std(0).min() > 0


def test_the_mean_is_checked():
    with pytest.raises(ValueError, match="must be 'probit' or 'draws', got 'mackay'"):
        made("laplace", {"mean": "mackay"})
