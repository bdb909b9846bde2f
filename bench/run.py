"""Speed and memory against peers: ratios in one run, one thread, best of five.

`make bench` prints the table and writes it to bench/RESULTS.md.
"""

import os

# Threads are fixed before any library starts its own.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sklearn.metrics
import torch

from qualms.networks import load_torchvision
from qualms.scores.arguments import called_in_order

load_torchvision()  # torchmetrics imports it
import torchmetrics
from torchmetrics.functional.classification import (
    binary_auroc,
    binary_calibration_error,
)
from torchmetrics.functional.regression import (
    continuous_ranked_probability_score as torch_crps,
)

from qualms import predictions, scores
from qualms.evaluate import ScoreOptions, score
from qualms.evaluate.segmented import Reading, measure_items, measuring, validate
from qualms.evaluate.segmented._stream import WORTHWHILE
from qualms.inference import influence_of, interval_of
from qualms.results import Result, ResultsTable, concatenated, result

N = 42_670
HERE = Path(__file__).parent
torch.set_num_threads(1)


class Line(NamedTuple):
    """One row of the table."""

    work: str
    ours: str
    peer: str
    figure: str
    must: str
    met: bool


def best(*functions: Callable[[], object], repeats: int = 5) -> list[float]:
    """Seconds of each function, best of `repeats`, the functions taking turns."""
    for function in functions:
        function()  # compile and warm up outside the timing
    times = [[] for _ in functions]
    for _ in range(repeats):
        for kept, function in zip(times, functions, strict=True):
            start = time.perf_counter()
            function()
            kept.append(time.perf_counter() - start)
    return [min(kept) for kept in times]


def peak_mb(function: Callable[[], object]) -> float:
    """Peak of newly allocated memory in MB; NumPy reports its arrays to tracemalloc."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def binary(n: int = N, seed: int = 0):
    """P(y=1), target and entropy of `n` items, a fifth of them positive."""
    rng = np.random.default_rng(seed)
    target = (rng.random(n) < 0.2).astype(np.int64)
    prob = 1 / (1 + np.exp(-(-1.6 + 2.8 * target + 1.3 * rng.standard_normal(n))))
    uncertainty = scores.entropy(np.stack([1 - prob, prob], 1))
    return prob, target, uncertainty


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def referral_auroc() -> list[Line]:
    prob, target, u = binary()
    order = np.argsort(u)
    kept = np.linspace(N // 100, N, 200).astype(int)

    def loop():
        for k in kept:
            sklearn.metrics.roc_auc_score(target[order[:k]], prob[order[:k]])

    (ours,) = best(lambda: scores.referral_curve("auroc", prob, target, u))
    (peer,) = best(loop, repeats=1)
    peer *= N / len(kept)
    big = binary(1_000_000)
    (million,) = best(lambda: scores.referral_curve("auroc", *big), repeats=3)
    ratio = peer / ours
    return [
        Line(
            f"exact AUROC referral curve, N = {N:,}",
            ms(ours),
            f"scikit-learn loop {ms(peer)} (extrapolated from {len(kept)} thresholds)",
            f"{ratio:,.0f} x faster",
            ">= 2,000 x and <= 100 ms",
            ratio >= 2000 and ours <= 0.1,
        ),
        Line("the same, N = 1,000,000", ms(million), "", "", "<= 5 s", million <= 5),
    ]


def referral_sums() -> list[Line]:
    prob, target, u = binary()

    def both():
        scores.referral_curve("accuracy", prob, target, u)
        scores.referral_curve("nll", prob, target, u)

    ours, sort = best(both, lambda: np.argsort(u, kind="stable"), repeats=25)
    return [
        Line(
            f"accuracy + NLL referral curves, N = {N:,}",
            ms(ours),
            f"one stable argsort {ms(sort)}",
            f"{ours / sort:.2f} x the sort",
            "<= 1.5 x",
            ours <= 1.5 * sort,
        )
    ]


def referral_auprc() -> list[Line]:
    prob, target, u = binary()
    (ours,) = best(lambda: scores.referral_curve("auprc", prob, target, u), repeats=3)
    memory = peak_mb(lambda: scores.referral_curve("auprc", prob, target, u))
    return [
        Line(
            f"exact AUPRC referral curve, N = {N:,}",
            f"{ms(ours)}, {memory:.0f} MB",
            "",
            f"{memory * 1e6 / N / 8:.0f} floats per item",
            "<= 5 s, O(N) memory",
            ours <= 5 and memory < 100,
        )
    ]


def single_scores() -> list[Line]:
    prob, target, _ = binary()
    p, y = torch.from_numpy(prob), torch.from_numpy(target)
    ours, theirs, sk = best(
        lambda: scores.auroc(score=prob, positive=target),
        lambda: binary_auroc(p, y),
        lambda: sklearn.metrics.roc_auc_score(target, prob),
        repeats=15,
    )
    ece, tm_ece, sk_ece = best(
        lambda: scores.ece(prob, target),
        lambda: binary_calibration_error(p, y, n_bins=15),
        lambda: sklearn.calibration.calibration_curve(target, prob, n_bins=15),
        repeats=15,
    )
    return [
        Line(
            f"AUROC, N = {N:,}",
            ms(ours),
            f"torchmetrics {ms(theirs)}, scikit-learn {ms(sk)}",
            f"{min(theirs, sk) / ours:.1f} x faster",
            "not slower",
            ours <= min(theirs, sk),
        ),
        Line(
            f"ECE, N = {N:,}",
            ms(ece),
            f"torchmetrics {ms(tm_ece)}, scikit-learn calibration_curve {ms(sk_ece)}",
            f"{min(tm_ece, sk_ece) / ece:.1f} x faster",
            "not slower",
            ece <= min(tm_ece, sk_ece),
        ),
    ]


def torch_aurc(risk: torch.Tensor, uncertainty: torch.Tensor) -> torch.Tensor:
    kept = torch.cumsum(risk[torch.argsort(uncertainty)], 0)
    return (kept / torch.arange(1, len(risk) + 1)).mean()


def intervals() -> list[Line]:
    prob, target, u = binary()
    risk = 1.0 - ((prob > 0.5) == target)
    chosen = {
        scores.auroc: (prob, target == 1),
        scores.aurc: (risk, u),
        scores.ece: (prob, target),
    }
    few = 20
    p, y = torch.from_numpy(prob), torch.from_numpy(target)
    torch_risk, tu = torch.from_numpy(risk), torch.from_numpy(u)

    def peer():
        for metric in (
            torchmetrics.classification.BinaryAUROC(),
            torchmetrics.classification.BinaryCalibrationError(n_bins=15),
        ):
            sampler = torchmetrics.wrappers.BootStrapper(
                metric, num_bootstraps=few, sampling_strategy="multinomial"
            )
            sampler.update(p, y)
            sampler.compute()
        for _ in range(few):
            drawn = torch.randint(N, (N,))
            torch_aurc(torch_risk[drawn], tu[drawn])

    def made():
        for own, arrays in chosen.items():
            called_in_order(own, *arrays)
            interval_of(influence_of(own, *arrays))

    (ours,) = best(made, repeats=3)
    (theirs,) = best(peer, repeats=3)
    theirs *= 1000 / few
    return [
        Line(
            f"intervals of AUROC + AURC + ECE, N = {N:,}",
            ms(ours),
            f"torchmetrics BootStrapper x 1000 + torch AURC {ms(theirs)} (from {few})",
            f"{theirs / ours:.1f} x faster",
            ">= 100 x",
            theirs >= 100 * ours,
        )
    ]


def crps() -> list[Line]:
    rng = np.random.default_rng(0)
    draws, target = rng.standard_normal((100, 5000)), rng.standard_normal(5000)
    preds, truth = torch.from_numpy(draws.T.copy()), torch.from_numpy(target)
    ours, theirs = best(
        lambda: scores.crps_ensemble(draws=draws, target=target),
        lambda: torch_crps(preds, truth),
    )
    return [
        Line(
            "CRPS of 5,000 x 100 ensembles",
            ms(ours),
            f"torchmetrics {ms(theirs)}",
            f"{theirs / ours:.1f} x faster",
            ">= 10 x",
            theirs >= 10 * ours,
        )
    ]


def ged() -> list[Line]:
    rng = np.random.default_rng(0)
    draws = (rng.random((10, 64, 64, 64)) < 0.2).astype(np.uint8)
    raters = (rng.random((4, 64, 64, 64)) < 0.2).astype(np.uint8)
    (ours,) = best(lambda: scores.ged(draws=draws, raters=raters))
    memory = peak_mb(lambda: scores.ged(draws=draws, raters=raters))
    return [
        Line(
            "GED, 64^3, 10 draws x 4 raters",
            f"{ms(ours)}, {memory:.0f} MB",
            "",
            "",
            "<= 0.15 s, <= 300 MB",
            ours <= 0.15 and memory <= 300,
        )
    ]


def segmented_items() -> list[Line]:
    """Every score of one item, as `qualms score` and a benchmark compute it."""
    cases = (
        ("64^3, 2 classes, 10 draws x 4 raters", ball(), None, 0.4),
        ("256 x 478, 24 classes, 10 draws x 5 raters", street(), 255, 0.5),
    )
    lines = []
    for name, maps, ignore, limit in cases:
        header = {"method": "mc_dropout", "ignore": ignore}
        one = predictions.build({"maps": [maps]}, header=header)
        options = ScoreOptions(workers=1)
        fitted = validate([one], options, published=True)[0]

        def work(published: bool, one=one, fitted=fitted, options=options):
            reading = Reading(fitted=fitted, published=published)
            return measure_items(one, reading, options)

        plain, both = best(lambda: work(False), lambda: work(True))
        memory = peak_mb(lambda: work(True))
        lines.append(
            Line(
                f"every score of one item: {name}",
                f"{ms(plain)}, {memory:.0f} MB",
                f"with those of the released code {ms(both)}; that code itself about "
                "25 s of CPU and 2.5 GB"
                if limit == 0.4
                else f"with those of the released code {ms(both)}",
                "3 measures x 6 aggregations, Dice, GED, NCC, ACE, checks",
                f"<= {limit:g} s, <= 400 MB",
                both <= limit and memory <= 400,
            )
        )
    return lines


def ball(side: int = 64, draws: int = 10) -> predictions.Maps:
    """A noisy ball in `side`^3 voxels."""
    rng = np.random.default_rng(0)
    grid = np.arange(side) - (side - 1) / 2
    distance = np.sqrt(sum(axis**2 for axis in np.meshgrid(grid, grid, grid)))
    logit = 14 - distance + rng.normal(0, 1, (draws, side, side, side))
    prob = 1 / (1 + np.exp(-logit))
    found = scores.sufficient_statistics(np.stack([1 - prob, prob], 1))
    raters = np.stack([distance <= radius for radius in (12, 13, 15, 16)])
    return predictions.Maps(**found._asdict(), raters=raters.astype(np.uint8))


def street() -> predictions.Maps:
    """Tiles of 19 classes and 5 second labels, 256 x 478 pixels."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:256, :478]
    base = ((y // 16 + x // 16) % 19).astype(np.uint8)
    logits = rng.standard_normal((10, 24, 256, 478), dtype=np.float32)
    for label in range(19):
        logits[:, label] += 4 * (base == label)
    probs = np.exp(logits)
    probs /= probs.sum(axis=1, keepdims=True)
    second = (np.where(base < 5, base + 19, base), base)
    raters = np.stack([second[rng.random() < 2 / 3] for _ in range(5)])
    raters[:, :10] = 255
    found = scores.sufficient_statistics(probs)
    return predictions.Maps(**found._asdict(), raters=raters.astype(np.uint8))


def segmented_folder() -> list[Line]:
    """`qualms score` of a folder of volumes on one core and on two."""
    seconds, peak = {}, 0.0
    with tempfile.TemporaryDirectory() as folder:
        path, maps = Path(folder) / "test", ball()
        with predictions.SegmentationWriter(path, header={"method": "tta"}) as writer:
            for i in range(24):
                writer.add(f"item {i}", maps, shifted=i % 2 == 1)
        read = predictions.read(path)
        for workers in (1, 2):
            options = ScoreOptions(workers=workers)
            (seconds[workers],) = best(
                lambda o=options: measure_items(read, Reading(), o), repeats=3
            )
        peak = peak_mb(lambda: measure_items(read, Reading(), ScoreOptions(workers=2)))
    ratio = seconds[1] / seconds[2]
    return [
        Line(
            "24 volumes of 64^3 from a folder, two threads",
            f"{ms(seconds[2])}, {peak:.0f} MB",
            f"one thread {ms(seconds[1])}",
            f"{ratio:.2f} x faster",
            ">= 1.5 x",
            ratio >= 1.5,
        )
    ]


def segmented_processes() -> list[Line]:
    """What `qualms run` takes from a run's volumes, by this process and by two."""
    with tempfile.TemporaryDirectory() as folder:
        path, maps = Path(folder) / "test", ball(side=48, draws=5)
        with predictions.SegmentationWriter(path, header={"method": "tta"}) as writer:
            for i in range(96):
                writer.add(f"item {i}", maps)
        read = predictions.read(path)

        def work(options: ScoreOptions) -> None:
            fitted = validate([read], options, published=True)[0]
            measure_items(read, Reading(fitted=fitted, published=True), options)

        with measuring(ScoreOptions(workers=2)) as shared:
            begun = time.perf_counter()
            shared.workforce.takes(WORTHWHILE, workers=2)
            work(shared)
            first = time.perf_counter() - begun
            alone = ScoreOptions(workers=1)
            one, two = best(lambda: work(alone), lambda: work(shared), repeats=3)
    ratio = one / two
    return [
        Line(
            "96 volumes of 48^3, 5 draws x 4 raters, validated and measured, two "
            "processes",
            ms(two),
            f"one process {ms(one)}; starting two takes {ms(first - two)} more",
            f"{ratio:.2f} x faster",
            ">= 1.7 x",
            ratio >= 1.7,
        )
    ]


def entropy_maps() -> list[Line]:
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((10, 19, 256, 478)).astype(np.float32)
    probs = np.exp(logits)
    probs /= probs.sum(axis=1, keepdims=True)
    ours, one = best(
        lambda: scores.decompose(probs, class_axis=1), lambda: probs * np.log(probs)
    )
    return [
        Line(
            "entropy maps PE, EE, MI; 10 x 19 x 256 x 478 float32",
            ms(ours),
            f"one p*log(p) pass {ms(one)}",
            f"{ours / one:.2f} x the pass",
            "<= 2 x",
            ours <= 2 * one,
        )
    ]


def neighbours() -> list[Line]:
    rng = np.random.default_rng(0)
    embedding = rng.standard_normal((20_000, 512)).astype(np.float32)
    unit = embedding / np.linalg.norm(embedding, axis=1, keepdims=True)
    block = 1024
    buffer = np.empty((block, len(unit)), np.float32)

    def bare():
        for start in range(0, len(unit), block):
            rows = unit[start : start + block]
            np.matmul(rows, unit.T, out=buffer[: len(rows)])

    ours, gemm = best(lambda: scores.nearest_neighbour(embedding), bare)
    memory = peak_mb(lambda: scores.nearest_neighbour(embedding))
    return [
        Line(
            "1-NN at 20,000 x 512",
            f"{ms(ours)}, {memory:.0f} MB",
            f"bare blockwise GEMM {ms(gemm)}",
            f"{ours / gemm:.2f} x the GEMM",
            "<= 1.15 x, <= 1 GB",
            ours <= 1.15 * gemm and memory <= 1000,
        )
    ]


def processes() -> list[Line]:
    def run(*arguments: str) -> Callable[[], object]:
        command = [sys.executable, "-m", "qualms", *arguments]
        return lambda: subprocess.run(command, check=True, capture_output=True, env=env)

    prob, target, _ = binary()
    with tempfile.TemporaryDirectory() as folder:
        # A warm cache holds bytecode too, whatever this process was told about it.
        env = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        file = Path(folder) / "predictions.safetensors"
        predictions.write(file, {"target": target, "prob": prob})
        helped, scored = best(run("--help"), run("score", str(file)), repeats=5)
    return [
        Line("`qualms --help`", ms(helped), "", "", "< 0.4 s", helped < 0.4),
        Line(
            f"`qualms score FILE` in a fresh process, warm cache, N = {N:,}",
            ms(scored),
            "",
            "every score, 1000 resamples",
            "< 2 s",
            scored < 2,
        ),
    ]


def many_items() -> list[Line]:
    """`qualms score` of ten million items, in a process of its own, on all cores."""
    prob, target, _ = binary(10_000_000)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "predictions.safetensors"
        predictions.write(file, {"target": target, "prob": prob.astype(np.float32)})
        del prob, target
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "qualms", "score", str(file)],
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds, gigabytes = time.perf_counter() - start, usage.ru_maxrss / 1e6
    return [
        Line(
            "`qualms score FILE`, 10,000,000 items",
            f"{ms(seconds)}, {gigabytes:.1f} GB",
            f"{ms(usage.ru_utime + usage.ru_stime)} of CPU",
            "every score with its interval",
            "< 60 s, <= 4 GB",
            status == 0 and seconds < 60 and gigabytes <= 4,
        )
    ]


def many_classes() -> list[Line]:
    """Memory beside the draws of 1,000 classes, which a file keeps in float32."""
    rng = np.random.default_rng(0)
    draws = rng.random((10, 5_000, 1_000), dtype=np.float32)
    draws /= draws.sum(axis=-1, keepdims=True)
    target = rng.integers(0, 1_000, 5_000)

    def work():
        scores.decompose(draws)
        mean = scores.mean_probabilities(draws)
        return scores.classwise_ece(mean, target), scores.brier(mean, target)

    (ours,) = best(work, repeats=3)
    share = peak_mb(work) * 1e6 / draws.nbytes
    return [
        Line(
            "mean, decomposition, class-wise ECE and Brier of 10 x 5,000 x 1,000",
            ms(ours),
            "",
            f"{share:.2f} x the draws in memory beside them",
            "<= 0.5 x",
            share <= 0.5,
        )
    ]


def hundred_classes() -> list[Line]:
    """Every score of a file with many classes, alone and with validation items."""
    rng = np.random.default_rng(0)

    def made(n: int) -> dict[str, np.ndarray]:
        target = rng.integers(0, 100, n)
        logits = rng.standard_normal((n, 100))
        logits[np.arange(n), target] += 3.0
        weight = np.exp(logits)
        return {"probs": weight / weight.sum(axis=1, keepdims=True), "target": target}

    test, val = (predictions.build(made(n)) for n in (10_000, 5_000))
    options = ScoreOptions(workers=1)
    alone, both = best(
        lambda: score(test, options=options),
        lambda: score(test, val=val, options=options),
        repeats=3,
    )
    return [
        Line(
            "`qualms.score` of 10,000 items, 100 classes",
            ms(alone),
            f"with 5,000 validation items {ms(both)}",
            "every score with its interval, one thread",
            "<= 1 s, <= 2 s",
            alone <= 1 and both <= 2,
        )
    ]


def results_table() -> list[Line]:
    """A million results with ten labels: filtered, pivoted, joined with a paper's."""
    tables = []

    def build() -> None:
        of_run = labelled_results()
        tables[:] = [
            concatenated(
                [
                    of_run.with_labels(benchmark=f"benchmark_{run % 4}", seed=run // 4)
                    for run in range(100)
                ]
            )
        ]

    def choose() -> None:
        shifted = tables[0].where(subset="shifted")
        shifted.pivot(("benchmark", "variant", "row", "seed"), ("score", "alpha"))

    built = peak_mb(build)
    table = tables[0]
    printed = ResultsTable.of(
        Result(labels={"variant": variant, "row": row, "score": "score_0"}, value=0.5)
        for variant in table.distinct("variant")
        for row in table.distinct("row")
    )
    work = (choose, lambda: table.join(printed))
    chosen, joined = best(*work, repeats=3)
    memory = built + max(map(peak_mb, work))
    return [
        Line(
            f"filter and pivot {len(table):,} results, {len(table.labels)} labels",
            ms(chosen),
            f"joined with {len(printed)} published numbers {ms(joined)}",
            f"{memory:,.0f} MB, the table among them",
            "< 1 s, <= 1 GB",
            chosen < 1 and memory <= 1000,
        )
    ]


def labelled_results() -> ResultsTable:
    """10,000 results with eight labels."""
    counts = {"variant": 5, "row": 20, "score": 10, "alpha": 5, "subset": 2}
    values = [
        [f"{name}_{value}" for value in range(count)] for name, count in counts.items()
    ]
    values[-1] = ["in_domain", "shifted"]
    rows = [dict(zip(counts, each, strict=True)) for each in product(*values)]
    return ResultsTable.of(
        result(
            {
                **labels,
                "method": labels["row"],
                "dataset": labels["variant"],
                "pool": 1,
            },
            (0.25, 0.75),
        )
        for labels in rows
    )


PARTS = (
    referral_auroc,
    referral_sums,
    referral_auprc,
    single_scores,
    intervals,
    crps,
    ged,
    segmented_items,
    segmented_folder,
    segmented_processes,
    entropy_maps,
    neighbours,
    processes,
    many_items,
    many_classes,
    hundred_classes,
    results_table,
)


def table(lines: list[Line]) -> str:
    rows = [
        "| work | ours | beside | figure | must reach | met |",
        "|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {x.work} | {x.ours} | {x.peer} | {x.figure} | {x.must} "
        f"| {'yes' if x.met else '**no**'} |"
        for x in lines
    ]
    return "\n".join(rows)


def hardware() -> str:
    info = Path("/proc/cpuinfo")
    names = [
        line.split(":")[1].strip()
        for line in (info.read_text().splitlines() if info.exists() else [])
        if line.startswith("model name")
    ]
    model = names[0] if names else platform.processor()
    packages = ", ".join(
        f"{name} {version(name)}"
        for name in ("numpy", "numba", "scikit-learn", "torch", "torchmetrics")
    )
    return f"{model}, one thread, Python {platform.python_version()}, {packages}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="only these functions")
    chosen = parser.parse_args().parts
    parts = [p for p in PARTS if not chosen or p.__name__ in chosen]
    lines = []
    for part in parts:
        lines += part()
        print(table(lines[-2:]) if len(lines) == 2 else table(lines[-1:]), flush=True)
    text = table(lines)
    print("\n" + text)
    if not chosen:
        head = (
            "# Speed and memory\n\n`make bench`: ratios within one run, best of five."
        )
        kept = measured_elsewhere(HERE / "RESULTS.md")
        (HERE / "RESULTS.md").write_text(f"{head}\n{hardware()}.\n\n{text}\n{kept}")


def measured_elsewhere(path: Path) -> str:
    """What the file holds from its first second heading on: figures of a GPU."""
    _, heading, rest = path.read_text().partition("\n## ")
    return heading + rest


if __name__ == "__main__":
    main()
