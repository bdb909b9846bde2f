"""How VALUES is judged: five questions to an uncertainty, and whether its types differ.

The protocol of Kahl et al. (2024, arXiv:2401.08501): segmentation (Dice), detection of
shifted items (AUROC on the unlabelled pool, or on the test items where there is none),
failures (AURC), calibration (ACE) and ambiguity (NCC, GED), for every measure and
aggregation of an uncertainty map; and what a second training gains by querying the
pool.

A row is judged at one place, {}, and gives the numbers of all its measures and
aggregations. Each has the settings it depends on: Dice and GED none, NCC and ACE
{"measure": ...}, and what ranks items {"measure": ..., "aggregation": ...}, for the
aggregations of `Variant.judged`. A row of a second training states in its settings
which row is the "first", and gives its Dice; what it gained stands in the first row,
for the places of the row `<first>_queried` over the row `<first>_random`.

What a variant may state in its settings:

- "test": the split of its table, where that is not `Variant.test`.
- "ood_split": where shifted items are told from others; else `pool`, if the runs
  predict it, and the test split if not.
- "threshold_from": "method" (as the paper has it), one threshold from the validation
  items of all repeats of a row; "run" for one of each repeat.
- "swaps" and "swap_share": classes with a second name, and how often raters give it.
  The released code takes their disagreement from that.
- "screening": the feature that it screens, for Dice alone and what the shift costs.
"""

from functools import partial

from qualms.benchmarks import Benchmark, Preset
from qualms.evaluate.entry import ScoreOptions
from qualms.evaluate.protocols._protocol import Protocol
from qualms.evaluate.protocols.values._judge import Found, judge_values


def values() -> Protocol:
    """Every score by the right rule, and by that of the released code."""
    return Protocol(judge=partial(judge_values, Found()), notes=_notes)


def _notes(
    benchmark: Benchmark, preset: Preset, _options: ScoreOptions
) -> tuple[str, ...]:
    rules = {v.settings.get("threshold_from", "method") for v in preset.variants}
    whose = "each repeat of a row" if rules == {"run"} else "all repeats of a row"
    notes: tuple[str, ...] = (
        "ours: Dice of two empty masks is 1, ignored pixels count in uncertainties of "
        "items alone, GED is the mean over pairs, NCC is Pearson's, one Platt fit for "
        "all validation pixels of a run, ties shared; beside the paper: its released "
        "code",
        f"thresholds of aggregation are those of the validation items of {whose}, "
        "together (the released code pools both shifts of nodules as well); they and "
        "Platt fits are held fixed in intervals",
        "threshold_aurc and threshold_eaurc are the paper's equations 7 and 8; the "
        "released code computes neither them nor aurc",
    )
    if any("first" in benchmark.row(name).settings for name in preset.rows):
        notes += (
            "gain: relative Dice on shifted test items after querying half of the "
            "pool, over that after drawing as many at random",
        )
    return notes
