"""A user's own network and loaders: what `qualms.predict` makes of them."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import qualms
from qualms import predictions
from qualms.methods import Batch, Method
from qualms.methods.laplace import laplace
from qualms.spec import Task
from qualms.training import TrainingError
from qualms.training.seeds import seed as seed_part

N, CLASSES = 24, 3
METHODS = ("plain", "mc_dropout", "laplace", "ood", "tta", "temperature")


@pytest.fixture(scope="module")
def data():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(N, 1, 6, 6, generator=generator)
    return x, (x.mean((1, 2, 3)) * 8).round().long().clamp(-1, 1) + 1


def network(outputs=CLASSES, end=None):
    """A small network with dropout; some are in training mode, as users leave them."""
    torch.manual_seed(1)
    layers = [
        nn.Conv2d(1, 3, 3),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.4),
        nn.Linear(48, outputs),
    ]
    made = nn.Sequential(*layers, *([] if end is None else [end]))
    with torch.no_grad():
        made[5].weight *= 8
    return made


def loader(data, batch=7):
    return DataLoader(TensorDataset(*data), batch_size=batch)


def asked(model, data, **options):
    given = {"task": "classification", "fit": loader(data), "val": loader(data)}
    return qualms.predict(
        model, loader(data, options.pop("batch", 7)), **given | options
    )


def probs(*given, **options):
    return asked(*given, **options).arrays["probs"]


def logits_of(model, x):
    was = model.training
    with torch.no_grad():
        found = model.eval()(x)
    model.train(was)
    return found


def test_the_plain_method_is_the_softmax_of_the_model(data):
    model = network()
    found = asked(model, data)
    expected = logits_of(model, data[0]).softmax(1).numpy()
    assert found.arrays["probs"][0] == pytest.approx(expected, abs=1e-6)
    assert found.arrays["target"].tolist() == data[1].tolist()
    assert (found.header.method, found.header.task) == ("map", "classification")


@pytest.mark.parametrize("method", METHODS)
def test_the_model_is_left_as_it_was_and_a_seed_gives_the_same(data, method, tmp_path):
    model = network()
    before = {name: part.clone() for name, part in model.state_dict().items()}
    torch.manual_seed(5)
    state = torch.get_rng_state()
    out = tmp_path / "p.npz"
    one = probs(model, data, method=method, seed=4, out=out)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert all(torch.equal(before[n], p) for n, p in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert [type(m).__name__ for m in model][4] == "Dropout"
    assert np.array_equal(one, probs(model, data, method=method, seed=4))
    assert np.array_equal(one, predictions.read(out).arrays["probs"])
    random = method in ("mc_dropout", "laplace", "tta")
    assert np.array_equal(one, probs(model, data, method=method, seed=5)) != random


@pytest.mark.parametrize("method", ["plain", "laplace", "temperature"])
def test_batches_do_not_change_results(data, method):
    one, other = (probs(network(), data, method=method, batch=b) for b in (5, 24))
    assert np.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_the_temperature_is_that_of_an_outside_search(data, outputs):
    x, model = data[0], network(outputs)
    logits = logits_of(model, x).double().numpy()
    if outputs == 1:
        logits = np.concatenate([np.zeros_like(logits), logits], 1)
    noise = np.random.default_rng(0).gumbel(size=logits.shape)
    target = torch.as_tensor((logits / 2.5 + noise).argmax(1))
    rows = np.arange(N)
    best = minimize_scalar(
        lambda t: -log_softmax(logits / np.exp(t), axis=1)[rows, target].mean(),
        bounds=(-5, 5),
        method="bounded",
    )
    probabilities = probs(model, (x, target), method="temperature")[0]
    expected = np.exp(log_softmax(logits / np.exp(best.x), axis=1))
    assert probabilities == pytest.approx(expected, abs=1e-4)
    assert not np.allclose(
        probabilities, np.exp(log_softmax(logits, axis=1)), atol=0.02
    )


def shelf_laplace(features, layer, target, seed):
    """The shelf's own method on features that are given."""
    task = Task(name="classification", classes=CLASSES)
    method = laplace(draws=6)
    backbone = nn.Identity()
    backbone.features = features.shape[1]
    whole = method.build(backbone, task).eval()
    with torch.no_grad():
        whole.head.last.load_state_dict(layer.state_dict())
        seed_part(seed, "fit")
        batch = Batch(x=features, target=target)
        method.after(whole, lambda: iter([batch]))
        return whole, method.predict(whole, features, task)["probs"]


def test_laplace_is_that_of_the_shelf_on_the_same_features(data):
    model = network()
    probabilities = probs(
        model, data, method="laplace", options={"draws": 6}, seed=2, batch=24
    )
    features = logits_of(model[:5], data[0])
    _, expected = shelf_laplace(features, model[5], data[1], seed=2)
    assert probabilities == pytest.approx(expected.numpy(), abs=1e-5)
    assert probabilities.std(0).max() > 0.01


def test_dropout_draws_are_passes_of_the_model_with_dropout_on(data):
    """Their mean and spread, against passes by hand."""
    model = network()
    probabilities = probs(model, data, method="mc_dropout", options={"draws": 600})
    model.eval()[4].train()
    with torch.no_grad():
        hand = torch.stack([model(data[0]).softmax(1) for _ in range(600)]).numpy()
    assert probabilities.mean(0) == pytest.approx(hand.mean(0), abs=0.1)
    assert probabilities.std(0) == pytest.approx(hand.std(0), abs=0.1)
    assert probabilities.std(0).mean() > 0.02


def test_draws_of_a_transformer_differ(data):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(6, 2, 12, dropout=0.3, batch_first=True)
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(36, CLASSES))
    given = (data[0][:, 0], data[1])
    probabilities = probs(model, given, method="mc_dropout")
    assert probabilities.std(0).min() > 0


class Bare(nn.Module):
    """Dropout as a function, which nobody can see."""

    def __init__(self, rate=None):
        super().__init__()
        self.body = network()[:4]
        self.drop = nn.Identity() if rate is None else nn.Dropout(rate)
        self.fc = nn.Linear(48, CLASSES, bias=False)

    def forward(self, x):
        return {"out": self.fc(self.drop(self.body(x))), "aux": x}


def test_dropout_that_is_never_called_is_noticed(data):
    model = network()
    del model[4]
    model[1].spare = nn.Dropout(0.5)
    with pytest.raises(ValueError, match="calls none of them"):
        asked(model, data, method="mc_dropout")


@pytest.mark.parametrize(("rate", "said"), [(None, "no dropout layer"), (0, "rate 0")])
def test_a_model_without_dropout_is_told_what_to_do(data, rate, said):
    with pytest.raises(ValueError, match=said):
        asked(Bare(rate), data, method="mc_dropout")
    options = {"place": "activations", "rate": 0.2}
    probabilities = probs(Bare(rate), data, method="mc_dropout", options=options)
    assert probabilities.std(0).min() > 0


def test_probabilities_are_taken_as_what_they_are(data):
    ends = {CLASSES: nn.Softmax(1), 1: nn.Sigmoid()}
    for outputs, end in ends.items():
        given = (data[0], data[1].clamp(max=max(outputs - 1, 1)))
        for method in METHODS:
            plain = probs(network(outputs), given, method=method)
            told = probs(
                network(outputs, end), given, method=method, outputs="probabilities"
            )
            assert told == pytest.approx(plain, abs=1e-4), method
        with pytest.raises(ValueError, match="look like probabilities"):
            asked(network(outputs, end), given)
        with pytest.raises(ValueError, match="say outputs='logits'"):
            asked(network(outputs), given, outputs="probabilities")
    asked(network(1, nn.Sigmoid()), given, outputs="logits")  # the user insists


def test_a_sigmoid_of_each_class_is_recognised(data):
    model = network(CLASSES, nn.Sigmoid())
    with pytest.raises(
        ValueError, match="like a sigmoid of each class and not like lo"
    ):
        asked(model, data)
    with pytest.raises(
        ValueError, match="return a softmax if each class has a sigmoid"
    ):
        asked(model, data, outputs="probabilities")
    asked(model, data, outputs="logits")  # the user insists


def test_a_regression_has_means_and_a_variance_where_there_is_one(data, tmp_path):
    given = (data[0], data[0].mean((1, 2, 3)) * 5)
    mean = logits_of(network(1), data[0])[:, 0]
    found = asked(network(1), given, task="regression")
    assert found.arrays["mean"][0] == pytest.approx(mean.numpy(), abs=1e-6)
    fitted = asked(network(1), given, task="regression", method="laplace")
    rows = np.c_[logits_of(network(1)[:5], data[0]).numpy(), np.ones(N)]
    assert fitted.arrays["var"].min() > 0
    best = np.linalg.lstsq(rows, given[1].numpy(), rcond=None)[0]
    assert np.square(fitted.arrays["mean"] - given[1].numpy()).mean() >= (
        np.square(rows @ best - given[1].numpy()).mean() - 1e-6
    )
    pair = asked(
        network(2),
        given,
        task="regression",
        method="mc_dropout",
        outputs="mean_log_variance",
        out=tmp_path / "r.npz",
    )
    assert pair.arrays["mean"].shape == pair.arrays["var"].shape == (10, N)
    assert pair.header.draws == "models"
    plain = asked(network(2), given, task="regression", outputs="mean_log_variance")
    expected = logits_of(network(2), data[0])[:, 1].exp()
    assert plain.arrays["var"][0] == pytest.approx(expected.numpy(), rel=1e-5)
    assert qualms.score(tmp_path / "r.npz", resamples=0).rows
    with pytest.raises(ValueError, match="must return one number"):
        asked(network(2), given, task="regression")
    with pytest.raises(ValueError, match="must not be negative"):
        asked(network(2), given, task="regression", outputs="mean_deviation")
    model = network(2)
    model[5].bias.data[1] = 100.0  # a variance that is positive
    told = {"outputs": "mean_variance", "method": "laplace"}
    with pytest.raises(ValueError, match="one output"):
        asked(model, given, task="regression", **told)


def test_a_method_that_returns_other_arrays_is_told_which_are_needed(data):
    own = Method(predict=lambda network, x, _task: {"logits": network(x)})
    told = "must return 'probs' or 'prob' for classification, got 'logits'; use summ"
    with pytest.raises(TrainingError, match=told):
        asked(network(), data, method=own)


def test_a_classifier_embeds_by_its_last_layer_and_other_models_by_themselves(data):
    x, model = data[0], network()
    items = [(x, torch.arange(N) % 9)]  # classes that the model does not know
    found = qualms.predict(model, items, task="embedding", outputs="logits")
    with torch.no_grad():
        wanted = model.eval()[:5](x)
    assert found.arrays["embedding"] == pytest.approx(wanted.numpy(), abs=1e-6)
    own = qualms.predict(model[:5], items, task="embedding", views=False)
    assert own.arrays["embedding"] == pytest.approx(wanted.numpy(), abs=1e-6)
    assert list(own.named("uncertainty")) == ["inverse_norm"]
    assert own.named("uncertainty_cropped") == {}
    names = ["inverse_norm", "entropy", "flips"]
    assert list(found.named("uncertainty")) == names
    batched = [(x[:7], items[0][1][:7]), (x[7:], items[0][1][7:])]
    again = qualms.predict(model, batched, task="embedding", outputs="logits")
    for name, array in found.arrays.items():
        assert again.arrays[name] == pytest.approx(array, abs=1e-6)


@pytest.mark.parametrize("method", ["mc_dropout", "tta", "laplace", "ood"])
def test_methods_that_need_no_training_embed_as_well(data, method):
    found = qualms.predict(
        network(),
        loader(data),
        task="embedding",
        outputs="logits",
        method=method,
        fit=loader(data),
    )
    extra = {"ood": "knn"}.get(method, "mutual_information")
    assert np.ptp(found.arrays[f"uncertainty/{extra}"]) > 0
    assert extra in found.named("uncertainty_cropped")


def test_models_that_do_not_embed_are_refused_in_a_sentence(data):
    x = data[0]

    def refused(model, **more):
        with pytest.raises(ValueError, match=r".") as error:
            qualms.predict(model, [x], **{"task": "embedding", **more})
        return str(error.value)

    assert "must return vectors (B, D) for a batch" in refused(nn.Identity())
    assert "this model returns embeddings" in refused(nn.Flatten(), last="fc")
    clamped = nn.Sequential(network(), nn.Hardtanh(-1e-3, 1e-3))
    assert "no last linear layer was seen" in refused(clamped, outputs="logits")
    with pytest.raises(ValueError, match="must be classes from 0 on, or -1 where none"):
        qualms.predict(nn.Flatten(), [(x, torch.full((N,), -3))], task="embedding")
    maps = {"x": x, "thumbnail": np.zeros((N, 2, 2, 3), np.uint8)}
    with pytest.raises(ValueError, match="segmented items have no thumbnails"):
        qualms.predict(
            nn.Conv2d(1, 2, 1), [maps], task="segmentation", out="unwritten_maps"
        )
