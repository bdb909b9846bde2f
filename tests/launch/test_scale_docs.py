"""The scripts and the manifest of docs/scale.md: what can be said without a cluster."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from qualms.cli import app

TEXT = (Path(__file__).parents[2] / "docs" / "scale.md").read_text("utf-8")
SCRIPTS = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
JOBS = [script for script in SCRIPTS if "#SBATCH" in script]
(MANIFEST,) = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
POD = {
    "containers": [
        {
            "name": str,
            "image": str,
            "resources": {"requests": dict, "limits": dict},
            "volumeMounts": [{"name": str, "mountPath": str}],
        }
    ],
    "volumes": [{"name": str, "persistentVolumeClaim": {"claimName": str}}],
}
GROUP = {"rayStartParams": dict, "template": {"spec": POD}}
COUNTS = {"replicas": int, "minReplicas": int, "maxReplicas": int}
FIELDS = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str},
    "spec": {
        "entrypoint": str,
        "submissionMode": str,
        "shutdownAfterJobFinishes": bool,
        "backoffLimit": int,
        "rayClusterSpec": {
            "rayVersion": str,
            "authOptions": {"mode": str},
            "enableInTreeAutoscaling": bool,
            "headGroupSpec": GROUP,
            "workerGroupSpecs": [{"groupName": str, **COUNTS, **GROUP}],
        },
    },
}
"""The part of the schema of a RayJob that the manifest uses."""


def check(value, schema, where=""):
    """Every field is one of the schema, and none of them is left out."""
    if isinstance(schema, dict):
        assert value.keys() == schema.keys(), where
        for name, below in schema.items():
            check(value[name], below, f"{where}.{name}")
    elif isinstance(schema, list):
        assert value, where
        for each in value:
            check(each, schema[0], where)
    else:
        assert isinstance(value, schema), where


def test_the_manifest_has_the_fields_of_a_ray_job():
    check(MANIFEST, FIELDS)
    assert (MANIFEST["apiVersion"], MANIFEST["kind"]) == ("ray.io/v1", "RayJob")
    cluster = MANIFEST["spec"]["rayClusterSpec"]
    assert cluster["authOptions"]["mode"] == "token"
    modes = ("K8sJobMode", "HTTPMode", "InteractiveMode")
    assert MANIFEST["spec"]["submissionMode"] in modes
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        assert all(isinstance(each, str) for each in group["rayStartParams"].values())
        pod = group["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert container["resources"]["requests"].keys() >= {"cpu", "memory"}


@pytest.mark.parametrize("script", JOBS)
def test_scripts_are_ones_that_a_shell_can_read(script):
    assert script.startswith("#!/bin/bash\n#SBATCH")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    options = re.findall(r"^#SBATCH (.*)$", script, re.MULTILINE)
    assert all(re.fullmatch(r"--[a-z-]+(=\S+)?", option) for option in options)


def test_every_command_has_options_that_there_are():
    options = {
        name for p in get_command(app).commands["run"].params for name in p.opts
    } | {"--no-judge"}
    text = "\n".join([*SCRIPTS, MANIFEST["spec"]["entrypoint"]]).replace("\\\n", " ")
    commands = re.findall(r"^\s*(qualms run .*?)(?:#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        words = [word for word in shlex.split(command) if word.startswith("--")]
        assert set(words) <= options, command


def test_the_array_is_requeued_and_shares_its_folder():
    (array,) = (script for script in JOBS if "--array" in script)
    assert "#SBATCH --requeue" in array
    assert '--out "$SHARED/runs"' in array


def test_no_documented_cluster_is_without_a_token():
    (cluster,) = (script for script in JOBS if "ray start" in script)
    assert "RAY_AUTH_MODE=token" in cluster
    assert "umask 077" in cluster
    assert "disabled" not in TEXT.partition("## Ray")[2].partition("## Retries")[0]
