"""What a tuned config gains on validation items, with other seeds than the search had.

    qualms run retina/country --methods mc_dropout --seeds 1-3 --no-judge --out gain
    qualms run retina/country --methods mc_dropout --seeds 1-3 --no-judge --out gain \
        --config best.toml
    python bench/tuned_gain.py best.toml --out gain --seeds 1-3

Prints the score of the search's selection for every seed, by default options and by the
config, and the mean of their paired difference with its 95 % interval over seeds.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from qualms.launch import RunRequest, parse_seeds, plans_of
from qualms.launch._config_file import read_config
from qualms.launch.tune import search_of
from qualms.predictions import read
from qualms.runs import run_folder, split_stem, stored
from qualms.spec import RunSpec
from qualms.training.selection import predicted_split, selection_score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--seeds", default="1-3")
    args = parser.parse_args()
    file = read_config(args.config)
    target = f"{file.benchmark}/{file.search['variant']}"
    request = RunRequest(
        preset=file.search["preset"],
        methods=(file.method,),
        seeds=parse_seeds(args.seeds),
    )
    search = search_of(target, replace(request, seeds=(0,)), file.selection)
    values = []
    for config in ("", str(args.config)):
        (plan,) = plans_of(target, replace(request, config=config))
        runs = {run.seed: run for run in plan.runs}
        values.append([score(search, runs[seed], args.out) for seed in request.seeds])
    print("| seed | default options | tuned | difference |")
    print("|---:|---:|---:|---:|")
    for seed, plain, tuned in zip(request.seeds, *values, strict=True):
        print(f"| {seed} | {plain:.4f} | {tuned:.4f} | {tuned - plain:+.4f} |")
    gain = np.subtract(values[1], values[0])
    reach = student.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / np.sqrt(len(gain))
    low, high = gain.mean() - reach, gain.mean() + reach
    print(f"mean gain {gain.mean():+.4f} ({low:+.4f} to {high:+.4f})")


def score(search, run: RunSpec, out: Path) -> float:
    """Return the score of a run by the rule of the selection."""
    folder, rule = run_folder(out, run), search.selection.rule
    splits = [
        predicted_split(
            rule, read(stored(folder, split) or split_stem(folder, split)).arrays, ""
        )
        for split in search.judged_on
    ]
    return selection_score(rule, splits)


if __name__ == "__main__":
    main()
