"""The scores of the method `ood` and of pytorch-ood's detectors, side by side.

    python bench/ood_scores.py

prints the table of `docs/ood.md`, and writes inputs and the detectors' outputs to
tests/methods/pytorch_ood.npz. pytorch-ood runs in an environment of its own, which uv
makes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from coming_from import OPERATORS, TORCH, UV
from numpy.typing import NDArray

from qualms.methods import _ood_scores as ours
from qualms.scores import auroc

ROOT = Path(__file__).parents[1]
STORED = ROOT / "tests" / "methods" / "pytorch_ood.npz"
PEER = "pytorch-ood==0.4.0"
TRAIN, TEST, WIDTH, CLASSES = 120, 60, 16, 4
NEIGHBOURS, PRINCIPAL, CLIP = 10, 6, 0.9

DETECTORS = """
import numpy as np
from torch import nn
from pytorch_ood import detector
arrays = {name: torch.tensor(values) for name, values in np.load(sys.argv[1]).items()}
train, target, test = (arrays[name] for name in ("train", "target", "test"))
last = nn.Linear(train.shape[1], len(arrays["bias"]))
last.weight.data, last.bias.data = arrays["weight"], arrays["bias"]
logits = last(test).detach()
k, d, p = (arrays[name].item() for name in ("neighbours", "principal", "clip"))
fitted = {
    "knn": detector.KNN(None, k=k),
    "mahalanobis": detector.Mahalanobis(None),
    "relative_mahalanobis": detector.RMD(None),
    "vim": detector.ViM(None, d, last.weight, last.bias),
}
scores = {name: f.fit_features(train, target).predict_features(test)
          for name, f in fitted.items()}
scores["max_logit"] = detector.MaxLogit(None).predict_logits(logits)
scores["energy"] = detector.EnergyBased(None).predict_logits(logits)
react = detector.ReAct(backbone=None, head=last, percentile=p)
scores["react"] = react.fit_feature_maps(train, target).predict_feature_maps(test)
gradnorm = detector.GradNorm(last, param_filter=lambda name: name == "weight")
scores["gradnorm"] = gradnorm.to("cpu").predict(test)
np.savez(sys.argv[2], **{name: np.asarray(values.detach(), np.float32)
                         for name, values in scores.items()})
"""

Arrays = dict[str, NDArray[np.generic]]


def made_inputs() -> Arrays:
    """Return features as a trained network with a ReLU has them, and its last layer."""
    rng = np.random.default_rng(0)
    means = rng.normal(0, 1.2, (CLASSES, WIDTH))
    spread = rng.normal(0, 0.3, (WIDTH, WIDTH)) + np.eye(WIDTH)
    target = np.arange(TRAIN) % CLASSES

    def features(centre: NDArray[np.float64]) -> NDArray[np.float32]:
        noise = rng.normal(0, 1, centre.shape) @ spread
        return np.maximum(centre + 0.7 * noise, 0).astype(np.float32)

    known = features(means[rng.integers(0, CLASSES, TEST)])
    unlike = features(rng.normal(0, 1.2, (TEST, WIDTH)))
    return {
        "train": features(means[target]),
        "target": target,
        "test": np.concatenate([known, unlike]),
        "weight": (means - means.mean(0)).astype(np.float32),
        "bias": rng.normal(0, 0.5, CLASSES).astype(np.float32),
        "neighbours": np.array(NEIGHBOURS),
        "principal": np.array(PRINCIPAL),
        "clip": np.array(CLIP),
    }


def detectors(inputs: Arrays) -> Arrays:
    """Return the scores of pytorch-ood."""
    with tempfile.TemporaryDirectory() as folder:
        script, source, out = (
            Path(folder, n) for n in ("run.py", "inputs.npz", "outputs.npz")
        )
        script.write_text(OPERATORS + DETECTORS, "utf-8")
        np.savez(source, **inputs)
        packages = [
            part for each in (PEER, TORCH, "torchvision") for part in ("--with", each)
        ]
        environment = (UV, "run", "-q", "--no-project", "--python", sys.executable)
        command = [*environment, *packages, "python", script, source, out]
        subprocess.run(command, check=True)
        return dict(np.load(out))


def own_scores(inputs: Arrays) -> Arrays:
    """Return our scores, in the units of pytorch-ood."""
    x = {name: torch.tensor(values) for name, values in inputs.items()}
    train, test = x["train"], x["test"]
    gaussians = ours.fit_gaussians(train, x["target"])
    residual = ours.fit_residual(train, x["weight"], x["bias"], PRINCIPAL)
    clipped = test.double().clamp(max=ours.fit_clip(train, CLIP).item())
    weight, bias = x["weight"].double(), x["bias"].double()
    logits = test.double() @ weight.T + bias
    scores = {
        "max_logit": ours.max_logit(logits),
        "energy": ours.energy(logits),
        "gradnorm": ours.gradnorm(test, logits),
        "knn": ours.knn(test, train, NEIGHBOURS),
        "mahalanobis": ours.mahalanobis(test, gaussians.classes) / (2 * TRAIN),
        "relative_mahalanobis": ours.relative_mahalanobis(test, gaussians) / TRAIN,
        "vim": ours.vim(test, logits, residual),
        "react": ours.energy(clipped @ weight.T + bias),
    }
    return {name: values.numpy() for name, values in scores.items()}


def main() -> None:
    """Print the table, and store the case."""
    inputs = made_inputs()
    theirs, own = detectors(inputs), own_scores(inputs)
    case = {**inputs, **{f"score/{name}": values for name, values in theirs.items()}}
    np.savez_compressed(STORED, **case)
    unlike = np.arange(2 * TEST) >= TEST
    for name, values in own.items():
        size = np.abs(theirs[name]).max()
        gap = np.abs(values - theirs[name]).max() / size
        both = (
            auroc(score=theirs[name].astype(float), positive=unlike),
            auroc(score=values, positive=unlike),
        )
        print(f"{name}: AUROC {both[0]:.6f}, {both[1]:.6f}; gap {gap:.1e}")
    print(f"{STORED.name}: {STORED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
