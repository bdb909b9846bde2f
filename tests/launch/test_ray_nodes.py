"""Nodes of Ray that lack something: a part of one's own, the folder, the version."""

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from bench.clusters import ray_cluster

import qualms
from faults import grid

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra scale"),
]
METHOD = '''"""A method (Nobody, 2026)."""

from qualms.methods import Method


def carried() -> Method:
    """Change nothing."""
    return Method()
'''
HIDDEN = 'mount -t tmpfs none "$0" && exec "$@"'
OTHER = 'mount --bind "$0" "$1" && shift && exec "$@"'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A head alone; each test adds the node that it is about."""
    own = ["unshare", "--mount", "true"]
    if subprocess.run(own, capture_output=True, check=False).returncode:
        pytest.skip("mounts of one process need root")
    with ray_cluster(tmp_path_factory.mktemp("ray"), nodes=0) as cluster:
        yield cluster


@pytest.fixture
def run_on(cluster, tmp_path):
    """Run the grid on a node of the cluster that sees other files."""

    def run(script, *paths, options=(), **variables):
        cluster.add_node("unshare", "--mount", "sh", "-c", script, *map(str, paths))
        try:
            launched = grid.start(
                tmp_path / "out",
                tmp_path / "cache",
                "--no-judge",
                *("--launcher", "ray", "--address", cluster.address, *options),
                **{**cluster.environment, **variables},
            )
            return launched, *launched.communicate()
        finally:
            cluster.lose(cluster.nodes[-1])

    return run


def test_a_part_travels_to_a_node_that_lacks_its_file(run_on, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "carried.py").write_text(METHOD)
    options = ["--include", str(folder / "carried.py"), "--methods", "carried"]
    launched, _, errors = run_on(HIDDEN, folder, options=options)
    assert launched.returncode == 0, errors
    assert len(grid.finished(tmp_path / "out")) == grid.RUNS


def test_a_node_that_does_not_see_the_folder_is_refused(run_on, tmp_path):
    (tmp_path / "out").mkdir()
    launched, _, errors = run_on(HIDDEN, tmp_path / "out")
    assert launched.returncode == 2, errors
    assert f"it does not see {tmp_path / 'out'}; choose a folder that all" in errors


def test_a_node_with_another_version_is_refused(run_on, tmp_path):
    source = Path(qualms.__file__)
    other = tmp_path / "other.py"
    version = f'__version__ = "{qualms.__version__}"'
    assert version in source.read_text()
    other.write_text(source.read_text().replace(version, '__version__ = "0.0.9"'))
    launched, _, errors = run_on(OTHER, other, source)
    assert launched.returncode == 2, errors
    assert "it has qualms 0.0.9, and the launcher has" in errors
    assert "install the same version" in errors


def test_a_driver_with_another_token_is_refused(cluster, tmp_path):
    token = tmp_path / "token"
    token.write_text("0" * 64)
    launched = grid.start(
        tmp_path / "out",
        tmp_path / "cache",
        *("--launcher", "ray", "--address", cluster.address),
        **{**cluster.environment, "RAY_AUTH_TOKEN_PATH": str(token)},
    )
    _, errors = launched.communicate()
    assert launched.returncode == 2, errors
    assert f"the Ray cluster at {cluster.address} cannot be joined" in errors
    assert "is its token in" in errors
