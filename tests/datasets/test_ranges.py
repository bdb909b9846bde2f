import numpy as np
import pytest

from qualms.datasets import GRADED_COUNTS, GRADED_YAWS, trained_counts, trained_tenths

COUNTS = np.arange(1, 201)
ODD = np.arange(1, 900, 2)
EVEN = np.arange(2, 900, 2)


def test_tails_trains_on_the_hundred_middle_counts():
    assert COUNTS[trained_counts(COUNTS, "tails")].tolist() == list(range(51, 151))


def test_gap_trains_on_the_outer_counts_without_50_and_150():
    kept = COUNTS[trained_counts(COUNTS, "gap")].tolist()
    assert kept == [*range(1, 50), *range(151, 201)]


def test_gap_trains_on_150_in_the_released_code():
    kept = COUNTS[trained_counts(COUNTS, "gap", gap="released")].tolist()
    assert kept == [*range(1, 50), *range(150, 201)]
    for variant in ("plain", "tails"):
        by_text = trained_counts(COUNTS, variant)
        by_code = trained_counts(COUNTS, variant, gap="released")
        assert by_code.tolist() == by_text.tolist()


@pytest.mark.parametrize(("variant", "angles"), [("tails", 300), ("gap", 300)])
def test_the_narrow_chair_variants_train_on_300_angles(variant, angles):
    assert trained_tenths(ODD, variant).sum() == angles
    assert trained_tenths(ODD, "plain").all()


def test_ends_of_the_yaw_ranges_are_left_out():
    assert trained_tenths(np.array([150, 750]), "tails").sum() == 0
    assert trained_tenths(np.array([300, 600]), "gap").sum() == 0


def test_the_base_range_of_gap_has_298_test_angles():
    assert trained_tenths(EVEN, "gap").sum() == 298


def test_graded_counts_are_as_many_as_in_the_paper():
    sizes = [len(subset.keep(COUNTS)) for subset in GRADED_COUNTS.values()]
    assert sizes == [126, 152, 176]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_graded_yaws_are_as_many_as_in_the_paper(dtype):
    yaw = (EVEN / 10).astype(dtype)
    assert [len(s.keep(yaw)) for s in GRADED_YAWS.values()] == [336, 374, 412]
