"""A release is tagged with the version of its wheel, and every test was run."""

from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"
WHEEL = "qualms_bench-0.2.0-py3-none-any.whl"


@pytest.fixture(scope="module")
def release():
    spec = spec_from_file_location("release", CI / "release.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("tags", [[], ["v0.2.0"], ["nightly", "vision"]])
def test_a_tag_of_the_version_or_of_something_else_is_right(release, tags):
    assert release.wrong_tag(WHEEL, tags) == ""


def test_a_tag_of_another_version_is_refused(release):
    sentence = release.wrong_tag(WHEEL, ["nightly", "v0.1.0"])
    assert sentence.endswith("tag v0.1.0, and the wheel is 0.2.0; tag it v0.2.0")


def test_a_release_asks_for_a_run_of_every_test(release):
    results = "# Speed\n\n## Every test\nFingerprint: 0123abcd.\n\n## Photographs\n"
    assert release.untested(results, "0123abcd") == ""
    for other, contents in [
        (results, "0123abce"),  # another file was changed since
        (results, ""),  # a change is not committed
        ("# Speed\n\n## Photographs\n0123abcd\n", "0123abcd"),
    ]:
        assert release.untested(other, contents).startswith("`make test-all` has not")


@pytest.fixture
def every_test(monkeypatch):
    monkeypatch.syspath_prepend(CI)
    return import_module("every_test")


TRIED = """
import pytest

def test_passes():
    pass

@pytest.mark.skip(reason="no LaTeX here")
def test_is_skipped():
    pass

@pytest.mark.xfail
def test_is_known_to_fail():
    assert False
"""


def test_a_skipped_test_is_counted_and_named(every_test, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]")
    (tmp_path / "test_tried.py").write_text(TRIED)
    figures = every_test.run_pytest(["-q", "-p", "no:cacheprovider"], tmp_path)
    assert figures.status == 0
    assert figures.passed == 1
    assert figures.skipped == ("test_tried::test_is_skipped: no LaTeX here",)


def test_a_skipped_test_fails_the_whole(every_test, monkeypatch, capsys):
    made = every_test.Figures(passed=9, seconds=1.0, skipped=("a::b: why",), status=0)
    monkeypatch.setattr(every_test, "run_pytest", lambda _: made)
    assert every_test.main() == 1
    assert "skipped: a::b: why\n" in capsys.readouterr().out


def test_figures_take_the_place_of_former_ones(every_test):
    new = "## Every test\n\nnew\n"
    speed, rest = "# Speed\n\n| a |\n", "## Photographs\n\n25 in a second\n"
    first = every_test.renewed(f"{speed}\n{rest}", new)
    assert first == f"{speed}\n{new}\n{rest}"
    assert every_test.renewed(first, new.replace("new", "newer")) == (
        f"{speed}\n{new.replace('new', 'newer')}\n{rest}"
    )
