"""Names, families and patterns that stand for corruptions."""

import pytest

from qualms.corruptions import (
    applied_corruptions,
    chosen_corruptions,
    parse_severities,
)


def test_a_name_a_family_and_a_pattern_stand_for_corruptions():
    assert chosen_corruptions(["fog"], axes=2) == ("fog",)
    blurs = ("defocus_blur", "glass_blur", "motion_blur", "scanner_blur", "zoom_blur")
    assert chosen_corruptions(["blur"], axes=2) == blurs
    assert chosen_corruptions(["*_blur"], axes=2) == blurs
    assert len(chosen_corruptions(["imagenet_c"], axes=2)) == 15
    assert len(chosen_corruptions(["*"], axes=2)) == 21
    assert chosen_corruptions(["fog", "weather"], axes=2)[0] == "fog"


def test_a_family_stands_for_those_that_are_for_such_images():
    assert chosen_corruptions(["blur", "noise"], axes=3) == (
        "scanner_blur",
        "scanner_noise",
    )
    with pytest.raises(
        ValueError, match=r"'weather' stands for .*, none of which is for"
    ):
        chosen_corruptions(["weather"], axes=3)


def test_an_unknown_word_lists_names_and_families():
    with pytest.raises(
        LookupError, match=r"no corruption 'blurr'. Did you mean 'blur'"
    ):
        chosen_corruptions(["blurr"], axes=2)
    with pytest.raises(
        LookupError, match=r"Known: bias_field, .*Families: .*imagenet_c"
    ):
        chosen_corruptions(["rain"], axes=2)


def test_every_corruption_is_applied_at_every_severity():
    applied = applied_corruptions(["noise"], (1, 5), (28, 28))
    assert len(applied) == 4 * 2
    assert applied[:2] == (("gaussian_noise", 1), ("gaussian_noise", 5))
    assert len(applied_corruptions(["fog"], (), (28, 28))) == 5


def test_images_too_small_are_refused_at_all_severities_too():
    with pytest.raises(ValueError, match="needs images of at least 16 pixels"):
        applied_corruptions(["patient_motion"], (), (8, 8))


def test_images_that_are_too_small_are_refused_before_anything_runs():
    with pytest.raises(
        ValueError, match=r"'ghosting' needs images of at least 16 .*8 x 8"
    ):
        applied_corruptions(["medical"], (1,), (8, 8))


@pytest.mark.parametrize(
    ("text", "severities"),
    [("", ()), ("1-5", (1, 2, 3, 4, 5)), ("1,3, 5", (1, 3, 5)), ("2-3,3", (2, 3))],
)
def test_severities_are_parsed(text, severities):
    assert parse_severities(text) == severities


@pytest.mark.parametrize("text", ["0", "6", "1-6", "5-1", "a", "1.5", "-1", "1--2"])
def test_wrong_severities_are_refused(text):
    with pytest.raises(ValueError, match=r"severities must lie in 1 to 5, as in 1-5"):
        parse_severities(text)
