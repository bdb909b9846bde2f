"""The rows and scores of the retina benchmark: six methods, alone and pooled."""

from qualms.benchmarks._benchmark import TableRow
from qualms.spec import Part

METHODS = ("map", "mc_dropout", "mfvi", "radial", "rank1", "fsvi")
ENSEMBLES = tuple(f"{method}_ensemble" for method in METHODS)
"""Names of the rows that pool three runs of each method, as the paper does."""
PAIRS = tuple(f"{method}_pair" for method in METHODS)
"""Names of the rows that pool two, for fewer runs than the paper has."""

_LABELS = {
    "map": ("MAP (Deterministic)", "Deep Ensemble"),
    "mc_dropout": ("MC Dropout", "MC Dropout Ensemble"),
    "mfvi": ("MFVI", "MFVI Ensemble"),
    "radial": ("Radial-MFVI", "Radial-MFVI Ensemble"),
    "rank1": ("Rank-1", "Rank-1 Ensemble"),
    "fsvi": ("FSVI", "FSVI Ensemble"),
}

ROWS = (
    *(
        TableRow(name=name, label=_LABELS[name][0], method=Part(name=name))
        for name in METHODS
    ),
    *(
        TableRow(name=row, label=_LABELS[name][1], method=Part(name=name), pool=3)
        for name, row in zip(METHODS, ENSEMBLES, strict=True)
    ),
    *(
        TableRow(
            name=row,
            label=f"{_LABELS[name][1]} of 2",
            method=Part(name=name),
            pool=2,
            beyond=True,
        )
        for name, row in zip(METHODS, PAIRS, strict=True)
    ),
)

_SETS = ("in_domain", "shifted", "joint", "balanced", "rebalanced")
_CURVES = ("accuracy", "nll", "auroc", "auprc")
_OF_A_SET = (
    *("accuracy", "nll", "auroc", "auprc", "ece"),
    *("accuracy@0.5", "accuracy@0.7", "auroc@0.5", "auroc@0.7"),
    *(f"referral_{name}_area" for name in _CURVES),
    *(f"referral_{name}_oracle_area" for name in _CURVES),
)
SCORES = (
    *(f"{where}/{score}" for where in _SETS for score in _OF_A_SET),
    *("joint/ood_auroc", "joint/ood_auprc"),
    *("in_domain/aleatoric_spearman", "in_domain/aleatoric_mae"),
    *("in_domain/total_spearman", "in_domain/total_mae"),
    "in_domain/epistemic_spearman",
    *("joint/epistemic_shift_auroc", "joint/total_shift_auroc"),
    *("joint/aleatoric_shift_auroc", "joint/true_entropy_shift_auroc"),
)
"""By set of items; @0.5 is with half of them referred. An area is the mean over all
shares referred, of the items kept, or with an oracle, where those referred count as
right. The last are about the parts of the uncertainty; those that name the truth, or
compare with it (spearman, mae), need a simulator that knows it."""
