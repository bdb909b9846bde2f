"""Do the expected effects of the demos hold whatever the seed?

    python bench/demo_effects.py --workers 2 [--rounds 0,5] [--benchmark regression]

Each round makes the data anew and trains with seeds of its own, only the methods that
the effects name, and prints every effect with its numbers. Options after `-o` change
all rounds, to try other sizes.
"""

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from qualms.benchmarks import Preset
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge
from qualms.launch import Choice, Wish, everything, parse_options, run_all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", action="append")
    parser.add_argument("--rounds", default="0,1,2,3,4,5,6,7,8,9")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--methods", default="")
    parser.add_argument("-o", dest="options", action="append", default=[])
    asked = parser.parse_args()
    rounds = [int(number) for number in asked.rounds.split(",")]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.benchmark or ["retina", "regression", "values"]:
            choices = [choice_of(name, number, asked) for number in rounds]
            # All rounds at once, so that no worker waits for the end of a round.
            specs = [spec for choice in choices for spec in choice.runs]
            place = Path(folder)
            for ended in run_all(
                specs,
                out=place / "runs",
                data=place / "data",
                workers=asked.workers,
                device=asked.device,
            ):
                if ended.error:
                    print(f"failed: {ended.error}", file=sys.stderr)
            for number, choice in zip(rounds, choices, strict=True):
                failed += report(name, number, choice, place / "runs")
    print(f"{failed} effects did not hold")
    sys.exit(1 if failed else 0)


def choice_of(name: str, seed: int, asked: argparse.Namespace) -> Choice:
    """The demo of one round, with the methods that its effects name."""
    wish = Wish(preset="demo", options=parse_options(asked.options))
    (plain,) = everything(name, wish)
    effects = plain.benchmark.expectations["demo"]
    rows = dict.fromkeys(row for e in effects for row in (*e.rows, *e.minus_rows))
    methods = tuple(asked.methods.split(",")) if asked.methods else tuple(rows)
    count = len(plain.preset.seeds)
    seeds = tuple(range(100 + seed * count, 100 + (seed + 1) * count))
    options = {**parse_options(asked.options), "dataset.seed": seed}
    (found,) = everything(name, Wish(preset="demo", methods=methods, options=options))
    return replace(found, preset=reseeded(found.preset, seeds))


def reseeded(preset: Preset, seeds: tuple[int, ...]) -> Preset:
    """The preset with other seeds in the places of its own."""
    new = dict(zip(preset.seeds, seeds, strict=True))
    pools = tuple(tuple(new[seed] for seed in pool) for pool in preset.pools)
    alone = tuple(new[seed] for seed in preset.alone)
    return replace(preset, seeds=seeds, pools=pools, alone=alone)


def report(name: str, seed: int, choice: Choice, runs: Path) -> int:
    """Print the effects of one round; gives how many did not hold."""
    results = judge(
        choice.benchmark, choice.preset, runs, options=ScoreOptions(resamples=0)
    )
    failed = 0
    for check in results.checks:
        failed += not check.held
        numbers = ", ".join(f"{row} {v:.3f}" for row, v in check.values.items())
        verdict = "held" if check.held else "NOT HELD"
        print(f"{name} seed {seed} {verdict}: {check.expectation.text}: {numbers}")
    return failed


if __name__ == "__main__":
    main()
