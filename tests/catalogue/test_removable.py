"""What can be deleted from folders of runs."""

import os
import time

import pytest

from catalogue.run_folders import make_folder
from qualms import atomic
from qualms.catalogue import find_removable, remove_all
from qualms.processes import locked
from qualms.runs import lock_path, predictions_folder, run_folder

LONG_AGO = time.time() - 30 * 86_400
LEFT = ".qualms-{}-999999999-{}.tmp"


def aged(path):
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


@pytest.fixture
def out(tmp_path):
    done = make_folder(tmp_path)
    make_folder(tmp_path, "failed", method="swag")
    make_folder(tmp_path, "stopped", method="mfvi")
    machine = atomic.temporary_path(tmp_path / "any").name.split("-")[1]
    left = predictions_folder(done) / LEFT.format(machine, "0" * 32)
    left.write_bytes(bytes(300))
    aged(left)
    features, cells = tmp_path / "small" / ".features", tmp_path / "small" / ".judged"
    features.mkdir()
    (features / "array.npy").write_bytes(bytes(500))
    cells.mkdir()
    (cells / "old.cell").write_bytes(bytes(70))
    aged(cells / "old.cell")
    (cells / "new.cell").write_bytes(bytes(70))
    return tmp_path


def by_kind(removables):
    return {each.kind: each.path.name for each in removables}


def test_everything_that_can_be_deleted_is_listed_with_its_size(out):
    removables = find_removable(out)
    assert sorted(each.kind for each in removables) == [
        *("cells", "checkpoints", "failed", "features", "leftovers")
    ]
    sizes = {each.kind: each.bytes for each in removables}
    assert sizes["checkpoints"] == 1000
    assert (sizes["cells"], sizes["features"], sizes["leftovers"]) == (70, 500, 300)
    assert sizes["failed"] > 1000
    assert [e.kind for e in find_removable(out, ["cells"])] == ["cells"]


def test_deleting_keeps_predictions_and_runs_that_go_on(out):
    before = find_removable(out)
    removed = remove_all(before)
    assert (removed.paths, removed.spared) == (5, ())
    assert removed.bytes == sum(each.bytes for each in before)
    assert find_removable(out) == []
    done, stopped = (make_spec_folder(out, method) for method in ("map", "mfvi"))
    assert (predictions_folder(done) / "test.csv").exists()
    assert (done / "done.json").exists()
    assert (stopped / "checkpoint.pt").exists()
    assert (out / "small" / ".judged" / "new.cell").exists()


def make_spec_folder(out, method):
    from catalogue.run_folders import spec_of

    return run_folder(out, spec_of(method=method))


def test_nothing_of_a_run_in_progress_is_listed_or_deleted(out):
    failed = make_spec_folder(out, "swag")
    listed = find_removable(out)
    with locked(lock_path(failed)) as is_locked:
        assert is_locked
        # Features may be those of the run in progress.
        assert set(by_kind(find_removable(out))) == {
            "cells",
            "checkpoints",
            "leftovers",
        }
        removed = remove_all(listed)
    assert failed.is_dir()
    assert len(removed.spared) == 2
    assert f"{failed} was kept: a run that uses it began" in removed.spared


def test_links_are_not_followed(out, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    make_folder(elsewhere, "failed", method="sngp")
    (real,) = (elsewhere / "small").iterdir()
    (out / "small" / real.name).symlink_to(real)
    assert all(real.name not in str(each.path) for each in find_removable(out))


def test_a_fresh_temporary_file_stays(out):
    done = make_spec_folder(out, "map")
    mine = atomic.temporary_path(done / "file")
    mine.write_bytes(b"being written")
    assert all(each.path != mine for each in find_removable(out))
