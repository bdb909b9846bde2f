"""Do the expected effects of the demos hold whatever the seed?

    python bench/demo_effects.py --workers 2 [--rounds 0,5] [--benchmark regression]

Each round makes the data anew and trains with seeds of its own, and prints every effect
with its numbers. `--methods` trains fewer methods; options after `-o` change all
rounds, to try other sizes.
"""

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.launch import RunRequest, parse_options, plans_of, run_all
from qualms.study import RunPlan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", action="append")
    parser.add_argument("--rounds", default="0,1,2,3,4,5,6,7,8,9")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--methods", default="")
    parser.add_argument("-o", dest="options", action="append", default=[])
    arguments = parser.parse_args()
    rounds = [int(number) for number in arguments.rounds.split(",")]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.benchmark or ["retina", "regression", "values"]:
            plans = [round_plan(name, number, arguments) for number in rounds]
            # All rounds at once, so that no worker waits for the end of a round.
            specs = [spec for plan in plans for spec in plan.runs]
            out = Path(folder) / "runs"
            for outcome in run_all(
                specs,
                out=out,
                data=Path(folder) / "data",
                workers=arguments.workers,
                device=arguments.device,
            ):
                if outcome.error:
                    print(f"failed: {outcome.error}", file=sys.stderr)
            for number, plan in zip(rounds, plans, strict=True):
                failed += report(name, number, plan, out)
    print(f"{failed} effects did not hold")
    sys.exit(1 if failed else 0)


def round_plan(name: str, number: int, arguments: argparse.Namespace) -> RunPlan:
    """The demo of one round, with data and seeds of its own."""
    request = RunRequest(
        preset="demo",
        methods=tuple(filter(None, arguments.methods.split(","))),
        options={**parse_options(arguments.options), "dataset.seed": number},
    )
    (plan,) = plans_of(name, request)
    count = len(plan.seeds)
    return reseeded(
        plan, tuple(range(100 + number * count, 100 + (number + 1) * count))
    )


def reseeded(plan: RunPlan, seeds: tuple[int, ...]) -> RunPlan:
    """The plan with other seeds in the places of its own."""
    new = dict(zip(plan.seeds, seeds, strict=True))
    pools = tuple(tuple(new[seed] for seed in pool) for pool in plan.pools)
    alone = tuple(new[seed] for seed in plan.alone)
    return replace(plan, seeds=seeds, pools=pools, alone=alone)


def report(name: str, number: int, plan: RunPlan, runs: Path) -> int:
    """Print the effects of one round; gives how many did not hold."""
    results = judge_plan(plan, runs, options=ScoreOptions(resamples=0))
    failed = 0
    for check in results.checks:
        failed += not check.held
        numbers = ", ".join(f"{row} {v:.3f}" for row, v in check.values.items())
        verdict = "held" if check.held else "NOT HELD"
        print(f"{name} round {number} {verdict}: {check.expectation.text}: {numbers}")
    return failed


if __name__ == "__main__":
    main()
