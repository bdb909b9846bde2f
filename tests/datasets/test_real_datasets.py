"""What every dataset that is read from a publisher's folder has in common."""

import inspect
import pickle
from dataclasses import MISSING, fields
from importlib import import_module

import numpy as np
import pytest
from PIL import Image

from qualms.datasets.aerial_building_pixels import aerial_building_pixels

NAMES = [
    "aerial_building_pixels",
    "asset_wealth",
    "brain_tumour_pixels",
    "cell200",
    "histology_nuclei_pixels",
    "rc49",
    "skin_lesion_pixels",
    "ventricular_volume",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_card_is_complete_and_the_root_comes_first(name):
    module = import_module(f"qualms.datasets.{name}")
    card = module.CARD
    assert all(getattr(card, f.name) for f in fields(card) if f.default is MISSING)
    assert not card.simulated
    first, *options = inspect.signature(getattr(module, name)).parameters.values()
    assert first.name == "root"
    assert all(option.kind is option.KEYWORD_ONLY for option in options)
    assert all(option.default is not option.empty for option in options)
    assert "2302.03679" in module.__doc__


def test_another_place_gives_the_same_units_and_options(tmp_path):
    recipes = []
    for place in ("here", "there"):
        for part in ("images", "gt"):
            folder = tmp_path / place / "train" / part
            folder.mkdir(parents=True)
            for city in ("austin", "chicago", "kitsap", "tyrol-w", "vienna"):
                picture = np.full((64, 64), 9, np.uint8)
                Image.fromarray(picture).save(folder / f"{city}1.tif")
        recipes.append(aerial_building_pixels(tmp_path / place))
    here, there = recipes
    assert (here.units, here.options) == (there.units, there.options)
    load = pickle.loads(pickle.dumps(there.load))
    assert len(load(there.units[0]).item) == 225
