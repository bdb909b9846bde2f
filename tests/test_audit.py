"""`make audit` says whether anything was audited."""

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def audit():
    path = Path(__file__).parents[1] / ".ci" / "audit.py"
    spec = spec_from_file_location("audit", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(name, **entries):
    return {"name": name, "version": "1.0", **entries}


@pytest.mark.parametrize(
    "output",
    ["", "no JSON", json.dumps({"dependencies": [{"name": "a", "skip_reason": "?"}]})],
)
def test_a_service_that_cannot_be_reached_is_one_sentence(audit, output):
    result, text = audit.answer(output)
    assert result == 2
    assert text == audit.UNREACHABLE


def test_flaws_are_listed_with_what_mends_them(audit):
    flaw = {"id": "PYSEC-1", "fix_versions": ["1.1"]}
    unmended = {"id": "PYSEC-2", "fix_versions": []}
    packages = [package("a", vulns=[flaw, unmended]), package("b", vulns=[])]
    result, text = audit.answer(json.dumps({"dependencies": packages}))
    assert result == 1
    assert text.splitlines() == [
        "a 1.0: PYSEC-1, mended in 1.1",
        "a 1.0: PYSEC-2, mended in no version yet",
        "2 of 2 packages audited, 2 flaws",
    ]


def test_nothing_wrong_is_zero(audit):
    packages = [package("a", vulns=[]), package("b", skip_reason="?")]
    result, text = audit.answer(json.dumps({"dependencies": packages}))
    assert result == 0
    assert text == "1 of 2 packages audited, 0 flaws"
