"""What all tests share: golden cases, and the same draws in every run."""

import json
import os
import signal
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from qualms import progress
from qualms.networks import load_torchvision

# torchmetrics and timm import torchvision, which needs help beside a CPU torch.
load_torchvision()

# A shell ignores Ctrl-C for what it runs in the background, and so would every process
# that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Neither chance nor a busy machine decides; QUALMS_FUZZ asks for other examples.
settings.register_profile(
    "qualms",
    derandomize="QUALMS_FUZZ" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("qualms")

# A busy machine adds no line about work that takes long.
progress.FIRST = 3600.0

# What a user would write; tests include it by its path.
collect_ignore = ["outside_parts"]

# The key of caches is that of no user; processes that tests start have the same.
_STATE = tempfile.TemporaryDirectory(prefix="qualms-state-")
os.environ["XDG_STATE_HOME"] = _STATE.name

GOLDEN = Path(__file__).parent / "golden"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Start torch at the same draws, whatever tests the process ran before."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def golden():
    """Load a golden file by the name of its paper."""
    return lambda paper: json.loads((GOLDEN / f"{paper}.json").read_text())
