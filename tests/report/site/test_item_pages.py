"""Pages that show items: mistakes and successes, neighbours, segmentations."""

import base64
import json
import re
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest

from qualms import predictions, score, scores, write_site
from qualms.datasets import prepare
from qualms.evaluate import ScoreOptions
from qualms.report.site.item_pictures import ItemPictures, ItemRows
from qualms.report.site.query_gallery import query_gallery
from qualms.report.site.segmented_cases import segmented_cases
from qualms.report.site.telling_items import telling_items
from qualms.shelf import find
from report.site.browsing import axe_findings, wait
from report.site.made_site import HOSTILE, undrawn

NAMES = [*HOSTILE[:15], *HOSTILE[16:20]]


def no_pictures(rows):
    return [""] * len(rows)


def two_classes(n=40, *, thumbnails=True):
    """The items 0, 10, 20, 30 are wrong; the higher the number, the more certain."""
    target = np.arange(n) % 2
    sure = 0.6 + 0.39 * np.arange(n) / max(n - 1, 1)
    shown = np.where(np.arange(n) % 10 == 0, 1 - target, target)
    names = [NAMES[i] if i < len(NAMES) else f"item {i}" for i in range(n)]
    arrays = {
        "target": target,
        "prob": np.where(shown == 1, sure, 1 - sure),
        "item": np.array([name.encode("utf-8", "replace").decode() for name in names]),
        "group": np.where(np.arange(n) % 3, "</script>", "home"),
    }
    if thumbnails:
        light = np.linspace(0, 255, n).astype(np.uint8)
        arrays["thumbnail"] = np.broadcast_to(
            light[:, None, None, None], (n, 8, 8, 3)
        ).copy()
    return arrays


def no_thumbnails(shown):
    return [""] * sum(len(items.rows) for items in shown)


def names_of(group):
    return [tile["name"] for tile in group["tiles"]]


def test_certain_mistakes_come_first():
    value = telling_items(predictions.build(two_classes()), no_pictures)
    mistakes, successes = value["groups"]
    assert names_of(mistakes)[:2] == ["item 30", "item 20"]
    assert len(mistakes["tiles"]) == 4
    assert not any(tile["right"] for tile in mistakes["tiles"])
    assert len(successes["tiles"]) == 12
    assert names_of(successes)[0] == NAMES[1]
    assert "4 of 40 items are mistakes" in value["about"]
    assert ("predicted", "1 (90.0\u00a0%)") in mistakes["tiles"][0]["lines"]


@pytest.mark.parametrize("right", [True, False])
def test_all_right_or_all_wrong_leaves_one_kind_empty(right):
    target = np.arange(5) % 2
    prob = np.where((target == 1) == right, 0.9, 0.1)
    value = telling_items(
        predictions.build({"target": target, "prob": prob}), no_pictures
    )
    counts = [len(group["tiles"]) for group in value["groups"]]
    assert counts == ([0, 5] if right else [5, 0])
    assert names_of(value["groups"][int(right)])  # rows stand for names


def test_values_are_wrong_outside_their_interval():
    arrays = {
        "target": np.array([0.0, 5.0, -5.0]),
        "lower": np.array([-1.0, -1.0, -3.0]),
        "upper": np.array([1.0, 1.0, 3.0]),
    }
    built = predictions.build(arrays, header={"alpha": 0.1})
    mistakes, successes = telling_items(built, no_pictures)["groups"]
    assert names_of(mistakes) == ["row 1", "row 2"]  # the shorter interval first
    assert names_of(successes) == ["row 0"]


def test_values_without_intervals_are_wrong_by_their_error():
    target = np.zeros(20)
    arrays = {"target": target, "mean": np.arange(20.0), "var": np.arange(20.0) + 1}
    value = telling_items(predictions.build(arrays), no_pictures)
    assert names_of(value["groups"][0]) == ["row 18", "row 19"]
    assert names_of(value["groups"][1])[0] == "row 9"
    arrays["mean"] = target
    value = telling_items(predictions.build(arrays), no_pictures)
    assert not value["groups"][0]["tiles"]  # every value is right


def test_items_of_no_known_target_cannot_be_judged():
    arrays = {"target": np.array([-1, -1]), "prob": np.array([0.2, 0.9])}
    with pytest.raises(ValueError, match="known"):
        telling_items(predictions.build(arrays), no_pictures)


def circle(n=30, *, classes=5):
    """Points on a circle in classes of neighbours, the first ones most certain."""
    angle = 2 * np.pi * np.arange(n) / n
    return {
        "embedding": np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32),
        "target": np.arange(n) * classes // n,
        "uncertainty/mine": np.arange(n, dtype=np.float32),
        "item": np.array([f"<b>query {i}" for i in range(n)]),
        "thumbnail": np.full((n, 4, 4, 3), 9, np.uint8),
    }


def test_queries_stand_with_their_nearest_neighbours():
    arrays = circle()
    arrays["target"][0] = 3  # none of its neighbours has this class
    value = query_gallery(predictions.build(arrays), no_thumbnails)
    certain, uncertain, mistakes = value["groups"]
    assert names_of(certain) == [f"<b>query {i}" for i in range(12)]
    assert names_of(uncertain) == [f"<b>query {i}" for i in range(29, 17, -1)]
    assert names_of(mistakes)[0] == "<b>query 0"
    first = certain["tiles"][0]
    near = {tile["name"] for tile in first["neighbours"][:2]}
    assert near == {"<b>query 1", "<b>query 29"}
    assert len(first["neighbours"]) == 5
    assert not any(tile["right"] for tile in first["neighbours"])
    assert ("mine", "0") in first["lines"]


def test_a_gallery_of_two_items_has_one_neighbour_each():
    value = query_gallery(predictions.build(circle(2, classes=1)), no_thumbnails)
    certain, _, mistakes = value["groups"]
    assert [len(tile["neighbours"]) for tile in certain["tiles"]] == [1, 1]
    assert mistakes["tiles"] == []
    with pytest.raises(ValueError, match="at least two items of a known class"):
        query_gallery(predictions.build(circle(1)), no_thumbnails)


def test_upstream_items_are_neither_queries_nor_neighbours():
    arrays = {**circle(12, classes=3), "upstream": np.arange(12) % 2 == 0}
    value = query_gallery(predictions.build(arrays), no_thumbnails)
    names = {
        each["name"]
        for group in value["groups"]
        for tile in group["tiles"]
        for each in (tile, *tile["neighbours"])
    }
    assert names == {f"<b>query {i}" for i in range(1, 12, 2)}


def angles(degrees, words, name, **more):
    """Embeddings at these angles, of these classes; the first ones most certain."""
    angle = np.radians(degrees)
    n = len(angle)
    return {
        "embedding": np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32),
        "target": np.array(words),
        "uncertainty/mine": np.arange(n, dtype=np.float32),
        "item": np.array([f"{name} {i}" for i in range(n)]),
        **more,
    }


def own_neighbours_mislead(**more):
    """Queries that are right among one another; of two the gallery says otherwise."""
    queries = angles([0, 5, 90, 95], ["owl", "owl", "cat", "cat"], "query", **more)
    gallery = angles([-1, 7, 91, 170], ["owl", "cat", "cat", "dog"], "other", **more)
    return predictions.build(queries), predictions.build(gallery)


def test_neighbours_and_rightness_are_those_of_the_gallery():
    queries, gallery = own_neighbours_mislead()
    alone = query_gallery(queries, no_thumbnails)
    assert all(tile["right"] for tile in alone["groups"][0]["tiles"])
    value = query_gallery(queries, no_thumbnails, gallery=gallery)
    certain, _, mistakes = value["groups"]
    assert [tile["right"] for tile in certain["tiles"]] == [True, False, True, True]
    assert names_of(mistakes) == ["query 1"]
    (wrong,) = mistakes["tiles"]
    assert [each["name"] for each in wrong["neighbours"]] == [
        f"other {i}" for i in (1, 0, 2, 3)
    ]
    assert [each["lines"][0][1] for each in wrong["neighbours"]] == [
        "cat",
        "owl",
        "cat",
        "dog",
    ]
    assert [each["right"] for each in wrong["neighbours"]] == [
        False,
        True,
        False,
        False,
    ]
    assert wrong["lines"][0] == ("class", "owl")
    assert "by cosine, in the gallery of 4 items, has its class" in value["about"]
    assert "other items" not in value["about"]
    results = score(queries, gallery=gallery, options=ScoreOptions(resamples=0))
    assert results.row("recall_at_1").value == 0.75


def test_a_gallery_of_one_item_is_the_neighbour_of_each_query():
    queries = predictions.build(angles([0, 50], [4, 5], "query"))
    one = predictions.build(angles([10], [5], "other"))
    value = query_gallery(queries, no_thumbnails, gallery=one)
    tiles = value["groups"][0]["tiles"]
    assert [tile["right"] for tile in tiles] == [False, True]
    assert [names_of({"tiles": tile["neighbours"]}) for tile in tiles] == [
        ["other 0"],
        ["other 0"],
    ]
    assert "in the gallery of 1 item, has" in value["about"]


def test_one_query_has_neighbours_in_a_gallery_with_unknown_items():
    query = predictions.build(angles([0], [1], "query"))
    other = predictions.build(angles([0, 20, 40], [-1, 1, 0], "other"))
    value = query_gallery(query, no_thumbnails, gallery=other)
    (tile,) = value["groups"][0]["tiles"]
    assert tile["right"]
    assert names_of({"tiles": tile["neighbours"]}) == ["other 1", "other 2"]


def test_a_gallery_that_the_scores_refuse_is_refused():
    queries, gallery = own_neighbours_mislead()
    with pytest.raises(ValueError, match="holds 4 of them, such as 'query 0'"):
        query_gallery(queries, no_thumbnails, gallery=queries)
    numbered = predictions.build(angles([0, 50], [4, 5], "query"))
    with pytest.raises(ValueError, match="nobody knows which are the same"):
        query_gallery(numbered, no_thumbnails, gallery=gallery)


def lightness(address):
    """The one shade of a small picture."""
    png = base64.b64decode(address.partition(",")[2])
    high = struct.unpack(">I", png[20:24])[0]
    lines = np.frombuffer(zlib.decompress(png[41:-16]), np.uint8).reshape(high, -1)
    (shade,) = set(lines[:, 1:].ravel().tolist())
    return shade


@pytest.mark.parametrize("pictured", ["both", "queries", "gallery", "neither"])
def test_pictures_of_neighbours_are_those_of_the_gallery(pictured):
    shades = np.array([10, 20, 30, 40], np.uint8)
    files = own_neighbours_mislead()
    arrays = [dict(each.arrays) for each in files]
    for place, kind in enumerate(("queries", "gallery")):
        if pictured in ("both", kind):
            light = shades + 100 * place
            arrays[place]["thumbnail"] = np.broadcast_to(
                light[:, None, None, None], (4, 4, 4, 3)
            ).copy()
    queries, gallery = (
        replace(each, arrays=more) for each, more in zip(files, arrays, strict=True)
    )
    value = query_gallery(queries, NO_DATA.thumbnails, gallery=gallery)
    addresses = value["pictures"]
    assert len(addresses) == 8
    for tile in value["groups"][0]["tiles"]:
        for each in (tile, *tile["neighbours"]):
            kind, number = each["name"].split()
            address = addresses[each["picture"]]
            if pictured in ("both", {"query": "queries", "other": "gallery"}[kind]):
                shade = shades[int(number)] + 100 * (kind == "other")
                assert lightness(address) == shade
            else:
                assert address == ""


def spheres(items=4, space=(6, 10, 12), *, classes=2, raters=2, draws=2):
    """Maps of volumes or images, the later ones less certain and less right."""
    for number in range(items):
        centre = np.array(space).reshape(-1, *(1 for _ in space)) / 2
        far = np.sqrt(((np.indices(space) - centre) ** 2).sum(axis=0))
        inside = (
            0.98 / (1 + np.exp((far - 3 - number / 4) * 3 / (1 + number / 2))) + 0.01
        )
        rest = [(1 - inside) / (classes - 1)] * (classes - 1)
        probs = np.stack([rest[0], inside, *rest[1:]])
        shrunk = 0.9 * probs + 0.1 / classes
        statistics = scores.sufficient_statistics(np.stack([probs, shrunk][:draws]))
        yield predictions.Maps(
            mean_probs=statistics.mean_probs,
            expected_entropy=statistics.expected_entropy,
            draw_labels=statistics.draw_labels,
            raters=np.stack([far < 3 + each for each in range(raters)]).astype(np.uint8)
            if raters
            else np.empty(0, np.uint8),
        )


def segmented(**options):
    header = options.pop("header", {"method": "ensemble"})
    maps = list(spheres(**options))
    names = [f"<i>case {number}" for number in range(len(maps))]
    return predictions.build({"maps": maps, "item": names}, header=header)


NO_DATA = ItemPictures(None)


def unpacked(case):
    """The numbers of each panel of a case, by its title, as the script reads them."""
    depth, height, width = case["shape"]
    volumes = {}
    for panel in case["panels"]:
        png = base64.b64decode(panel["png"].partition(",")[2])
        wide, high = struct.unpack(">II", png[16:24])
        lines = np.frombuffer(zlib.decompress(png[41:-16]), np.uint8)
        lines = lines.reshape(high, -1)[:, 1:].reshape(high, wide, -1)
        slices = [
            lines[z // case["across"] * height :, z % case["across"] * width :]
            for z in range(depth)
        ]
        volumes[panel["title"]] = np.stack([s[:height, :width] for s in slices])
    return volumes


@pytest.mark.parametrize("space", [(5, 7), (6, 10, 12)])
def test_panels_hold_the_numbers_of_the_file(space):
    built = segmented(space=space, header={"draws": "labels"})
    shown = segmented_cases(built, NO_DATA, "case")
    (case,) = (each.value for each in shown.cases if each.value["name"].endswith("0"))
    volumes = {title: v[..., 0].reshape(space) for title, v in unpacked(case).items()}
    maps = built.maps[0]
    rated = maps.raters[0] + 2 * maps.raters[1]
    np.testing.assert_array_equal(volumes["Raters"], rated)
    np.testing.assert_array_equal(volumes["Prediction"], maps.mean_probs.argmax(axis=0))
    panel = next(p for p in case["panels"] if p["title"] == "EU: expected entropy")
    values = volumes[panel["title"]] / 254 * panel["largest"]
    half = panel["largest"] / 508 + 1e-6
    np.testing.assert_allclose(values, maps.expected_entropy, atol=half)
    scales = {p["most"] for p in case["panels"] if p["kind"] == "heat"}
    assert len(scales) == 1


def test_certain_failures_come_first_and_no_case_twice():
    shown = segmented_cases(segmented(items=9), NO_DATA, "case")
    labels = [each["label"] for each in shown.value["cases"]]
    assert len(set(labels)) == len(labels) == 6
    kinds = [label.partition(":")[0] for label in labels]
    assert kinds[:3] == ["certain failure"] * 3
    assert kinds[-1] == "most uncertain"
    assert labels[-1].endswith("case 8")


@pytest.mark.parametrize("items", [1, 2, 3])
def test_few_cases_are_all_shown(items):
    shown = segmented_cases(segmented(items=items), NO_DATA, "case")
    assert len(shown.cases) == items


def test_without_raters_cases_are_chosen_by_uncertainty():
    shown = segmented_cases(segmented(raters=0, items=8), NO_DATA, "case")
    kinds = [each["label"].partition(":")[0] for each in shown.value["cases"]]
    assert kinds == ["most uncertain"] * 3 + ["most certain"] * 3
    titles = [panel["title"] for panel in shown.cases[0].value["panels"]]
    assert titles[0] == "Prediction"


def test_many_classes_are_shown_as_labels():
    built = segmented(classes=5, space=(9, 8))
    panels = segmented_cases(built, NO_DATA, "case").cases[0].value["panels"]
    assert [p["title"] for p in panels if p["kind"] == "labels"] == [
        "Rater 1 of 2",
        "Rater 2 of 2",
        "Prediction",
    ]


def test_one_draw_has_one_map():
    built = segmented(draws=1, header={"method": "softmax"})
    panels = segmented_cases(built, NO_DATA, "case").cases[0].value["panels"]
    assert [p["title"] for p in panels if p["kind"] == "heat"] == [
        "1 \u2212 largest probability"
    ]


def test_large_cases_are_thinned_below_a_megabyte(monkeypatch):
    monkeypatch.setattr("qualms.report.site.segmented_cases.CASE_BYTES", 4_000)
    whole = segmented(items=1, space=(60, 64))
    maps = whole.maps[0]
    noise = np.random.default_rng(0).random(maps.expected_entropy.shape)
    own = {"mine": noise.astype(np.float32)}
    built = predictions.build({"maps": [replace(maps, uncertainty=own)]})
    case = segmented_cases(built, NO_DATA, "case").cases[0].value
    assert sum(len(panel["png"]) for panel in case["panels"]) <= 4_000
    assert case["shape"] == [1, *unpacked(case)["Prediction"].shape[1:3]]
    assert case["shape"][1] < 60
    assert "shown at every" in case["about"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Prepared data of a simulator, and predictions that name it."""
    folder = tmp_path_factory.mktemp("data")
    recipe = find("datasets", "toy_shapes")(
        dims=2, side=16, sizes={"train": 1, "val": 1, "test": 3}
    )
    return folder, prepare(recipe, folder / "toy", workers=1).dataset


def test_images_are_found_by_fingerprint_and_name(data):
    folder, dataset = data
    split = dataset.split("test")
    header = {"fingerprint": dataset.fingerprint, "split": "test"}
    arrays = {"target": [0, 1], "prob": [0.1, 0.2]}
    names = [str(split.item[2]), "unknown"]
    built = predictions.build({**arrays, "item": names}, header=header)
    found = ItemPictures(folder).images(built, [0, 1])
    assert list(found) == [0]
    np.testing.assert_array_equal(found[0], split.image[2])
    other = predictions.build(
        {**arrays, "item": names}, header={**header, "fingerprint": "another"}
    )
    assert ItemPictures(folder).images(other, [0, 1]) == {}
    assert ItemPictures(folder).thumbnails([ItemRows(other, [0, 1])]) == ["", ""]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("items")
    files = [
        predictions.write(folder / "classes.npz", two_classes()),
        predictions.write(folder / "plain.npz", two_classes(30, thumbnails=False)),
        predictions.write(folder / "circle.npz", circle(6, classes=3)),
        predictions.write(folder / "spheres", segmented()),
    ]
    with undrawn():
        return write_site(*files, out=folder / "site").parent


def data_of(site, name):
    text = (site / "data" / f"{name}.js").read_text("utf-8")
    return json.loads(re.fullmatch(r'qualms\.put\("[\w-]+",(.*)\);\n', text)[1])


def test_thumbnails_are_pictures_of_their_items(site):
    value = data_of(site, "items-source-0")
    tile = value["groups"][0]["tiles"][0]
    assert tile["name"] == "item 30"
    png = base64.b64decode(value["pictures"][tile["picture"]].partition(",")[2])
    light = round(30 / 39 * 255 - 0.5)
    lines = np.frombuffer(zlib.decompress(png[41:-16]), np.uint8).reshape(8, 25)
    assert set(lines[:, 1:].ravel().tolist()) == {light}
    assert set(data_of(site, "items-source-1")["pictures"]) == {""}


def test_the_source_of_which_most_is_shown_is_first(tmp_path):
    files = [
        predictions.write(tmp_path / "plain.npz", two_classes(30, thumbnails=False)),
        predictions.write(tmp_path / "other.npz", two_classes(20, thumbnails=False)),
        predictions.write(tmp_path / "pictured.npz", two_classes()),
    ]
    with undrawn():
        site = write_site(*files, out=tmp_path / "site").parent
    text = (site / "data" / "items.js").read_text("utf-8")
    value = json.loads(re.fullmatch(r'qualms\.put\("[\w-]+",(.*)\);\n', text)[1])
    labels = [each["label"] for each in value["sources"]]
    assert labels == ["pictured", "plain", "other"]
    page = (site / "pictured.html").read_text("utf-8")
    assert 'href="items.html">its items</a>' in page
    assert 'href="compare.html"' not in page


def test_data_on_demand_stay_below_a_megabyte(site):
    sizes = [path.stat().st_size for path in (site / "data").iterdir()]
    assert max(sizes) <= 1_000_000


@pytest.fixture
def visit(open_page, site):
    def visited(name, **look):
        return open_page((site / name).as_uri(), **look)

    return visited


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_items_are_shown_with_names_of_strangers(visit, width, dark):
    page = visit("items.html", width=width, dark=dark)
    tiles = page.locator(".tiles .tile")
    tiles.first.wait_for()
    assert tiles.count() == 16
    assert page.locator(".tile.wrong").count() == 4
    assert page.locator(".tile img").count() == 16
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe_findings(page) == []


@pytest.mark.browser
def test_another_file_is_chosen_by_keyboard(visit):
    page = visit("items.html")
    page.locator(".tile").first.wait_for()
    page.locator(".source select").focus()
    page.keyboard.press("ArrowDown")
    page.locator(".tile.bare").first.wait_for()
    assert page.locator(".no-picture").count() == 0
    assert page.locator(".tile.wrong").count() == 3
    assert "3 of 30 items" in page.locator(".items .about").inner_text()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False)])
def test_neighbours_stand_beside_their_query(visit, width, dark):
    page = visit("neighbours.html", width=width, dark=dark)
    query = page.locator(".query").first
    query.wait_for()
    assert page.locator(".query").count() >= 12
    assert query.locator(".neighbours .tile").count() == 5
    assert query.locator("img").count() == 6
    assert "<b>query 0" in query.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe_findings(page) == []


def pixels(page, panel):
    """The bytes of a canvas, as a text."""
    return page.locator(".scan canvas").nth(panel).evaluate("each => each.toDataURL()")


def opened_viewer(visit, **options):
    page = visit("viewer.html", **options)
    wait(page, "document.querySelectorAll('.scan canvas').length === 5")
    wait(page, "document.querySelector('.scan canvas').width > 300")
    return page


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_viewer_fits_and_has_no_findings(visit, width, dark):
    page = opened_viewer(visit, width=width, dark=dark)
    assert "<i>case" in page.locator(".viewer .about").first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe_findings(page) == []


@pytest.mark.browser
def test_the_slider_goes_through_a_volume_by_keyboard(visit):
    page = opened_viewer(visit)
    slider = page.locator("#viewer-slice")
    before = pixels(page, 2)
    assert page.locator(".dials output").inner_text() == "4/6"
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".dials output").inner_text() == "5/6"
    assert pixels(page, 2) != before
    page.keyboard.press("ArrowLeft")
    assert pixels(page, 2) == before
    page.locator(".axes button", has_text="axis 2").click()
    assert page.locator(".dials output").inner_text() == "7/12"
    assert page.locator(".axes button[aria-pressed=true]").inner_text() == "axis 2"


@pytest.mark.browser
def test_values_under_the_pointer_are_those_of_the_file(visit, site):
    page = opened_viewer(visit)
    canvas = page.locator(".scan canvas").nth(2)
    box = canvas.bounding_box()
    row, column = 2, 7
    canvas.hover(
        position={
            "x": (column + 0.5) * box["width"] / 12,
            "y": (row + 0.5) * box["height"] / 10,
        }
    )
    said = page.locator(".value").inner_text()
    assert said.startswith("row 2, column 7")
    name = page.locator(".viewer .about b").inner_text()
    maps = list(spheres())[int(name[-1])]
    uncertainty = scores.uncertainty_maps(maps.mean_probs, maps.expected_entropy)
    shown = float(re.search(r"PU: predictive entropy ([\d.]+)", said)[1])
    wanted = float(uncertainty.predictive[3, row, column])
    assert shown == pytest.approx(wanted, abs=0.006)


@pytest.mark.browser
def test_another_case_is_loaded_when_it_is_asked_for(visit):
    page = opened_viewer(visit)
    loaded = "document.querySelectorAll('script[src*=viewer-case]').length"
    assert page.evaluate(loaded) == 1
    title = "document.querySelector('.viewer .about b').innerText"
    first = json.dumps(page.evaluate(title))
    page.locator("button[aria-label='next case']").click()
    wait(page, f"{loaded} === 2 && {title} !== {first}")
    page.locator("button[aria-label='previous case']").click()
    wait(page, f"{title} === {first}")
