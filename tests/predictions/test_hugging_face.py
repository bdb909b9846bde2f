"""Datasets of Hugging Face in Python, by what they can do and not by their class."""

import numpy as np
import pytest

import qualms
from qualms.predictions import PredictionsError, build, read


class ClassLabel:
    def __init__(self, names):
        self.names = names


class Dataset:
    """What qualms uses of a `datasets.Dataset`; pictures must not be decoded."""

    def __init__(self, columns, features=None, form=None):
        self._columns, self._form = columns, form
        self.features = features or dict.fromkeys(columns)

    @property
    def column_names(self):
        return list(self._columns)

    def select_columns(self, column_names):
        chosen = {name: self._columns[name] for name in column_names}
        return Dataset(chosen, self.features, self._form)

    def with_format(self, type):  # noqa: A002 - its own name
        return Dataset(self._columns, self.features, type)

    def __getitem__(self, key):
        assert self._form == "numpy"
        assert "image" not in self._columns
        assert key == slice(None)
        return {name: np.array(values) for name, values in self._columns.items()}


def made(n=40, **renamed):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, n)
    logits = 2 * np.eye(3)[label] + rng.normal(0, 1, (n, 3))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    columns = {
        renamed.get("label", "label"): label.tolist(),
        renamed.get("probs", "probs"): probs.astype(np.float32).tolist(),
        "item": [f"picture {row}" for row in range(n)],
        "image": [object()] * n,
    }
    names = {renamed.get("label", "label"): ClassLabel(["cat", "dog", "owl"])}
    return Dataset(columns, dict.fromkeys(columns) | names)


@pytest.mark.parametrize(
    "names", [{}, {"label": "labels", "probs": "probabilities"}, {"label": "target"}]
)
def test_a_dataset_is_scored_with_the_names_of_its_feature(names):
    found = build(made(**names))
    assert found.header.classes == ("cat", "dog", "owl")
    assert (found.n, found.classes) == (40, 3)
    assert found.arrays["item"][39] == "picture 39"
    assert np.mean(found.arrays["probs"][0].argmax(1) == found.arrays["target"]) > 0.6
    assert any("'image' is not part of" in note for note in found.notes)
    assert qualms.score(made(**names), resamples=0).task == "classification"


def test_a_header_of_the_user_comes_first():
    found = build(made(), header={"dataset": "pets", "classes": ["a", "b", "c"]})
    assert (found.header.dataset, found.header.classes) == ("pets", ("a", "b", "c"))


def test_several_splits_are_refused():
    with pytest.raises(
        PredictionsError, match=r"pass one of them, such as dataset\['t"
    ):
        build({"test": made(), "val": made()})


def test_a_folder_of_a_dataset_says_how_to_take_it(tmp_path):
    for name in ("state.json", "dataset_info.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(
        PredictionsError, match=r"qualms.score\(datasets.load_from_disk"
    ):
        read(tmp_path)
