"""Methods for embeddings in the loop: two views, cached features, other classes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from qualms import predictions
from qualms.spec import Part, Task
from qualms.training import TrainingError, _run, run_alone
from training import made

SMALL = Part(name="resnet_small", options={"width": 4, "blocks": [1]})


def embedding_dataset(classes=2):
    dataset = made.dataset(kind="classification")
    return replace(dataset, task=Task(name="embedding", classes=classes))


def spec_of(name, *, start=None, options=None, **training):
    part = Part(name=name, options=options or {})
    chosen = {"epochs": 2, "normalise": "none", **training}
    return replace(made.spec(start=start, **chosen), method=part, network=SMALL)


def predicted(folder, split="test"):
    return predictions.read(folder / f"predictions/{split}.safetensors").arrays


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("infonce", "uncertainty/inverse_norm"), ("mcinfonce", "uncertainty/head")],
)
def test_two_views_are_trained_and_one_is_validated(tmp_path, name, wanted):
    options = {} if name == "infonce" else {"width": 8}
    changes = ("crop", "hue_jitter", "grey", "blur", "hflip")
    spec = spec_of(name, options=options, augment=changes, validate=1)
    run_alone(spec, embedding_dataset(), tmp_path)
    outputs = predicted(tmp_path)
    assert outputs["embedding"].shape == (30, 4)
    assert np.unique(outputs[wanted]).size > 15
    assert "predicted" not in outputs


def test_views_of_single_items_are_refused(tmp_path):
    with pytest.raises(TrainingError, match="'infonce' compares the items of a batch"):
        run_alone(spec_of("infonce", batch=1), embedding_dataset(), tmp_path)


def test_a_ranking_head_is_trained_on_cached_features(tmp_path):
    options = {"goal": "ranking", "width": 8, "initial_uncertainty": 0.1}
    spec = spec_of("losspred", options=options, features="cached", validate=1)
    run_alone(spec, embedding_dataset(), tmp_path)
    outputs = predicted(tmp_path)
    assert np.unique(outputs["uncertainty/head"]).size > 15
    contents = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["network"]
    assert contents["head.beside.begun"]
    assert contents["head.beside.scale"] != 1


def test_crops_are_predicted_from_their_features(tmp_path, monkeypatch):
    options = {"goal": "ranking", "width": 8, "initial_uncertainty": 0.1}
    cached = {"features": "cached", "crop_pass": True}
    spec = spec_of("losspred", options=options, **cached)
    run_alone(spec, embedding_dataset(), tmp_path / "features")
    monkeypatch.setattr(
        _run.Run,
        "predictor_of",
        lambda run, split: (run.predictor, run.resources.splits[split]),
    )
    run_alone(spec, embedding_dataset(), tmp_path / "images")
    found = predicted(tmp_path / "features")
    assert np.unique(found["uncertainty_cropped/head"]).size > 15
    for name, values in predicted(tmp_path / "images").items():
        assert np.array_equal(found[name], values), name


def test_a_gaussian_process_is_fitted_on_cached_features(tmp_path):
    spec = spec_of("sngp", options={"features": 12}, features="cached", validate=1)
    run_alone(spec, embedding_dataset(), tmp_path)
    contents = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["network"]
    assert contents["fitted.factor"].shape == (12, 12)
    assert np.unique(predicted(tmp_path)["uncertainty/variance"]).size > 15


@pytest.mark.parametrize(
    ("name", "options", "kept"),
    [
        ("elk", {"width": 8}, "head.beside.layers.0.weight"),
        ("sngp", {"features": 12}, "head.last.weight"),
        ("hetxl", {}, "head.last.covariance.weight"),
    ],
)
def test_a_few_shot_run_goes_on_with_all_but_the_classes(tmp_path, name, options, kept):
    first = spec_of(name, options=options)
    run_alone(first, embedding_dataset(), tmp_path / first.hash)
    again = spec_of(name, options=options, start=first.hash, lr=0.0, epochs=1)
    run_alone(again, embedding_dataset(classes=5), tmp_path / "again")
    one, other = (
        torch.load(tmp_path / folder / "checkpoint.pt", weights_only=True)["network"]
        for folder in (first.hash, "again")
    )
    assert torch.equal(one[kept], other[kept])
    assert torch.equal(one["backbone.stem.0.weight"], other["backbone.stem.0.weight"])


def test_the_known_ambiguity_of_items_is_kept(tmp_path):
    dataset = embedding_dataset()
    test = dataset.splits["test"]
    known = np.linspace(0, 1, len(test), dtype=np.float32)
    splits = {**dataset.splits, "test": replace(test, extra={"ambiguity": known})}
    run_alone(spec_of("infonce"), replace(dataset, splits=splits), tmp_path)
    np.testing.assert_allclose(predicted(tmp_path)["extra/ambiguity"], known)
