"""Options: what a signature says is what can be set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from qualms.launch.options import (
    Option,
    check_options,
    option_texts,
    options_of,
    parse_options,
)


def part(
    *,
    rate: float = 0.1,
    draws: int = 10,
    kind: Literal["diag", "full"] = "full",
    sizes: Mapping[str, int] | None = None,
    blocks: Sequence[int] = (1, 1),
    names: tuple[str, ...] = (),
    pair: tuple[int, float] = (1, 0.5),
    sinks: tuple[Literal["board", "file"], ...] = (),
    fast: bool = False,
    capture: bool | Literal["auto"] = "auto",
    other: Any = None,
    label: str = "x",
    limits: Sequence[float | None] | str | None = None,
):
    """Nothing."""


KNOWN = options_of(part)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-2.5", -2.5),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("null", None),
        ("None", None),
        ("tails", "tails"),
        ('"3"', "3"),
        ("[1, 2]", [1, 2]),
        ("(1, 2)", [1, 2]),
        ("['a', 'b']", ["a", "b"]),
        ('{"train": 5}', {"train": 5}),
        ("", ""),
        ("a=b", "a=b"),
        ("nan", "nan"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("1j", "1j"),
        ("0-4", "0-4"),
    ],
)
def test_values_are_read_as_json_or_python_or_text(text, value):
    found = parse_options([f"name={text}"])["name"]
    assert found == value
    assert type(found) is type(value)
    assert parse_options(option_texts({"name": value})) == {"name": value}


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["epochs"], "must read name=value, got 'epochs'"),
        (["=3"], "must read name=value"),
        (["a=1", "a=2"], "'a' must be given once"),
    ],
)
def test_options_that_do_not_read_name_value_are_refused(texts, said):
    with pytest.raises(ValueError, match=said):
        parse_options(texts)


@pytest.mark.parametrize(
    "given",
    [
        {"rate": 1, "draws": 3, "kind": "diag", "fast": True},
        {"sizes": {"train": 1}, "blocks": [1, 2], "names": ["a"], "pair": [2, 0.1]},
        {"sizes": {}, "blocks": [], "sinks": ["file", "board"]},
        {"sizes": None, "capture": True, "other": [1]},
        {"capture": "auto", "other": None, "label": "y"},
        {"limits": [0.5, None]},
    ],
)
def test_values_that_fit_the_signature_pass(given):
    assert check_options("part", given, KNOWN) == given


def test_a_number_can_be_the_name_of_a_choice():
    known = {"scenario": Option("1", Literal["1", "3"]), "rate": KNOWN["rate"]}
    given = {"scenario": 3, "rate": 3}
    assert check_options("part", given, known) == {"scenario": "3", "rate": 3}
    labelled = {"label": Option("", str)}
    assert check_options("part", {"label": 1}, labelled) == {"label": "1"}
    with pytest.raises(ValueError, match="must be 1 or 3, got 2"):
        check_options("part", {"scenario": 2}, known)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rate": "high"}, "'rate' of part must be a number, got 'high'"),
        ({"rate": True}, "must be a number, got True"),
        ({"rate": None}, "must be a number, got None"),
        ({"draws": 1.5}, "must be a whole number, got 1.5"),
        ({"kind": "ful"}, "must be diag or full, got 'ful'. Did you mean 'full'"),
        ({"fast": 1}, "must be true or false, got 1"),
        ({"fast": "yes"}, "must be true or false"),
        ({"capture": "aut"}, "must be true or false or auto, got 'aut'. Did you mean"),
        ({"sizes": [1]}, "must be null or a mapping in JSON in which each value is a"),
        ({"rate": float("inf")}, "must be a number, got inf"),
        ({"blocks": 3}, "a list in JSON in which each is a whole number, got 3"),
        ({"blocks": [1, "2"]}, "each is a whole number, got [1, '2']"),
        ({"pair": [1]}, "got [1]"),
        ({"pair": [1, "x"]}, "got [1, 'x']"),
        ({"sizes": {"train": "a"}}, "each value is a whole number, got {'train': 'a'}"),
        ({"sizes": {"train": None}}, "each value is a whole number, got {'train': No"),
        ({"limits": 3}, "must be text or null or a list in JSON in which each is a n"),
        ({"sinks": ["file", "bord"]}, "got ['file', 'bord']. Did you mean 'board'?"),
        ({"sinks": [["file"]]}, "each is board or file, got [['file']]."),
        ({"label": 0.5}, "must be text, got 0.5"),
    ],
)
def test_values_that_do_not_fit_the_signature_are_refused(given, said):
    with pytest.raises(ValueError, match="must be") as refused:
        check_options("part", given, KNOWN)
    assert said in str(refused.value)


def test_nobody_is_told_to_mean_what_he_said():
    with pytest.raises(ValueError, match=r"each is board or file, got 'file'\.$"):
        check_options("part", {"sinks": "file"}, KNOWN)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(LookupError) as refused:
        check_options("part", {"rat": 1}, {"rate": KNOWN["rate"]}, prefix="method.")
    assert str(refused.value) == (
        "no option 'method.rat' for part. Did you mean 'method.rate'?"
        " Known: method.rate."
    )


def test_fields_of_a_record_are_options_and_what_the_program_hands_over_is_not():
    @dataclass(frozen=True, kw_only=True)
    class Record:
        epochs: int = 75

    def network(*, channels: int, width: int = 8):
        """Nothing."""

    assert options_of(Record)["epochs"] == (75, int)
    assert list(options_of(network, shelf="networks")) == ["width"]
