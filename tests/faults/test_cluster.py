"""Faults of a Ray cluster: a process, a node and a driver lost in mid-epoch."""

import os
import signal
import time
from importlib.util import find_spec

import pytest
from bench.clusters import ray_cluster, training_process, training_processes

from faults import grid

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra scale"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with ray_cluster(tmp_path_factory.mktemp("ray")) as cluster:
        yield cluster


@pytest.fixture
def launched(tmp_path, whole_grid, cluster):
    """The folder and the driver of a grid that trains on both nodes."""
    driver = grid.start(
        "out",
        whole_grid.cache,
        "--no-judge",
        *("--launcher", "ray", "--address", cluster.address, "--workers", "2"),
        folder=tmp_path,
        **cluster.environment,
    )
    yield tmp_path / "out", driver
    driver.kill()
    driver.communicate()


def lines(driver, words):
    """The lines with these words that a driver printed, which must have succeeded."""
    text, errors = driver.communicate()
    assert driver.returncode == 0, errors
    return [line for line in text.splitlines() if words in line]


def test_a_process_that_is_lost(launched, whole_grid, report):
    out, driver = launched
    os.kill(training_process(out, driver), signal.SIGKILL)
    (sentence,) = lines(driver, "was killed by SIGKILL")
    assert grid.files(out) == whole_grid.files
    report("Ray worker lost in mid-epoch", sentence)


def test_a_node_that_is_lost(launched, whole_grid, cluster, report):
    out, driver = launched
    cluster.lose(cluster.node_of(training_process(out, driver)))
    (sentence,) = lines(driver, "was lost with its node")
    assert grid.files(out) == whole_grid.files
    cluster.add_node()
    report("Ray node lost in mid-epoch", sentence)


def test_a_driver_that_is_lost(launched, whole_grid, report):
    out, driver = launched
    training_process(out, driver)
    driver.kill()
    driver.wait()
    deadline = time.monotonic() + 120
    while list(training_processes(out)):
        assert time.monotonic() < deadline, "processes outlive their driver"
        time.sleep(0.1)
    report("Ray driver lost in mid-epoch", grid.resume(out, whole_grid))
