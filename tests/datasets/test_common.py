"""What every dataset file on the shelf must have."""

import inspect
import re
import subprocess
import sys
from dataclasses import fields
from importlib import import_module

import pytest

from qualms import shelf
from qualms.datasets._recipe import Card, Recipe

NAMES = shelf.names("datasets")


@pytest.mark.parametrize("name", NAMES)
def test_the_file_defines_the_function_of_its_name(name):
    made = shelf.find("datasets", name)
    assert inspect.isfunction(made)
    assert made.__module__ == f"qualms.datasets.{name}"
    assert inspect.signature(made).return_annotation is Recipe


@pytest.mark.parametrize("name", NAMES)
def test_options_are_keywords_with_defaults(name):
    for parameter in inspect.signature(
        shelf.find("datasets", name)
    ).parameters.values():
        if parameter.name == "root":
            assert parameter.default is inspect.Parameter.empty
        else:
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert parameter.default is not inspect.Parameter.empty


@pytest.mark.parametrize("name", NAMES)
def test_the_card_is_complete(name):
    card = import_module(f"qualms.datasets.{name}").CARD
    assert isinstance(card, Card)
    for entry in fields(Card):
        value = getattr(card, entry.name)
        assert isinstance(value, bool) or value.strip() == value != "", entry.name
    assert re.match(r"https?://\S+$", card.url)
    assert re.search(r"\b(19|20)\d\d\b", card.citation)


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_name_a_source_with_its_year(name):
    module = import_module(f"qualms.datasets.{name}")
    assert re.search(r"\b(19|20)\d\d\b", module.__doc__ or "")
    assert (shelf.find("datasets", name).__doc__ or "").strip()


@pytest.mark.parametrize("name", NAMES)
def test_only_simulators_do_without_a_folder(name):
    card = import_module(f"qualms.datasets.{name}").CARD
    takes_root = "root" in inspect.signature(shelf.find("datasets", name)).parameters
    assert takes_root is not card.simulated


@pytest.mark.parametrize(
    "name",
    [n for n in NAMES if import_module(f"qualms.datasets.{n}").CARD.simulated],
)
def test_a_simulators_recipe_is_stable_and_follows_its_seed(name):
    make = shelf.find("datasets", name)
    assert make().units == make(seed=0).units
    assert make(seed=1).units != make(seed=0).units
    assert make(seed=1).options != make(seed=0).options


def test_no_dataset_imports_torch_or_the_scores():
    lines = [f"import qualms.datasets.{name}" for name in NAMES]
    lines.append("import sys")
    lines.append("assert 'torch' not in sys.modules")
    lines.append("assert 'qualms.scores' not in sys.modules")
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
