"""Items of no known class, files without targets, and arrays kept but not scored."""

import numpy as np
import pytest

from predictions import made
from qualms.predictions import (
    PredictionsError,
    SegmentationWriter,
    build,
    pool,
    read,
    write,
)

N = made.N
FILES = (".safetensors", ".npz", ".csv", ".parquet")
SOME = np.arange(N) % 4 != 0
MAKERS = {
    "classification": lambda: made.classification(1),
    "embedding": made.embedding,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_target_of_minus_one_and_known_say_the_same(make):
    arrays = make()
    marked = build(arrays | {"target": np.where(SOME, arrays["target"], -1)})
    flagged = build(arrays | {"known": SOME})
    both = build(
        arrays | {"target": np.where(SOME, arrays["target"], -1), "known": SOME}
    )
    for found in (marked, flagged, both):
        assert found.arrays["known"].tolist() == SOME.tolist()
        assert found.arrays["target"].tolist() == marked.arrays["target"].tolist()
        assert list(found.arrays) == list(marked.arrays)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64, np.float32, bool])
def test_the_class_of_an_unknown_item_may_be_anything(dtype):
    target = np.array([0, 1, 99]).astype(dtype)
    predictions = build({"target": target, "prob": [0.1, 0.2, 0.3], "known": [1, 1, 0]})
    assert predictions.arrays["target"].tolist() == [0, 1, -1]


def test_without_unknown_items_nothing_is_added():
    assert build(made.classification()).get("known") is None
    predictions = build(made.classification() | {"known": np.ones(N, bool)})
    assert predictions.arrays["known"].all()


def test_in_regression_known_is_kept_and_the_target_stays():
    arrays = made.regression() | {"known": SOME, "target": np.full(N, -1.0)}
    predictions = build(arrays)
    assert (predictions.arrays["target"] == -1).all()
    assert predictions.arrays["known"].tolist() == SOME.tolist()


@pytest.mark.parametrize("ending", FILES)
def test_unknown_items_come_back(tmp_path, ending):
    given = build(made.classification(1) | {"known": SOME})
    predictions = read(write(tmp_path / f"p{ending}", given))
    assert predictions.arrays["known"].tolist() == SOME.tolist()
    assert predictions.arrays["target"].tolist() == given.arrays["target"].tolist()
    assert predictions.notes == ()


def test_segmented_items_may_be_unknown(tmp_path):
    arrays = made.segmentation() | {"known": [True, False, True]}
    folder = write(tmp_path / "p", arrays, header={"ignore": 255})
    assert read(folder).arrays["known"].tolist() == [True, False, True]
    with SegmentationWriter(tmp_path / "q", header={"ignore": 255}) as writer:
        writer.add("a", made.maps(), known=False)
    assert read(tmp_path / "q").arrays["known"].tolist() == [False]


def test_runs_that_disagree_on_what_is_known_are_not_pooled():
    a, other = (build(made.classification() | {"known": SOME}) for _ in range(2))
    assert pool([a, other]).arrays["known"].tolist() == SOME.tolist()
    arrays = made.regression()
    b, c = (build(arrays | {"known": flags}) for flags in (SOME, ~SOME))
    with pytest.raises(PredictionsError, match="'known' differs, row 0 is False in"):
        pool([b, c])


NO_TARGET = (
    "there is no 'target': these predictions can be checked, pooled and referred, but "
    "not scored"
)


@pytest.mark.parametrize("ending", FILES)
@pytest.mark.parametrize(
    "make", [*MAKERS.values(), lambda: made.regression(1)], ids=[*MAKERS, "regression"]
)
def test_a_file_without_targets_is_valid(tmp_path, make, ending):
    arrays = {name: array for name, array in make().items() if name != "target"}
    predictions = read(write(tmp_path / f"p{ending}", arrays))
    assert predictions.n == N
    assert predictions.notes == (NO_TARGET,)
    with pytest.raises(PredictionsError, match=r"has no 'target'.* but not scored"):
        predictions.require_target()


def test_files_without_targets_are_pooled_and_may_take_them_from_another():
    whole = made.classification()
    bare = {name: array for name, array in whole.items() if name != "target"}
    pooled_predictions = pool([build(bare), build(bare)])
    assert pooled_predictions.draws == 2 * made.DRAWS
    assert pooled_predictions.notes[0] == NO_TARGET
    mixed = pool([build(bare), build(whole)])
    assert mixed.arrays["target"].tolist() == whole["target"].tolist()
    assert NO_TARGET not in mixed.notes


class TestWhatWouldBeLost:
    def test_an_unknown_array_is_not_written(self, tmp_path):
        arrays = made.regression() | {"latitude": np.zeros(N)}
        with pytest.raises(PredictionsError, match="and would be lost") as refused:
            write(tmp_path / "p.npz", arrays)
        assert "or write it as 'extra/latitude' to keep it" in str(refused.value)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("name", "closest"),
        [("variance", "var"), ("means", "mean"), ("clusters", "cluster")],
    )
    def test_the_closest_name_is_given(self, tmp_path, name, closest):
        arrays = made.regression()
        arrays = {k: v for k, v in arrays.items() if k not in ("var", "cluster")}
        with pytest.raises(PredictionsError, match=f"'{closest}'"):
            write(tmp_path / "p.npz", arrays | {name: np.ones(N)})

    def test_reading_such_a_file_still_only_notes_it(self, tmp_path):
        np.savez(tmp_path / "p.npz", target=[0, 1], prob=[0.1, 0.2], latitude=[1, 2])
        assert "and was ignored" in read(tmp_path / "p.npz").notes[0]

    def test_segmentation_has_no_other_arrays(self, tmp_path):
        arrays = made.segmentation() | {"latitude": np.zeros(3)}
        with pytest.raises(PredictionsError, match="would be lost"):
            write(tmp_path / "p", arrays, header={"ignore": 255})

    @pytest.mark.parametrize("name", ["std", "sigma", "scale"])
    @pytest.mark.parametrize("ending", FILES)
    def test_a_standard_deviation_becomes_a_variance(self, tmp_path, name, ending):
        arrays = {"target": [1.0, 2.0], "mean": [1.0, 2.0], name: [0.5, 3.0]}
        found = build(arrays)
        assert found.arrays["var"].tolist() == [[0.25, 9.0]]
        assert found.notes == (
            f"array '{name}' was taken as a standard deviation: 'var' is its square",
        )
        again = read(write(tmp_path / f"p{ending}", arrays))
        assert again.arrays["var"].tolist() == [[0.25, 9.0]]
        assert again.notes == ()

    def test_a_text_column_called_scale_is_no_deviation(self, tmp_path):
        path = tmp_path / "p.csv"
        path.write_text("target,prob,scale\n0,0.5,large\n")
        assert "array 'scale' is not part of classification" in read(path).notes[0]


EXTRA = {
    "extra/age": np.arange(N) / 7,
    "extra/count": np.arange(N),
    "extra/flag": np.arange(N) % 2 == 0,
    "extra/note": np.array([f"=note {i}" for i in range(N)]),
    "extra/gap": np.where(np.arange(N) == 3, np.nan, 1.0),
}


@pytest.mark.parametrize("ending", FILES)
def test_extra_arrays_are_kept_as_they_are(tmp_path, ending):
    path = write(tmp_path / f"p{ending}", made.classification(1) | EXTRA)
    predictions = read(path)
    assert predictions.notes == ()
    assert set(predictions.named("extra")) == {name[6:] for name in EXTRA}
    for name, array in EXTRA.items():
        np.testing.assert_array_equal(predictions.arrays[name], array)
        assert predictions.arrays[name].dtype.kind == array.dtype.kind


def test_extra_arrays_may_have_any_shape_but_in_a_table(tmp_path):
    deep = {"extra/logits": np.zeros((5, 2, 3)), "extra/one": np.float64(3)}
    arrays = made.classification(1) | deep
    for ending in (".safetensors", ".npz"):
        predictions = read(write(tmp_path / f"p{ending}", arrays))
        assert predictions.arrays["extra/logits"].shape == (5, 2, 3)
        assert predictions.arrays["extra/one"] == 3
    with pytest.raises(PredictionsError, match="does not fit into a table"):
        write(tmp_path / "p.csv", arrays)


@pytest.mark.parametrize("draws", [1, 2, N])
def test_the_axis_of_items_comes_after_the_draws(draws):
    deep = {"extra/logits": np.zeros((5, 2, 3)), "extra/one": np.float64(3)}
    for arrays in (made.classification(draws), made.regression(draws)):
        predictions = build(arrays | EXTRA | deep)
        for name, array in predictions.arrays.items():
            axis = predictions.item_axis(name)
            assert (axis is None) == (name in deep)
            assert axis is None or array.shape[axis] == predictions.n
            if name in ("probs", "mean", "var") or name.startswith("select/"):
                assert axis == 1


def test_extra_arrays_must_be_numbers_or_text():
    for odd in (np.zeros(N, complex), np.zeros(N, "M8[s]"), [["a"]] * N):
        with pytest.raises(PredictionsError, match="array 'extra/x' must be numbers"):
            build(made.classification() | {"extra/x": odd})


def test_extra_arrays_of_single_runs_are_left_out_of_a_pool():
    a, b, c = (build(made.classification() | {"extra/x": [k]}) for k in (1, 2, 1))
    assert pool([a, c]).arrays["extra/x"].tolist() == [1]
    note = "array 'extra/x' belongs to single runs"
    assert any(note in said for said in pool([a, b]).notes)


class TestLogits:
    def test_write_takes_logits(self, tmp_path):
        arrays = {"target": [0, 1], "prob": [-3.0, 2.0]}
        with pytest.raises(PredictionsError, match=r"logits=True"):
            write(tmp_path / "p.npz", arrays)
        found = read(write(tmp_path / "p.npz", arrays, logits=True))
        np.testing.assert_allclose(
            found.arrays["probs"][0, :, 1], 1 / (1 + np.exp([3.0, -2.0])), rtol=1e-12
        )

    def test_write_takes_the_task(self, tmp_path):
        arrays = made.classification() | {"mean": np.zeros(N)}
        with pytest.raises(PredictionsError, match="fit more than one task"):
            write(tmp_path / "p.npz", arrays)
        with pytest.raises(PredictionsError, match=r"'mean' .* would be lost"):
            write(tmp_path / "p.npz", arrays, task="classification")

    def test_what_is_checked_already_is_no_longer_logits(self, tmp_path):
        found = build(made.classification())
        for options in ({"logits": True}, {"task": "regression"}):
            with pytest.raises(PredictionsError, match="are checked already"):
                write(tmp_path / "p.npz", found, **options)
