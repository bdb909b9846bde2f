"""`qualms run` of a tiny grid, with a lease that soon runs out.

python storing.py OUT LEASE_SECONDS WORKERS
"""

import sys
from dataclasses import replace
from pathlib import Path

GRID = Path(__file__).parent / "grids/tiny_grid.py"


def main(out, seconds, workers):
    from qualms.launch import RunRequest
    from qualms.launch.judging import ResultsOutput
    from qualms.launch.resources import resources_for
    from qualms.launch.running import plans_for, run_plans
    from qualms.shelf import include

    include([GRID])
    resources = resources_for(out, None, workers=int(workers), device="cpu")
    if resources.store:
        store = replace(resources.store, seconds=float(seconds))
        resources = replace(resources, store=store)
    plans = plans_for("tiny_grid", RunRequest(preset="demo"), resources)
    report = run_plans(
        plans, resources, named=False, output=ResultsOutput("a test"), brief=True
    )
    for outcome in report.outcomes:
        sys.stdout.write(f"outcome {outcome.spec.seed} {outcome.status}\n")
    sys.exit(not report.is_complete)


if __name__ == "__main__":
    main(*sys.argv[1:])
