"""Runs that predict splits of further datasets."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from qualms import predictions
from qualms.spec import Part, Task
from qualms.training import TrainingError, run_alone
from training import made


def embeds(network, x, task):
    features = torch.relu(network.norm(network.conv(x))).mean((2, 3))
    return {"embedding": features, "uncertainty/norm": features.norm(dim=1)}


EMBEDDING = {
    "predict": embeds,
    "select": {},
    "needs": ("vectors",),
}


def embedding(name, classes, *, channels=3, count=30):
    dataset = made.dataset(test=count, channels=channels)

    def with_classes(split):
        return replace(split, target=(np.arange(len(split)) % classes).astype(np.int64))

    return replace(
        dataset,
        name=name,
        task=Task(name="embedding", classes=classes),
        splits={n: with_classes(part) for n, part in dataset.splits.items()},
        fingerprint=name * 4,
    )


def spec(method="embeds", splits=("test", "birds:test"), **options):
    return replace(
        made.spec(method=method, splits=(), epochs=1),
        dataset=Part(name="imagenet"),
        datasets={"birds": Part(name="cub")},
        splits=splits,
        **options,
    )


@pytest.fixture
def shelved(shelf):
    shelf(embeds=EMBEDDING)


def test_splits_of_two_datasets_are_predicted_by_one_run(shelved, tmp_path):
    data = {"": embedding("imagenet", 5), "birds": embedding("cub", 9, count=18)}
    run_alone(spec(), data, tmp_path)
    own, birds = (
        predictions.read(next((tmp_path / "predictions").glob(pattern)))
        for pattern in ("test.safetensors", "birds*test.safetensors")
    )
    assert (own.header.dataset, own.header.split) == ("imagenet", "test")
    assert (birds.header.dataset, birds.header.split) == ("cub", "test")
    assert birds.header.fingerprint == "cubcubcubcub"
    assert own.arrays["embedding"].shape == (30, 8)
    assert birds.arrays["embedding"].shape == (18, 8)
    assert birds.arrays["target"].max() == 8
    assert list(birds.arrays["item"]) == list(data["birds"].splits["test"].item)


def test_images_are_brought_to_what_the_network_sees(shelved, tmp_path):
    """Grey floats of 0..1 are predicted as the same image in colour and 8 bits."""
    first = embedding("imagenet", 5)
    grey = embedding("cub", 9, channels=1)
    image = grey.splits["test"].image
    floats = replace(grey.splits["test"], image=(image / 255).astype(np.float32))
    colour = replace(grey.splits["test"], image=np.repeat(image, 3, axis=-1))
    birds = replace(grey, splits={"grey": floats, "colour": colour})
    asked = spec(splits=("birds:grey", "birds:colour"))
    run_alone(asked, {"": first, "birds": birds}, tmp_path)
    grey, colour = (
        predictions.read(next((tmp_path / "predictions").glob(f"*{name}.safetensors")))
        for name in ("grey", "colour")
    )
    np.testing.assert_allclose(
        grey.arrays["embedding"], colour.arrays["embedding"], rtol=1e-4, atol=1e-5
    )


def classified(name, classes):
    dataset = made.dataset(kind="classification")
    task = Task(name="classification", classes=classes)
    return replace(dataset, name=name, task=task)


def test_what_the_network_cannot_predict_is_refused_before_training(shelf, tmp_path):
    shelf(binary={"select": {}}, embeds=EMBEDDING)
    binary = spec("binary", ("birds:test",))
    cases = (
        (binary, classified("a", 2), classified("b", 3), "2 classes .* has 3; leave"),
        (binary, made.dataset(), classified("b", 2), "tells None classes apart"),
        (spec(), embedding("a", 5), made.dataset(channels=3), "is for regression"),
        (spec(), embedding("a", 5), embedding("b", 9, channels=2), "have 2 and 2"),
    )
    for number, (asked, first, other, said) in enumerate(cases):
        with pytest.raises(TrainingError, match=said):
            run_alone(asked, {"": first, "birds": other}, tmp_path / str(number))
        assert not (tmp_path / str(number) / "checkpoint.pt").exists()


def test_a_dataset_or_split_that_is_not_there_is_refused(shelved, tmp_path):
    with pytest.raises(TrainingError, match="predicts 'birds:test', and there is no"):
        run_alone(spec(), embedding("imagenet", 5), tmp_path)
    data = {"": embedding("imagenet", 5), "birds": embedding("cub", 9)}
    with pytest.raises(
        LookupError, match=r"no split 'tset' in cub\. Did you mean 'test'"
    ):
        run_alone(spec(splits=("birds:tset",)), data, tmp_path / "b")
