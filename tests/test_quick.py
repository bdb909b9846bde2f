"""`make quick` chooses the tests that a change touches."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def quick():
    spec = spec_from_file_location("quick", ROOT / ".ci" / "quick.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_source_file_has_the_tests_of_its_name_and_its_importers(quick):
    chosen = quick.tests_of([Path("src/qualms/labels.py")])
    assert chosen[0] == Path("tests/test_labels.py")
    assert Path("tests/test_structure.py") in chosen
    assert len(chosen) == len(set(chosen))


def test_private_modules_and_packages_have_tests(quick):
    few = quick.tests_of([Path("src/qualms/inference/_few.py")])
    assert Path("tests/inference/test_few.py") in few
    package = quick.tests_of([Path("src/qualms/inference/__init__.py")])
    assert Path("tests/inference/test_few.py") in package


def test_a_changed_test_comes_first_and_a_page_has_tests(quick):
    chosen = quick.tests_of([Path("docs/refer.md"), Path("tests/test_wording.py")])
    assert chosen[0] == Path("tests/test_wording.py")
    assert Path("tests/test_docs.py") in chosen


def test_a_helper_of_the_tests_has_those_that_import_it(quick):
    chosen = quick.tests_of([Path("tests/public_names.py")])
    assert Path("tests/test_public.py") in chosen


def test_nothing_changed_is_no_test(quick):
    assert quick.tests_of([]) == []
    assert quick.tests_of([Path("LICENSE")]) == []
