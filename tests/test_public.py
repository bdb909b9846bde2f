"""Public names change only with a word in the changelog."""

import re
from pathlib import Path

import pytest

import public_names as listing

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def changed(before, now):
    """Names that were added or removed, or whose arguments changed."""
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def unmentioned(names, changelog):
    """Those of the names that the newest block of the changelog does not name.

    A class that is new or gone is named once, for all of its methods.
    """
    newest = re.split(r"^## ", changelog, flags=re.M)[1]
    words = set(re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"`[^`]+`", newest))))
    return [name for name in names if not words & _ways_to_name(name)]


def _ways_to_name(name):
    owner, last = name.split(".")[-2:]
    return {last, owner} if owner[0].isupper() else {last}


def test_public_names_change_only_with_the_changelog():
    text = CHANGELOG.read_text("utf-8")
    names = changed(listing.released_names(), listing.public_names())
    if len(re.findall(r"^## ", text, flags=re.M)) == 1:  # before the first release
        assert not names, "run `python tests/public_names.py`; these names changed"
    missing = unmentioned(names, text)
    assert not missing, (
        f"these public names changed since the last release, and the newest block of "
        f"CHANGELOG.md does not name them: {', '.join(missing)}"
    )


@pytest.mark.parametrize(
    ("before", "now", "names"),
    [
        ({"qualms.a": "(x)"}, {"qualms.a": "(x)"}, []),
        ({"qualms.a": "(x)"}, {"qualms.a": "(x, *:y=)"}, ["qualms.a"]),
        ({"qualms.a": "(x)"}, {}, ["qualms.a"]),
        ({}, {"qualms.B": "(x)", "qualms.B.c": "(self)"}, ["qualms.B", "qualms.B.c"]),
    ],
)
def test_a_change_is_noticed(before, now, names):
    assert changed(before, now) == names
    assert unmentioned(names, "# C\n\n## 2\n`qualms`\n\n## 1\n`a`, `B`\n") == names
    assert not unmentioned(names, "# C\n\n## 2\n`a(x)` and `B` are new\n\n## 1\n")


def test_the_listing_has_functions_arguments_and_methods():
    names = listing.public_names()
    assert "qualms.score" in names
    assert names["qualms.scores.ece"].startswith("(probs, target")
    assert "qualms.Accumulator.add" in names or "qualms.evaluate.Accumulator" in names
    assert not [name for name in names if "._" in name.replace(".__version__", "")]
