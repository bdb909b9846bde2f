"""The viewer shows volumes as they lie in the body, with pixels in millimetres."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

import qualms
from qualms import predictions
from qualms.evaluate import Scored
from qualms.predictions import Grid, PredictionsError
from qualms.report.site import write_page
from qualms.report.site.case_view import grid_words, middle_slice, upright
from qualms.report.site.item_pictures import ItemPictures
from qualms.report.site.segmented_cases import segmented_cases
from report.site.browsing import settle, wait

nibabel = pytest.importorskip("nibabel")

SHAPE, SPACING = (6, 9, 4), (0.7, 1.1, 5.0)
"""Sides and spacing towards right, front and head: all unlike."""
SPOT = (1, 7, 2)
CODES = ("RAS", "LPS", "LPI", "SAR", "PIR", "ILA")


def volume(code, turn=None):
    """P(foreground) of one spot in a body, stored with axes that lead to `code`."""
    chance = np.full(SHAPE, 0.1, np.float32)
    chance[SPOT] = 0.9
    affine = np.diag([*SPACING, 1.0])
    affine[:3, 3] = (-30.0, 20.0, 400.0)
    image = nibabel.Nifti1Image(chance, affine)
    ornt = nibabel.orientations
    there = ornt.axcodes2ornt(code)
    image = image.as_reoriented(
        ornt.ornt_transform(nibabel.io_orientation(affine), there)
    )
    return image if turn is None else type(image)(image.dataobj, turn @ image.affine)


def tilted(degrees):
    """A rotation around the axis from foot to head."""
    angle = np.radians(degrees)
    turn = np.eye(4)
    turn[:2, :2] = [
        [np.cos(angle), -np.sin(angle)],
        [np.sin(angle), np.cos(angle)],
    ]
    return turn


def folder_of(root, image):
    """What MONAI's SaveImage writes of two cases."""
    for case in ("one", "two"):
        (root / case).mkdir(parents=True)
        nibabel.save(image, root / case / f"{case}_trans.nii.gz")
    return root


def labelled(root):
    """The same with the label map of a rater."""
    folder_of(root, volume("LPI"))
    (root / "labels").mkdir()
    inside = volume("LPI")
    marked = (np.asarray(inside.dataobj) > 0.5).astype(np.uint8)
    for case in ("one", "two"):
        image = nibabel.Nifti1Image(marked, inside.affine)
        nibabel.save(image, root / "labels" / f"{case}.nii.gz")
    return root


def shown(read):
    """The data of the first case, and its prediction (z, y, x)."""
    items = segmented_cases(read, ItemPictures(None), "viewer")
    value = items.cases[0].value
    depth, height, width = value["shape"]
    panel = next(p for p in value["panels"] if p["title"] == "Prediction")
    png = base64.b64decode(panel["png"].partition(",")[2])
    sheet = np.asarray(Image.open(io.BytesIO(png)))
    across = value["across"]
    slices = [
        sheet[(z // across) * height :, (z % across) * width :][:height, :width]
        for z in range(depth)
    ]
    return value, np.stack(slices)


@pytest.mark.parametrize("code", CODES)
def test_volumes_of_any_orientation_are_shown_alike(tmp_path, code):
    read = predictions.read(folder_of(tmp_path / code, volume(code)))
    value, pixels = shown(read)
    right, front, head = SHAPE
    assert value["shape"] == [head, front, right]
    assert value["spacing"] == pytest.approx([5.0, 1.1, 0.7])
    assert value["cuts"] == ["axial", "coronal", "sagittal"]
    # On the screen rows lead to the back, and columns to the patient's left.
    spot = np.argwhere(pixels == 1).tolist()
    assert spot == [[SPOT[2], front - 1 - SPOT[1], right - 1 - SPOT[0]]]
    assert value["upright"] == (("R", "A"), ("R", "S"), ("A", "S"))
    assert "of 0.7 x 1.1 x 5 mm (axes RAS)" in value["about"]


@pytest.mark.browser
def test_a_browser_cuts_them_along_the_body_in_millimetres(tmp_path, open_page):
    page, folder = tmp_path / "page.html", labelled(tmp_path / "p")
    scored = Scored(results=(qualms.score(folder, name="p"),))
    write_page(scored, page, sources=[folder])
    opened = open_page(page.as_uri() + "#page-viewer")
    settle(opened)
    wait(opened, "document.querySelectorAll('.scan canvas').length > 0")
    right, front, head = (n * mm for n, mm in zip(SHAPE, SPACING, strict=True))
    for number, (wide, high, words) in enumerate(
        [
            (right, front, "left R, top A"),
            (right, head, "left R, top S"),
            (front, head, "left A, top S"),
        ]
    ):
        opened.locator(".dials button").nth(number).click()
        assert words in opened.locator(".dials output").inner_text()
        box = opened.locator(".scan canvas").first.bounding_box()
        assert box["width"] / box["height"] == pytest.approx(wide / high, rel=0.02)


def test_oblique_volumes_are_shown_on_the_nearest_axes_and_said_to_be(tmp_path):
    image = volume("LPS", turn=tilted(20))
    read = predictions.read(folder_of(tmp_path / "p", image))
    grid = read.maps[0].grid
    assert grid.axes == "RAS"
    assert grid.spacing == pytest.approx(SPACING, rel=1e-5)
    assert grid.tilt == pytest.approx(20, abs=1e-3)
    value, pixels = shown(read)
    assert "axes RAS, up to 20° oblique" in value["about"]
    assert np.argwhere(pixels == 1).tolist() == [[2, 1, 4]]


def test_volumes_without_a_header_have_axes_without_names(tmp_path):
    read = predictions.read(folder_of(tmp_path / "p", volume("RAS")))
    bare = [
        predictions.Maps(
            mean_probs=m.mean_probs,
            expected_entropy=m.expected_entropy,
            draw_labels=m.draw_labels,
        )
        for m in read.maps
    ]
    value, pixels = shown(predictions.build({"maps": bare}))
    assert value["cuts"] == ["axis 0", "axis 1", "axis 2"]
    assert (value["spacing"], value["upright"]) == ([1, 1, 1], None)
    assert np.argwhere(pixels == 1).tolist() == [list(SPOT)]
    assert " mm" not in value["about"]


def test_a_folder_of_ours_and_a_pool_keep_the_grid(tmp_path):
    read = predictions.read(folder_of(tmp_path / "p", volume("PIR")))
    kept = predictions.read(predictions.write(tmp_path / "kept", read))
    assert kept.maps[1].grid == read.maps[1].grid
    pooled = predictions.pool([read, kept])
    assert pooled.maps[0].grid == read.maps[0].grid


@pytest.mark.parametrize(
    "grid",
    [
        {"axes": "RAS", "spacing": [1, 1]},
        {"axes": "RAR", "spacing": [1, 1, 1]},
        {"axes": "XYZ", "spacing": [1, 1, 1]},
        {"axes": "RAS", "spacing": [1, 1, 0]},
        {"axes": "RAS", "spacing": [1, 1, float("nan")]},
        {"axes": "RAS", "spacing": [1, 1, 1], "tilt": 120},
        {"axes": "RAS"},
        "RAS",
        3,
    ],
)
def test_a_grid_that_fits_no_volume_is_refused(grid):
    maps = predictions.Maps(
        mean_probs=np.full((2, 2, 3, 4), 0.5, np.float32),
        expected_entropy=np.zeros((2, 3, 4), np.float32),
        draw_labels=np.zeros((1, 2, 3, 4), np.uint8),
        grid=grid,
    )
    with pytest.raises(PredictionsError, match="a letter of R/L, A/P and S/I"):
        predictions.build({"maps": [maps]})


def test_the_figure_for_paper_has_square_pixels_and_the_head_on_top():
    pixels = np.zeros(SHAPE, np.uint8)
    pixels[SPOT] = 1
    panel = {"kind": "labels", "pixels": pixels}
    axial = middle_slice(upright(panel, Grid("RAS", SPACING)))
    assert axial.shape == (round(9 * 1.1 / 0.7), 6)
    assert np.argwhere(axial).tolist() == [[2, 4], [3, 4]]
    # A single sagittal slice: columns lead to the back, rows to the feet.
    panel = {"kind": "labels", "pixels": pixels[1]}
    sagittal = middle_slice(upright(panel, Grid("AS", (1.1, 2.2))))
    assert sagittal.shape == (8, 9)
    assert np.argwhere(sagittal).tolist() == [[2, 1], [3, 1]]
    assert grid_words(None) == ""
