"""Preparing a dataset: whole, resumable, and never silent about what is missing."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from qualms.datasets import (
    Card,
    DatasetError,
    Divide,
    LoadedItems,
    Recipe,
    Subset,
    Unit,
    cache_folder,
    open_dataset,
    prepare,
    verify_dataset,
)
from qualms.spec import Task

CARD = Card(
    title="Fake", licence="none", citation="none", url="none", obtain="Make it up."
)


def load(source: Path, unit: Unit) -> LoadedItems:
    """Two items from a text file with a number; every call is written down.

    While there is a file `most`, it waits after that many calls.
    """
    with (source / "log").open("a") as log:
        log.write(f"{unit.key} {os.getpid()}\n")
    most = source / "most"
    while most.exists() and sum(loads(source).values()) > int(most.read_text()):
        time.sleep(0.01)
    number = int((source / unit.key).read_text())
    return LoadedItems(
        image=np.full((2, 3, 4, 1), number, np.uint8),
        target=np.array([number, number + 0.5], np.float32),
        item=(f"{unit.key}/first", f"{unit.key}/second"),
        extra={"group": np.array([unit.key, "x" * number])},
    )


def die(unit: Unit) -> LoadedItems:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def odd_one_out(examples: LoadedItems, unit: Unit) -> LoadedItems:
    fine = LoadedItems(
        image=np.zeros((1, 2, 2, 1), np.uint8), target=np.zeros(1), item=(unit.key,)
    )
    return examples if unit.key == "odd" else fine


def loads(source: Path) -> Counter[str]:
    log = source / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    return Counter(line.split()[0] for line in lines)


def recipe_of(source: Path, *, n: int = 6, **changes) -> Recipe:
    source.mkdir(exist_ok=True)
    for i in range(n):
        (source / f"u{i:02d}").write_text(str(i))
    units = [
        Unit(key=f"u{i:02d}", split="test" if i % 3 == 0 else "part") for i in range(n)
    ]
    fields = {
        "name": "fake",
        "options": {"a": 1},
        "card": CARD,
        "task": Task(name="regression"),
        "units": tuple(units),
        "load": partial(load, source),
        "divide": {"part": Divide(into=("train", "val"), first=0.7, seed=3)},
        "shifts": {"test": "elsewhere"},
    }
    return Recipe(**(fields | changes))


def with_odd(**arrays) -> Recipe:
    fine = {"image": np.zeros((1, 2, 2, 1), np.uint8), "target": np.zeros(1)}
    odd = LoadedItems(**({"item": ("odd",)} | fine | arrays))
    units = (Unit(key="even", split="test"), Unit(key="odd", split="test"))
    return Recipe(
        name="fake",
        options={},
        card=CARD,
        task=Task(name="regression"),
        units=units,
        load=partial(odd_one_out, odd),
    )


@pytest.fixture
def source(tmp_path):
    return tmp_path / "source"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("arrays-*/*")}


def test_rows_follow_the_units_and_arrays_are_memory_mapped(source, tmp_path):
    done = prepare(recipe_of(source), tmp_path / "cache", workers=1)
    test = done.dataset.splits["test"]
    assert isinstance(test.image, np.memmap)
    assert test.item.tolist() == [
        "u00/first",
        "u00/second",
        "u03/first",
        "u03/second",
    ]
    assert test.target.tolist() == [0, 0.5, 3, 3.5]
    assert test.image[:, 0, 0, 0].tolist() == [0, 0, 3, 3]
    assert test.extra["group"].tolist() == ["u00", "", "u03", "xxx"]
    assert done.counts == {"test": 4, "train": 5, "val": 3}
    assert done.dataset.shifts == {"test": "elsewhere"}
    assert done.dataset.card == CARD
    assert done.dataset.task == Task(name="regression")
    assert not done.skipped


def test_a_part_is_divided_by_a_seeded_shuffle_of_its_sorted_names(source, tmp_path):
    dataset = prepare(recipe_of(source, n=30), tmp_path / "cache", workers=1).dataset
    keys = [f"u{i:02d}/{x}" for i in range(30) if i % 3 for x in ("first", "second")]
    names = sorted(keys)
    shuffled = [names[i] for i in np.random.default_rng(3).permutation(len(names))]
    assert dataset.splits["train"].item.tolist() == shuffled[:28]
    assert dataset.splits["val"].item.tolist() == shuffled[28:]
    for split in ("train", "val"):
        stored = dataset.splits[split]
        numbers = [int(item[1:3]) for item in stored.item]
        assert stored.image[:, 2, 3, 0].tolist() == numbers
        assert np.floor(stored.target).tolist() == numbers


def test_the_number_of_processes_changes_no_bit(source, tmp_path):
    one = prepare(recipe_of(source, n=9), tmp_path / "one", workers=1)
    two = prepare(recipe_of(source, n=9), tmp_path / "two", workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert one.dataset.fingerprint == two.dataset.fingerprint


def test_what_is_done_is_not_done_again(source, tmp_path):
    first = prepare(recipe_of(source), tmp_path / "cache", workers=1)
    again = prepare(recipe_of(source), tmp_path / "cache", workers=1)
    assert set(loads(source).values()) == {1}
    assert again.dataset.fingerprint == first.dataset.fingerprint
    assert again.counts == first.counts


def test_progress_counts_units_and_includes_those_found(source, tmp_path):
    recipe = recipe_of(source)
    (source / "u04").unlink()
    expected = replace(recipe, counts={"test": 4, "train": 5, "val": 3})
    with pytest.raises(DatasetError):
        prepare(expected, tmp_path / "cache", workers=1)
    (source / "u04").write_text("4")
    calls = []
    prepare(
        expected,
        tmp_path / "cache",
        workers=1,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(6, 6)]


def test_an_unreadable_unit_is_named_and_the_counts_say_what_is_missing(
    source, tmp_path
):
    recipe = recipe_of(source, counts={"test": 4, "train": 5, "val": 3})
    (source / "u00").unlink()
    (source / "u04").write_text("not a number")
    with pytest.raises(DatasetError) as caught:
        prepare(recipe, tmp_path / "cache", workers=1)
    message = str(caught.value)
    assert "test 2 instead of 4; train 4 instead of 5; val 2 instead of 3" in message
    assert "2 units could not be loaded: u00 (no such file or directory:" in message
    assert "u04 (invalid literal" in message
    assert "--no-check-counts" in message
    with pytest.raises(DatasetError, match="holds no prepared dataset"):
        open_dataset(tmp_path / "cache")


def test_mended_files_are_added_and_nothing_else_is_loaded_again(source, tmp_path):
    recipe = recipe_of(source, counts={"test": 4, "train": 5, "val": 3})
    (source / "u00").unlink()
    with pytest.raises(DatasetError, match="test 2 instead of 4"):
        prepare(recipe, tmp_path / "cache", workers=1)
    accepted = prepare(recipe, tmp_path / "cache", workers=1, check_counts=False)
    assert [key for key, _ in accepted.skipped] == ["u00"]
    assert accepted.counts["test"] == 2
    with pytest.raises(DatasetError, match="test 2 instead of 4"):
        prepare(recipe, tmp_path / "cache", workers=1)
    (source / "u00").write_text("0")
    mended = prepare(recipe, tmp_path / "cache", workers=1)
    assert not mended.skipped
    assert loads(source) == {f"u{i:02d}": 1 for i in range(6)} | {"u00": 4}
    full = prepare(recipe, tmp_path / "other", workers=1)
    assert mended.dataset.fingerprint == full.dataset.fingerprint
    assert not list((tmp_path / "cache").glob("shards*"))


def test_mended_files_of_a_split_whose_number_nobody_knows_are_added_too(
    source, tmp_path
):
    recipe = recipe_of(source, counts={"train": 5, "val": 3})
    (source / "u00").unlink()
    first = prepare(recipe, tmp_path / "cache", workers=1)
    assert [key for key, _ in first.skipped] == ["u00"]
    (source / "u00").write_text("0")
    mended = prepare(recipe, tmp_path / "cache", workers=1)
    assert not mended.skipped
    assert mended.counts["test"] == 4
    assert not list((tmp_path / "cache").glob("shards*"))


def test_files_that_appear_later_are_noticed(source, tmp_path):
    prepare(recipe_of(source, n=6), tmp_path / "cache", workers=1)
    more = prepare(recipe_of(source, n=7), tmp_path / "cache", workers=1)
    assert more.counts["test"] == 6


KILLED = """
    import sys
    from pathlib import Path
    from datasets.test_prepare import recipe_of
    from qualms.datasets import prepare

    if __name__ == "__main__":
        source, folder, workers = sys.argv[1:]
        prepare(recipe_of(Path(source), n=24), folder, workers=int(workers))
"""


def start(source: Path, folder: Path, workers: int) -> subprocess.Popen[bytes]:
    script = source / "script.py"
    source.mkdir(exist_ok=True)
    script.write_text(textwrap.dedent(KILLED))
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, str(script), str(source), str(folder), str(workers)],
        env=os.environ | {"PYTHONPATH": path},
        stderr=subprocess.PIPE,
    )


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.parametrize(("workers", "kills"), [(1, 2), (2, 1)])
def test_a_killed_run_goes_on_where_it_stopped(source, tmp_path, workers, kills):
    folder, most = tmp_path / "cache", source / "most"
    source.mkdir()
    for kill in range(kills):
        most.write_text(str(5 * (kill + 1)))
        process = start(source, folder, workers)
        while sum(loads(source).values()) <= 5 * (kill + 1) and process.poll() is None:
            time.sleep(0.01)
        process.kill()
        _, message = process.communicate()
        assert process.returncode == -signal.SIGKILL, message.decode()
        assert not (folder / "meta.json").exists()
    pids = {int(line.split()[1]) for line in (source / "log").read_text().splitlines()}
    deadline = time.monotonic() + 300
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, pids)), "a worker outlived its killed parent"
    most.unlink()
    recipe = recipe_of(source, n=24)
    resumed = prepare(recipe, folder, workers=1)
    # A kill costs at most the units that were being loaded at that moment.
    assert sum(loads(source).values()) <= 24 + kills * workers
    full = prepare(recipe, tmp_path / "full", workers=1)
    assert contents(folder) == contents(tmp_path / "full")
    assert resumed.dataset.fingerprint == full.dataset.fingerprint
    assert {path.name.split("-")[0] for path in folder.iterdir()} == {
        "arrays",
        "lock",
        "meta.json",
    }


def killed(*_):
    raise KeyboardInterrupt


def test_a_kill_while_publishing_leaves_the_shards(source, tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.datasets._publish.write_meta", killed)
    with pytest.raises(KeyboardInterrupt):
        prepare(recipe_of(source), tmp_path / "cache", workers=1)
    monkeypatch.undo()
    with pytest.raises(DatasetError, match="holds no prepared dataset"):
        open_dataset(tmp_path / "cache")
    prepare(recipe_of(source), tmp_path / "cache", workers=1)
    assert set(loads(source).values()) == {1}
    assert len(list((tmp_path / "cache").glob("arrays-*"))) == 1


def test_a_kill_after_publishing_loses_nothing(source, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        prepare(recipe_of(source), tmp_path / "cache", workers=1)
    monkeypatch.undo()
    before = open_dataset(tmp_path / "cache").fingerprint
    again = prepare(recipe_of(source), tmp_path / "cache", workers=1)
    assert again.dataset.fingerprint == before
    assert set(loads(source).values()) == {1}
    assert not list((tmp_path / "cache").glob("shards*"))


def test_two_processes_on_one_folder_share_the_work(source, tmp_path):
    both = [start(source, tmp_path / "cache", 1) for _ in range(2)]
    for process in both:
        _, message = process.communicate()
        assert process.returncode == 0, message.decode()
    assert set(loads(source).values()) == {1}


def test_a_killed_worker_is_told_in_a_sentence(source, tmp_path):
    with pytest.raises(DatasetError, match="run again with fewer workers"):
        prepare(recipe_of(source, load=die), tmp_path / "cache", workers=2)


def test_a_full_disk_is_told_in_a_sentence_and_keeps_what_is_loaded(source, tmp_path):
    resource = pytest.importorskip("resource")
    recipe = recipe_of(source)
    largest = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, largest[1]))
    try:
        with pytest.raises(DatasetError, match="cannot write the cache in"):
            prepare(recipe, tmp_path / "cache", workers=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, largest)
    assert prepare(recipe, tmp_path / "cache", workers=1).counts["test"] == 4


def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(source, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match="choose another folder"):
        prepare(recipe_of(source), tmp_path / "file" / "cache", workers=1)


def test_a_damaged_shard_is_removed_and_made_again(source, tmp_path):
    recipe = recipe_of(source, counts={"test": 5})
    with pytest.raises(DatasetError, match="test 4 instead of 5"):
        prepare(recipe, tmp_path / "cache", workers=1)
    shard = sorted((tmp_path / "cache").glob("shards/*/*.shard"))[2]
    stored = shard.read_bytes()
    where = stored.index(b"\n") + 5
    changed = bytes([stored[where] ^ 1])
    for damage in (
        b"",
        stored[:20],
        stored[:where],
        b"[]" + stored[stored.index(b"\n") :],
        stored[:where] + changed + stored[where + 1 :],
    ):
        shard.write_bytes(damage)
        with pytest.raises(DatasetError, match="was damaged and has been removed"):
            prepare(recipe, tmp_path / "cache", workers=1, check_counts=False)
        assert not shard.exists()
        with pytest.raises(DatasetError, match="test 4 instead of 5"):
            prepare(recipe, tmp_path / "cache", workers=1)
    mended = prepare(recipe, tmp_path / "cache", workers=1, check_counts=False)
    full = prepare(recipe, tmp_path / "full", workers=1, check_counts=False)
    assert mended.dataset.fingerprint == full.dataset.fingerprint


def test_other_options_belong_in_another_folder(source, tmp_path):
    recipe = recipe_of(source)
    folder = cache_folder(tmp_path, recipe)
    assert folder.name.startswith("fake-")
    assert folder == cache_folder(tmp_path, recipe_of(source))
    for changed in ({"options": {"a": 2}}, {"version": 2}, {"name": "other"}):
        assert cache_folder(tmp_path, replace(recipe, **changed)) != folder
    prepare(recipe, folder, workers=1)
    with pytest.raises(DatasetError, match=r"another dataset \(fake: options"):
        prepare(replace(recipe, options={"a": 2}), folder, workers=1)


def test_shards_of_other_options_are_not_taken_for_ours(source, tmp_path):
    mine = recipe_of(source)
    other = replace(mine, options={"a": 2}, counts={"test": 99})
    with pytest.raises(DatasetError, match="test 4 instead of 99"):
        prepare(other, tmp_path / "cache", workers=1)
    prepare(mine, tmp_path / "cache", workers=1)
    assert set(loads(source).values()) == {2}


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("place", [-1, 70, 0])
def test_a_changed_byte_is_found_and_the_file_and_the_remedy_are_named(
    source, tmp_path, monkeypatch, older, place
):
    monkeypatch.setattr("qualms.datasets._cache.BLOCK", 60)
    folder = tmp_path / "cache"
    prepared = prepare(recipe_of(source), folder, workers=1).dataset.fingerprint
    if older:  # before there were checksums
        without_checksums(folder)
    verify_dataset(folder)
    (image,) = folder.glob("arrays-*/train.image.npy")
    stored = bytearray(image.read_bytes())
    stored[place] ^= 1
    image.write_bytes(stored)
    with pytest.raises(DatasetError) as caught:
        verify_dataset(folder)
    message = str(caught.value)
    assert message.startswith(f"{image} changed after the dataset was prepared: ")
    assert message.endswith(f"; delete {folder} and prepare the dataset again")
    result, recorded = (
        message.split("fingerprint ")[1].split(";")[0].split(" instead of ")
    )
    assert recorded == prepared != result
    stored[place] ^= 1
    image.write_bytes(stored)
    verify_dataset(folder)


def without_checksums(folder: Path) -> None:
    record = folder / "meta.json"
    meta = json.loads(record.read_text())
    for files in meta["splits"].values():
        for entry in files.values():
            assert entry.pop("crc32")
    record.write_text(json.dumps(meta))


def test_what_was_verified_and_not_written_since_is_not_read_again(
    source, tmp_path, monkeypatch
):
    folder = tmp_path / "cache"
    prepare(recipe_of(source), folder, workers=1)
    monkeypatch.setattr("qualms.datasets._open.TICK", -1)
    verify_dataset(folder)
    monkeypatch.setattr("qualms.datasets._open.block_checksum", None)
    verify_dataset(folder)
    time.sleep(0.05)
    (target,) = folder.glob("arrays-*/val.target.npy")
    target.write_bytes(target.read_bytes())
    with pytest.raises(TypeError, match="not callable"):
        verify_dataset(folder)


@pytest.mark.parametrize("damage", ["cut", "gone", "longer"])
def test_a_cut_or_missing_file_is_found_at_once(source, tmp_path, damage):
    folder = tmp_path / "cache"
    prepared = prepare(recipe_of(source), folder, workers=1).dataset.fingerprint
    (target,) = folder.glob("arrays-*/val.target.npy")
    stored = target.read_bytes()
    if damage == "gone":
        target.unlink()
    else:
        target.write_bytes(stored[:-1] if damage == "cut" else stored + b"\0")
    with pytest.raises(
        DatasetError, match=f"target.npy changed .* instead of {prepared}"
    ):
        open_dataset(folder)


def test_an_edited_record_is_found(source, tmp_path):
    folder = tmp_path / "cache"
    prepare(recipe_of(source), folder, workers=1)
    record = folder / "meta.json"
    meta = json.loads(record.read_text())
    record.write_text(json.dumps(meta | {"options": {"a": 7}}))
    with pytest.raises(DatasetError, match=r"meta.json changed after .* instead of "):
        open_dataset(folder)
    record.write_text(json.dumps(meta | {"format": 99}))
    with pytest.raises(DatasetError, match="cache format 99"):
        open_dataset(folder)
    record.write_text("{")
    with pytest.raises(DatasetError, match="is not the record of a dataset"):
        open_dataset(folder)


def test_the_fingerprint_follows_the_options_and_the_data(source, tmp_path):
    recipe = recipe_of(source)
    prints = {prepare(recipe, tmp_path / "a", workers=1).dataset.fingerprint}
    other = replace(recipe, options={"a": 2})
    prints.add(prepare(other, tmp_path / "b", workers=1).dataset.fingerprint)
    (source / "u05").write_text("9")
    prints.add(prepare(recipe, tmp_path / "c", workers=1).dataset.fingerprint)
    assert len(prints) == 3


def test_halves_of_a_split_take_turns_within_each_class():
    target = np.array([4, 1, 4, 4, 1, 0, 4])
    even, odd = (Subset(of="test", half=half).keep(target) for half in ("even", "odd"))
    assert even.tolist() == [0, 1, 3, 5]
    assert odd.tolist() == [2, 4, 6]


def test_halves_survive_preparing(source, tmp_path):
    subset = Subset(of="test", half="odd")
    recipe = recipe_of(source, subsets={"test/odd": subset})
    assert prepare(recipe, tmp_path, workers=1).dataset.subsets == {"test/odd": subset}


def test_a_subset_is_a_filtered_split(source, tmp_path):
    subset = Subset(of="test", within=((0.0, 0.25), (3.25, 9.0)))
    recipe = recipe_of(source, subsets={"test/ends": subset})
    prepare(recipe, tmp_path / "cache", workers=1)
    dataset = open_dataset(tmp_path / "cache")
    assert dataset.subsets == {"test/ends": subset}
    assert dataset.rows("test/ends").tolist() == [0, 3]
    assert dataset.rows("test").tolist() == [0, 1, 2, 3]
    part = dataset.split("test/ends")
    assert part.item.tolist() == ["u00/first", "u03/second"]
    assert part.image[:, 0, 0, 0].tolist() == [0, 3]
    assert part.extra["group"].tolist() == ["u00", "xxx"]
    assert dataset.split("val") is dataset.splits["val"]
    with pytest.raises(LookupError, match="Did you mean 'test/ends'"):
        dataset.rows("test/end")


def test_swaps_are_kept_and_belong_to_the_fingerprint(source, tmp_path):
    plain = prepare(recipe_of(source), tmp_path / "plain", workers=1).dataset
    swapped = recipe_of(source, swaps={3: 20, 0: 19}, swap_share=1 / 3)
    prepared = prepare(swapped, tmp_path / "swapped", workers=1).dataset
    assert (plain.swaps, plain.swap_share) == ({}, 0.0)
    assert (prepared.swaps, prepared.swap_share) == ({0: 19, 3: 20}, 1 / 3)
    assert prepared.fingerprint != plain.fingerprint
    assert cache_folder("x", swapped) != cache_folder("x", recipe_of(source))
    for other, folder in ((swapped, "plain"), (recipe_of(source), "swapped")):
        with pytest.raises(DatasetError, match="holds another dataset"):
            prepare(other, tmp_path / folder, workers=1)


def test_a_split_may_have_a_slash_in_its_name(source, tmp_path):
    units = (Unit(key="u00", split="test/abroad"),)
    recipe = replace(recipe_of(source), units=units, divide={})
    dataset = prepare(recipe, tmp_path / "cache", workers=1).dataset
    assert len(dataset.splits["test/abroad"]) == 2


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"item": ("even",)}, "must be unique, got even 2 times"),
        ({"image": np.zeros((1, 2, 3, 1), np.uint8)}, r"image \(2, 3, 1\) uint8"),
        ({"image": np.zeros((1, 2, 2, 1), np.float32)}, r"\(2, 2, 1\) float32"),
        ({"extra": {"more": np.zeros(1)}}, "'extra/more'"),
    ],
)
def test_units_that_do_not_fit_together_are_refused_by_name(tmp_path, arrays, message):
    with pytest.raises(DatasetError, match=message):
        prepare(with_odd(**arrays), tmp_path / "cache", workers=1)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"target": np.zeros(2)}, "target must have one row per item, got 2 rows"),
        ({"extra": {"x": np.array([{}])}}, "extra/x must hold numbers or text"),
    ],
)
def test_a_malformed_unit_is_left_out_with_a_sentence(tmp_path, arrays, message):
    done = prepare(with_odd(**arrays), tmp_path / "cache", workers=1)
    assert [key for key, _ in done.skipped] == ["odd"]
    assert message in done.skipped[0].reason
    assert done.counts == {"test": 1}


def test_a_unit_may_hold_no_items(tmp_path):
    empty = {"image": np.zeros((0, 9, 9, 1)), "target": np.zeros(0), "item": ()}
    done = prepare(with_odd(**empty), tmp_path / "cache", workers=1)
    assert done.counts == {"test": 1}
    assert not done.skipped


def test_a_split_without_items_is_refused_even_when_counts_are_not_checked(
    source, tmp_path
):
    recipe = recipe_of(source)
    for name in ("u00", "u03"):
        (source / name).unlink()
    with pytest.raises(DatasetError, match=r"no items for test\. 2 units .* u00"):
        prepare(recipe, tmp_path / "cache", workers=1, check_counts=False)


def test_a_recipe_without_units_says_how_to_get_the_data(source, tmp_path):
    with pytest.raises(DatasetError, match=r"no data was found\. Make it up\."):
        prepare(replace(recipe_of(source), units=()), tmp_path / "cache")


def test_mistakes_in_a_recipe_are_told(source, tmp_path):
    recipe = recipe_of(source)
    with pytest.raises(ValueError, match="unit keys must be unique, got 'u00' twice"):
        prepare(replace(recipe, units=recipe.units[:1] * 2), tmp_path / "cache")
    with pytest.raises(TypeError, match="must be plain JSON values"):
        prepare(replace(recipe, options={"a": {1}}), tmp_path / "cache", workers=1)
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        prepare(recipe, tmp_path / "cache", workers=0)
    twice = {"part": Divide(into=("train", "test"), first=0.5)}
    with pytest.raises(ValueError, match="split 'test' of 'fake' is made twice"):
        prepare(replace(recipe, divide=twice), tmp_path / "cache", workers=1)
    with pytest.raises(ValueError, match="into must name two splits"):
        Divide(into=("train",), first=0.5)
    with pytest.raises(ValueError, match="first must lie between 0 and 1"):
        Divide(into=("train", "val"), first=1.5)


@pytest.mark.parametrize(
    "damage",
    [
        lambda head: head.replace(b"{'descr'", b"('descr'"),
        lambda head: head.replace(b"'|u1'", b"'|x1'"),
        lambda head: head.replace(b", 3, 4, 1)", b", 3, \x00, 1)"),
        lambda head: head.replace(b"NUMPY", b"NUMMY"),
        lambda head: head.replace(b"'shape'", b"'shap_'"),
    ],
)
def test_a_damaged_header_of_a_stored_array_is_named(source, tmp_path, damage):
    folder = tmp_path / "cache"
    prepare(recipe_of(source), folder, workers=1)
    (image,) = folder.glob("arrays-*/train.image.npy")
    stored = image.read_bytes()
    image.write_bytes(damage(stored[:128]) + stored[128:])
    assert image.read_bytes() != stored
    with pytest.raises(DatasetError, match=r"was damaged after the dataset.*delete"):
        open_dataset(folder)


def faulty(kind: str, unit: Unit) -> LoadedItems:
    if kind == "type":
        return None + 1
    if kind == "key":
        return {}["x"]
    if kind == "lists":
        return LoadedItems(image=[[1]], target=[1], item=("a",))
    return None


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("type", "fails with TypeError: unsupported operand type"),
        ("key", "fails with KeyError 'x'; correct the function"),
        ("lists", "fails with AttributeError: 'list' object has no attribute 'dtype'"),
        ("none", "must return LoadedItems, got NoneType; correct the function"),
    ],
)
def test_a_fault_in_the_code_of_a_dataset_names_it(
    source, tmp_path, kind, said, workers
):
    recipe = recipe_of(source, load=partial(faulty, kind))
    sentence = f"dataset 'fake': load of unit 'u0[0-9]' {said}"
    with pytest.raises(DatasetError, match=sentence):
        prepare(recipe, tmp_path / "cache", workers=workers)


def test_a_load_that_other_processes_cannot_import_is_refused(source, tmp_path):
    recipe = recipe_of(source, load=lambda _unit: None)
    with pytest.raises(DatasetError, match="'fake': load must be a function of a modu"):
        prepare(recipe, tmp_path / "cache", workers=2)
