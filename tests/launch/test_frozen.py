"""Frozen networks: `qualms run url --network NAME --frozen`, from plan to results."""

import numpy as np
import pytest
import torch

import qualms
from qualms.launch import RunRequest, plan_of
from qualms.networks import load_torchvision
from qualms.predictions import read
from qualms.runs import stored

load_torchvision()
import timm  # noqa: E402 - it imports torchvision

FROZEN = ["frozen", "frozen_entropy", "frozen_flips"]
NEAR = ["frozen_knn", "frozen_mahalanobis", "frozen_relative_mahalanobis"]
SMALL = {"dataset.sizes": {"train": 12, "val": 8, "test": 16}, "predict_batch": 16}


def plan(variant="species", **more):
    request = {"network": "timm:test_resnet", "frozen": True, **more}
    return plan_of("url", RunRequest(variants=(variant,), **request))


def test_a_frozen_network_is_judged_by_one_run_of_what_trains_nothing():
    made = plan()
    assert [row.name for row in made.rows] == [*FROZEN, *NEAR]
    (run,) = made.runs
    assert run.network.name == "timm:test_resnet"
    assert run.network.options == {"weights": "pretrained"}
    assert (run.method.name, run.training["epochs"]) == ("frozen", 0)
    assert made.changes == ("network.name=timm:test_resnet", "frozen")
    other = plan(options={"network.weights": "w.pt"}, seeds=(1, 2))
    assert [run.network.options for run in other.runs] == [{"weights": "w.pt"}] * 2


def test_a_variant_may_bring_the_network_that_is_frozen():
    made = plan("fashion_lite0", network="")
    (run,) = made.runs
    assert run.network.name == "timm:tf_efficientnet_lite0"
    assert run.training["features"] == "learned"
    assert run.training["epochs"] == 0


def test_rows_that_compare_with_nothing_upstream_are_left_to_other_variants():
    made = plan("retrieval")
    assert [row.name for row in made.rows_on(made.variants[0])] == FROZEN
    (run,) = made.runs
    assert run.method.options == {"items": 0}
    assert run.splits == ("birds:test", "cars:test", "products:test")


def test_another_network_is_trained_unless_it_is_frozen():
    request = RunRequest(variants=("species",), methods=("ce",), network="resnet18")
    (run,) = plan_of("url", request).runs
    assert (run.network.name, run.training["epochs"]) == ("resnet18", 16)


def test_what_cannot_be_frozen_is_refused():
    def refused(name="url", **more):
        with pytest.raises(ValueError, match=r"--frozen") as error:
            plan_of(name, RunRequest(frozen=True, **more))
        return str(error.value)

    assert "species starts from random ones" in refused(variants=("species",))
    assert "retina is about classification" in refused("retina")
    trained = refused(
        variants=("species",), network="timm:test_resnet", methods=("ce",)
    )
    assert "'ce' is trained; ask for frozen, frozen_entropy" in trained


def test_a_frozen_network_is_run_and_judged(tmp_path):
    torch.manual_seed(0)
    network = timm.create_model("test_resnet", num_classes=7).eval()
    torch.save(network.state_dict(), tmp_path / "w.pt")
    options = {**SMALL, "network.weights": str(tmp_path / "w.pt")}
    results = qualms.run(
        "url/retrieval",
        network="timm:test_resnet",
        frozen=True,
        options=options,
        data=tmp_path / "data",
        out=tmp_path / "runs",
        workers=1,
        device="cpu",
        write=False,
    )
    table = results.table.where(variant="retrieval", subset="all")
    assert set(table.distinct("row")) == set(FROZEN)
    assert table.at(row="frozen", score="recall_at_1").value >= 0
    assert {"r_auroc", "crop_rate"} <= set(table.distinct("score"))
    assert "ood_auroc" not in table.distinct("score")
    (run,) = results.plan.runs
    folder = tmp_path / "runs" / "url" / run.hash
    found = read(stored(folder, "birds:test")).arrays
    embedding = found["embedding"].astype(float)
    length = np.linalg.norm(embedding, axis=1)
    assert found["uncertainty/inverse_norm"] == pytest.approx(1 / length, rel=1e-5)
    logits = embedding @ network.fc.weight.detach().numpy().T
    logits += network.fc.bias.detach().numpy()
    probs = np.exp(logits - logits.max(axis=1)[:, None])
    probs /= probs.sum(axis=1)[:, None]
    entropy = -(probs * np.log(probs)).sum(axis=1)
    assert found["uncertainty/entropy"] == pytest.approx(entropy, abs=1e-4)
    assert "predicted" not in found  # the classes of the weights are others
    again = qualms.judge(
        "url/retrieval",
        network="timm:test_resnet",
        frozen=True,
        options=options,
        data=tmp_path / "data",
        out=tmp_path / "runs",
        write=False,
    )
    assert len(again.table) == len(results.table)
