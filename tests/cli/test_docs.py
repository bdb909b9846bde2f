"""`qualms docs` prints the pages of the documentation."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from qualms.cli import app

FOLDER = Path(__file__).parents[2] / "docs"


def run(*words):
    return CliRunner().invoke(app, ["docs", *words])


def test_all_pages_are_listed_with_their_titles():
    lines = run().output.splitlines()
    assert len(lines) == len(list(FOLDER.glob("*.md")))
    assert any(line.split() == ["glossary", "Glossary"] for line in lines)
    assert not [line for line in lines if "`" in line or "#" in line]


@pytest.mark.parametrize("name", ["refer", "docs/refer.md", "refer.md"])
def test_a_page_is_printed_by_any_of_its_names(name):
    assert run(name).output.strip() == (FOLDER / "refer.md").read_text("utf-8").strip()


def test_its_path_is_printed():
    assert Path(run("refer", "--path").output.strip()) == FOLDER / "refer.md"


def test_a_page_that_does_not_exist_is_a_sentence():
    result = run("reffer")
    assert isinstance(result.exception, LookupError)
    assert str(result.exception).strip("\"'") == (
        "no page 'reffer'. Did you mean 'refer'? `qualms docs` lists all pages."
    )


def test_an_installed_package_has_its_own_copy(tmp_path, monkeypatch):
    from qualms.documentation import documentation

    package = tmp_path / "qualms"
    (package / "docs").mkdir(parents=True)
    (package / "docs" / "one.md").write_text("# One\n")
    monkeypatch.setattr("qualms.documentation.__file__", str(package / "x.py"))
    assert documentation() == {"one": package / "docs" / "one.md"}
    (package / "docs" / "one.md").unlink()
    assert documentation() == {}
