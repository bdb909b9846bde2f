"""The folder is the registry."""

import importlib
from pathlib import Path

import pytest

import qualms.datasets
from qualms.shelf import find, names

FOLDER = Path(qualms.datasets.__file__).parent


def test_the_names_are_those_of_the_files_and_folders_in_order():
    files = {path.stem for path in FOLDER.glob("*.py")}
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    public = {name for name in files | folders if not name.startswith("_")}
    assert names("datasets") == tuple(sorted(public))
    assert {"cell200", "fundus"} <= public


def test_a_part_is_the_function_its_file_is_named_after():
    module = importlib.import_module("qualms.datasets.cells")
    assert find("datasets", "cells") is module.cells


def test_an_unknown_name_is_answered_with_the_closest():
    with pytest.raises(LookupError) as refused:
        find("datasets", "cell")
    message = str(refused.value)
    assert message.startswith("no 'cell' in datasets. Did you mean 'cells'? Known: ")
    assert all(name in message for name in names("datasets"))


@pytest.mark.parametrize("name", ["zzzz", "", "Cells.", "_cache", "os.path", "../spec"])
def test_only_parts_are_found(name):
    with pytest.raises(LookupError, match=r"^no "):
        find("datasets", name)


def test_what_the_package_does_not_have_is_answered_with_the_closest():
    import qualms

    with pytest.raises(
        AttributeError, match=r"attribute 'scor'\. Did you mean 'score'\?"
    ):
        qualms.scor  # noqa: B018 - reading it is the mistake


def test_a_shelf_that_is_not_there_cannot_be_imported():
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        names("nowhere")
