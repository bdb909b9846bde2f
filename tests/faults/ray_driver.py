"""A launcher on a Ray cluster of its own: python ray_driver.py OUT CACHE."""

import sys
from pathlib import Path

from faults import drill
from qualms.launch import Engine, run_all

RUNS = [drill.spec(seed) for seed in range(3)]

if __name__ == "__main__":
    out, cache = map(Path, sys.argv[1:])
    engine = Engine(launcher="ray")
    for outcome in run_all(
        RUNS, out=out, data=cache, workers=1, device="cpu", engine=engine
    ):
        sys.stdout.write(f"{outcome.spec.seed} {outcome.status}\n")
        sys.stdout.flush()
