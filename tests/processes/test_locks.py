import errno
import fcntl
import subprocess
import sys
import time

import pytest

from qualms.processes import LockError, locked

HOLDER = """
import sys, time
from pathlib import Path
from qualms.processes import locked
with locked(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(900)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


def test_a_lock_is_held_once_and_released(path):
    with locked(path) as first:
        with locked(path) as second:
            pass
        with locked(path) as third:
            pass
    with locked(path) as fourth:
        pass
    assert (first, second, third, fourth) == (True, False, False, True)


def test_a_killed_process_holds_no_lock(path):
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "True\n"
        with locked(path) as mine:
            assert not mine
        started = time.monotonic()
        holder.kill()
    with locked(path, wait=True) as mine:
        assert mine
    assert time.monotonic() - started < 300


@pytest.mark.parametrize("wrong", [errno.ENOSYS, errno.ENOLCK, None])
def test_a_disk_without_locks_that_work_is_refused(path, monkeypatch, wrong):
    def flock(_file, _operation):
        if wrong is not None:
            raise OSError(wrong, "no locks")

    monkeypatch.setattr(fcntl, "flock", flock)
    with (
        pytest.raises(LockError, match=r"lock.*; choose a folder on another disk"),
        locked(path),
    ):
        pytest.fail("a lock that does not work was given")


def test_other_errors_stay_what_they_are(path, monkeypatch):
    def flock(_file, _operation):
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="the disk is broken"), locked(path):
        pass
