"""VentricularVolume: volume of the left ventricle from one frame of an echocardiogram.

EchoNet-Dynamic (Ouyang et al., 2020) with its own splits, as in Gustafsson et al.
(2023, arXiv:2302.03679): train and val show the heart at end-systole with the target
`ESV`, test at end-diastole with `EDV`, in millilitres. One frame per video, one video
per patient; videos without two traced frames are left out.

The files do not say which of the two traced frames is which. The released code takes
the first listed frame for diastole, and so do we by default, so that numbers compare
with the published ones. EchoNet's own loader takes the last one. `order="area"` takes
the frame with the larger traced area, since the ventricle is largest at end-diastole.
Frames are stored RGB; the released code kept OpenCV's BGR.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._options import check_choice
from qualms.datasets._publisher_files import CsvRow, finite_number, locate, read_table
from qualms.datasets._recipe import Card, DatasetError, LoadedItems, Recipe, Unit
from qualms.datasets._resize import bilinear
from qualms.spec import Task

SIDE = 64
ORDERS = ("listed", "area")
Order = Literal["listed", "area"]
SPLITS = {"TRAIN": "train", "VAL": "val", "TEST": "test"}

CARD = Card(
    title="EchoNet-Dynamic",
    licence=(
        "Stanford University Dataset Research Use Agreement, accepted when registering;"
        " see the publisher"
    ),
    citation=(
        "Ouyang et al.: Video-based AI for beat-to-beat assessment of cardiac "
        "function. Nature 580, 2020."
    ),
    url="https://echonet.github.io/dynamic/",
    obtain=(
        "Sign the agreement, extract EchoNet-Dynamic.zip and pass the folder that "
        "holds EchoNet-Dynamic/: FileList.csv (FileName, ESV, EDV, Split, ...), "
        "VolumeTracings.csv (FileName, X1, Y1, X2, Y2, Frame), Videos/<FileName>.avi."
    ),
)

Traces = dict[str, dict[int, list[tuple[float, float, float, float]]]]


def ventricular_volume(root: str | Path, *, order: Order = "listed") -> Recipe:
    """Read images (64, 64, 3), target the ventricular volume in millilitres.

    Args:
        root: the folder that holds EchoNet-Dynamic/.
        order: rule that finds the frame of diastole. "listed" takes the first listed
            frame, as the released code does, "area" the one with the larger traced
            area.
    """
    check_choice("order", order, ORDERS)
    needed = ["FileList.csv", "VolumeTracings.csv", "Videos"]
    folder = locate(Path(root), "EchoNet-Dynamic", holding=needed)
    traces = _traces(folder / "VolumeTracings.csv")
    rows = read_table(folder / "FileList.csv", ("FileName", "ESV", "EDV", "Split"))
    units = [
        _unit(row, traces[name], order)
        for row in sorted(rows, key=lambda row: row.fields["FileName"])
        if len(traces.get(name := _video(row), {})) >= 2
    ]
    return Recipe(
        name="ventricular_volume",
        options={"order": order},
        card=CARD,
        task=Task(name="regression"),
        units=tuple(units),
        load=partial(_load, folder / "Videos"),
        counts={"train": 7_460, "val": 1_288, "test": 1_276},
        shifts={"test": "end-diastole instead of end-systole"},
    )


def _traces(path: Path) -> Traces:
    """Read the traced lines by video and frame, both in the order of the file."""
    traces: Traces = {}
    rows = read_table(path, ("FileName", "X1", "Y1", "X2", "Y2", "Frame"))
    for row in rows:
        where = f"line {row.line} of {path}"
        x1, y1, x2, y2, frame = (
            finite_number(row.fields, column, where=where)
            for column in ("X1", "Y1", "X2", "Y2", "Frame")
        )
        video = traces.setdefault(_video(row), {})
        video.setdefault(int(frame), []).append((x1, y1, x2, y2))
    return traces


def _video(row: CsvRow) -> str:
    return row.fields["FileName"].removesuffix(".avi")


def _unit(
    row: CsvRow,
    frames: Mapping[int, list[tuple[float, float, float, float]]],
    order: Order,
) -> Unit:
    name, stated_split = _video(row), row.fields["Split"]
    if stated_split.upper() not in SPLITS:
        raise DatasetError(
            f"Split must be TRAIN, VAL or TEST, got {stated_split!r} for {name}"
        )
    split = SPLITS[stated_split.upper()]
    diastole, systole = _phases(frames, order)
    volume = "EDV" if split == "test" else "ESV"
    frame = diastole if split == "test" else systole
    target = finite_number(
        row.fields, volume, where=f"the row of {name} in FileList.csv"
    )
    return Unit(key=name, split=split, args=(frame, target))


def _phases(
    frames: Mapping[int, list[tuple[float, float, float, float]]], order: Order
) -> tuple[int, int]:
    """Return the frames of diastole and systole."""
    in_order = list(frames)
    if order == "listed":
        return in_order[0], in_order[1]
    area = {frame: _area(np.array(frames[frame])) for frame in in_order}
    # sorted() is stable: equal areas keep the order of the file.
    ranked = sorted(in_order, key=lambda frame: -area[frame])
    return ranked[0], ranked[-1]


def _area(line: NDArray[np.float64]) -> float:
    """Compute the area of an outline from its long axis and chords, `line` (n, 4)."""
    chord = line[1:]
    x = np.concatenate([chord[:, 0], chord[::-1, 2]])
    y = np.concatenate([chord[:, 1], chord[::-1, 3]])
    return 0.5 * float(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))))


def _load(folder: Path, unit: Unit) -> LoadedItems:
    frame, volume = unit.args
    image = _frame(folder / f"{unit.key}.avi", frame)
    return LoadedItems(
        image=bilinear(image, SIDE)[None],
        target=np.array([volume], dtype=np.float32),
        item=(unit.key,),
    )


def _frame(path: Path, frame: int) -> NDArray[np.uint8]:
    import cv2

    if not path.is_file():
        raise DatasetError(f"there is no file {path}")
    video = cv2.VideoCapture(str(path))
    try:
        if not video.isOpened():
            raise DatasetError(f"cannot read {path}: OpenCV finds no video in it")
        # Seeking by frame number is not exact for every codec, so step through.
        passed = all(video.grab() for _ in range(frame))
        good, image = video.read()
    finally:
        video.release()
    if not (passed and good):
        raise DatasetError(f"cannot read {path}: it ends before frame {frame}")
    return np.asarray(image[..., ::-1], dtype=np.uint8)
