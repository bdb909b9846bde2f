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


EMBEDDED = np.array([[3.0, 4.0], [0.0, 2.0], [1.0, 0.0]])
WORDS = np.array(["owl", "cat", "owl"])


@pytest.mark.parametrize("ending", [".npz", ".safetensors", ".csv", ".parquet"])
def test_embeddings_may_name_their_classes_without_a_header(tmp_path, ending):
    arrays = {"embedding": EMBEDDED, "target": WORDS}
    written = read(write(tmp_path / f"a{ending}", arrays))
    for found in (build(arrays), written):
        assert found.header.classes == ("cat", "owl")
        assert found.arrays["target"].tolist() == [1, 0, 1]
    assert written.arrays["target"].dtype == np.int64


def test_a_table_of_embeddings_may_hold_names(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("target,embedding_0,embedding_1\nowl,3,4\n7 cats,0,2\nowl,1,0\n")
    found = read(table)
    assert found.header.classes == ("7 cats", "owl")
    assert found.arrays["target"].tolist() == [1, 0, 1]
    table.write_text("target,embedding_0\n3,3\n4.0,0\n-1,1\n")
    assert read(table).arrays["target"].tolist() == [3, 4, -1]
    table.write_text("target,embedding_0\n3,3\n4,0\n1O,1\n")
    with pytest.raises(PredictionsError, match="row 2 must be a number as most of"):
        read(table)


def test_names_of_embeddings_are_of_all_their_arrays_and_never_empty():
    arrays = {"embedding": EMBEDDED, "target": WORDS}
    found = build({**arrays, "predicted": ["dog", "cat", "owl"]})
    assert found.header.classes == ("cat", "dog", "owl")
    assert found.arrays["predicted"].tolist() == [1, 0, 2]
    with pytest.raises(PredictionsError, match="must both hold names of classes, or"):
        build({**arrays, "predicted": [1, 0, 2]})
    gap = np.array(["owl", "", "owl"])
    with pytest.raises(PredictionsError, match="row 1 is empty; name it, or mark"):
        build({**arrays, "target": gap})
    found = build({**arrays, "target": gap, "known": [True, False, True]})
    assert found.arrays["target"].tolist()[1] == -1


def test_embeddings_without_an_uncertainty_have_one_over_their_length():
    found = build({"embedding": EMBEDDED})
    assert found.arrays["uncertainty/inverse_norm"].tolist() == [0.2, 0.5, 1.0]
    assert found.notes[-1].startswith("the file has no 'uncertainty/<name>', so that")
    own = build({"embedding": EMBEDDED, "uncertainty/own": [1, 2, 3]})
    assert list(own.named("uncertainty")) == ["own"]
    rows = EMBEDDED / np.linalg.norm(EMBEDDED, axis=1)[:, None]
    same = build({"embedding": rows.astype(np.float16)})
    assert np.ptp(same.arrays["uncertainty/inverse_norm"]) == 0.0
    assert "all embeddings have the same length" in same.notes[-1]
    nothing = build({"embedding": [[0.0, 0.0], [1.0, 0.0]]})
    assert np.isfinite(nothing.arrays["uncertainty/inverse_norm"]).all()
