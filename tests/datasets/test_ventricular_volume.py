import cv2
import numpy as np
import pytest

from qualms.datasets import DatasetError, prepare
from qualms.datasets.ventricular_volume import _area, ventricular_volume

HEADER = "FileName,EF,ESV,EDV,FrameHeight,FrameWidth,FPS,NumberOfFrames,Split"


def write_video(path, frames=8):
    video = cv2.VideoWriter(
        str(path), cv2.VideoWriter.fourcc(*"MJPG"), 50, (112, 112), True
    )
    for i in range(frames):
        image = np.full((112, 112, 3), 25 * i + 20, np.uint8)
        image[:, :56, 0] = 0
        video.write(image)
    video.release()


def trace(name, frame, half):
    """The long axis, then chords of a square with sides 2 * `half` at (50, 50)."""
    lines = [f"{name}.avi,50,{50 - half},50,{50 + half},{frame}"]
    chords = (
        f"{name}.avi,{50 - half},{y},{50 + half},{y},{frame}"
        for y in (50 - half, 50, 50 + half)
    )
    return [*lines, *chords]


@pytest.fixture
def root(tmp_path):
    """a, b: the larger area first; c, d: second; e, f: fewer than two traces."""
    home = tmp_path / "raw" / "EchoNet-Dynamic"
    (home / "Videos").mkdir(parents=True)
    files = [HEADER]
    traces = ["FileName,X1,Y1,X2,Y2,Frame"]
    for number, name in enumerate("dcbaef"):
        split = {"a": "TRAIN", "c": "VAL", "e": "TRAIN", "f": "VAL"}.get(name, "TEST")
        files.append(f"{name},60,{10 + number},{100 + number},112,112,50,8,{split}")
        write_video(home / "Videos" / f"{name}.avi")
        first, second = (20, 10) if name in "ab" else (10, 20)
        if name != "e":
            traces += trace(name, 2, first)
        if name not in "ef":
            traces += trace(name, 5, second)
    (home / "FileList.csv").write_text("\n".join(files) + "\n")
    (home / "VolumeTracings.csv").write_text("\n".join(traces) + "\n")
    return tmp_path / "raw"


def chosen(recipe):
    return {unit.key: (unit.split, *unit.args) for unit in recipe.units}


def test_the_area_is_that_of_the_outline_without_the_long_axis():
    # a trapezoid 10 wide at the top, 4 at the bottom and 5 high
    lines = np.array([[5, -50, 5, 50], [0, 0, 10, 0], [2, 5, 6, 5]], dtype=float)
    assert _area(lines) == 35


def test_the_larger_traced_area_is_diastole(root):
    assert chosen(ventricular_volume(root, order="area")) == {
        "a": ("train", 5, 13.0),
        "b": ("test", 2, 102.0),
        "c": ("val", 2, 11.0),
        "d": ("test", 5, 100.0),
    }


def test_the_released_rule_is_the_default_and_goes_by_the_order_of_the_list(root):
    recipe = ventricular_volume(root / "EchoNet-Dynamic")
    assert recipe.options == {"order": "listed"}
    assert chosen(recipe) == {
        "a": ("train", 5, 13.0),
        "b": ("test", 2, 102.0),
        "c": ("val", 5, 11.0),
        "d": ("test", 2, 100.0),
    }


def test_equal_areas_fall_back_to_the_order_of_the_list(root):
    path = root / "EchoNet-Dynamic" / "VolumeTracings.csv"
    lines = ["FileName,X1,Y1,X2,Y2,Frame", *trace("a", 2, 9), *trace("a", 5, 9)]
    path.write_text("\n".join(lines))
    recipe = ventricular_volume(root, order="area")
    assert chosen(recipe) == {"a": ("train", 5, 13.0)}


def test_frames_are_stored_rgb_at_64(root, tmp_path):
    recipe = ventricular_volume(root, order="area")
    prepared = prepare(recipe, tmp_path / "c", workers=1, check_counts=False)
    assert prepared.skipped == ()
    split = prepared.dataset.splits["test"]
    assert split.item.tolist() == ["b", "d"]
    assert split.target.tolist() == [102.0, 100.0]
    assert split.image.shape == (2, 64, 64, 3)
    # red is 25 * frame + 20 everywhere, blue only on the right; MJPG is lossy
    for image, frame in zip(split.image, [2, 5], strict=True):
        right = image[:, 40:].astype(float)
        np.testing.assert_allclose(right, 25 * frame + 20, atol=6)
        assert image[:, :20, 2].mean() < image[:, :20, 0].mean() - 20
    assert list(prepared.dataset.shifts) == ["test"]
    assert recipe.counts == {"train": 7_460, "val": 1_288, "test": 1_276}


def test_unreadable_videos_are_named(root, tmp_path):
    videos = root / "EchoNet-Dynamic" / "Videos"
    (videos / "a.avi").unlink()
    (videos / "b.avi").write_bytes(b"no video")
    write_video(videos / "d.avi", frames=5)
    recipe = ventricular_volume(root, order="area")
    sentences = [
        r"there is no file .*a\.avi",
        r"cannot read .*b\.avi: OpenCV finds no video in it",
        r"cannot read .*d\.avi: it ends before frame 5",
    ]
    for unit, sentence in zip(
        recipe.units[:2] + recipe.units[3:], sentences, strict=True
    ):
        with pytest.raises(DatasetError, match=sentence):
            recipe.load(unit)
    with pytest.raises(DatasetError, match=r"3 units could not be loaded: a .*; d "):
        prepare(recipe, tmp_path / "c", workers=1, check_counts=False)


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("FileList.csv", "ESV", "Volume", r"columns .* ESV not in FileName"),
        ("FileList.csv", "TRAIN", "DEV", r"Split must be TRAIN, .* got 'DEV' for a"),
        ("FileList.csv", "60,13,", "60,,", r"ESV must be a finite number, .* row of a"),
        ("VolumeTracings.csv", ",Frame", ",Time", r"columns .* Frame not in"),
        ("VolumeTracings.csv", ",2\n", ",two\n", r"Frame must be a finite number, .*"),
    ],
)
def test_wrong_tables_are_said(root, file, old, new, sentence):
    path = root / "EchoNet-Dynamic" / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DatasetError, match=sentence):
        ventricular_volume(root)


def test_a_wrong_place_or_order_is_said(root, tmp_path):
    with pytest.raises(
        DatasetError, match=r"FileList\.csv and VolumeTracings\.csv and"
    ):
        ventricular_volume(tmp_path)
    with pytest.raises(ValueError, match="order must be one of listed, area, got 'es'"):
        ventricular_volume(root, order="es")
