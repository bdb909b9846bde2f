"""The golden cases of the retina benchmark: inputs made by the recipe in the file."""

import json
from functools import cache
from pathlib import Path

RTOL = 1e-9
CASES = {"A_mc_samples": "case_mc", "B_ties": "case_ties", "E_tiny": "case_tiny"}


@cache
def retina():
    return json.loads((Path(__file__).parents[1] / "golden/retina.json").read_text())


@cache
def inputs(case):
    recipe = {}
    exec(retina()["recipe_python"], recipe)
    return recipe[CASES[case]]()


def scalars(case):
    return retina()["cases"][case]["scalars"]
