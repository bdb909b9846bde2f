"""What is written is what is read: every task through every kind of file."""

import json

import numpy as np
import pytest

from predictions import made
from qualms import __version__
from qualms.predictions import (
    FORMAT,
    Header,
    PredictionsError,
    build,
    read,
    write,
)

FILES = (".safetensors", ".npz", ".csv", ".parquet")
CASES = {
    "classification": (lambda: made.classification(draws=1), {}),
    "regression": (
        lambda: made.regression(draws=1),
        {"select": {"gmm": "logmeanexp", "knn": "mean"}},
    ),
    "intervals": (made.intervals, {"alpha": 0.1}),
    "embedding": (made.embedding, {}),
}


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def assert_same(first, second):
    assert first.task == second.task
    assert list(first.arrays) == list(second.arrays)
    for name, array in first.arrays.items():
        assert array.dtype.kind == second.arrays[name].dtype.kind
        np.testing.assert_array_equal(array, second.arrays[name], err_msg=name)
    assert (first.n, first.draws, first.classes) == (
        second.n,
        second.draws,
        second.classes,
    )


@pytest.mark.parametrize("ending", FILES)
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_file_gives_back_the_same_bits(tmp_path, case, ending):
    arrays, extra = CASES[case]
    given = build(arrays(), header=made.HEADER | extra)
    path = write(tmp_path / f"preds{ending}", given)
    predictions = read(path)
    assert path == tmp_path / f"preds{ending}"
    assert_same(given, predictions)
    assert predictions.source == str(path)
    assert predictions.notes == ()


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
@pytest.mark.parametrize("case", [made.classification, made.regression])
def test_several_draws_come_back(tmp_path, case, ending):
    given = build(case())
    predictions = read(write(tmp_path / f"p{ending}", given))
    assert predictions.draws == made.DRAWS
    assert_same(given, predictions)


@pytest.mark.parametrize("ending", FILES)
@pytest.mark.parametrize("case", CASES)
def test_the_header_comes_back(tmp_path, case, ending):
    arrays, extra = CASES[case]
    path = write(tmp_path / f"p{ending}", arrays(), header=made.HEADER | extra)
    header = read(path).header
    for name, value in (made.HEADER | extra).items():
        assert getattr(header, name) == value
    assert header.version == __version__
    assert header.format == FORMAT
    assert header == read(write(path, read(path))).header


def test_float64_survives_all_files_but_safetensors(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"target": rng.normal(size=9), "mean": rng.normal(size=9)}
    for ending in (".npz", ".csv", ".parquet"):
        predictions = read(write(tmp_path / f"p{ending}", arrays))
        np.testing.assert_array_equal(predictions.arrays["mean"][0], arrays["mean"])
    single = read(write(tmp_path / "p.safetensors", arrays))
    np.testing.assert_array_equal(
        single.arrays["mean"][0], arrays["mean"].astype(np.float32)
    )


def test_what_was_renormalised_once_is_left_alone_after(tmp_path):
    arrays = made.classification()
    arrays["probs"] = np.float64(arrays["probs"]) * 1.0005
    once = build(arrays)
    assert "missed summing to 1 by up to 0.0005" in once.notes[0]
    np.testing.assert_allclose(once.arrays["probs"].sum(-1), 1, atol=1e-12)
    twice = read(write(tmp_path / "p.safetensors", once))
    again = read(write(tmp_path / "q.safetensors", twice))
    assert twice.notes == again.notes == ()
    assert_same(twice, again)


def test_prob_becomes_both_classes():
    predictions = build({"target": [0, 1], "prob": [[0.25, 1.0], [0.5, 0.0]]})
    np.testing.assert_array_equal(
        predictions.arrays["probs"], [[[0.75, 0.25], [0, 1]], [[0.5, 0.5], [1, 0]]]
    )
    assert (predictions.draws, predictions.classes, predictions.n) == (2, 2, 2)
    assert predictions.get("prob") is None


def test_the_normal_form_has_its_dtypes():
    predictions = build(made.classification(), header=made.HEADER).arrays
    assert predictions["probs"].dtype == np.float32
    assert predictions["target_probs"].dtype == np.float64
    double = made.classification() | {"probs": np.full((made.N, 4), 0.25)}
    assert build(double).arrays["probs"].dtype == np.float64
    assert predictions["target"].dtype == np.int64
    assert predictions["group"].dtype == np.int64
    assert predictions["cluster"].dtype.kind == predictions["item"].dtype.kind == "U"
    assert predictions["shifted"].dtype == np.bool_
    emb = build(made.embedding()).arrays
    assert emb["embedding"].dtype == np.float32
    assert emb["votes"].dtype == np.float64
    assert emb["upstream"].dtype == np.bool_


def test_thumbnails_come_back_as_bytes(tmp_path):
    shown = np.arange(made.N * 2 * 3 * 3).reshape(made.N, 2, 3, 3) % 256
    arrays = made.classification() | {"thumbnail": shown}
    for ending in (".safetensors", ".npz"):
        predictions = read(write(tmp_path / f"p{ending}", arrays)).arrays["thumbnail"]
        assert predictions.dtype == np.uint8
        np.testing.assert_array_equal(predictions, shown)


def test_families_are_found_by_name():
    predictions = build(made.regression())
    assert set(predictions.named("select")) == {"gmm", "knn"}
    assert predictions.named("select")["knn"].shape == (1, made.N)
    assert predictions.named("uncertainty") == {}
    assert build(made.embedding()).named("uncertainty").keys() == {"norm"}


def test_a_rule_not_stated_is_the_mean():
    predictions = build(made.regression(), header={"select": {"gmm": "logmeanexp"}})
    assert predictions.header.select == {"gmm": "logmeanexp", "knn": "mean"}


def test_items_may_be_numbers_and_become_text():
    predictions = build({"target": [0, 1], "prob": [0.1, 0.2], "item": [7, 8]})
    assert predictions.arrays["item"].tolist() == ["7", "8"]


def test_a_path_without_ending_becomes_safetensors(tmp_path):
    path = write(tmp_path / "preds", made.classification())
    assert path == tmp_path / "preds.safetensors"
    assert read(path).n == made.N


def test_a_header_given_to_write_stands_in_for_the_old_one(tmp_path):
    predictions = build(made.classification(), header={"seed": 1, "dataset": "a"})
    path = write(tmp_path / "p.npz", predictions, header=Header(seed=2))
    header = read(path).header
    assert (header.seed, header.dataset, header.task) == (2, None, "classification")


def test_intervals_may_come_with_a_mean_and_may_be_inverted():
    arrays = made.intervals()
    arrays["upper"] = arrays["lower"] - 1
    predictions = build(arrays | {"mean": arrays["lower"]}, header={"alpha": 0.1})
    assert predictions.arrays["upper"][0] < predictions.arrays["lower"][0]


def test_one_class_among_the_targets_is_valid():
    assert build({"target": [1, 1], "prob": [0.5, 0.2]}).classes == 2


def test_text_of_any_script_comes_back(tmp_path):
    names = ["ж", "眼", 'a"b', "c,d", "e\nf", "  g ", "</script>", "007"]
    arrays = {
        "target": np.arange(8) % 2,
        "prob": np.linspace(0, 1, 8),
        "item": names,
        "group": names,
    }
    for ending in FILES:
        predictions = read(write(tmp_path / f"p{ending}", arrays))
        assert predictions.arrays["item"].tolist() == names
        assert predictions.arrays["group"].tolist() == names


def test_a_table_reads_as_documented(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(
        "\ufefftarget,prob_0,prob_1,shifted,group,uncertainty/mi,path\n"
        "0,0.25,0.75,TRUE,3,0.1,a.png\n1,0.5,0.5,0,04,0.2,b.png\n\n"
    )
    predictions = read(path)
    assert predictions.arrays["probs"].tolist() == [[[0.25, 0.75], [0.5, 0.5]]]
    assert predictions.arrays["shifted"].tolist() == [True, False]
    assert predictions.arrays["group"].tolist() == ["3", "04"]
    assert predictions.named("uncertainty")["mi"].tolist() == [0.1, 0.2]
    assert predictions.notes == (
        "array 'path' is not part of classification predictions and was ignored",
    )


def test_the_header_of_a_table_stands_beside_it(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("target,lower,upper\n1.5,1,2\n")
    (tmp_path / "p.csv.json").write_text(json.dumps({"alpha": 0.2}))
    assert read(path).header.alpha == 0.2


def test_the_header_of_an_npz_is_a_string(tmp_path):
    header = json.dumps({"dataset": "x", "seed": 4})
    np.savez(tmp_path / "p.npz", target=[0, 1], prob=[0.1, 0.2], header=header)
    assert read(tmp_path / "p.npz").header.seed == 4


def test_writing_leaves_nothing_else_behind(tmp_path):
    write(tmp_path / "a.npz", made.classification())
    write(tmp_path / "a.npz", made.classification(seed=1))
    write(tmp_path / "b.csv", made.classification(draws=1))
    assert names_in(tmp_path) == ["a.npz", "b.csv", "b.csv.json"]


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = write(tmp_path / "a.csv", made.classification(draws=1))
    before = path.read_bytes()
    with pytest.raises(PredictionsError):
        write(path, made.classification(draws=2))
    with pytest.raises(PredictionsError, match="'utf-8' codec can't encode"):
        write(path, made.classification(draws=1) | {"group": ["\ud800"] * made.N})
    assert path.read_bytes() == before
    assert names_in(tmp_path) == ["a.csv", "a.csv.json"]


def test_a_full_disk_is_said_and_leaves_no_file(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(PredictionsError, match="No space left on device"):
        write(tmp_path / "a.npz", made.classification())
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("ending", FILES)
def test_equal_predictions_make_equal_files(tmp_path, ending):
    texts = {f"extra/{name}": ["a", "é\x01\u2028\\", '"', "😀"] * 3 for name in "abcd"}
    arrays = {"target": np.arange(12) % 2, "prob": np.full(12, 0.3), **texts}
    files = [write(tmp_path / f"{k}{ending}", arrays) for k in range(8)]
    assert len({file.read_bytes() for file in files}) == 1
    np.testing.assert_array_equal(read(files[0]).arrays["extra/a"], texts["extra/a"])
