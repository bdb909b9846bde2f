"""Heads that are trained on the cached features of a frozen backbone."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from qualms import predictions
from qualms.methods import Method
from qualms.spec import ItemRule
from qualms.training import (
    TrainingError,
    _learner,
    _run,
    entry,
    run_alone,
    run_together,
)
from qualms.training.seeds import seed, shuffled
from training import made


def changed(backbone, task):
    backbone.drop = nn.Identity()
    return made.headed(backbone, task)


def beside(backbone, task):
    network = made.headed(backbone, task)
    network.head.beside = nn.Linear(8, 1)
    return network


@pytest.fixture
def bodies(monkeypatch):
    shelf = {
        "plain": Method(build=made.headed),
        "changed": Method(build=changed),
        "views": Method(build=made.headed, views=2),
        "beside": Method(build=beside),
    }
    monkeypatch.setattr(_learner, "find", lambda _, name: lambda: shelf[name])
    monkeypatch.setattr(
        _learner, "make_network", lambda _, channels: made.Body(channels)
    )


def weights(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["network"]


def frozen_by_hand(spec, dataset, batch=8, lr=1e-2):
    """Train the head on a backbone in evaluation mode, image by image."""
    seed(spec.seed, "build")
    network = made.headed(made.Body(3), dataset.task)
    optimiser = torch.optim.Adam(network.head.parameters(), lr)
    split = dataset.splits["train"]
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x = (torch.tensor(split.image).float() / 255 - mean) / std
    x, target = x.permute(0, 3, 1, 2).contiguous(), torch.tensor(split.target)
    network.backbone.eval()
    for epoch in range(spec.training["epochs"]):
        for rows in shuffled(torch.arange(len(x)), spec.seed, epoch).split(batch):
            optimiser.zero_grad()
            with torch.no_grad():
                features = network.backbone(x[rows])
            error = network.head(features)[:, 0] - target[rows]
            error.square().mean().backward()
            optimiser.step()
    return network


def test_it_is_training_the_head_with_the_backbone_frozen(bodies, tmp_path):
    spec, dataset = made.spec(features="cached"), made.dataset()
    run_alone(spec, dataset, tmp_path / "run")
    network = frozen_by_hand(spec, dataset)
    found, expected = weights(tmp_path / "run"), network.state_dict()
    assert found.keys() == expected.keys()
    for name, part in expected.items():
        torch.testing.assert_close(found[name], part, rtol=1e-4, atol=1e-5)
    read = predictions.read(tmp_path / "run" / "predictions/test.safetensors")
    assert np.isfinite(read.arrays["mean"]).all()
    assert not (tmp_path / ".features").exists()


def fixed(channels):
    """A backbone with the same weights for all seeds, as pretrained ones are."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return made.Body(channels)


def see_images(monkeypatch):
    """Predict by complete networks, which see images and not features."""
    monkeypatch.setattr(
        _run.Run,
        "predictor_of",
        lambda run, split: (run.predictor, run.resources.splits[split]),
    )


def test_heads_and_seeds_share_features_and_predict_as_the_whole_network(
    bodies, tmp_path, monkeypatch
):
    dataset, seen = made.dataset(), []
    specs = [replace(made.spec(features="cached"), seed=seed) for seed in (0, 1)]
    specs.append(replace(made.spec(features="cached", lr=0.1), seed=0))
    monkeypatch.setattr(_learner, "make_network", lambda _, channels: fixed(channels))
    forward = made.Body.forward
    monkeypatch.setattr(
        made.Body, "forward", lambda self, x: seen.append(len(x)) or forward(self, x)
    )
    for spec in specs:
        folders = [tmp_path / "shared" / spec.hash]
        run_together([spec], dataset, folders, device="cpu")
    items = sum(len(dataset.splits[name]) for name in ("train", *specs[0].splits))
    assert sum(seen) == items
    see_images(monkeypatch)
    for spec in specs:
        run_alone(spec, dataset, tmp_path / "whole" / spec.hash)
        for path in (tmp_path / "shared" / spec.hash / "predictions").iterdir():
            other = tmp_path / "whole" / spec.hash / "predictions" / path.name
            assert path.read_bytes() == other.read_bytes()


def test_validation_items_are_seen_through_their_features(bodies, tmp_path):
    dataset = made.dataset()
    for name, options in (
        ("log", {"validate": 1}),
        ("best", {"select_by": "val_loss"}),
    ):
        run_alone(made.spec(features="cached", **options), dataset, tmp_path / name)
    logs = [(tmp_path / name / "log.jsonl").read_text() for name in ("log", "best")]
    losses = [[json.loads(line)["val"] for line in log.splitlines()] for log in logs]
    assert losses[0] == losses[1]
    network = frozen_by_hand(made.spec(), dataset)
    split = dataset.splits["val"]
    x = (torch.tensor(split.image).float() / 255).permute(0, 3, 1, 2)
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    with torch.no_grad():
        outputs = network.eval()((x - mean) / std)[:, 0]
    expected = (outputs - torch.tensor(split.target)).square().mean()
    assert losses[0][-1] == pytest.approx(float(expected), rel=1e-4)


def test_a_killed_run_goes_on_to_the_same_bits(bodies, tmp_path, monkeypatch):
    dataset, spec = made.dataset(), made.spec(features="cached", epochs=4)
    run_alone(spec, dataset, tmp_path / "whole")

    class Stop(made.CallbackLog):
        def epoch(self, _, epoch, *__):
            if epoch == 2:
                raise KeyboardInterrupt

    monkeypatch.setattr(entry, "forget_features", lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        run_alone(spec, dataset, tmp_path / "killed", callbacks=Stop())
    (file,) = (tmp_path / ".features").glob("train-*.npy")
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1  # damage is seen, and the features are computed again
    file.write_bytes(raw)
    run_alone(spec, dataset, tmp_path / "killed")
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_chosen_items_and_the_weights_of_another_run_serve_too(bodies, tmp_path):
    dataset = made.dataset()
    first = made.spec(epochs=1)
    run_alone(first, dataset, tmp_path / first.hash)
    rule = ItemRule(name="random_items", options={"count": 20})
    second = replace(made.spec(features="cached", start=first.hash), items=rule)
    run_alone(second, dataset, tmp_path / "second")
    one, other = weights(tmp_path / first.hash), weights(tmp_path / "second")
    same = {name for name in one if torch.equal(one[name], other[name])}
    assert same == {name for name in one if name.startswith("backbone.")}


def test_a_start_from_other_classes_keeps_what_fits(bodies, tmp_path):
    first = made.spec(method="beside", epochs=1)
    run_alone(first, made.dataset(), tmp_path / first.hash)
    again = {"start": first.hash, "lr": 0.0, "epochs": 1}
    callbacks, second = made.CallbackLog(), made.spec(method="beside", **again)
    dataset = made.dataset(kind="classification")
    run_alone(second, dataset, tmp_path / "second", callbacks=callbacks)
    one, other = weights(tmp_path / first.hash), weights(tmp_path / "second")
    for name in ("backbone.conv.weight", "head.beside.weight", "head.beside.bias"):
        assert torch.equal(one[name], other[name])
    assert other["head.last.weight"].shape == (2, 8)
    assert callbacks.messages == [
        f"the head of run {first.hash} is for another task; these parts begin anew:"
        " head.last.bias, head.last.weight"
    ]


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("changed", {}, "this method changes the backbone; train it with features='le"),
        ("views", {}, "this method sees 2 views of each item; leave that out"),
        ("plain", {"augment": ("hflip",)}, "changes images; leave that out, or train"),
        ("plain", {"compile": True}, "compile=true compiles the backbone"),
    ],
)
def test_what_cached_features_cannot_serve_is_refused(
    bodies, tmp_path, method, options, said
):
    spec = made.spec(method=method, features="cached", **options)
    with pytest.raises(TrainingError, match=said):
        run_alone(spec, made.dataset(), tmp_path)
