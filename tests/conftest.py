"""Fixtures shared by all tests: golden cases and where they lie."""

import json
from pathlib import Path

import pytest

from qualms.networks import load_torchvision

# torchmetrics and timm import torchvision, which needs help beside a CPU torch.
load_torchvision()

# What a user would write; tests include it by its path.
collect_ignore = ["outside_parts"]

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def golden():
    """Load a golden file by the name of its paper."""
    return lambda paper: json.loads((GOLDEN / f"{paper}.json").read_text())
