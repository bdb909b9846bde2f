"""A file that is replaced while it is read is never read as a mixture."""

import json
import os
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import qualms.predictions._binary as binary
from predictions import made
from qualms.predictions import Maps, PredictionsError, read, write

CHANGED = "was changed or replaced"
IGNORE = {"ignore": 255}
ENDINGS = [".npz", ".safetensors", ".parquet", ".csv"]


def version(number, rows=40):
    """Predictions in which every number is that of the version, and in the header."""
    share = number / 10
    arrays = {
        "target": np.full(rows, number),
        "probs": np.full((rows, 5), [share, *[(1 - share) / 4] * 4]),
        "uncertainty/a": np.full(rows, share),
        "uncertainty/b": np.full(rows, share),
    }
    return arrays, {"seed": number}


def number_of(predictions):
    """The version of predictions; fails where they are of two."""
    arrays = predictions.arrays
    numbers = {predictions.header.seed, *arrays["target"].tolist()}
    for values in (arrays["probs"][..., 0], arrays["uncertainty/a"]):
        numbers |= set(np.rint(values.ravel() * 10).astype(int).tolist())
    numbers |= set(np.rint(arrays["uncertainty/b"] * 10).astype(int).tolist())
    (number,) = numbers
    return number


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_is_exchanged_after_each_array_is_whole_or_refused(
    tmp_path, ending, monkeypatch
):
    path = tmp_path / f"p{ending}"
    files = {}
    for number in (1, 2):
        arrays, header = version(number)
        files[number] = write(tmp_path / f"v{number}{ending}", arrays, header=header)
    place(files[1], path)
    seen = []

    def exchanging(raw_array):
        seen.append(raw_array.name)
        place(files[1 + len(seen) % 2], path)
        return values(raw_array)

    from qualms.predictions import _normal

    values = _normal.normal_values
    monkeypatch.setattr(_normal, "normal_values", exchanging)
    with pytest.raises(PredictionsError, match=CHANGED):
        read(path)
    assert len(seen) == 4
    monkeypatch.undo()
    assert number_of(read(path)) == 1


def place(file, path):
    """Put copies of a file and of its header in place, as another program does."""
    for source, target in ((file, path), (beside(file), beside(path))):
        if source.exists():
            copy = target.with_name("copy")
            copy.write_bytes(source.read_bytes())
            copy.replace(target)


def beside(path):
    return path.with_name(f"{path.name}.json")


def test_a_file_that_is_written_over_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "p.npz", version(1)[0])
    other = write(tmp_path / "q.npz", version(2)[0]).read_bytes()
    load = binary._load_npz

    def overwriting(archive, info, name):
        array = load(archive, info, name)
        if name == "target":
            path.write_bytes(other)
            os.utime(path, ns=(time.time_ns(), time.time_ns() + 10**9))
        return array

    monkeypatch.setattr(binary, "_load_npz", overwriting)
    with pytest.raises(PredictionsError):
        read(path)


def test_a_folder_that_is_replaced_while_it_is_read_is_refused(tmp_path):
    folder = tmp_path / "maps"
    write(folder, made.segmentation(items=3, seed=1), header=IGNORE)
    before = read(folder)
    first = before.maps[0].mean_probs
    write(folder, made.segmentation(items=3, seed=2), header=IGNORE)
    with pytest.raises(PredictionsError, match=f"{CHANGED} after its folder was read"):
        before.maps[1]
    assert not np.array_equal(read(folder).maps[0].mean_probs, first)


def test_an_index_that_is_replaced_while_it_is_read_is_refused(tmp_path, monkeypatch):
    folder = write(tmp_path / "maps", made.segmentation(items=3, seed=1), header=IGNORE)
    from qualms.predictions import _folder

    listed = _folder._items

    def replacing(index):
        monkeypatch.undo()
        write(folder, made.segmentation(items=3, seed=2), header=IGNORE)
        return listed(index)

    monkeypatch.setattr(_folder, "_items", replacing)
    with pytest.raises(PredictionsError, match=CHANGED):
        read(folder)
    assert len(read(folder).maps) == 3  # the folder that replaced it is whole


def maps_of(number):
    """Three segmented items whose labels are all the number of the version."""
    labels = np.full((2, 6, 5), number, np.uint8)
    maps = Maps(
        mean_probs=np.full((3, 6, 5), 1 / 3),
        expected_entropy=np.zeros((6, 5)),
        draw_labels=labels,
        raters=labels,
    )
    return {"maps": [maps] * 3, "item": [f"{number} {row}" for row in range(3)]}


def number_of_maps(predictions):
    numbers = {int(name[0]) for name in predictions.arrays["item"]}
    for maps in predictions.maps:
        numbers |= set(np.unique(maps.raters).tolist())
        numbers |= set(np.unique(maps.draw_labels).tolist())
    (number,) = numbers
    return number


@contextmanager
def rewritten(write_version):
    """Write versions 1 and 2 again and again within the context."""
    stop = threading.Event()

    def keep_writing():
        while not stop.is_set():
            for number in (1, 2):
                write_version(number)

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("ending", [*ENDINGS, ""])
def test_reads_while_somebody_writes_are_whole_or_refused(tmp_path, ending):
    """Of 552 reads of an npz that was exchanged meanwhile, 520 were mixtures."""
    path = tmp_path / f"p{ending}"

    def write_version(number):
        arrays, header = version(number) if ending else (maps_of(number), None)
        write(path, arrays, header=header)

    number_in = number_of if ending else number_of_maps
    write_version(1)
    reads, until = 0, time.monotonic() + 1.5
    with rewritten(write_version):
        while time.monotonic() < until:
            reads += 1
            with suppress(PredictionsError):
                assert number_in(read(path)) in (1, 2)
    assert reads > 5
    assert read(path).n


def test_many_arrays_take_time_in_proportion(tmp_path):
    """Reading 4,000 arrays took a hundred times as long as reading 400."""

    def seconds(count):
        arrays = {f"extra/{k}": np.zeros(2) for k in range(count)}
        path = tmp_path / f"{count}.npz"
        np.savez(path, target=[0, 1], prob=[0.2, 0.9], **arrays)
        start = time.process_time()
        read(path)
        return time.process_time() - start

    seconds(10)
    assert seconds(1600) < 30 * max(seconds(160), 0.02)


def test_metadata_that_is_null_is_none(tmp_path):
    path = write(tmp_path / "p.safetensors", version(1)[0])
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    index = json.loads(content[8 : 8 + size])
    index["__metadata__"] = None
    text = json.dumps(index).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])
    found = read(path)
    assert found.header.seed is None
    assert found.n == 40
    alone = b'{"__metadata__":null}'
    path.write_bytes(len(alone).to_bytes(8, "little") + alone)
    with pytest.raises(PredictionsError, match=r"must hold arrays .*, got none; write"):
        read(path)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("stage", range(1, 4))
def test_a_table_whose_writer_is_killed_has_its_own_header(
    tmp_path, ending, stage, monkeypatch
):
    """The writer dies before the first, second or third file is in place."""
    old, new = version(1), version(2)
    path = write(tmp_path / f"p{ending}", old[0], header=old[1])
    done = []

    def dying(self, target):
        done.append(target)
        if len(done) >= stage:
            raise KeyboardInterrupt
        return rename(self, target)

    rename = Path.replace
    monkeypatch.setattr(Path, "replace", dying)
    with pytest.raises(KeyboardInterrupt):
        write(path, new[0], header=new[1])
    monkeypatch.undo()
    assert number_of(read(path)) == (2 if stage == 3 else 1)
    write(path, new[0], header=new[1])
    assert number_of(read(path)) == 2
    # A table that somebody edits afterwards keeps its header.
    if ending == ".csv":
        path.write_text(path.read_text() + "2,.2,.2,.2,.2,.2,.2,.2\n")
        beside(path).write_text('{"seed": 2}')
        assert number_of(read(path)) == 2


def test_a_table_changed_after_its_writer_was_killed_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "p.csv", version(1)[0], header={"seed": 1})
    before = path.read_text()

    def dying(self, target):
        if target == path:
            raise KeyboardInterrupt
        return rename(self, target)

    rename = Path.replace
    monkeypatch.setattr(Path, "replace", dying)
    with pytest.raises(KeyboardInterrupt):
        write(path, version(2)[0], header={"seed": 2})
    monkeypatch.undo()
    path.write_text(before + before.splitlines()[-1] + "\n")
    with pytest.raises(PredictionsError, match=r"no header of this table; write it ag"):
        read(path)
