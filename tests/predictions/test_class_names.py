"""Names of classes in the header."""

import numpy as np
import pytest

from qualms.predictions import PredictionsError, build, pool, read, write

PROBS = np.array([[0.2, 0.8], [0.7, 0.3]])
NAMED = {"classes": ["cat", "dog"]}


def test_targets_may_be_names_of_the_header():
    found = build({"target": ["dog", "cat"], "probs": PROBS}, header=NAMED)
    assert found.arrays["target"].tolist() == [1, 0]
    assert found.header.classes == ("cat", "dog")


@pytest.mark.parametrize("ending", [".npz", ".safetensors", ".csv", ".parquet"])
def test_names_are_written_and_read(tmp_path, ending):
    arrays = {"target": ["dog", "cat"], "probs": PROBS}
    found = read(write(tmp_path / f"a{ending}", arrays, header=NAMED))
    assert found.header.classes == ("cat", "dog")
    assert found.arrays["target"].tolist() == [1, 0]


def test_names_that_do_not_fit_are_refused():
    arrays = {"target": ["dog", "owl"], "probs": PROBS}
    with pytest.raises(
        PredictionsError, match=r"names in the header's 'classes' .*owl"
    ):
        build(arrays, header=NAMED)
    with pytest.raises(PredictionsError, match="or state their names in the order"):
        build(arrays)
    with pytest.raises(
        PredictionsError, match=r"'classes' names 3 .* there are 2 classes"
    ):
        build({"probs": PROBS}, header={"classes": ["a", "b", "c"]})
    with pytest.raises(
        PredictionsError, match="must be a list of different names, one"
    ):
        build({"probs": PROBS}, header={"classes": ["a", "a"]})


def test_a_pool_keeps_the_names_that_one_of_its_files_states():
    named = build({"target": [1, 0], "probs": PROBS}, header=NAMED)
    bare = build({"target": [1, 0], "probs": PROBS[::-1]})
    assert pool([named, bare]).header.classes == ("cat", "dog")
