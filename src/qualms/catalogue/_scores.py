"""Scores of single runs, in a file that judging writes beside its results."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qualms.atomic import replacing
from qualms.regular import read_object

SCORES = "runs.json"
"""The file in a folder of results."""

Scores = Mapping[str, Mapping[str, float]]
"""Values by the hash of a run and the name of a score."""


def write_scores(folder: Path, labels: Mapping[str, Any], scores: Scores) -> None:
    """Write the scores of runs, with labels that all of them share."""
    finite = {
        run: {name: value for name, value in values.items() if math.isfinite(value)}
        for run, values in scores.items()
    }
    text = json.dumps({"format": 1, "labels": dict(labels), "runs": finite})
    with replacing(folder / SCORES) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_scores(path: Path) -> dict[str, dict[str, float]]:
    """Return the scores in a file by run; {} if it cannot be read."""
    try:
        runs = read_object(path)["runs"]
        return {
            str(run): {str(name): float(value) for name, value in values.items()}
            for run, values in runs.items()
        }
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return {}
