"""Loaders of any kind, label maps, and sentences for what cannot be served."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
)

import qualms
from qualms.shelf import include

N, CLASSES = 12, 3
X = torch.randn(N, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(N) % CLASSES


def model(outputs=CLASSES):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, outputs))


def predicted(loader, network=None, **options):
    task = options.pop("task", "classification")
    return qualms.predict(network or model(), loader, task=task, **options)


def halves(*parts):
    return [tuple(part[half] for part in parts) for half in (slice(5), slice(5, N))]


class Named(Dataset):
    def __len__(self):
        return N

    def __getitem__(self, i):
        return {
            "x": X[i].double(),
            "target": int(Y[i]),
            "item": f"case {i}",
            "group": "ab"[i % 2],
            "cluster": i // 3,
            "shifted": i > 6,
        }


def test_every_form_of_a_batch_gives_the_same_predictions():
    expected = predicted(halves(X, Y)).arrays["probs"]
    more = [(x, y, {"item": [f"{i}" for i in x[:, 0]]}) for x, y in halves(X, Y)]
    pairs = [{"image": x, "label": y} for x, y in halves(X, Y)]
    for found in (
        predicted([x for (x,) in halves(X)]),
        predicted(halves(X.numpy(), Y.numpy())),
        predicted(DataLoader(TensorDataset(X, Y), batch_size=5)),
        predicted(DataLoader(Named(), batch_size=5)),
        predicted(more),
        predicted(pairs, unpack=lambda b: (b["image"], b["label"])),
    ):
        assert np.allclose(found.arrays["probs"], expected, atol=1e-6)


class Summed(nn.Module):
    """A model of an image, a table and an integer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.kinds = nn.Embedding(5, 6)
        self.image, self.table = nn.Linear(8, 6), nn.Linear(3, 6)
        self.last = nn.Linear(6, CLASSES)

    def forward(self, image, table, kind):
        assert kind.dtype == torch.int64
        assert image.shape[1:] == (2, 4)
        inner = self.image(image.flatten(1)) + self.table(table) + self.kinds(kind)
        return self.last(inner.relu())


def test_several_inputs_go_to_the_model_by_name_or_position():
    stream = torch.Generator().manual_seed(1)
    image = torch.randn(N, 2, 4, generator=stream)
    table = torch.randn(N, 3, generator=stream)
    kind = torch.arange(N) % 5
    network = Summed()
    expected = network(image, table, kind).softmax(1).detach().numpy()
    named = [
        ({"table": t, "kind": k, "image": i}, y)
        for i, t, k, y in halves(image, table, kind, Y)
    ]
    ordered = [((i, t, k), y) for i, t, k, y in halves(image, table, kind, Y)]
    samples = [((image[n], table[n], kind[n]), int(Y[n])) for n in range(N)]
    for loader in (named, ordered, DataLoader(samples, batch_size=5)):
        for method in ("plain", "laplace"):
            found = predicted(loader, network, method=method, fit=loader)
            mean = found.arrays["probs"].mean(0)
            assert np.allclose(mean, expected, atol=1e-6 if method == "plain" else 0.4)
    with pytest.raises(ValueError, match=r"tta changes images, .* several inputs"):
        predicted(ordered, network, method="tta")
    with pytest.raises(
        ValueError, match=r"one entry for each item .* \(5, 2, 4\), \(7"
    ):
        predicted([((image[:5], table[5:], kind[:5]), Y[:5])], network)


def test_a_model_that_cannot_take_its_inputs_is_answered_with_their_shape():
    said = r"fails on inputs of shape \(5, 4\) \(RuntimeError: mat1 .*\); the loader"
    with pytest.raises(ValueError, match=said):
        predicted(halves(X, Y), nn.Linear(6, CLASSES))
    several = [((x, x[:, 1:]), y) for x, y in halves(X, Y)]
    said = r"fails on inputs of shape \(5, 4\), \(5, 3\) \(TypeError"
    with pytest.raises(ValueError, match=said):
        predicted(several, model())


@pytest.mark.parametrize(
    ("method", "name"), [("laplace", "fit"), ("temperature", "val")]
)
def test_fitting_on_the_predicted_items_is_noted(method, name):
    same, other = halves(X, Y), halves(X + 1, Y)
    for loader in (same, halves(X, Y), TensorDataset(X, Y)):
        found = predicted(same, method=method, **{name: loader})
        assert any(f"{name} seems to hold the very items" in n for n in found.notes)
    assert not predicted(same, method=method, **{name: other}).notes
    assert not predicted(same, method="plain", **{name: same}).notes


def test_a_field_that_no_header_has_is_refused():
    with pytest.raises(ValueError, match=r"no field 'datset'\. Did you mean 'dataset'"):
        predicted(halves(X, Y), header={"datset": "birds"})
    found = predicted(halves(X, Y), header={"dataset": "birds", "about": {"x": 1}})
    assert found.header.dataset == "birds"


def test_a_dataset_is_enough(tmp_path):
    expected = predicted(halves(X, Y)).arrays["probs"]
    found = predicted(TensorDataset(X, Y), out=tmp_path / "p.npz")
    assert np.allclose(found.arrays["probs"], expected, atol=1e-6)
    assert predicted(Named()).arrays["item"][3] == "case 3"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "compiled", [torch.jit.script, lambda m: torch.jit.trace(m, X)]
)
def test_compiled_modules_are_used_as_a_whole(compiled):
    expected = predicted(halves(X, Y)).arrays["probs"]
    network = compiled(model())
    assert np.allclose(predicted(halves(X, Y), network).arrays["probs"], expected)
    for method in ("mc_dropout", "laplace"):
        with pytest.raises(
            ValueError, match=r"a module from torch\.jit cannot be seen"
        ):
            predicted(halves(X, Y), network, method=method, fit=halves(X, Y))


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(X, Y, strict=True))


def test_a_dataset_that_is_a_stream_is_enough():
    expected = predicted(halves(X, Y)).arrays["probs"]
    assert np.allclose(predicted(Stream()).arrays["probs"], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("loader", "sentence"),
    [
        ((X, Y), r"got inputs and targets in a tuple; pass .*TensorDataset\(x, targ"),
        (X.numpy(), "must give batches, got ndarray; pass a DataLoader"),
        (list(Stream()), r"inputs \(4,\) and a single target; these look like items: "),
        ([(X[0], 1)], "and a single target; these look like items: pass DataLoader"),
    ],
)
def test_items_in_another_form_are_answered_with_what_to_pass(loader, sentence):
    with pytest.raises(ValueError, match=sentence):
        predicted(loader)


def test_what_is_known_of_items_is_written_and_scored(tmp_path):
    out = tmp_path / "p.npz"
    header = {"dataset": "mine", "split": "test"}
    outputs = predicted(DataLoader(Named(), batch_size=5), out=out, header=header)
    assert outputs.arrays["item"][:2].tolist() == ["case 0", "case 1"]
    assert outputs.arrays["group"].tolist() == ["a", "b"] * 6
    assert outputs.arrays["shifted"].sum() == 5
    assert outputs.arrays["cluster"].tolist() == [i // 3 for i in range(N)]
    results = qualms.score(out, resamples=0)
    assert results.n == N
    assert (results.header.dataset, results.header.seed) == ("mine", 0)


@pytest.mark.parametrize("method", ["plain", "laplace", "temperature"])
def test_a_shuffled_loader_is_taken_if_its_items_have_names(method):
    """And in another order they have the same predictions."""
    fit = DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True)
    plain, other = (
        predicted(
            DataLoader(Named(), batch_size=b, shuffle=s),
            method=method,
            fit=fit,
            val=fit,
        ).arrays
        for b, s in ((5, False), (4, True))
    )
    assert other["item"].tolist() != plain["item"].tolist()
    order = np.argsort(other["item"])[np.argsort(np.argsort(plain["item"]))]
    moved = other["probs"][:, order]
    assert np.allclose(moved, plain["probs"], atol=1e-5)
    some = DataLoader(fit.dataset, sampler=SubsetRandomSampler(range(9)))
    for shuffled in (fit, some):
        with pytest.raises(ValueError, match="shuffles its items"):
            predicted(shuffled)


class Segmenter(nn.Module):
    def __init__(self, outputs=CLASSES):
        super().__init__()
        torch.manual_seed(2)
        self.body = nn.Sequential(
            nn.Conv2d(1, 4, 3, 2, 1), nn.ReLU(), nn.Dropout2d(0.5)
        )
        self.last = nn.Conv2d(4, outputs, 1)

    def forward(self, x):
        maps = self.last(self.body(x))
        return nn.functional.interpolate(maps, x.shape[2:], mode="bilinear")


IMAGES = torch.randn(N, 1, 8, 8, generator=torch.Generator().manual_seed(1))
LABELS = (IMAGES[:, 0] > 0).long() + (IMAGES[:, 0] > 1)


@pytest.mark.parametrize(
    "method", ["plain", "mc_dropout", "laplace", "tta", "temperature"]
)
def test_label_maps_are_written_one_after_another(method, tmp_path):
    labels = LABELS.clone()
    labels[:, 0] = 255
    loader = halves(IMAGES, labels)
    network = Segmenter()
    outputs = predicted(
        loader,
        network,
        task="segmentation",
        method=method,
        ignore=255,
        fit=loader,
        val=loader,
        out=tmp_path / "maps",
    )
    assert outputs.n == N
    maps = outputs.maps[7]
    assert np.array_equal(maps.raters[0], labels[7])
    if method == "plain":
        with torch.no_grad():
            expected = network.eval()(IMAGES[7:8]).softmax(1)[0].numpy()
        assert maps.mean_probs == pytest.approx(expected, abs=1e-5)
    if method in ("mc_dropout", "laplace"):
        assert (maps.draw_labels != maps.draw_labels[0]).any()


def test_images_without_label_maps_are_predicted(tmp_path):
    loader = DataLoader(TensorDataset(IMAGES), batch_size=5)
    found = predicted(
        loader,
        Segmenter(),
        task="segmentation",
        unpack=lambda batch: {
            "x": batch[0],
            "shifted": torch.arange(len(batch[0])) > 1,
        },
        out=tmp_path / "maps",
    )
    assert found.n == N
    assert found.maps[3].raters.shape == (0, 8, 8)
    results = qualms.score(found)
    assert {row.score for row in results.rows} == {"ood_auroc"}


def test_label_maps_of_several_raters_and_of_two_classes(tmp_path):
    two = torch.stack([LABELS > 0, LABELS > 1], 1)
    loader = halves(IMAGES, two)
    task = {"task": "segmentation", "out": tmp_path / "m"}
    assert predicted(loader, Segmenter(1), **task).maps[0].raters.shape == (2, 8, 8)
    with pytest.raises(ValueError, match="of 2 raters"):
        predicted(loader, Segmenter(1), method="laplace", fit=loader, **task)
    with pytest.raises(ValueError, match=r"must be classes 0\.\.1"):
        predicted(halves(IMAGES, LABELS), Segmenter(1), **task)


OUTSIDE = '''
"""A distance of features, and a method that must be trained."""

from qualms.methods import Method, headed, last_inputs, plain_loss, plain_predict


def distant() -> Method:
    """How far the features lie from the mean of the training items."""

    def after(network, batches):
        parts = [last_inputs(headed(network), batch.x).mean(0) for batch in batches()]
        network.centre = sum(parts) / len(parts)

    def predict(network, x, task):
        away = (last_inputs(headed(network), x) - network.centre).norm(dim=1)
        return {**plain_predict(network, x, task), "uncertainty/distance": away}

    return Method(after=after, predict=predict)


def hungry() -> Method:
    """A loss of its own."""

    def loss(network, batch, moment):
        return 2 * plain_loss(network, batch, moment)

    return Method(loss=loss)
'''


def test_methods_from_outside_serve_it_as_well(tmp_path, monkeypatch):
    file = tmp_path / "my_own_methods.py"
    file.write_text(OUTSIDE)
    monkeypatch.setenv("QUALMS_INCLUDE", "")
    monkeypatch.syspath_prepend(tmp_path)
    include([file])
    fit = [(X, Y)]
    outputs = predicted(halves(X, Y), method="distant", fit=fit).arrays
    with torch.no_grad():
        features = model()[:2](X)
    expected = (features - features.mean(0)).norm(dim=1).numpy()
    assert outputs["uncertainty/distance"] == pytest.approx(expected, abs=1e-5)
    with pytest.raises(
        ValueError, match=r"trained with method 'hungry'.*distant, lapl"
    ):
        predicted(halves(X, Y), method="hungry")


class Odd(nn.Module):
    """Its last layer is followed by something, and stands beside another one."""

    def __init__(self):
        super().__init__()
        self.body, self.fc = model()[:2], model()[2]
        self.aux = nn.Linear(6, CLASSES)

    def forward(self, x):
        features = self.body(x)
        logits = self.fc(features)
        self.aux(features)
        return logits.clamp(max=0.02)


def test_a_last_layer_whose_outputs_are_changed_is_not_taken_for_one():
    loader = halves(X, Y)
    outputs = predicted(loader, Odd()).arrays["probs"][0]
    with torch.no_grad():
        assert np.allclose(outputs, Odd()(X).softmax(1), atol=1e-6)
    with pytest.raises(ValueError, match="needs a network whose outputs are those"):
        predicted(loader, Odd(), method="laplace", fit=loader)
    with pytest.raises(ValueError, match="are not those of its layer 'aux'"):
        predicted(loader, Odd(), last="aux")
    with pytest.raises(LookupError, match="no linear layer 'fcc'"):
        predicted(loader, Odd(), last="fcc")


def test_an_output_that_is_changed_for_later_items_is_noticed():
    """The first items cannot show it."""
    clamped = nn.Sequential(*model(), nn.Hardtanh(-9.0, 9.0))
    far = torch.cat([X, 1e3 * X])
    loader = [(x, Y) for x in far.split(N)]
    with pytest.raises(ValueError, match="last=False"):
        predicted(loader, clamped)
    assert predicted(loader, clamped, last=False).n == 2 * N


BATCHES = [(X, Y)]
REFUSED = {
    "is fitted to training items; say fit=": {"method": "laplace"},
    "is fitted to held-out items": {"method": "temperature"},
    "these can: laplace, map, mc_dropout, ood, temperature, tta": {"method": "mfvi"},
    "no option 'drws' for method 'tta'": {"method": "tta", "options": {"drws": 3}},
    "Did you mean 'temperature'": {"method": "temprature"},
    "task must be one of": {"task": "classify"},
    "outputs of classification must be": {"outputs": "logit"},
    "say out=FOLDER": {"task": "segmentation"},
    "must end in": {"out": "p.xyz"},
    "there is no folder": {"out": "nowhere/p.npz"},
    "table holds one": {"method": "laplace", "fit": BATCHES, "out": "p.csv"},
    "fit must have targets": {"method": "laplace", "fit": [X]},
    "flips='horizontal' is for": {"method": "tta", "options": {"flips": "horizontal"}},
    "ignore is for segmentation": {"ignore": 3},
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_cannot_be_done_is_said(said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, LookupError), match=said):
        predicted(BATCHES, **REFUSED[said])


LOADERS = {
    "can be gone through only once": iter(BATCHES),
    "gives no batch": [],
    "must give batches": X,
    "got 4 parts": [(X, Y, Y, Y)],
    "has 'image'; its keys": [{"image": X}],
    "12 inputs and 3 of 'target'": [(X, Y[:3])],
    "must have the same parts": [(X, Y), X],
    "must be classes 0..2": [(X, Y + 1)],
    "must be the numbers of classes": [(X, Y + 0.5)],
    "if it is one-hot, take its argmax": [(X, torch.ones(N, CLASSES))],
    "must be finite": [(X * float("nan"), Y)],
    "leaves out the last 2": DataLoader(TensorDataset(X, Y), 5, drop_last=True),
}


@pytest.mark.parametrize("said", LOADERS)
def test_a_loader_that_cannot_be_read_is_refused(said):
    with pytest.raises(ValueError, match=said):
        predicted(LOADERS[said])
    with pytest.raises(ValueError, match="must be a torch module, got function"):
        predicted(BATCHES, lambda x: x)


class Weightless(nn.Module):
    """What wraps a model of another framework."""

    def forward(self, x):
        return x.flatten(1)[:, :CLASSES] * 3


@pytest.mark.parametrize("outputs", [CLASSES, 1])
def test_models_without_a_linear_end_or_without_weights_are_predicted(outputs):
    pooled = nn.Sequential(
        nn.Conv2d(1, outputs, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    for network in (pooled, Weightless()):
        loader = halves(IMAGES, Y.clamp(max=max(1, outputs - 1)))
        # Stated, as random weights may put all outputs between 0 and 1.
        given = {"val": loader, "outputs": "logits"}
        with torch.no_grad():
            scores = network(IMAGES)
        if scores.shape[1] == 1:
            scores = torch.cat([torch.zeros_like(scores), scores], 1)
        found = predicted(loader, network, outputs="logits").arrays["probs"][0]
        assert np.allclose(found, scores.softmax(1), atol=1e-6)
        told = predicted(loader, network, method="temperature", **given)
        assert told.n == N


def test_half_precision_is_predicted_as_well_as_it_can_be():
    full = predicted(BATCHES).arrays["probs"]
    for method in ("plain", "laplace", "temperature", "tta"):
        given = {"method": method, "fit": BATCHES, "val": BATCHES}
        half = predicted(BATCHES, model().bfloat16(), **given).arrays["probs"]
        if method == "plain":
            assert np.allclose(half, full, atol=0.02)
