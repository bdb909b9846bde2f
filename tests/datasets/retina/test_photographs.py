"""Which photographs are decoded by OpenCV, and which are left to Pillow to refuse."""

import io

import cv2
import numpy as np
import pytest
from PIL import Image
from skimage.data import retina

from qualms.datasets import DatasetError
from qualms.datasets._retina import photographs
from qualms.datasets._retina.photographs import read_photograph

SMALL = cv2.resize(retina(), (300, 280))


def encoded(**options):
    data = io.BytesIO()
    Image.fromarray(SMALL).save(data, "jpeg", quality=90, **options)
    return data.getvalue()


def with_thumbnail():
    """A photograph whose EXIF segment holds a small JPEG, as cameras write it."""
    thumbnail = io.BytesIO()
    Image.fromarray(SMALL[::8, ::8].copy()).save(thumbnail, "jpeg")
    held = b"Exif\0\0" + thumbnail.getvalue()
    segment = b"\xff\xe1" + (len(held) + 2).to_bytes(2, "big") + held
    plain = encoded()
    return plain[:2] + segment + plain[2:]


WHOLE = {
    "baseline": encoded(),
    "progressive": encoded(progressive=True),
    "thumbnail": with_thumbnail(),
    "restarts": encoded(restart_marker_rows=1),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "1_left.jpeg"


@pytest.mark.parametrize("kind", WHOLE)
def test_a_whole_photograph_never_needs_pillow(path, monkeypatch, kind):
    path.write_bytes(WHOLE[kind])
    monkeypatch.setattr(photographs, "read_rgb", None)
    np.testing.assert_array_equal(read_photograph(path), cv2.imread(str(path)))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.95])
@pytest.mark.parametrize("kind", WHOLE)
def test_a_download_that_began_again_after_a_part_is_refused(path, kind, share):
    data = WHOLE[kind]
    path.write_bytes(data[: int(share * len(data))] + data)
    with pytest.raises(DatasetError, match=r"cannot read .*1_left\.jpeg: broken data"):
        read_photograph(path)


@pytest.mark.parametrize(
    "after", [WHOLE["baseline"], b"\0\0\n", WHOLE["baseline"][-900:]]
)
def test_what_follows_a_whole_photograph_does_not_matter(path, after):
    path.write_bytes(WHOLE["baseline"] + after)
    np.testing.assert_array_equal(
        read_photograph(path),
        cv2.imdecode(np.frombuffer(WHOLE["baseline"], np.uint8), 1),
    )


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xd8\xff\xd9",
        b"\xff\xd8\xff\xe0\xff\xff\xff\xd9",
        b"\xff\xd8\x00\x00\xff\xd9",
        b"\xff\xd9",
        b"",
    ],
)
def test_what_has_no_pixels_at_all_is_refused(path, data):
    path.write_bytes(data)
    with pytest.raises(DatasetError, match=r"cannot read .*1_left\.jpeg: "):
        read_photograph(path)
