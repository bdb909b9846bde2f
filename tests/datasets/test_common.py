"""What every dataset file on the shelf must have."""

import inspect
import re
import subprocess
import sys
import textwrap
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from qualms import shelf
from qualms.datasets import Card, DatasetError, Recipe, cache_folder, prepare

NAMES = shelf.names("datasets")
SIMULATED = [
    name for name in NAMES if import_module(f"qualms.datasets.{name}").CARD.simulated
]
REAL = [name for name in NAMES if name not in SIMULATED]
YEAR = re.compile(r"\b[12]\d\d\d\b")


def seeded(names):
    """Return those of `names` that have the option `seed`."""
    makers = {name: inspect.signature(shelf.find("datasets", name)) for name in names}
    return [name for name, maker in makers.items() if "seed" in maker.parameters]


@pytest.mark.parametrize("name", NAMES)
def test_the_file_defines_the_function_of_its_name(name):
    maker = shelf.find("datasets", name)
    assert inspect.isfunction(maker)
    assert maker.__module__ == f"qualms.datasets.{name}"
    assert inspect.signature(maker).return_annotation is Recipe


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
        if isinstance(value, str):
            assert value.strip() == value != "", f"{entry.name} must not be empty"
    assert re.match(r"https?://\S+$", card.url), "url must be an address"
    assert YEAR.search(card.citation), "citation must name a year"


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_name_a_source_with_its_year(name):
    module = import_module(f"qualms.datasets.{name}")
    assert YEAR.search(module.__doc__ or ""), "it must name its source with the year"
    assert (shelf.find("datasets", name).__doc__ or "").strip()


@pytest.mark.parametrize("name", NAMES)
def test_only_simulators_do_without_a_folder(name):
    card = import_module(f"qualms.datasets.{name}").CARD
    takes_root = "root" in inspect.signature(shelf.find("datasets", name)).parameters
    assert takes_root is not card.simulated


@pytest.mark.parametrize("name", REAL)
def test_the_folder_may_be_text_or_a_path(name, tmp_path):
    make = shelf.find("datasets", name)
    messages = []
    for root in (tmp_path, str(tmp_path)):
        with pytest.raises(DatasetError, match="expected ") as refused:
            make(root)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("seed", ["a", 1.0, None, True, -1])
@pytest.mark.parametrize("name", seeded(REAL))
def test_a_seed_is_checked_before_the_folder_is_looked_at(name, seed, tmp_path):
    rule = "at least 0" if seed == -1 else "a whole number"
    with pytest.raises(ValueError, match=f"seed must be {rule}, got {seed!r}"):
        shelf.find("datasets", name)(tmp_path, seed=seed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": "a"}, "seed must be a whole number, got 'a'"),
        ({"seed": 1.0}, "seed must be a whole number, got 1.0"),
        ({"seed": None}, "seed must be a whole number, got None"),
        ({"seed": True}, "seed must be a whole number, got True"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"sizes": {"train": 2.5}}, "size of 'train' must be a whole number, got 2.5"),
        ({"sizes": {"test": "3"}}, "size of 'test' must be a whole number, got '3'"),
        ({"sizes": {"test": None}}, "size of 'test' must be a whole number, got None"),
        ({"sizes": {"test": True}}, "size of 'test' must be a whole number, got True"),
        ({"sizes": 5}, "sizes must be a mapping of splits or None, got 5"),
        ({"sizes": []}, "sizes must be a mapping of splits or None, got "),
    ],
)
@pytest.mark.parametrize("name", SIMULATED)
def test_what_is_no_whole_number_is_refused_with_a_sentence(name, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        shelf.find("datasets", name)(**options)


@pytest.mark.parametrize("name", SIMULATED)
def test_whole_numbers_of_numpy_make_the_same_dataset(name):
    make = shelf.find("datasets", name)
    plain = make(seed=2, sizes={"train": 3})
    numpy = make(seed=np.int64(2), sizes={"train": np.int32(3)})
    assert cache_folder("x", numpy) == cache_folder("x", plain)


@pytest.mark.parametrize("name", SIMULATED)
def test_a_simulators_recipe_is_stable_and_follows_its_seed(name):
    make = shelf.find("datasets", name)
    assert make().units == make(seed=0).units
    # Units may be the same where `load` is given the seed.
    assert cache_folder("x", make(seed=1)) != cache_folder("x", make(seed=0))
    assert make(seed=1).options != make(seed=0).options


def test_importing_datasets_loads_no_decoder_and_no_training_stack():
    heavy = {"torch", "torchvision", "cv2", "h5py", "PIL", "nibabel", "pandas"}
    heavy |= {"matplotlib", "pyarrow", "sklearn", "qualms.scores"}
    lines = ["import sys"]
    lines += [f"import qualms.datasets.{name}" for name in REAL]
    lines += [f"assert not {heavy | {'scipy', 'numba'}!r} & set(sys.modules)"]
    lines += [f"import qualms.datasets.{name}" for name in SIMULATED]
    lines += [f"assert not {heavy!r} & set(sys.modules)"]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_the_simulator_of_the_guide_is_prepared(tmp_path):
    guide = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")
    section = guide.partition("## Add a dataset")[2].partition("## Add a score")[0]
    code = textwrap.dedent(section.partition("```python\n")[2].partition("```")[0])
    names = {"__name__": "rings"}
    exec(compile(code, "CONTRIBUTING.md", "exec"), names)
    recipe = names["rings"](sizes={"train": 3, "val": 2, "test": 2})
    dataset = prepare(recipe, tmp_path / "cache", workers=1).dataset
    assert dataset.splits["train"].image.shape == (3, 32, 32, 1)
