"""Segmentation: a folder, streamed item by item in both directions."""

import json
import pickle
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from predictions import made
from qualms import scores
from qualms.predictions import (
    Header,
    Maps,
    PredictionsError,
    SegmentationWriter,
    build,
    read,
    write,
)

PARTS = ("total", "within", "between")
HEADER = {"ignore": 255, "dataset": "lidc", "split": "test"}


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "preds", made.segmentation(), header=HEADER)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def refused(path, sentence):
    with pytest.raises(PredictionsError, match=re.escape(sentence)) as error:
        list(read(path).maps)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def edit(folder, change):
    path = folder / "index.json"
    index = json.loads(path.read_text())
    change(index)
    path.write_text(json.dumps(index))


def test_a_folder_gives_back_what_was_written(folder):
    given, found = build(made.segmentation(), header=HEADER), read(folder)
    assert (found.task, found.n, found.draws, found.classes) == (
        "segmentation",
        3,
        2,
        3,
    )
    assert found.header.ignore == 255
    assert found.header.dataset == "lidc"
    for name, array in given.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
    for mine, theirs in zip(given.maps, found.maps, strict=True):
        np.testing.assert_allclose(theirs.mean_probs, mine.mean_probs, atol=1e-3)
        np.testing.assert_allclose(
            theirs.expected_entropy, mine.expected_entropy, atol=1e-3
        )
        np.testing.assert_array_equal(theirs.draw_labels, mine.draw_labels)
        np.testing.assert_array_equal(theirs.raters, mine.raters)
        np.testing.assert_allclose(theirs.mean_probs.sum(0), 1, atol=1e-6)
        assert theirs.mean_probs.dtype == theirs.expected_entropy.dtype == np.float32
        assert theirs.draw_labels.dtype == theirs.raters.dtype == np.uint8


def blob(seed, side=24, draws=6):
    """Logits (draws, side, side) of a blurred disc, as a trained network gives them."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:side, :side] - rng.uniform(8, 16, (2, 1, 1))
    logits = 1.5 * (rng.uniform(4, 7) - np.hypot(rows, columns))
    noise = rng.standard_normal((draws, side, side)) * 0.4
    return np.clip(logits, -14, 14) + noise + rng.standard_normal((draws, 1, 1)) / 2


def test_ranks_by_uncertainty_are_those_of_float64(tmp_path):
    exact = []
    with SegmentationWriter(tmp_path / "p", header=HEADER) as writer:
        for seed in range(40):
            one = 1 / (1 + np.exp(-blob(seed)))
            probs = np.stack([1 - one, one], 1)
            statistics = scores.sufficient_statistics(probs)
            writer.add(
                str(seed),
                Maps(**statistics._asdict(), raters=statistics.draw_labels[:1]),
            )
            mean = probs.mean(0)
            entropy = -(probs * np.log(probs)).sum(1).mean(0)
            total = -(mean * np.log(mean)).sum(0)
            parts = total, entropy, total - entropy
            exact.append(dict(zip(PARTS, parts, strict=True)))
    found = []
    for maps in read(tmp_path / "p").maps:
        stored = scores.uncertainty_maps(maps.mean_probs, maps.expected_entropy)
        parts = stored.predictive, stored.aleatoric, stored.epistemic
        found.append(dict(zip(PARTS, parts, strict=True)))
    for part in PARTS:
        ours, theirs = [f[part] for f in found], [e[part] for e in exact]
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
        for aggregate in (
            scores.aggregate_image,
            partial(scores.aggregate_patch, size=10),
            partial(scores.aggregate_threshold, threshold=0.05),
        ):
            order = np.argsort([aggregate(one) for one in theirs])
            same = np.argsort([aggregate(one) for one in ours]) == order
            assert same.all()


def test_statistics_are_stored_in_32_bits_and_labels_in_bytes(folder):
    from safetensors.numpy import load_file

    contents = load_file(folder / "000000.safetensors")
    assert {name: array.dtype.name for name, array in contents.items()} == {
        "mean_probs": "float32",
        "expected_entropy": "float32",
        "draw_labels": "uint8",
        "raters": "uint8",
    }


def test_items_are_read_when_asked_for_and_never_kept(folder):
    (folder / "000002.safetensors").write_bytes(b"damaged")
    predictions = read(folder)
    first = predictions.maps[0]
    (folder / "000000.safetensors").write_bytes(b"damaged")
    with pytest.raises(PredictionsError, match="was changed or replaced after its f"):
        predictions.maps[0]
    for row in (2, -1):
        with pytest.raises(PredictionsError, match="is not a readable"):
            predictions.maps[row]
    assert first.raters.shape == predictions.maps[1].raters.shape == (2, 4, 5)
    assert [
        len(predictions.maps),
        len(predictions.maps[1:]),
        len(predictions.maps[::2]),
    ] == [3, 2, 2]
    with pytest.raises(IndexError):
        predictions.maps[3]


def test_predictions_travel_between_processes(folder):
    found = pickle.loads(pickle.dumps(read(folder)))
    assert found.maps[1].raters.shape == (2, 4, 5)


def test_volumes_and_single_raters_are_segmented_too(tmp_path):
    item = made.maps(space=(2, 3, 4), raters=1, draws=1)
    predictions = read(write(tmp_path / "p", {"maps": [item]}, header=HEADER))
    assert predictions.maps[0].mean_probs.shape == (3, 2, 3, 4)
    assert predictions.arrays["item"].tolist() == ["000000"]


def test_items_of_different_size_share_a_folder(tmp_path):
    items = [made.maps(space=(4, 5)), made.maps(space=(6, 3), raters=5)]
    predictions = read(write(tmp_path / "p", {"maps": items}, header=HEADER))
    assert [m.raters.shape for m in predictions.maps] == [(2, 4, 5), (5, 6, 3)]


def test_item_files_may_be_npz(tmp_path):
    item = made.maps()
    names = ("mean_probs", "expected_entropy", "draw_labels", "raters")
    np.savez(tmp_path / "a.npz", **{name: getattr(item, name) for name in names})
    index = {"header": HEADER, "items": [{"item": 7, "file": "a.npz"}]}
    (tmp_path / "index.json").write_text(json.dumps(index))
    predictions = read(tmp_path)
    assert predictions.arrays["item"].tolist() == ["7"]
    np.testing.assert_array_equal(predictions.maps[0].raters, item.raters)


def fail_after(writer, error):
    writer.add("a", made.maps())
    raise error


def add_all(writer, *items):
    for name, stated in items:
        writer.add(name, made.maps(), **stated)


def add_maps(writer, maps):
    for row, one in enumerate(maps):
        writer.add(f"case {row}", one)


class TestWriter:
    def test_threads_keep_the_order_and_the_bytes_of_items(self, tmp_path):
        rows = list(range(40))
        for name, threads in (("one", 0), ("many", 3)):
            where = tmp_path / name
            with SegmentationWriter(where, header=HEADER, threads=threads) as writer:
                for row in rows:
                    writer.add(f"case {row}", made.maps(row), group=row)
        one, many = tmp_path / "one", tmp_path / "many"
        assert names_in(one) == names_in(many)
        for file in names_in(one):
            assert (one / file).read_bytes() == (many / file).read_bytes()
        assert read(many).arrays["group"].tolist() == rows

    def test_threads_tell_of_the_item_that_is_wrong(self, tmp_path):
        wrong = replace(made.maps(1), mean_probs=np.full((3, 4, 5), np.nan))
        with (
            pytest.raises(PredictionsError, match=r"item 'case 1'.*must be finite"),
            SegmentationWriter(tmp_path / "p", header=HEADER, threads=2) as writer,
        ):
            add_maps(writer, [made.maps(0), wrong, *map(made.maps, range(2, 20))])
        assert names_in(tmp_path) == []

    def test_the_folder_appears_at_the_end(self, tmp_path):
        with SegmentationWriter(tmp_path / "p", header=Header(ignore=255)) as writer:
            writer.add("a", made.maps(0), group=np.int64(1), shifted=np.bool_(True))
            assert not (tmp_path / "p").exists()
            writer.add("b", made.maps(1), group=2, shifted=False)
        assert names_in(tmp_path) == ["p"]
        assert names_in(tmp_path / "p") == [
            "000000.safetensors",
            "000001.safetensors",
            "index.json",
        ]
        assert read(tmp_path / "p").arrays["group"].tolist() == [1, 2]

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
    def test_a_failure_leaves_nothing_behind(self, tmp_path, error):
        writer = SegmentationWriter(tmp_path / "p", header=HEADER)
        with pytest.raises(error), writer:
            fail_after(writer, error)
        assert names_in(tmp_path) == []

    def test_a_failure_keeps_the_old_folder(self, folder):
        with (
            pytest.raises(PredictionsError, match="was added before"),
            SegmentationWriter(folder, header=HEADER) as writer,
        ):
            add_all(writer, ("new", {}), ("new", {}))
        assert names_in(folder.parent) == ["preds"]
        assert read(folder).n == 3

    def test_predictions_that_were_there_are_replaced(self, folder):
        write(folder, made.segmentation(items=1), header=HEADER)
        assert names_in(folder.parent) == ["preds"]
        assert names_in(folder) == ["000000.safetensors", "index.json"]

    def test_a_folder_can_be_written_onto_itself(self, folder):
        write(folder, read(folder))
        assert read(folder).n == 3

    def test_a_failed_replacement_brings_the_old_folder_back(self, folder, monkeypatch):
        rename = type(folder).rename
        moves = []

        def failing(path, target):
            moves.append(path)
            if len(moves) == 2:
                raise OSError(5, "Input/output error")
            return rename(path, target)

        monkeypatch.setattr(type(folder), "rename", failing)
        monkeypatch.setattr("qualms.atomic._swap", lambda: None)  # a network disk
        with pytest.raises(PredictionsError, match="Input/output error"):
            write(folder, made.segmentation(items=1), header=HEADER)
        assert len(moves) == 3
        assert names_in(folder.parent) == ["preds"]
        assert read(folder).n == 3

    def test_folders_of_other_things_are_not_replaced(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("years of work")
        with pytest.raises(PredictionsError, match=r"such as 'thesis\.tex'"):
            write(tmp_path, made.segmentation(), header=HEADER)
        with pytest.raises(PredictionsError, match="is a file, not a folder"):
            write(tmp_path / "thesis.tex", made.segmentation(), header=HEADER)
        assert (tmp_path / "thesis.tex").read_text() == "years of work"

    @pytest.mark.parametrize("ending", [".npz", ".safetensors", ".csv"])
    def test_segmentation_is_no_single_file(self, tmp_path, ending):
        with pytest.raises(PredictionsError, match="segmentation predictions are a fo"):
            write(tmp_path / f"p{ending}", made.segmentation(), header=HEADER)

    def test_no_items_make_no_folder(self, tmp_path):
        with (
            pytest.raises(PredictionsError, match="no item was added"),
            SegmentationWriter(tmp_path / "p"),
        ):
            pass
        assert names_in(tmp_path) == []

    def test_it_writes_only_inside_its_block(self, tmp_path):
        writer = SegmentationWriter(tmp_path / "p", header=HEADER)
        with pytest.raises(PredictionsError, match="the writer is not open"):
            writer.add("a", made.maps())
        with writer:
            writer.add("a", made.maps())
        with pytest.raises(PredictionsError, match="the writer is not open"):
            writer.add("b", made.maps())

    def test_it_needs_a_folder_to_write_in(self, tmp_path):
        with (
            pytest.raises(PredictionsError, match="there is no folder"),
            SegmentationWriter(tmp_path / "no" / "p"),
        ):
            pass

    def test_another_task_is_refused(self, tmp_path):
        with pytest.raises(PredictionsError, match="must be 'segmentation' here"):
            SegmentationWriter(tmp_path / "p", header={"task": "regression"})

    @pytest.mark.parametrize(
        ("stated", "sentence"),
        [
            ({}, "group must be given for all items or none"),
            ({"group": "a"}, "be all text or all numbers, got 'a' after 1"),
            ({"group": 1.5}, "group must be text or a whole number, got 1.5"),
            ({"group": True}, "group must be text or a whole number, got True"),
            ({"group": 1, "shifted": 1}, "shifted must be true or false, got 1"),
        ],
    )
    def test_what_is_said_of_one_item_is_said_of_all(self, tmp_path, stated, sentence):
        with (
            pytest.raises(PredictionsError, match=sentence),
            SegmentationWriter(tmp_path / "p", header=HEADER) as writer,
        ):
            add_all(writer, ("a", {"group": 1}), ("b", stated))


def change(name, index, value, dtype=None):
    def alter(maps):
        array = np.array(getattr(maps, name), dtype)
        array[index] = value
        return replace(maps, **{name: array})

    return alter


def shaped(name, function):
    return lambda maps: replace(maps, **{name: function(getattr(maps, name))})


MAPS = [
    (
        change("mean_probs", (1, 2, 3), np.nan),
        "array 'mean_probs' must be finite, class 1, position (2, 3) is nan",
    ),
    (
        change("mean_probs", (slice(None), 2, 3), 0.9),
        "array 'mean_probs' must sum to 1 over its classes, position (2, 3) sums to "
        "2.7; store probabilities averaged over draws, not logits",
    ),
    (
        change("mean_probs", (1, 2, 3), -3),
        "array 'mean_probs' must lie in [0, 1], class 1, position (2, 3) is -3",
    ),
    (
        change("expected_entropy", (1, 1), np.log2(3)),
        "array 'expected_entropy' must lie in [0, 1.099] (log C, in nats), position "
        "(1, 1) is 1.58496; use natural logarithms",
    ),
    (change("expected_entropy", (1, 1), -0.1), "position (1, 1) is -0.1"),
    (change("expected_entropy", (1, 1), np.inf), "position (1, 1) is inf"),
    (
        change("draw_labels", (1, 2, 2), 3),
        "array 'draw_labels' must lie in 0..2, draw 1, position (2, 2) is 3; store a "
        "class for every pixel; 'ignore' is for raters alone",
    ),
    (
        change("draw_labels", (1, 2, 2), 255),
        "array 'draw_labels' must lie in 0..2, draw 1, position (2, 2) is 255; store",
    ),
    (change("raters", (1, 2, 2), 254), "rater 1, position (2, 2) is 254"),
    (
        change("raters", (1, 2, 2), -1, int),
        "array 'raters' must lie in 0..255, rater 1, position (2, 2) is -1",
    ),
    (
        shaped("raters", lambda a: a.astype(float)),
        "array 'raters' must be whole numbers in 0..255 (uint8), got float64",
    ),
    (
        shaped("mean_probs", lambda a: np.moveaxis(a, 0, -1)),
        "array 'mean_probs' must have shape (C, 4, 5) to fit 'expected_entropy', got "
        "(4, 5, 3); put the class axis first: np.moveaxis(mean_probs, -1, 0)",
    ),
    (shaped("raters", lambda a: a[0]), "array 'raters' must have shape (R, 4, 5)"),
    (
        shaped("draw_labels", lambda a: a[:0]),
        "array 'draw_labels' has no draw (shape (0, 4, 5))",
    ),
    (
        shaped("mean_probs", lambda a: a[:1]),
        "array 'mean_probs' must have at least two classes on its first axis",
    ),
    (
        lambda m: replace(m, uncertainty={"mine": np.ones((5, 4))}),
        "array 'uncertainty/mine' must have shape (4, 5) to fit 'expected_entropy', got"
        " (5, 4); store a value for every pixel",
    ),
    (
        lambda m: replace(m, uncertainty={"mine": 0.25}),
        "array 'uncertainty/mine' is one number and no map; state it in the entry of "
        "the item in index.json (add(..., uncertainty={...}) of the writer)",
    ),
    (
        lambda m: replace(m, uncertainty={"mine": np.full((4, 5), np.nan)}),
        "array 'uncertainty/mine' must be finite, position (0, 0) is nan",
    ),
    (
        lambda m: replace(m, uncertainty={"mine": np.full((4, 5), "high")}),
        "array 'uncertainty/mine' must be numbers, got text such as 'high'",
    ),
    (
        lambda _: Maps(
            mean_probs=[0.5, 0.5], expected_entropy=0.1, draw_labels=[0], raters=[0]
        ),
        "array 'expected_entropy' must have the shape of the image, got ()",
    ),
    (
        shaped("expected_entropy", lambda a: a.astype(str)),
        "array 'expected_entropy' must be numbers, got text",
    ),
]


@pytest.mark.parametrize(("alter", "sentence"), MAPS, ids=[s[:60] for _, s in MAPS])
def test_a_mistake_in_an_item_names_it(tmp_path, alter, sentence):
    wrong = alter(made.maps())
    with pytest.raises(PredictionsError, match=r"maps\[0\]: array '"):
        build({"maps": [wrong]}, header=HEADER)
    with (
        pytest.raises(PredictionsError, match=re.escape(sentence)) as error,
        SegmentationWriter(tmp_path / "p", header=HEADER) as writer,
    ):
        writer.add("case 7", wrong)
    assert "item 'case 7': " in str(error.value)
    assert names_in(tmp_path) == []


def test_without_ignore_every_label_must_be_a_class():
    with pytest.raises(PredictionsError, match=r"'ignore' \(None\), rater 0, position"):
        build(made.segmentation())


def test_all_items_have_the_same_classes_and_own_maps():
    predictions = build({"maps": [made.maps(), made.maps(classes=4)]}, header=HEADER)
    with pytest.raises(PredictionsError, match="has 4 classes, the first item has 3"):
        predictions.maps[1]
    own = replace(made.maps(), uncertainty={"mine": np.ones((4, 5))})
    for maps, sentence in (
        ([own, made.maps()], "has no own map 'uncertainty/mine', the first item has o"),
        ([made.maps(), own], "has an own map 'uncertainty/mine', the first item has n"),
    ):
        predictions = build({"maps": maps}, header=HEADER)
        with pytest.raises(PredictionsError, match=re.escape(sentence)):
            predictions.maps[1]


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_items_may_have_different_numbers_of_draws(tmp_path, ending):
    draws = [1, 5, 2]
    items = [made.maps(seed, draws=m) for seed, m in enumerate(draws)]
    folder = write(tmp_path / "p", {"maps": items}, header=HEADER)
    if ending == ".npz":  # a foreign folder: the index states no shapes
        from safetensors.numpy import load_file

        for row in range(3):
            contents = load_file(folder / f"00000{row}.safetensors")
            np.savez(folder / f"{row}.npz", **contents)
        edit(folder, lambda i: [e.pop("shapes") for e in i["items"]])
        edit(
            folder,
            lambda i: [e.update(file=f"{r}.npz") for r, e in enumerate(i["items"])],
        )
    for found in (read(folder), build({"maps": items}, header=HEADER)):
        assert found.draws == 5
        assert [len(maps.draw_labels) for maps in found.maps] == draws


def test_own_maps_and_numbers_come_back(tmp_path):
    rng = np.random.default_rng(0)
    own = [rng.normal(size=(4, 5)) for _ in range(3)]
    items = [
        replace(made.maps(row), uncertainty={"mine": each, "other": -each})
        for row, each in enumerate(own)
    ]
    whole = [0.5, 2, -1.0]
    arrays = {"maps": items, "uncertainty/size": whole}
    folder = write(tmp_path / "p", arrays, header=HEADER)
    for found in (read(folder), build(arrays, header=HEADER)):
        assert found.own_maps == ("mine", "other")
        assert found.arrays["uncertainty/size"].tolist() == whole
        for each, maps in zip(own, found.maps, strict=True):
            np.testing.assert_allclose(maps.uncertainty["mine"], each, atol=1e-6)
            assert maps.uncertainty["other"].dtype == np.float32
    again = read(write(tmp_path / "again", read(folder)))
    assert again.arrays["uncertainty/size"].tolist() == whole
    np.testing.assert_array_equal(
        again.maps[2].uncertainty["mine"], read(folder).maps[2].uncertainty["mine"]
    )


@pytest.mark.parametrize(
    ("uncertainty", "sentence"),
    [
        ({}, "uncertainty/size must be given for all items or none"),
        ({"size": 1.0, "more": 1.0}, "uncertainty/more must be given for all items"),
        ({"size": [1.0, 2.0]}, "uncertainty 'size' of an item must be one number"),
        ({"size": "high"}, "uncertainty 'size' of an item must be one number"),
        (0.5, "uncertainty must be a mapping of names to numbers, got float"),
    ],
)
def test_numbers_of_an_item_are_checked_when_it_is_added(
    tmp_path, uncertainty, sentence
):
    items = [("a", {"uncertainty": {"size": 1}}), ("b", {"uncertainty": uncertainty})]
    with (
        pytest.raises(PredictionsError, match=sentence),
        SegmentationWriter(tmp_path / "p", header=HEADER) as writer,
    ):
        add_all(writer, *items)


@pytest.mark.parametrize(
    ("alter", "sentence"),
    [
        (
            lambda i: i["items"][1].update({"uncertainty/size": 3}),
            "'uncertainty/size' in index.json must be given for all items or none, row"
            " 0 has none",
        ),
        (
            lambda i: [e.update({"uncertainty/size": "x"}) for e in i["items"]],
            "array 'uncertainty/size' must be numbers, got text such as 'x'",
        ),
        (
            lambda i: [e.update({"uncertianty/size": 1}) for e in i["items"]],
            "'uncertianty/size', which is not known. Did you mean 'uncertainty/size'?",
        ),
        (
            lambda i: [e.update(uncertainty={"size": 1}) for e in i["items"]],
            "has 'uncertainty', which is not known. Write it as 'uncertainty/<name>'",
        ),
    ],
)
def test_a_mistake_in_the_numbers_of_the_index_is_named(folder, alter, sentence):
    edit(folder, alter)
    refused(folder, sentence)


def test_an_item_needs_no_raters(tmp_path):
    bare = Maps(
        **{n: getattr(made.maps(), n) for n in ("mean_probs", "draw_labels")},
        expected_entropy=made.maps().expected_entropy,
    )
    items = [bare, made.maps(1), replace(made.maps(2), raters=None)]
    folder = write(tmp_path / "p", {"maps": items}, header=HEADER)
    assert [m.raters.shape for m in read(folder).maps] == [
        (0, 4, 5),
        (2, 4, 5),
        (0, 4, 5),
    ]


@pytest.mark.parametrize("name", ["rater", "labels", "target", "mask"])
def test_labels_under_another_name_are_not_lost(folder, name):
    from safetensors.numpy import load_file

    contents = load_file(folder / "000000.safetensors")
    contents[name] = contents.pop("raters")
    np.savez(folder / "0.npz", **contents)
    edit(folder, lambda i: i["items"][0].update(file="0.npz", shapes=None))
    with pytest.raises(PredictionsError, match=f"array '{name}' is not part of a segm"):
        read(folder)


def test_an_own_map_with_a_misspelt_name_is_not_lost(folder):
    from safetensors.numpy import load_file

    contents = load_file(folder / "000000.safetensors")
    np.savez(folder / "0.npz", **contents, **{"uncertianty/a": np.ones((4, 5))})
    edit(folder, lambda i: i["items"][0].update(file="0.npz"))
    with pytest.raises(PredictionsError, match="Did you mean 'uncertainty/a'"):
        read(folder)


@pytest.mark.parametrize("shape", [(1, 4, 5), (4, 5), (1, 5), (5,)])
def test_the_hint_for_one_channel_can_be_followed(shape):
    rng = np.random.default_rng(0)
    space = shape[1:] if shape[0] == 1 else shape
    p = rng.random(shape)
    maps = Maps(
        mean_probs=p,
        expected_entropy=np.zeros(space),
        draw_labels=np.zeros((1, *space), np.uint8),
        raters=np.zeros((1, *space), np.uint8),
    )
    with pytest.raises(PredictionsError, match="for P\\(y=1\\) alone store") as error:
        build({"maps": [maps]})
    code = re.search(r"store (np\.\w+\(\[.*?\]\))", str(error.value))[1]
    followed = replace(maps, mean_probs=eval(code, {"np": np, "mean_probs": p}))
    found = build({"maps": [followed]}).maps[0]
    np.testing.assert_allclose(found.mean_probs[1], p.reshape(space), atol=1e-6)


INDEX = [
    (
        lambda i: i.clear(),
        "'items' in index.json must be a list with at least one item",
    ),
    (
        lambda i: i.update(items=[]),
        "'items' in index.json must be a list with at least",
    ),
    (lambda i: i.update(items={"a": 1}), "'items' in index.json must be a list"),
    (lambda i: i.update(header=[1]), "'header' in index.json must be a JSON object"),
    (
        lambda i: i.update(items=[3]),
        "row 0 of 'items' in index.json must have 'item' and",
    ),
    (lambda i: i["items"][1].pop("file"), "row 1 of 'items' in index.json must have"),
    (
        lambda i: i["items"][1].update(file="../preds/000000.safetensors"),
        "row 1 of 'items' in index.json names a file outside the folder",
    ),
    (
        lambda i: i["items"][1].update(file="/etc/x.npz"),
        "row 1 of 'items' in index.json names a file outside the folder",
    ),
    (
        lambda i: i["items"][1].update(file="C:\\x.npz"),
        "row 1 of 'items' in index.json names a file outside the folder",
    ),
    (
        lambda i: i["items"][1].update(file="index.json"),
        "row 1 of 'items' in index.json must name a .safetensors or .npz file",
    ),
    (lambda i: i["items"][1].update(file=3), "must name a .safetensors or .npz file"),
    (
        lambda i: i["items"][1].update(file="gone.npz"),
        "row 1 of 'items' in index.json names 'gone.npz', which is not there",
    ),
    (
        lambda i: i["items"][1].update(file="000000.safetensors"),
        "rows 0 and 1 of 'items' in index.json name the same file '000000.safetensors'",
    ),
    (
        lambda i: i["items"][1].update(item="case 0"),
        "array 'item' must hold a different name in every row, rows 0 and 1 are both",
    ),
    (
        lambda i: i["items"][1].update(item=None),
        "array 'item' must be numbers or text, not Python objects, row 1 is None",
    ),
    (
        lambda i: i["items"][1].pop("group"),
        "'group' in index.json must be given for all items or none, row 1 has none",
    ),
    (
        lambda i: i["items"][1].update(group=3),
        "array 'group' must be numbers or text, not Python objects",
    ),
    (
        lambda i: i["items"][1].update(shifted="no"),
        "array 'shifted' must be numbers or text",
    ),
    (lambda i: i["items"][1].update(shapes=3), "header 'shapes' must map array names"),
    (
        lambda i: i["items"][1].update(shapes={"raters": [1]}),
        "the header states shape (1,) for array 'raters', which has (2, 4, 5)",
    ),
    (
        lambda i: i["header"].update(task="regression"),
        "holds maps of segmented items, but the task is said to be 'regression'",
    ),
    (lambda i: i["header"].update(ignore=None), "or be the header's 'ignore' (None)"),
    (
        lambda i: i["items"][1].update(shited=i["items"][1].pop("shifted")),
        "row 1 of 'items' in index.json has 'shited', which is not known. Did you mean "
        "'shifted'? Rename it, or leave it out",
    ),
    (
        lambda i: i.update(heder=i.pop("header")),
        "index.json has 'heder', which is not known. Did you mean 'header'?",
    ),
]


@pytest.mark.parametrize(("alter", "sentence"), INDEX, ids=[s[:60] for _, s in INDEX])
def test_a_mistake_in_the_index_names_the_row(folder, alter, sentence):
    edit(folder, alter)
    refused(folder, sentence)


def test_unknown_keys_of_the_index_are_noted_once(folder):
    assert read(folder).notes == ()
    edit(folder, lambda i: [item.update(mood="good") for item in i["items"]])
    edit(folder, lambda i: i.update(weather="fair"))
    assert read(folder).notes == (
        "unknown keys in index.json were ignored: 'weather', 'mood'",
    )


def test_an_unknown_array_of_an_item_is_noted(folder):
    from safetensors.numpy import load_file

    contents = load_file(folder / "000000.safetensors")
    np.savez(folder / "0.npz", **contents, mood=np.ones(3))
    edit(folder, lambda i: i["items"][0].update(file="0.npz"))
    assert read(folder).notes == (
        "array 'mood' is not part of segmentation predictions and was ignored",
    )


@pytest.mark.parametrize("field", ["methd", "ignor"])
def test_a_misspelt_header_field_is_not_written(tmp_path, field):
    sentence = f"header field '{field}' is not known. Did you mean '"
    with pytest.raises(PredictionsError, match=re.escape(sentence)):
        SegmentationWriter(tmp_path / "p", header={field: 1})
    for given in (made.segmentation(), build(made.segmentation(), header=HEADER)):
        with pytest.raises(PredictionsError, match=re.escape(sentence)):
            write(tmp_path / "p", given, header={**HEADER, field: 1})
    assert list(tmp_path.iterdir()) == []


def test_a_link_out_of_the_folder_is_refused(folder, tmp_path):
    outside = tmp_path / "secret.npz"
    outside.write_bytes(b"secret")
    (folder / "000000.safetensors").unlink()
    (folder / "link.npz").symlink_to(outside)
    edit(folder, lambda i: i["items"][0].update(file="link.npz"))
    refused(folder, "names a file outside the folder")


def test_a_folder_without_index_is_refused(tmp_path):
    refused(tmp_path, "is a folder without index.json")
    (tmp_path / "index.json").write_text("{")
    refused(tmp_path, "index.json must be a JSON object, got '{'")
    (tmp_path / "index.json").write_text("[]")
    refused(tmp_path, """got '[]'; write {"header": {...}, "items": [{"item": ...""")


def test_the_index_alone_is_refused_with_the_folder_to_give(folder):
    refused(
        folder / "index.json",
        "is the index of a folder of segmentation predictions; give the folder, "
        f"{folder}",
    )


def test_an_item_file_cut_short_names_itself(folder):
    path = folder / "000001.safetensors"
    path.write_bytes(path.read_bytes()[:-5])
    predictions = read(folder)
    with pytest.raises(PredictionsError, match="is not a readable") as error:
        predictions.maps[1]
    assert str(error.value).startswith(f"{path}: ")


def test_an_item_file_with_arrays_missing_says_which(folder):
    np.savez(folder / "a.npz", mean_prob=[1.0], raters=[0])
    edit(folder, lambda i: i["items"][0].update(file="a.npz", shapes=None))
    with pytest.raises(PredictionsError, match="a segmented item needs") as error:
        read(folder)
    assert "found only 'raters', 'mean_prob'; add 'mean_probs'" in str(error.value)
