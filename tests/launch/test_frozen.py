"""Frozen networks: `qualms run url --network NAME --frozen`, from plan to results."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

import qualms
from datasets.fake_retrieval import BIRDS, CARS, write_classes, write_products
from qualms.datasets import cache_folder, prepare
from qualms.launch import RunRequest, plan_of
from qualms.networks import load_torchvision
from qualms.predictions import read
from qualms.runs import stored
from qualms.shelf import find

load_torchvision()
import timm  # noqa: E402 - it imports torchvision

SETS = ("cub", "cars196", "sop")
FROZEN = ["frozen", "frozen_entropy", "frozen_flips"]
NEAR = ["frozen_knn", "frozen_mahalanobis", "frozen_relative_mahalanobis"]


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


def saved_network(path):
    torch.manual_seed(0)
    network = timm.create_model("test_resnet", num_classes=7).eval()
    torch.save(network.state_dict(), path)
    return network


def test_the_recipe_of_algorithm_1_works_on_the_layouts_of_the_publishers(
    tmp_path, golden
):
    """My network, prepared CUB, CARS196 and SOP, and nothing else."""
    root, data = tmp_path / "published", tmp_path / "data"
    write_classes(root / "CUB_200_2011" / "images", BIRDS)
    write_classes(root / "cars196" / "images", CARS)
    splits = golden("url")["I_dataset_splits"]
    write_products(root / "Stanford_Online_Products", splits["SOP_fake"])
    for name in SETS:
        recipe = find("datasets", name)(root, side=224)
        prepare(recipe, cache_folder(data, recipe), workers=1, check_counts=False)
    network = saved_network(tmp_path / "w.pt")
    weights = str(tmp_path / "w.pt")
    request = {
        "preset": "paper",
        "network": "timm:test_resnet",
        "frozen": True,
        "options": {"network.weights": weights, "precision": "float32"},
        "data": data,
        "out": tmp_path / "runs",
        "device": "cpu",
        "write": False,
    }
    results = qualms.run("url/retrieval", workers=1, **request)
    assert set(results.table.distinct("row")) == set(FROZEN)
    assert {"r_auroc", "crop_rate"} <= set(results.table.distinct("score"))
    assert "ood_auroc" not in results.table.distinct("score")
    table = results.table.where(row="frozen", score="recall_at_1")
    by_set = {r.labels["subset"]: r.value for r in table}
    assert set(by_set) == {"cub", "cars", "sop", "all"}
    means = [by_set[name] for name in ("cub", "cars", "sop")]
    assert by_set["all"] == pytest.approx(np.mean(means))
    assert len(qualms.judge("url/retrieval", **request).table) == len(results.table)
    (run,) = results.plan.runs
    found = read(stored(tmp_path / "runs" / "url" / run.hash, "cub:test")).arrays
    assert_uncertainties(found, network)


def assert_uncertainties(found, network):
    """Uncertainties are those of the stored embedding, and of the head."""
    embedding = found["embedding"].astype(float)
    length = np.linalg.norm(embedding, axis=1)
    assert found["uncertainty/inverse_norm"] == pytest.approx(1 / length, rel=1e-5)
    weight, bias = (part.detach().numpy() for part in network.fc.parameters())
    logs = log_softmax(embedding @ weight.T + bias, axis=1)
    entropy = -(np.exp(logs) * logs).sum(axis=1)
    assert found["uncertainty/entropy"] == pytest.approx(entropy, abs=1e-4)
    assert "predicted" not in found  # the classes of the weights are others
