"""Files and folders appear whole or not at all, and killed writers leave nothing."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from qualms import atomic
from qualms.atomic import LEFTOVER, replace_folder, replacing, temporary_path

KILLED = """
import os, signal, sys
from pathlib import Path
from qualms.atomic import replacing, temporary_path
path = Path(sys.argv[1])
temporary_path(path / "folder").mkdir()
with replacing(path / "file") as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def aged(folder, seconds):
    """The temporary files in a folder, made older."""
    left = sorted(folder.glob(LEFTOVER))
    for path in left:
        os.utime(path, (time.time() - seconds, time.time() - seconds))
    return left


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(LEFTOVER))) == 2
    mine = temporary_path(tmp_path / "mine")
    mine.write_text("of this process, which is slow")
    assert list(tmp_path.glob(LEFTOVER)) == [mine]
    atomic._remove_leftovers.cache_clear()
    with replacing(tmp_path / "x") as temporary:
        temporary.write_text("whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, "x"])


def test_a_temporary_file_of_another_machine_or_version_stays(tmp_path):
    other = tmp_path / f".qualms-elsewhere-1-{'0' * 32}.tmp"
    former = tmp_path / f".qualms-{'0' * 32}.tmp"
    for path in (other, former):
        path.write_text("")
    aged(tmp_path, 10**7)
    temporary_path(tmp_path / "x")
    assert other.exists()
    assert former.exists()


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_what_was_left_before_a_restart_waits_for_an_hour(tmp_path, monkeypatch):
    host = atomic._machine().rpartition(".")[0]
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    monkeypatch.setattr(atomic, "_machine", lambda: f"{host}.another")
    for seconds, left in ((60, 2), (7200, 0)):
        aged(tmp_path, seconds)
        atomic._remove_leftovers.cache_clear()
        temporary_path(tmp_path / "x")
        assert len(list(tmp_path.glob(LEFTOVER))) == left


def test_a_full_disk_is_named_with_the_file(tmp_path):
    path = tmp_path / "results.csv"
    with (
        pytest.raises(OSError, match=r"No space left on device: .*results") as it,
        replacing(path),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert it.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_folder_is_replaced_in_one_step(tmp_path, monkeypatch, exchanges):
    """At no time is there no folder, unless the system cannot exchange two."""
    new, old = temporary_path(tmp_path / "maps"), tmp_path / "maps"
    for folder in (new, old):
        folder.mkdir()
        (folder / "index.json").write_text(folder.name)
    if not exchanges:
        monkeypatch.setattr(atomic, "_swap", lambda: None)
    steps = []
    rename = type(old).rename
    monkeypatch.setattr(
        type(old), "rename", lambda self, to: (steps.append(to), rename(self, to))[1]
    )
    replace_folder(new, old)
    assert (old / "index.json").read_text() == new.name
    assert [path.name for path in tmp_path.iterdir()] == ["maps"]
    if exchanges and sys.platform == "linux":
        assert not steps


def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch):
    new, old = temporary_path(tmp_path / "maps"), tmp_path / "maps"
    old.mkdir()
    (old / "index.json").write_text("old")
    monkeypatch.setattr(atomic, "_swap", lambda: None)
    with pytest.raises(FileNotFoundError):
        replace_folder(new, old)  # the new one is not there
    assert (old / "index.json").read_text() == "old"
