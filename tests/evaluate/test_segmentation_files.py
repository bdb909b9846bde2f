"""What files of segmented items may hold: own maps, no labels, regions, any draws."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import qualms
from qualms import predictions, scores
from qualms.cli import app
from qualms.evaluate import ScoreOptions
from qualms.predictions import Maps, SegmentationWriter

SIDE, ITEMS = 16, 24
BARE = ScoreOptions(resamples=0, workers=1)


def disc_maps(row, *, draws=3, classes=2, own=None):
    """A disc at a known place; odd items are predicted too small, and unsurely."""
    rng = np.random.default_rng(row)
    distance = np.hypot(*(np.mgrid[:SIDE, :SIDE] - SIDE / 2))
    truth = distance <= 4 + row % 3
    poor = row % 2
    logit = 1.2 * (4 + row % 3 - 2.5 * poor - distance)
    noise = rng.normal(0, 0.2 + poor, (draws, SIDE, SIDE))
    p = 1 / (1 + np.exp(-logit - noise))
    statistics = scores.sufficient_statistics(np.stack([1 - p, p], 1))
    raters = np.stack([truth, distance <= 4.5 + row % 3]).astype(np.uint8)
    return Maps(
        **statistics._asdict(),
        raters=raters,
        uncertainty={} if own is None else {"mine": own(row, distance)},
    )


def shifted_own(row, distance):
    """Larger on odd items, and largest at the rim; of any sign."""
    return (row % 2) * 3.0 - np.abs(distance - 5.0) - 20.0


def written(folder, items, **columns):
    with SegmentationWriter(folder) as writer:
        for row, maps in enumerate(items):
            about = {name: values[row] for name, values in columns.items()}
            writer.add(f"case {row:02d}", maps, **about)
    return folder


def cli(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return done.output


def rows_of(results):
    return {row.key: row for row in results.rows}


class TestOwnUncertainties:
    @pytest.fixture
    def folder(self, tmp_path):
        items = [disc_maps(row, own=shifted_own) for row in range(ITEMS)]
        numbers = [{"whole": float(row % 2), "mine": -1.0} for row in range(ITEMS)]
        marks = [row % 2 == 1 for row in range(ITEMS)]
        return written(tmp_path / "p", items, uncertainty=numbers, shifted=marks)

    def test_own_maps_are_judged_beside_the_built_in_ones(self, folder):
        results = qualms.score(folder, options=BARE)
        maps = predictions.read(folder).maps
        dice = [
            np.mean([scores.dice(m.mean_probs.argmax(0), r) for r in m.raters])
            for m in maps
        ]
        for aggregation, of_map in (
            ("image", scores.aggregate_image),
            ("patch", scores.aggregate_patch),
            ("quantile", scores.aggregate_quantile),
        ):
            values = np.array([of_map(m.uncertainty["mine"]) for m in maps])
            row = results.row(
                "aurc", subset="all", uncertainty="mine", aggregation=aggregation
            )
            assert row.value == pytest.approx(scores.aurc(1 - np.array(dice), values))
        ncc = [
            scores.ncc(m.uncertainty["mine"], scores.rater_variance(m.raters))
            for m in maps
        ]
        assert results.row("ncc", uncertainty="mine").value == pytest.approx(
            np.mean(ncc)
        )
        shift = results.row("ood_auroc", uncertainty="mine", aggregation="patch")
        assert shift.value == 1.0
        # The file is judged by its own, and the built-in measures stay as they are.
        assert results.row("aurc").settings["uncertainty"] == "mine"
        (finds_errors,) = (a for a in results.verdict if a.question == "finds_errors")
        assert "by mine, patch; cut" in finds_errors.because
        assert "by predictive" in finds_errors.because
        assert results.row("aurc", measure="predictive").subset == "in_domain"
        assert "MI" not in str(rows_of(results))

    def test_numbers_of_items_are_judged_without_aggregation(self, folder):
        results = qualms.score(folder, options=BARE)
        whole = [
            row for row in results.rows if row.settings == {"uncertainty": "whole"}
        ]
        assert {row.score for row in whole} == {"aurc", "eaurc", "augrc", "ood_auroc"}
        assert results.row("ood_auroc", uncertainty="whole").value == 1.0
        # A map and a number may share their name.
        mine = [r for r in results.rows if r.settings.get("uncertainty") == "mine"]
        assert {"aggregation" in row.settings for row in mine} == {True, False}
        assert any(
            "uncertainty 'mine' (in-domain) is constant" in n for n in results.notes
        )

    def test_validation_gives_own_maps_a_threshold_and_confidences(
        self, folder, tmp_path
    ):
        val = written(
            tmp_path / "val",
            [disc_maps(row, own=shifted_own) for row in range(100, 112)],
        )
        results = qualms.score(folder, val=val, options=BARE)
        maps, val_maps = (predictions.read(f).maps for f in (folder, val))
        labels = [
            np.concatenate([m.draw_labels, m.mean_probs.argmax(0)[None]])
            for m in val_maps
        ]
        own = [m.uncertainty["mine"] for m in val_maps]
        threshold = scores.threshold_from_validation(own, labels)
        values = [
            scores.aggregate_threshold(m.uncertainty["mine"], threshold=threshold)
            for m in maps
        ]
        shifted = predictions.read(folder).arrays["shifted"]
        row = results.row("ood_auroc", uncertainty="mine", aggregation="threshold")
        assert row.value == pytest.approx(scores.ood_auroc(values, shifted))
        agreed = [
            scores.rater_agreement(m.mean_probs.argmax(0), m.raters) for m in val_maps
        ]
        fit = scores.fit_platt(
            np.stack(own),
            np.stack([a.correct for a in agreed]),
            total=np.stack([a.total for a in agreed]),
        )
        errors = []
        for m in maps:
            agreed = scores.rater_agreement(m.mean_probs.argmax(0), m.raters)
            conf = fit.confidence(m.uncertainty["mine"])
            errors.append(scores.ace(conf, agreed.correct, total=agreed.total))
        found = results.row("ace", subset="all", uncertainty="mine").value
        assert found == pytest.approx(np.mean(errors), abs=1e-3)

    def test_validation_without_the_own_map_is_noted(self, folder, tmp_path):
        val = written(tmp_path / "val", map(disc_maps, range(100, 112)))
        results = qualms.score(folder, val=val, options=BARE)
        assert any("uncertainty/mine is not in the val" in n for n in results.notes)
        kinds = [r.settings.get("aggregation") for r in results.rows]
        assert "threshold" in kinds  # of the built-in measures
        with pytest.raises(LookupError):
            results.row("ace", subset="all", uncertainty="mine")

    def test_a_pool_leaves_them_out_and_says_so(self, folder, tmp_path):
        again = written(
            tmp_path / "b",
            [disc_maps(row, own=shifted_own) for row in range(ITEMS)],
            shifted=[row % 2 == 1 for row in range(ITEMS)],
        )
        pooled = predictions.pool([folder, again])
        assert pooled.own_maps == ()
        assert any("own uncertainty maps belong to single" in n for n in pooled.notes)
        results = qualms.score(pooled, options=BARE)
        assert not any("uncertainty" in row.settings for row in results.rows)
        assert (
            predictions.pool([folder, predictions.read(folder)]).get(
                "uncertainty/whole"
            )
            is not None
        )

    def test_arrays_in_python_are_scored_alike(self, folder):
        read = predictions.read(folder)
        arrays = dict(read.arrays) | {"maps": list(read.maps)}
        mine = qualms.score(arrays, options=BARE)
        theirs = qualms.score(folder, options=BARE)
        assert [(r.key, r.value) for r in mine.rows] == [
            (r.key, r.value) for r in theirs.rows
        ]

    def test_the_terminal_the_page_and_json_have_them(self, folder, tmp_path):
        page = tmp_path / "page.html"
        printed = cli("score", folder, "--all", "--html", page)
        assert "mine, patch" in printed
        assert "mine, patch" in page.read_text(encoding="utf-8")
        rows = json.loads(cli("score", folder, "--json"))["files"][0]["scores"]
        settings = [row["settings"] for row in rows]
        assert {"uncertainty": "mine", "aggregation": "patch"} in settings
        assert {"uncertainty": "whole"} in settings

    def test_check_names_them(self, folder):
        printed = cli("check", folder)
        assert "uncertainty/whole 24" in printed
        assert "own uncertainty maps: mine" in printed


def ellipsoid(place, side=12):
    """A region that is long along the first axis and lies aside."""
    grid = np.mgrid[:side, :side, :side].reshape(3, -1).T
    far = (grid - (place, 3, 8)) / (4.0, 2.5, 1.8)
    return (np.square(far).sum(axis=1) < 1).reshape(side, side, side)


class TestOrderOfAxes:
    """Volumes of equal sides do not show that raters have their axes reversed."""

    def maps(self, place, turn):
        inside = ellipsoid(place)
        prob = np.where(inside, 0.9, 0.1)
        probs = np.stack([1 - prob, prob])[None]
        statistics = scores.sufficient_statistics(probs)
        raters = np.stack([turn(inside), turn(ellipsoid(place + 0.5))])
        return predictions.Maps(
            mean_probs=statistics.mean_probs,
            expected_entropy=statistics.expected_entropy,
            draw_labels=statistics.draw_labels,
            raters=raters.astype(np.uint8),
        )

    def notes(self, tmp_path, turn):
        items = [self.maps(5 + row / 4, turn) for row in range(4)]
        return qualms.score(written(tmp_path / "p", items), options=BARE).notes

    def test_reversed_axes_are_said_first(self, tmp_path):
        first = self.notes(tmp_path, np.transpose)[0]
        assert "with their axes in reverse order" in first
        assert "Dice 0.9" in first

    def test_a_prediction_that_fits_or_fits_in_no_order_is_left_alone(self, tmp_path):
        for number, turn in enumerate((np.asarray, lambda inside: inside[:, ::-1])):
            (tmp_path / str(number)).mkdir()
            notes = self.notes(tmp_path / str(number), turn)
            assert not any("reverse order" in note for note in notes)
