"""Raters with other axes than the predictions are said, where no shape shows it."""

import numpy as np

import qualms
from qualms import predictions, scores
from qualms.evaluate import ScoreOptions

BARE = ScoreOptions(resamples=0, workers=1)


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

    def written(self, folder, items):
        with predictions.SegmentationWriter(folder) as writer:
            for number, maps in enumerate(items):
                writer.add(f"case {number}", maps)
        return folder

    def notes(self, tmp_path, turn):
        items = [self.maps(5 + row / 4, turn) for row in range(4)]
        return qualms.score(self.written(tmp_path / "p", items), options=BARE).notes

    def test_reversed_axes_are_said_first(self, tmp_path):
        first = self.notes(tmp_path, np.transpose)[0]
        assert "with their axes in reverse order" in first
        assert "Dice 0.9" in first

    def test_a_prediction_that_fits_or_fits_in_no_order_is_left_alone(self, tmp_path):
        for number, turn in enumerate((np.asarray, lambda inside: inside[:, ::-1])):
            (tmp_path / str(number)).mkdir()
            notes = self.notes(tmp_path / str(number), turn)
            assert not any("reverse order" in note for note in notes)
