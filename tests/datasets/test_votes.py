"""Datasets of DCIC: votes, folds, targets, and images that nobody voted on."""

import json

import numpy as np
import pytest
from scipy.stats import entropy

from datasets.fake_retrieval import annotators, photograph, write_votes
from qualms.datasets import DatasetError, cache_folder, prepare
from qualms.datasets._albums import albums_of
from qualms.datasets._retrieval.votes import read_votes
from qualms.datasets.cifar10h import cifar10h
from qualms.scores.human import vote_entropy
from qualms.shelf import find

SETS = {
    "cifar10h": ("CIFAR10H", 10_000),
    "benthic": ("Benthic", 4_867),
    "pig": ("Pig", 10_237),
    "turkey": ("Turkey", 8_040),
    "treeversity": ("Treeversity#1", 9_489),
}


@pytest.fixture(scope="module")
def known(golden):
    return golden("url")["I_dataset_splits"]


@pytest.fixture
def root(tmp_path):
    write_votes(tmp_path / "raw", annotators())
    return tmp_path / "raw"


def made(root, place):
    recipe = cifar10h(root, side=16)
    folder = cache_folder(place, recipe)
    return prepare(recipe, folder, workers=1, check_counts=False)


def test_votes_and_classes_are_the_golden_ones(root, known):
    votes = read_votes(root / "CIFAR10H" / "annotations.json")
    fake = known["soft_fake"]
    assert {name: k for k, name in enumerate(votes.classes)} == fake["class_to_idx"]
    results = zip(votes.item.tolist(), votes.counts.tolist(), strict=True)
    assert {f"CIFAR10H/{item}": counts for item, counts in results} == fake["votes"]


def test_folds_targets_and_entropies(root, tmp_path, known):
    splits = made(root, tmp_path).dataset.splits
    names = {"train": "soft_train", "val": "soft_validation", "test": "soft_test"}
    for name, split in splits.items():
        assert [f"CIFAR10H/{item}" for item in split.item] == known[names[name]]
        votes = split.extra["votes"]
        expected = [known["soft_fake"]["votes"][f"CIFAR10H/{i}"] for i in split.item]
        np.testing.assert_array_equal(votes, expected)
        # The first class of those with most votes.
        assert split.target.tolist() == [row.index(max(row)) for row in expected]
        np.testing.assert_allclose(vote_entropy(votes), entropy(votes, axis=1))


def test_images_without_votes_are_left_out_and_named(root, tmp_path):
    message = annotators()
    for annotator in message:
        annotator["annotations"][6]["class_label"] = None
    (root / "CIFAR10H" / "annotations.json").write_text(json.dumps(message))
    result = made(root, tmp_path)
    assert dict(result.skipped) == {
        "fold2/im6.png": "no annotator chose a class for it"
    }
    assert result.dataset.splits["test"].item.tolist() == ["fold2/im1.png"]
    # It counts among the publisher's images.
    (album,) = albums_of(cifar10h(root)).values()
    assert len(album.units) == 10


def test_corrupt_images_are_named(root, tmp_path):
    spoilt = root / "CIFAR10H" / "fold1" / "im5.png"
    spoilt.write_bytes(spoilt.read_bytes()[:100])
    result = made(root, tmp_path)
    assert set(dict(result.skipped)) == {"fold1/im5.png"}
    assert result.counts == {"train": 6, "val": 1, "test": 2}
    assert result.dataset.splits["val"].extra["votes"].tolist() == [[1, 0, 3]]


@pytest.mark.parametrize("name", SETS)
def test_every_set_reads_its_own_folder_and_knows_its_size(name, tmp_path):
    folder, images = SETS[name]
    path = f"{folder}/fold2/a.png"
    photograph(tmp_path / path)
    vote = {"image_path": path, "class_label": "x"}
    text = json.dumps([{"annotations": [vote]}])
    (tmp_path / folder / "annotations.json").write_text(text)
    for root in (tmp_path, tmp_path / folder):
        recipe = find("datasets", name)(root, side=8)
        assert recipe.name == name
        assert recipe.shown["test"].labels.item.tolist() == ["fold2/a.png"]
        (album,) = albums_of(recipe).values()
        assert album.counts == {"pictures": images}
        assert len(album.load(album.units[0]).image) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{", "cannot read .*annotations.json"),
        ("[]", "expected votes in .*, got none"),
        ('[{"notes": []}]', r"each with a list 'annotations' of .*KeyError"),
        ('[{"annotations": [{"image_path": 3, "class_label": "a"}]}]', "TypeError"),
        (
            '[{"annotations": [{"image_path": "a.png", "class_label": "b"}]}]',
            "images must lie in folders fold1 to fold5, got 'a.png'",
        ),
    ],
)
def test_what_is_wrong_with_the_annotations_is_said(root, text, message):
    (root / "CIFAR10H" / "annotations.json").write_text(text)
    with pytest.raises(DatasetError, match=message):
        cifar10h(root)
