"""Labels choose things, and equal labels are equal whatever their type."""

import pytest

from qualms.labels import Labelled, fits

THINGS = Labelled.of(
    [
        ({"row": "map", "subset": "shifted"}, "a"),
        ({"row": "map", "subset": "shifted", "alpha": 0.1}, "b"),
        ({"row": "mfvi", "simulated": True}, "c"),
        ({"row": "mfvi", "simulated": 1}, "d"),
    ]
)


def test_every_label_that_is_wanted_must_agree():
    assert THINGS.where(row="map").values == ("a", "b")
    assert THINGS.where(row=("map", "mfvi"), alpha=(0.1, 0.2)).values == ("b",)
    assert THINGS.where(rwo="map").values == ()
    assert THINGS.where().values == ("a", "b", "c", "d")


def test_none_stands_for_no_label():
    assert THINGS.where(row="map", alpha=None).values == ("a",)
    assert THINGS.where(row="map", alpha=(None, 0.1)).values == ("a", "b")
    assert THINGS.where(nothing=None).values == ("a", "b", "c", "d")


def test_true_is_not_one_and_one_is_one_point_zero():
    assert THINGS.where(simulated=True).values == ("c",)
    assert THINGS.where(simulated=1).values == ("d",)
    assert THINGS.where(simulated=1.0).values == ("d",)
    assert fits({"pool": 3}, {"pool": 3.0})


def test_the_first_or_the_only_thing_is_found():
    assert THINGS.get(row="map") == "a"
    assert THINGS.get(row="none") is None
    assert THINGS.at(simulated=True) == "c"
    with pytest.raises(LookupError, match="2 things have row=map; name labels"):
        THINGS.at(row="map")
    with pytest.raises(LookupError, match="0 things have row=none"):
        THINGS.at(row="none")
