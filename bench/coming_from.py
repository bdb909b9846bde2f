"""The same predictions scored by other libraries and by qualms, side by side.

    python bench/coming_from.py

prints the numbers of `docs/coming_from.md`. Each library runs in an environment of its
own, which uv makes. The predictions have what real ones have: ties, since decimals are
rounded, and probabilities that are exactly 1.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import qualms

ROOT = Path(__file__).parents[1]
UV = ROOT / ".venv" / "bin" / "uv"
N = 5000

READ = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
arrays = np.load(sys.argv[1])
prob, target, mean, low, high, value = (
    arrays[n] for n in ("prob", "target", "mean", "low", "high", "value")
)
conf, right = np.maximum(prob, 1 - prob), (prob > 0.5) == target
numbers = {}
def shuffled(score, times=20):
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(prob)) for _ in range(times)]
    values = [float(score(order)) for order in orders]
    return f"{min(values):.4f} to {max(values):.4f}"
"""

# torchvision from the registry does not import with the CPU build of torch without these.
OPERATORS = """
import sys, torch
try:
    import torchvision
except ImportError:
    pass
except RuntimeError:
    operators = torch.library.Library("torchvision", "DEF")
    for op in ("nms", "qnms"):
        operators.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    for module in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
        del sys.modules[module]
"""

PEERS = {
    "scikit-learn": (
        "scikit-learn==1.9.1",
        """
from sklearn.metrics import roc_auc_score, average_precision_score, brier_score_loss, log_loss
numbers["AUROC"] = roc_auc_score(target, prob)
numbers["average precision"] = average_precision_score(target, prob)
numbers["Brier, of P(y=1)"] = brier_score_loss(target, prob)
numbers["log loss"] = log_loss(target, prob)
""",
    ),
    "torchmetrics": (
        "torchmetrics==1.9.0",
        """
import torch
from torchmetrics.functional.classification import binary_auroc, binary_calibration_error
p, t = torch.tensor(prob), torch.tensor(target)
numbers["AUROC"] = float(binary_auroc(p, t))
numbers["AUROC of 20 + 20 P(y=1)"] = float(binary_auroc(20 + 20 * p, t))
top = torch.tensor(conf), torch.tensor(right.astype(int))
numbers["ECE, 10 bins"] = float(binary_calibration_error(*top, n_bins=10))
""",
    ),
    "TorchUncertainty": (
        "torch-uncertainty==0.13.0 lightning==2.5.6 timm torchvision",
        """
import torch
from torch_uncertainty.metrics.classification import AURC
def aurc(order):
    metric = AURC()
    metric.update(torch.tensor(prob[order]), torch.tensor(target[order]))
    return metric.compute()
numbers["AURC over 20 orders of the items"] = shuffled(aurc)
""",
    ),
    "MAPIE": (
        "mapie==1.6.0",
        """
from mapie.metrics.calibration import expected_calibration_error
from mapie.metrics.regression import regression_coverage_score, regression_mean_width_score
bounds = np.stack([low, high], 1)[:, :, None]
numbers["coverage"] = float(regression_coverage_score(value, bounds)[0])
numbers["mean width"] = float(regression_mean_width_score(bounds)[0])
numbers["ECE, 10 bins"] = float(expected_calibration_error(right.astype(int), conf, num_bins=10))
""",
    ),
    "pytorch-ood": (
        "pytorch-ood==0.4.0 torchvision",
        """
import torch
from pytorch_ood.metrics import OODMetrics
metrics = OODMetrics()
unsure = torch.tensor(1 - conf)
moved = torch.tensor(np.where(arrays["shifted"], -1, 0))
metrics.update(unsure, moved)
numbers.update({f"shift: {k}": float(v) for k, v in metrics.compute().items()})
""",
    ),
}
TORCH = "torch==2.13.0"


def made() -> dict[str, np.ndarray]:
    """Make predictions of two classes, and intervals, with ties."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, N)
    evidence = 1.2 * (2 * target - 1) + 1.5 * rng.standard_normal(N)
    prob = np.round(1 / (1 + np.exp(-2 * evidence)), 2)
    shifted = np.arange(N) >= N // 2
    prob = np.where(shifted & (rng.random(N) < 0.5), np.round(rng.random(N), 1), prob)
    value = rng.normal(0, 1, N)
    mean = value + rng.normal(0, 1, N)
    return {
        **{"prob": prob, "target": target, "shifted": shifted, "value": value},
        **{"mean": mean, "low": mean - 1.5, "high": mean + 1.5},
    }


def peer(name: str, file: Path) -> dict[str, object]:
    """Return the numbers of another library, in an environment of its own."""
    requirement, code = PEERS[name]
    packages = ["--with", "numpy"]
    for each in requirement.split():
        packages += ["--with", each]
    if "torch" in code:
        packages += ["--with", TORCH]
        code = OPERATORS + code
    script = file.with_name(f"with_{name.replace('-', '_')}.py")
    script.write_text(f"{READ}{code}\nprint(json.dumps(numbers))\n", "utf-8")
    done = subprocess.run(
        [
            *(UV, "run", "-q", "--no-project", "--python", sys.executable, *packages),
            *("python", script, file),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "Error" in line]
        return {"does not run here": (errors or ["?"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def ours(arrays: dict[str, np.ndarray]) -> dict[str, object]:
    """Return the numbers of qualms by the same names."""
    s = qualms.scores
    prob, target = arrays["prob"], arrays["target"]
    conf = np.maximum(prob, 1 - prob)
    right = s.predicted_class(prob) == target
    rng = np.random.default_rng(0)
    orders = [rng.permutation(N) for _ in range(20)]
    unsure = s.entropy(np.stack([1 - prob, prob], 1))
    aurc = [s.aurc(risk=~right[order], uncertainty=unsure[order]) for order in orders]
    bounds = {"lower": arrays["low"], "upper": arrays["high"]}
    return {
        "AUROC": s.auroc(score=prob, positive=target == 1),
        "average precision": s.average_precision(score=prob, positive=target == 1),
        "Brier, summed over both classes": s.brier(prob, target),
        "log loss": s.nll(prob, target),
        "ECE, 10 bins": s.ece(prob, target, bins=10),
        "AURC over 20 orders of the items": f"{min(aurc):.4f} to {max(aurc):.4f}",
        "coverage": s.coverage(**bounds, target=arrays["value"]),
        "mean width": s.interval_length(**bounds),
        "shift: AUROC": s.ood_auroc(uncertainty=1 - conf, shifted=arrays["shifted"]),
        "shift: AUPR": s.ood_auprc(uncertainty=1 - conf, shifted=arrays["shifted"]),
        "shift: FPR95": s.ood_fpr95(uncertainty=1 - conf, shifted=arrays["shifted"]),
    }


def main() -> None:
    """Print the numbers of every library."""
    arrays = made()
    show("qualms", ours(arrays))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "arrays.npz")
        np.savez(file, **arrays)
        for name in PEERS:
            show(
                f"{name} ({PEERS[name][0].split()[0].split('==')[1]})", peer(name, file)
            )


def show(name: str, numbers: dict[str, object]) -> None:
    """Print the numbers of one library."""
    print(name)
    for label, number in numbers.items():
        text = f"{number:.6f}" if isinstance(number, float) else number
        print(f"    {label}: {text}")


if __name__ == "__main__":
    main()
