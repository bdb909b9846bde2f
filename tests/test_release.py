"""A release is tagged with the version of its wheel."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

WHEEL = "qualms_bench-0.2.0-py3-none-any.whl"


@pytest.fixture(scope="module")
def release():
    path = Path(__file__).parents[1] / ".ci" / "release.py"
    spec = spec_from_file_location("release", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("tags", [[], ["v0.2.0"], ["nightly", "vision"]])
def test_a_tag_of_the_version_or_of_something_else_is_right(release, tags):
    assert release.wrong_tag(WHEEL, tags) == ""


def test_a_tag_of_another_version_is_refused(release):
    sentence = release.wrong_tag(WHEEL, ["nightly", "v0.1.0"])
    assert sentence.endswith("tag v0.1.0, and the wheel is 0.2.0; tag it v0.2.0")
