"""A cluster that qualms starts: for this machine and this user alone."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from qualms.launch._ray import _make_token

LISTENING = """
import os
from pathlib import Path
from qualms.launch._ray import _connected
with _connected("", 1):
    session = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            for file in Path("/proc", process, "fd").iterdir():
                session[os.readlink(file)] = Path("/proc", process, "stat").read_text()
        except OSError:
            pass
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            cells = line.split()
            owner = session.get(f"socket:[{cells[9]}]", "")
            if cells[3] == "0A" and ("(raylet" in owner or "(gcs_server" in owner):
                print("listens", cells[1].partition(":")[0])
"""
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}


def test_the_token_is_readable_by_its_owner_alone(tmp_path, monkeypatch):
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    _make_token()
    token = tmp_path / ".ray" / "auth_token"
    assert token.stat().st_mode & 0o777 == 0o600
    assert len(text := token.read_text()) == 64
    _make_token()
    assert token.read_text() == text, "a token that is there is kept"


def test_a_token_of_the_user_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "mine"))
    _make_token()
    assert not (tmp_path / ".ray").exists()


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("ray") is None or not Path("/proc/net/tcp").exists(),
    reason="needs the extra scale, and Linux",
)
def test_a_cluster_of_its_own_listens_on_loopback_alone(tmp_path):
    environment = {**os.environ, "HOME": str(tmp_path)}
    answer = subprocess.run(
        [sys.executable, "-c", LISTENING],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    heard = [
        line.split()[1] for line in answer.stdout.splitlines() if "listens" in line
    ]
    assert len(heard) > 1
    assert set(heard) <= LOOPBACK
