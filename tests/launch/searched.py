"""A benchmark to search, and a stand-in for training whose best options are known."""

import json
from dataclasses import replace

import numpy as np

from qualms.launch._study import proposed
from qualms.predictions import Header, write
from qualms.runs import epochs_path
from qualms.shelf import find
from qualms.spec import Part
from qualms.study import Benchmark, Preset, Range, Selection, TableRow, Variant

DATASET = Part(name="cells", options={"sizes": {"train": 4, "val": 2, "test": 2}})
BEST_LR = {"val": 0.01, "val/shifted": 0.1}
"""Where the stand-in tells classes apart best, by split."""
TOO_FAST = 0.3
"""Learning rate above which it fails."""


def toy():
    """Two variants of the same data, one for each selection, and one without any."""
    plain = Variant(
        name="plain",
        label="Plain",
        dataset=DATASET,
        splits=("val", "val/shifted", "test", "test/shifted"),
        selection="in_domain",
    )
    joint = replace(plain, name="plain_joint", selection="joint")
    lone = Variant(name="lone", label="Lone", dataset=Part(name="chairs"))
    ranges = (
        Range(option="lr", low=1e-3, high=0.5),
        Range(option="momentum", low=5e-3, high=0.05, complement=True),
        Range(option="final_factor", choices=(1e-3, 1e-2, 0.1)),
    )
    dropout = (*ranges, Range(option="method.rate", low=0.05, high=0.2, log=False))
    by_method = {"map": ranges, "mc_dropout": dropout}
    return Benchmark(
        name="toy",
        version=1,
        title="A toy",
        paper="nobody (2026)",
        task="classification",
        rows=(
            TableRow(name="alone", label="Alone", method=Part(name="map")),
            TableRow(name="three", label="Three", method=Part(name="map"), pool=3),
            TableRow(name="dropout", label="Dropout", method=Part(name="mc_dropout")),
            TableRow(name="quantile", label="Other", method=Part(name="quantile")),
        ),
        presets={
            "demo": Preset(
                name="demo",
                variants=(plain, joint, lone),
                rows=("alone", "three", "dropout", "quantile"),
                network=Part(name="resnet_small"),
                training={"epochs": 2, "schedule": "linear"},
                seeds=(0, 1, 2),
                pools=((0, 1, 2),),
            )
        },
        selections=(
            Selection(
                name="in_domain",
                rule="val_auroc",
                splits=("val",),
                label="AUROC of in-domain validation items",
                items="in-domain validation items",
            ),
            Selection(
                name="joint",
                rule="val_referral",
                splits=("val", "val/shifted"),
                label="area under the referral curve",
                items="in-domain and shifted validation items",
            ),
        ),
        search=dict.fromkeys(("plain", "plain_joint", "lone"), by_method),
    )


def trials_of(search, count):
    """The first trials of a search, without any results."""
    return [trial for trial, _ in proposed(search, [], range(count))]


def on_shelf(monkeypatch):
    """Put the toy on the shelf of benchmarks, of this process only."""
    from qualms.launch import _search, plan

    def found(shelf, name):
        return toy if (shelf, name) == ("benchmarks", "toy") else find(shelf, name)

    for module in (plan, _search):
        monkeypatch.setattr(module, "find", found)


def work(specs, dataset, folders, *, device, callbacks):
    """Predict as well as the learning rate allows."""
    for spec, folder in zip(specs, folders, strict=True):
        with (folder / "begun").open("a") as file:
            file.write("begun\n")
        lr = spec.training["lr"]
        if lr > TOO_FAST:
            raise ValueError(f"the loss became nan with lr {lr}")
        (folder / "predictions").mkdir(exist_ok=True)
        for split in spec.splits:
            predict(spec, folder, split)
        told = {"hash": spec.hash, "seconds": 0.1}
        (folder / "done.json").write_text(json.dumps(told))


def predict(spec, folder, split):
    skill = 3 - abs(np.log(spec.training["lr"] / BEST_LR[split]))
    rng = np.random.default_rng(len(split))
    target = np.arange(120) % 2
    logit = skill * (target - 0.5) + rng.normal(size=(2, 120))
    path = folder / "predictions" / f"{split.replace('/', '~')}.safetensors"
    arrays = {"target": target, "prob": 1 / (1 + np.exp(-logit))}
    write(path, arrays, header=Header(task="classification", split=split))


def work_by_epochs(specs, dataset, folders, *, device, callbacks):
    """Write the loss of each epoch to the log, and predict after the last one."""
    for spec, folder in zip(specs, folders, strict=True):
        losses = val_losses(spec)
        for epoch in range(len(log_lines(folder)), len(losses)):
            entry = {"epoch": epoch, "loss": 1.0, "val": losses[epoch]}
            with epochs_path(folder).open("a") as file:
                file.write(json.dumps(entry) + "\n")
            callbacks.epoch(spec, epoch + 1, len(losses), 1.0, 10.0, 0.0)
    work(specs, dataset, folders, device=device, callbacks=callbacks)


def val_losses(spec):
    """Return the losses of the stand-in: the farther from the best rate the larger."""
    off = abs(np.log(spec.training["lr"] / BEST_LR["val"]))
    return [off + 1 / epoch for epoch in range(1, spec.training["epochs"] + 1)]


def log_lines(folder):
    """Return the lines of the log of a run."""
    path = epochs_path(folder)
    return path.read_text().splitlines() if path.exists() else []
