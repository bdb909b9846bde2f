"""Runs on a real server with the interface of S3, and on one that often fails."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launch import moto, storing

pytestmark = pytest.mark.slow
SCRIPT = Path(storing.__file__)
QUALMS = [sys.executable, "-m", "qualms"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with moto.served(tmp_path_factory.mktemp("moto") / "venv") as address:
        yield address


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def local(tmp_path_factory, cache):
    """The same runs by one launcher in a folder."""
    out = tmp_path_factory.mktemp("local")
    environment = moto.environment("http://127.0.0.1:1", out / "none", cache)
    assert set(finish(start(environment, out))) == {"done"}
    return out


def system(address):
    import s3fs

    return s3fs.S3FileSystem(
        key="test",
        secret="test",
        client_kwargs={"endpoint_url": address},
        use_listings_cache=False,
        skip_instance_cache=True,
    )


def start(environment, out, *, seconds=300, workers=1):
    return subprocess.Popen(
        [sys.executable, SCRIPT, str(out), str(seconds), str(workers)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process):
    """Wait for a launcher; return the statuses of its runs."""
    text, _ = process.communicate(timeout=600)
    statuses = re.findall(r"^outcome \d+ (\w+)$", text, re.MULTILINE)
    assert len(statuses) == 6, text
    return statuses


def predictions(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*.safetensors")
        if not path.is_symlink() and "demo" not in path.relative_to(root).parts
    }


def downloaded(address, bucket, folder):
    store = system(address)
    for path in store.find(f"{bucket}/runs/tiny_grid"):
        if path.endswith(".safetensors"):
            file = folder / path.partition("/runs/")[2]
            file.parent.mkdir(parents=True, exist_ok=True)
            store.get_file(path, str(file))
    return predictions(folder)


def until(holds, process):
    deadline = time.monotonic() + 300
    while not holds():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_two_launchers_a_kill_and_a_takeover_give_the_same_bits(
    tmp_path, server, cache, local
):
    system(server).mkdir("shared")
    out = "s3://shared/runs"
    first, second = (
        moto.environment(server, tmp_path / name, cache) for name in ("a", "b")
    )
    doomed = start(first, out, seconds=5, workers=2)
    store = system(server)
    until(lambda: store.glob("shared/runs/tiny_grid/*/checkpoint.pt"), doomed)
    os.killpg(doomed.pid, signal.SIGKILL)
    doomed.communicate()
    begun = {path.split("/")[3] for path in store.glob("shared/runs/tiny_grid/*/*.pt")}
    assert begun
    time.sleep(8)  # its leases run out
    survivors = [start(second, out, seconds=5), start(first, out, seconds=5)]
    ended = [finish(process) for process in survivors]
    assert {status for statuses in ended for status in statuses} <= {
        "done",
        "skipped",
        "busy",
    }
    assert sum(statuses.count("done") for statuses in ended) >= 5
    stored = downloaded(server, "shared", tmp_path / "stored")
    assert stored == predictions(local)
    assert len(stored) == 6 * 2


def test_a_store_that_fails_one_call_in_ten_loses_nothing(
    tmp_path, server, cache, local
):
    system(server).mkdir("flaky")
    with moto.flaky(server, 0.1) as (address, proxy):
        environment = moto.environment(address, tmp_path / "scratch", cache)
        process = start(environment, "s3://flaky/runs", workers=2)
        assert finish(process) == ["done"] * 6
    assert process.returncode == 0
    assert proxy.failures > 0.03 * proxy.calls
    stored = downloaded(server, "flaky", tmp_path / "stored")
    assert stored == predictions(local)


def test_a_command_runs_judges_and_reports_from_the_store(tmp_path, server, cache):
    system(server).mkdir("command")
    grid = ["--include", str(storing.GRID)]
    run = ["run", "tiny_grid", *grid, "--out", "s3://command/a/b", "--device", "cpu"]
    seeds = ["--seeds", "0-1", "--brief"]

    def qualms(*arguments, scratch="scratch"):
        environment = moto.environment(server, tmp_path / scratch, cache)
        return subprocess.run(
            [*QUALMS, *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    made = qualms(*run, *seeds)
    assert made.returncode == 0, made.stderr
    assert "2 runs: 2 done" in made.stdout
    assert "tables and figures are stored in s3://command/a/b/tiny_grid/demo" in (
        made.stdout
    )
    again = qualms(*run, *seeds, scratch="elsewhere")
    assert "2 runs: 2 skipped" in again.stdout, again.stderr
    planned = qualms(*run, "--dry-run", scratch="third")
    assert "4 of 6 runs lack a result in s3://command/a/b" in planned.stdout
    site = qualms("report", "s3://command/a/b", *grid, "--out", "site", scratch="4")
    assert site.returncode == 0, site.stderr
    assert "A tiny grid" in (tmp_path / "site/index.html").read_text()
    code = "import qualms; r = qualms.judge('tiny_grid', out='s3://command/a/b'"
    code += f", include={str(storing.GRID)!r}, seeds='0-1'); print(len(r.table) > 0)"
    judged = subprocess.run(
        [sys.executable, "-c", code],
        env=moto.environment(server, tmp_path / "5", cache),
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.stdout.endswith("True\n"), judged.stderr


@pytest.mark.parametrize(
    ("out", "variables", "message"),
    [
        ("s3://nowhere/a", {}, "there is no bucket 'nowhere'; create it, or correct"),
        ("s3://b/a", {"AWS_ACCESS_KEY_ID": ""}, "no credentials were found; set AWS_"),
        ("s3://b/a", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "check the network"),
    ],
)
def test_what_is_missing_is_said(tmp_path, server, cache, out, variables, message):
    environment = moto.environment(server, tmp_path / "scratch", cache) | variables
    if not environment["AWS_ACCESS_KEY_ID"]:
        del environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
    ended = subprocess.run(
        [*QUALMS, "run", "tiny_grid", "--include", str(storing.GRID), "--out", out],
        env=environment | {"HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
