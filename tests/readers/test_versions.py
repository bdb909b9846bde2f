"""Files of other programs that are exchanged while they are read are never mixed."""

import os
import shutil
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image

from qualms.predictions import Maps, PredictionsError, Reader, read
from qualms.readers import ForeignCases, ForeignContents

CHANGED = "was changed or replaced"
CASES, SIDE = 4, 12
MAPS = Maps(
    mean_probs=np.full((2, 3), 0.5),
    expected_entropy=np.zeros(3),
    draw_labels=np.zeros((1, 3), np.uint8),
    raters=np.zeros((1, 3), np.uint8),
)


def masks(folder, number):
    """Maps and masks that all hold the number of the version."""
    for place, value in (("probabilities", 100 * number), ("masks", number % 2)):
        (folder / place).mkdir(parents=True, exist_ok=True)
        for case in range(CASES):
            picture = Image.fromarray(np.full((SIDE, SIDE), value, np.uint8))
            picture.save(folder / place / f"{case}.png")
    rows = "".join(f"{case},v{number}\n" for case in range(CASES))
    (folder / "items.csv").write_text(f"item,group\n{rows}")


def version_of_masks(found):
    """The version of a folder; fails where it is of two."""
    numbers = {int(name[1]) for name in found.arrays["group"]}
    for maps in found.maps:
        numbers.add(round(float(maps.mean_probs[1].max()) * 2.55))
        numbers.add(2 - int(maps.raters.max()))
    (number,) = numbers
    return number


def csv(path, number):
    rows = "".join(f"{number % 2},0.{number}\n" for _ in range(3000))
    path.write_text(f"y_true,y_prob\n{rows}")


def npz(path, number):
    shape = 4000
    truth, probs = np.full(shape, number % 2), np.full(shape, number / 10)
    np.savez(path, y_true=truth, y_prob=probs)


def version_of_table(found):
    numbers = set(np.rint(found.arrays["probs"][0, :, 1] * 10).astype(int).tolist())
    numbers |= {2 - int(target) for target in found.arrays["target"]}
    (number,) = numbers
    return number


def in_place(make, path, number):
    make(path, number)


def exchanged(make, path, number):
    other = path.with_name(f"other{path.suffix}")
    make(other, number)
    if path.is_dir():
        path.rename(old := path.with_name("old"))
        other.rename(path)
        shutil.rmtree(old)
    else:
        other.replace(path)


@pytest.mark.parametrize("how", [in_place, exchanged])
@pytest.mark.parametrize(
    ("name", "make", "version_of"),
    [
        ("folder", masks, version_of_masks),
        ("t.csv", csv, version_of_table),
        ("t.npz", npz, version_of_table),
    ],
)
def test_reads_while_somebody_writes_are_whole_or_refused(
    tmp_path, name, make, version_of, how
):
    """Of 135 reads of a folder of masks, 120 were mixtures."""
    path = tmp_path / name
    make(path, 1)
    assert version_of(read(path)) == 1
    stop = threading.Event()

    def keep_writing():
        number = 1
        while not stop.is_set():
            number = 3 - number
            how(make, path, number)
            if number == 1:
                stop.wait(0.15)  # else no read would ever begin in quiet

    writer = threading.Thread(target=keep_writing)
    writer.start()
    reads, until = 0, time.monotonic() + 1.0
    try:
        while time.monotonic() < until:
            reads += 1
            with suppress(PredictionsError):
                assert version_of(read(path)) in (1, 2)
    finally:
        stop.set()
        writer.join()
    assert reads > 3
    assert version_of(read(path)) in (1, 2)


def test_a_case_that_is_replaced_after_its_folder_was_read_is_refused(tmp_path):
    masks(tmp_path / "folder", 1)
    found = read(tmp_path / "folder")
    assert found.maps[0].raters.max() == 1
    for place in ("probabilities", "masks"):
        path = tmp_path / "folder" / place / "2.png"
        before = path.read_bytes()
        path.write_bytes(before)
        os.utime(path, ns=(0, time.time_ns() + 10**9))
        with pytest.raises(
            PredictionsError, match=rf"2.png {CHANGED} while its folder"
        ):
            found.maps[2]
        found = read(tmp_path / "folder")
        assert found.maps[2].raters.max() == 1


def test_any_reader_is_guarded(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("0.5")

    def careless(path, _request):
        path.write_text("0.25,0.5")
        return ForeignContents(arrays={"prob": [0.5]})

    with pytest.raises(PredictionsError, match=f"a.csv {CHANGED} while its folder"):
        read(path, reader=Reader(recognise=lambda _: True, read=careless))

    def one_case(path, _request):
        cases = ForeignCases(lambda _row: MAPS, ("a",), files=[(path,)])
        return ForeignContents(arrays={"item": ["a"]}, cases=cases)

    found = read(path, reader=Reader(recognise=lambda _: True, read=one_case))
    path.write_text("1")
    with pytest.raises(PredictionsError, match=CHANGED):
        found.maps[0]
