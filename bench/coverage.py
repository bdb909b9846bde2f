"""Do intervals and tie groups keep their promise? A simulation.

`python bench/coverage.py --workers 16` draws samples from populations whose scores are
known and counts how often a 95 % interval holds the truth, then how often the model
confidence set excludes a row that is equal to the best. It writes what it counts to
`--out` as it goes, resumes from there, and ends with the tables of `docs/intervals.md`.
`--quick` takes a few repetitions of each, `--tables` only prints what was counted.
"""

import argparse
import itertools
import json
import os
import sys
import time
import types
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
# numba imports a module named `coverage` where it finds one, and would find this file.
_HERE = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
sys.path.insert(0, str(_HERE.parent))
try:
    import numba

    COMPILED = bool(numba.__version__)
except ImportError:  # Only the former intervals are too slow without it.
    COMPILED = False
    _plain = types.ModuleType("qualms.jit")
    _plain.jit = lambda function: function
    sys.modules["qualms.jit"] = _plain

import numpy as np
from bench.former_ties import former_ties
from bench.populations import (
    CALIBRATION,
    FEW,
    POPULATIONS,
    Population,
    calibrated_rows,
    detecting_rows,
    equal_rows,
)
from scipy.special import ndtr
from scipy.stats import binom

from qualms import scores
from qualms.evaluate._ranking import Rival, rankings
from qualms.evaluate.entry import ScoreOptions, bound_entry
from qualms.inference import (
    EXACT,
    Design,
    compare_gaps,
    confidence_set,
    influence_difference,
    influence_of,
    influence_replicates,
    mean_influence,
    sampling_design,
)

SIZES = (200, 1_000, 10_000)
REPETITIONS = {200: 2_000, 1_000: 2_000, 10_000: 500}
TURNS = 10
ROWS, SETS = (2, 5, 10, 20), 4_000
GAP_SETS, GAP_SIZES, SMOOTH_ROWS = 1_000, (1_000, 4_000), 5
FORMER_REPETITIONS = 500
POWER = (1.0, 2.0, 3.0)
"""By how many standard errors of a difference one row is better than all others."""
FEW_REPETITIONS = 500
SMALL_SETS, SMALL_SIZES, SMALL_ROWS = 300, (1, 3, 5, 10, 20, 50, 200), (2,)
SMALL_KINDS = (
    "two classes",
    "5 % positives",
    "ten classes",
    "accuracy .99",
    "regression",
)
SMALL_CLASSES = (
    scores.accuracy,
    scores.balanced_accuracy,
    scores.mcc,
    scores.macro_f1,
    scores.nll,
    scores.brier,
    scores.ece,
    scores.smooth_ece,
    scores.aurc,
    scores.eaurc,
    scores.augrc,
    scores.risk_at_coverage,
)
SMALL_SCORES = {
    2: (*SMALL_CLASSES, scores.auroc, scores.auprc),
    10: (*SMALL_CLASSES, scores.macro_auroc, scores.top_k_accuracy),
}
SMALL_VALUES = (
    scores.mae,
    scores.crps_gaussian,
    scores.regression_ece,
    scores.coverage,
    scores.interval_length,
    scores.interval_score,
    scores.aurc,
)
FORMER = {
    "Accuracy": scores.accuracy,
    "NLL": scores.nll,
    "ECE": scores.ece,
    "AURC": scores.aurc,
}
FORMER_ARRAYS = {"AURC": ("risk", "u")}
FORMER_AT = ("15 % positives", "accuracy .99", "calibrated")
MARK = "<!-- Written by bench/coverage.py: do not edit below. -->\n"
LEAST, MOST, LEVEL = 0.93, 0.97, 0.05
"""Coverage that must hold, and what is too much but for shares; tested at LEVEL."""

Task = tuple[str, ...]


def main() -> None:
    arguments = _arguments()
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    if not arguments.tables:
        _run(arguments, out)
    text = tables(_read(out / "counts.jsonl"))
    (out / "tables.md").write_text(text)
    if arguments.docs:
        page = Path(arguments.docs)
        before, _ = page.read_text().split(MARK)
        page.write_text(before + MARK + "\n" + text)
    print(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", default="build/coverage")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--docs", default="", help="page whose tables are replaced")
    parser.add_argument("--only", default="", help="names of populations, by semicolon")
    parser.add_argument(
        "--kinds", default="", help="truth, cover, ties, gaps, few, small, former"
    )
    return parser.parse_args()


def _run(arguments: argparse.Namespace, out: Path) -> None:
    """Do every task that is not in the file yet; each adds one line to it."""
    chosen = [name for name in arguments.only.split(";") if name]
    chosen = chosen or [*POPULATIONS, *FEW_NAMES]
    log = out / "counts.jsonl"
    done = {tuple(line["task"]) for line in _read(log)}
    tasks = [
        task
        for task in _tasks(chosen, arguments.quick)
        if task not in done and task[0] in (arguments.kinds or task[0])
    ]
    judged = {task[1] for task in tasks if task[0] in ("cover", "former", "few")}
    truths = {name: ("truth", name) for name in chosen if name in judged}
    start = time.monotonic()
    with ProcessPoolExecutor(arguments.workers) as pool, log.open("a") as file:
        for stage in (
            [task for task in truths.values() if task not in done],
            tasks,
        ):
            known = {
                line["task"][1]: line["found"]
                for line in _read(log)
                if line["task"][0] == "truth"
            }
            waiting = {
                pool.submit(_carried_out, task, known.get(task[1], {})): task
                for task in stage
            }
            for finished in as_completed(waiting):
                line = {"task": waiting[finished], "found": finished.result()}
                file.write(json.dumps(line) + "\n")
                file.flush()
            print(f"{len(stage)} tasks, {time.monotonic() - start:.0f} s", flush=True)


def _read(log: Path) -> list[dict]:
    return (
        [json.loads(line) for line in log.read_text().splitlines()]
        if log.exists()
        else []
    )


def _tasks(chosen: list[str], quick: bool) -> Iterator[Task]:
    """A tenth of every count at a time, so that all are there early."""
    for turn in range(1 if quick else TURNS):
        for size in SIZES[:2] if quick else SIZES:
            block = 20 if quick else REPETITIONS[size] // TURNS
            for name in chosen:
                if name in POPULATIONS and size in POPULATIONS[name].sizes:
                    yield "cover", name, str(size), str(turn * block), str(block)
        block = 100 if quick else SETS // TURNS
        for rows, kind, size in itertools.product(ROWS, ("accuracy", "nll"), SIZES[:2]):
            first = str(turn * block)
            yield "ties", kind, str(rows), str(size), first, str(block)
        block = 10 if quick else GAP_SETS // TURNS
        for label, rows, size in itertools.product(
            (*GAP_SCORES, "OOD FPR95"), ROWS, GAP_SIZES
        ):
            kinds = GAP_KINDS if label == "ECE" else GAP_KINDS[:-1]
            if label not in GAP_SCORES:
                kinds = ("equal AUROC",)
            if label == "Smooth ECE" and (rows > SMOOTH_ROWS or size > GAP_SIZES[0]):
                continue
            for kind in kinds:
                first = str(turn * block)
                yield "gaps", label, kind, str(rows), str(size), first, str(block)
        yield from _few_tasks(chosen, turn, quick)
        block = 20 if quick else FORMER_REPETITIONS // TURNS
        if COMPILED:
            former = [name for name in FORMER_AT if name in chosen]
            for name, size in itertools.product(former, SIZES[:2]):
                yield "former", name, str(size), str(turn * block), str(block)


def _few_tasks(chosen: list[str], turn: int, quick: bool) -> Iterator[Task]:
    """Samples of few items or errors: intervals, and comparisons of equal rows."""
    block = 20 if quick else FEW_REPETITIONS // TURNS
    for name in chosen:
        for size in FEW[name.removeprefix(FEWER)].sizes if FEWER in name else ():
            yield "few", name, str(size), str(turn * block), str(block)
    block = 20 if quick else SMALL_SETS // TURNS
    for rows, kind, size in itertools.product(SMALL_ROWS, SMALL_KINDS, SMALL_SIZES):
        yield "small", kind, str(rows), str(size), str(turn * block), str(block)


def _carried_out(task: Task, truth: dict[str, float]) -> dict:
    work = {
        "truth": _truth,
        "cover": _covered,
        "ties": _sets,
        "gaps": _gap_sets,
        "few": _covered,
        "small": _small_sets,
        "former": _former,
    }[task[0]]
    if task[0] in ("cover", "few", "former"):
        return work(truth, *task[1:])
    return work(*task[1:])


def _rng(*key: int | str) -> np.random.Generator:
    return np.random.default_rng(
        [int.from_bytes(str(part).encode()) % 2**63 for part in key]
    )


# ---------------------------------------------------------------- coverage


FEWER = "few: "
"""Before the names of populations that are drawn in small samples."""
FEW_NAMES = tuple(FEWER + name for name in FEW)


def _population(name: str) -> Population:
    return FEW[name.removeprefix(FEWER)] if FEWER in name else POPULATIONS[name]


def _truth(name: str) -> dict[str, float]:
    population = _population(name)
    items = population.draw(population.truth_items, _rng("truth", name))
    found = {}
    for case in population.cases:
        zero = population.calibrated and case.label in CALIBRATION
        found[case.label] = 0.0 if zero else case.truth(items)
    return found


def _covered(
    truth: dict[str, float], name: str, size: str, first: str, block: str
) -> dict[str, list[float]]:
    """Per score: intervals given, those that hold, truth below, width, and exact."""
    population = _population(name)
    count = {case.label: [0.0] * 5 for case in population.cases}
    raw: dict[str, list] = {case.label: [] for case in population.cases}
    for repetition in range(int(first), int(first) + int(block)):
        items = population.draw(int(size), _rng(name, size, repetition))
        for case in population.cases:
            found = case.interval(items)
            if population.relative:
                raw[case.label].append((case.truth(items), found.low, found.high))
            if found.reason or np.isnan(found.low):
                continue
            wanted = truth[case.label]
            given = count[case.label]
            given[0] += 1
            given[1] += found.low <= wanted <= found.high
            given[2] += wanted < found.low
            given[3] += found.high - found.low
            given[4] += found.method == EXACT
    return {"count": count, "raw": raw} if population.relative else {"count": count}


def _former(
    truth: dict[str, float], name: str, size: str, first: str, block: str
) -> dict[str, list[float]]:
    """The percentile interval of replicates within classes, as it was before."""
    count = {label: [0.0, 0.0] for label in FORMER}
    for repetition in range(int(first), int(first) + int(block)):
        items = POPULATIONS[name].draw(int(size), _rng(name, size, repetition))
        for label, score in FORMER.items():
            arrays = [items[key] for key in FORMER_ARRAYS.get(label, ("probs", "y"))]
            found = scores.bootstrap_interval(
                score, *arrays, strata=items["y"], replicates=400, seed=repetition
            )
            count[label][0] += 1
            count[label][1] += found.low <= truth[label] <= found.high
    return {"count": count}


# ---------------------------------------------------------------- tie groups


def _losses(kind: str, rows: int, size: int, better: float, rng) -> np.ndarray:
    """(size, rows) losses of equal rows; the first is `better` by so many errors."""
    common = rng.standard_normal((size, 1))
    latent = np.sqrt(0.6) * common + np.sqrt(0.4) * rng.standard_normal((size, rows))
    if kind == "accuracy":
        level = np.full(rows, 0.85)
        level[0] += better * 0.4 / np.sqrt(size)
        return (ndtr(latent) >= level).astype(float)
    loss = np.exp(0.8 * latent)
    loss[:, 0] -= better * 0.88 / np.sqrt(size)
    return loss


GAP_KINDS = (
    "calibrated",
    "calibrated, other sharpness",
    "overconfident",
    "overconfident, other sharpness",
    "other shapes",
)
GAP_SCORES = {
    "ECE": scores.ece,
    "Adaptive ECE": scores.adaptive_ece,
    "Class-wise ECE": scores.classwise_ece,
    "Smooth ECE": scores.smooth_ece,
}
GAP_BETTER = 0.03
"""By how much the first row has the lower error where power is measured."""


def _gap_sets(label: str, kind: str, rows: str, size: str, first: str, block: str):
    """How often equal errors are excluded, covered, and worse rows excluded."""
    found = {"set": 0, "held": 0, "power": 0.0}
    score = GAP_SCORES.get(label, scores.ood_fpr95)
    for repetition in range(int(first), int(first) + int(block)):
        rng = _rng(label, kind, rows, size, repetition)
        for better in (0.0, GAP_BETTER if label in GAP_SCORES else 0.3):
            group, differences = _gap_group(
                score, (kind, int(rows), int(size)), better, rng
            )
            others = int(rows) - 1
            if better:
                found["power"] += (int(rows) - len(group.members)) / others
                continue
            found["set"] += len(group.members) < int(rows)
            found["held"] += (
                sum(d.low <= 0.0 <= d.high for d in differences.values()) - 1
            ) / others
    return found


def _gap_group(score, population, better: float, rng):
    kind, rows, size = population
    design = Design(items=size)
    if score is scores.ood_fpr95:
        items = detecting_rows(rows, size, better, rng)
        table = {
            str(row): influence_of(score, items["u"][:, row], items["shifted"])
            for row in range(rows)
        }
        values = {name: row.value for name, row in table.items()}
        drawn = influence_replicates(table, replicates=1_000)
        group = confidence_set(values, drawn, better="lower")
        best = table[group.best]
        return group, {
            name: influence_difference(row, best) for name, row in table.items()
        }
    items = calibrated_rows(kind, rows, size, better, rng)
    table = {
        str(row): influence_of(score, items["probs"][:, row], items["y"])
        for row in range(rows)
    }
    return compare_gaps(table, design=design)


def _small_sets(kind: str, rows: str, size: str, first: str, block: str) -> dict:
    """By score, how often equal rows are told apart, and how often that is tried."""
    count: dict[str, list[int]] = {}
    items, options = int(size), ScoreOptions(resamples=0, workers=1)
    for repetition in range(int(first), int(first) + int(block)):
        rng = _rng("small", kind, rows, size, repetition)
        drawn = equal_rows(kind, int(rows), items, rng)
        columns: dict[str, list[Rival]] = {}
        for row in range(int(rows)):
            for entry in _small_entries(drawn, row, items):
                rival = Rival(str(row), entry.value, (entry,))
                columns.setdefault(entry.score_name, []).append(rival)
        ranked = rankings(columns, sampling_design(items), options, by_gaps=True)
        for score in columns:
            found = count.setdefault(score, [0, 0, 0])
            if score not in ranked or ranked[score].group.reason:
                continue
            group, differences = ranked[score]
            found[0] += 1
            found[1] += len(group.members) < int(rows)
            found[2] += any(
                d.low > 0.0 or d.high < 0.0 or d.p < LEVEL for d in differences.values()
            )
    return {"count": count}


def _small_entries(drawn, row: int, items: int):
    """The entries of one of several equal rows."""
    index = np.arange(items)
    if "mean" in drawn:
        mean, var = drawn["mean"][:, row], drawn["var"][:, row]
        half = 1.645 * np.sqrt(var)
        arrays = {"mean": mean, "var": var, "target": drawn["target"]}
        arrays |= {"lower": mean - half, "upper": mean + half, "uncertainty": var}
        arrays["risk"] = np.abs(mean - drawn["target"])
        for score in SMALL_VALUES:
            options = {"alpha": 0.1} if score is scores.interval_score else {}
            entry = bound_entry(partial(score, **options), arrays, index)
            yield replace(entry, aim=0.9 if score is scores.coverage else None)
        return
    probs, target = drawn["probs"][:, row], drawn["y"]
    classes = probs.shape[1]
    arrays = {"probs": probs, "target": target, "uncertainty": -probs.max(axis=1)}
    arrays["risk"] = (probs.argmax(axis=1) != target).astype(float)
    if classes == 2:
        arrays |= {"score": probs[:, 1], "positive": target == 1}
    for score in SMALL_SCORES[classes]:
        yield bound_entry(score, arrays, index)


def _sets(kind: str, rows: str, size: str, first: str, block: str) -> dict:
    """How often equals are excluded, and the share of worse rows excluded."""
    names = [str(row) for row in range(int(rows))]
    found = {"set": 0, "former": 0, "power": [0.0] * 3, "former_power": [0.0] * 3}
    for repetition in range(int(first), int(first) + int(block)):
        rng = _rng(kind, rows, size, repetition)
        for place, better in enumerate((0.0, *POWER)):
            # Power needs fewer repetitions, and the former rule its own replicates.
            if better and repetition % 10:
                continue
            loss = _losses(kind, int(rows), int(size), better, rng)
            table = {n: mean_influence(loss[:, i]) for i, n in enumerate(names)}
            values = {name: row.value for name, row in table.items()}
            drawn = influence_replicates(table, replicates=1_000, seed=repetition)
            members = confidence_set(values, drawn, better="lower").members
            before = former_ties(values, drawn)
            if better:
                lost, others = len(names) - len(members), len(names) - 1
                found["power"][place - 1] += lost / others
                found["former_power"][place - 1] += (len(names) - len(before)) / others
            else:
                found["set"] += len(members) < len(names)
                found["former"] += len(before) < len(names)
    return found


# ---------------------------------------------------------------- tables


def tables(lines: list[dict]) -> str:
    """What was counted, as the tables of the document, with the verdict."""
    cells = _cells(lines)
    parts = [_verdict(cells), _coverage_table(cells), _former_table(lines, cells)]
    parts += [_ties_table(lines), _gaps_table(lines)]
    return "\n\n".join([*parts, _few_table(lines), _small_table(lines)]) + "\n"


def _cells(lines: list[dict]) -> dict[tuple[str, str, int], list[float]]:
    """By score, population and n: given, held, below, width, repetitions, exact."""
    found: dict[tuple[str, str, int], list[float]] = {}
    raw: dict[tuple[str, str, int], list] = {}
    for line in lines:
        if line["task"][0] != "cover":
            continue
        _, name, size, _, block = line["task"]
        for label, count in line["found"]["count"].items():
            cell = found.setdefault((label, name, int(size)), [0.0] * 6)
            for place, value in enumerate((*count[:4], int(block), count[4])):
                cell[place] += value
            raw.setdefault((label, name, int(size)), []).extend(
                line["found"].get("raw", {}).get(label, [])
            )
    for key, drawn in raw.items():
        if drawn:
            value, low, high = np.array(drawn, dtype=float).T
            held = np.sum((low <= value.mean()) & (value.mean() <= high))
            below = np.sum(value.mean() < low)
            found[key][1:3] = [float(held), float(below)]
    return found


def _shares() -> set[str]:
    return {case.label for p in POPULATIONS.values() for case in p.cases if case.share}


def _failing(cells: dict) -> Iterator[tuple[str, tuple, float]]:
    """Cells significantly below 93 %, or above 97 % but for shares (Bonferroni)."""
    judged = {key: cell for key, cell in cells.items() if cell[0] >= cell[4] / 2}
    limit, shares = LEVEL / max(len(judged), 1), _shares()
    for key, (given, held, *_, exact) in judged.items():
        if binom.cdf(held, given, LEAST) < limit:
            yield "below", key, held / given
        # An exact bound is that of a share, too.
        share = key[0] in shares or exact > given / 10
        if not share and binom.sf(held - 1, given, MOST) < limit:
            yield "above", key, held / given


def _verdict(cells: dict) -> str:
    failing = list(_failing(cells))
    judged = sum(cell[0] >= cell[4] / 2 for cell in cells.values())
    sizes = sorted({size for _, _, size in cells})
    least = {n: min(c[4] for k, c in cells.items() if k[2] == n) for n in sizes}
    counts = ", ".join(f"{round(least[n]):,} at n = {n:,}" for n in sizes)
    text = [
        f"{judged} cells (score, population, n) judged, {len(failing)} fail. "
        f"Repetitions, at least: {counts}."
    ]
    for kind, (label, name, size), held in sorted(failing):
        limit = LEAST if kind == "below" else MOST
        text.append(f"- {label}, {name}, n = {size}: {held:.1%}, {kind} {limit:.0%}")
    return "\n".join(text)


def _coverage_table(cells: dict) -> str:
    """Lowest to highest coverage over populations, and who is lowest."""
    sizes = sorted({size for _, _, size in cells})
    head = [f"n = {size:,}" for size in sizes]
    rows = ["|Score|" + "|".join(head) + "|Lowest in|", "|---" * (len(sizes) + 2) + "|"]
    for label in dict.fromkeys(label for label, _, _ in cells):
        row, lowest = [], ("", 2.0)
        for size in sizes:
            found = {
                name: cell[1] / cell[0]
                for (own, name, n), cell in cells.items()
                if own == label and n == size and cell[0] >= cell[4] / 2
            }
            if not found:
                drawn = any(own == label and n == size for own, _, n in cells)
                row.append("none" if drawn else "-")
                continue
            low, high = 100 * min(found.values()), 100 * max(found.values())
            row.append(f"{low:.1f} to {high:.1f}" if len(found) > 1 else f"{low:.1f}")
            worst = min(found, key=found.get)
            if found[worst] < lowest[1]:
                lowest = (f"{worst}, n = {size:,}", found[worst])
        rows.append(f"|{label}|" + "|".join(row) + f"|{lowest[0]}|")
    return "\n".join(rows)


def _former_table(lines: list[dict], cells: dict) -> str:
    found: dict[tuple[str, str, int], list[float]] = {}
    for line in lines:
        if line["task"][0] == "former":
            _, name, size, _, _ = line["task"]
            for label, (given, held) in line["found"]["count"].items():
                cell = found.setdefault((label, name, int(size)), [0.0, 0.0])
                cell[0] += given
                cell[1] += held
    rows = [
        "|Score|Population|n|Percentile, within classes|Now|",
        "|---|---|---|---|---|",
    ]
    for (label, name, size), (given, held) in sorted(found.items()):
        now = cells.get((label, name, size), [0.0] * 6)
        text = (
            f"{100 * now[1] / now[0]:.1f}" if now[0] >= max(now[4], 1) / 2 else "none"
        )
        rows.append(f"|{label}|{name}|{size:,}|{100 * held / given:.1f}|{text}|")
    return "\n".join(rows)


def _ties_table(lines: list[dict]) -> str:
    rows = [
        "|Rows|Score|n|Samples|Equals excluded, %|Formerly, %|Power at 1, 2, 3 SE|"
        "Formerly|",
        "|---|---|---|---|---|---|---|---|",
    ]
    found: dict[tuple[int, str, int], list] = {}
    for line in lines:
        if line["task"][0] != "ties":
            continue
        _, kind, count, size, _, block = line["task"]
        cell = found.setdefault((int(count), kind, int(size)), [0, []])
        cell[0] += int(block)
        cell[1].append(line["found"])
    for (count, kind, size), (done, blocks) in sorted(found.items()):
        error, former = (
            100 * sum(b[k] for b in blocks) / done for k in ("set", "former")
        )
        power, before = (
            "/".join(
                f"{10 * sum(b[k][i] for b in blocks) / done:.2f}" for i in range(3)
            )
            for k in ("power", "former_power")
        )
        rows.append(
            f"|{count}|{kind}|{size:,}|{done:,}|{error:.1f}|{former:.1f}|{power}|{before}|"
        )
    return "\n".join(rows)


def _gaps_table(lines: list[dict]) -> str:
    rows = [
        f"|Rows|Score|Equal rows|n|Samples|Equals excluded, %|Differences held, %|"
        f"Power at {GAP_BETTER}|",
        "|---|---|---|---|---|---|---|---|",
    ]
    found: dict[tuple, list] = {}
    for line in lines:
        if line["task"][0] == "gaps":
            _, label, kind, count, size, _, block = line["task"]
            cell = found.setdefault((label, kind, int(size), int(count)), [0, []])
            cell[0] += int(block)
            cell[1].append(line["found"])
    for (label, kind, size, count), (done, blocks) in found.items():
        excluded, held, power = (
            100 * sum(block[key] for block in blocks) / done
            for key in ("set", "held", "power")
        )
        rows.append(
            f"|{count}|{label}|{kind}|{size:,}|{done:,}|{excluded:.1f}|{held:.1f}|"
            f"{power:.0f}|"
        )
    return "\n".join(rows)


def _few_table(lines: list[dict]) -> str:
    """Coverage of samples of few items or errors, those without interval, and width."""
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    raw: dict[tuple[str, str, int], list] = {}
    for line in lines:
        if line["task"][0] != "few":
            continue
        _, name, size, _, block = line["task"]
        for label, count in line["found"]["count"].items():
            cells = found.setdefault((label, name.removeprefix(FEWER)), {})
            cell = cells.setdefault(int(size), [0.0] * 4)
            added = (int(block), count[0], count[1], count[3])
            cells[int(size)] = [a + b for a, b in zip(cell, added, strict=True)]
            key = label, name.removeprefix(FEWER), int(size)
            raw.setdefault(key, []).extend(line["found"].get("raw", {}).get(label, []))
    for (label, name, size), drawn in raw.items():
        if drawn:
            value, low, high = np.array(drawn, dtype=float).T
            held = (low <= value.mean()) & (value.mean() <= high)
            found[label, name][size][2] = float(held.sum())
    rows = ["|Score|Population|n: covered, % (width)|", "|---|---|---|"]
    for (label, name), cells in sorted(found.items()):
        columns = []
        for size, (done, given, held, width) in sorted(cells.items()):
            text = f"{size:,}: none"
            if given >= done / 10:
                part = "" if given == done else f" of {100 * given / done:.0f} %"
                text = f"{size:,}: {100 * held / given:.1f}{part}"
                text += f" ({width / given:.3g})"
            columns.append(text)
        rows.append(f"|{label}|{name}|{', '.join(columns)}|")
    return "\n".join(rows)


def _small_table(lines: list[dict]) -> str:
    """How often equal rows of few items are told apart, by mark or by difference."""
    found: dict[tuple[str, str, int, int], list[float]] = {}
    for line in lines:
        if line["task"][0] != "small":
            continue
        _, kind, rows_of, size, _, block = line["task"]
        for score, count in line["found"]["count"].items():
            key = (score, kind, int(rows_of), int(size))
            cell = found.setdefault(key, [0.0] * 4)
            added = (int(block), *count)
            found[key] = [a + b for a, b in zip(cell, added, strict=True)]
    rows = ["|Score|Equal rows|K|n|Samples|Compared, %|Excluded, %|Differ, %|"]
    rows.append("|---" * 8 + "|")
    for (score, kind, count, size), (done, *each) in sorted(found.items()):
        shares = "|".join(f"{100 * part / done:.1f}" for part in each)
        rows.append(f"|{score}|{kind}|{count}|{size}|{done:.0f}|{shares}|")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
