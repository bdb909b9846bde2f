from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from qualms import predictions
from qualms.scores.as_published import retina
from qualms.shelf import find, names
from qualms.spec import Task
from qualms.training import TrainingError, run_alone
from qualms.training.selection import RULES, PredictedSplit, selection_score
from training import made


def judged(count, seed, *, draws=3, classes=2):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(classes), (draws, count)).astype(np.float32)
    return PredictedSplit(probs, rng.integers(0, classes, count))


def test_val_auroc_is_that_of_the_mean_over_draws():
    val = judged(60, 0)
    expected = roc_auc_score(val.target, val.probs[..., 1].mean(0))
    assert selection_score("val_auroc", [val]) == pytest.approx(expected, rel=1e-6)


def refer_by_hand(by, probs, target, rows):
    """Return the mean accuracy over all numbers of kept items, most certain first."""
    mean = probs[rows]
    entropy = -(mean * np.log(mean)).sum(1)
    right = (mean.argmax(1) == target[rows])[np.argsort(entropy, kind="stable")]
    # Copies of an item are tied, but right or wrong together.
    kept = np.arange(1, len(rows) + 1)
    if by == "val_referral":  # those that are referred are right
        return np.mean((np.cumsum(right) + len(rows) - kept) / len(rows))
    return np.mean(np.cumsum(right) / kept)


@pytest.mark.parametrize("by", ["val_referral", "val_referral_kept"])
@pytest.mark.parametrize("classes", [2, 4])
def test_val_referral_repeats_the_shifted_items_until_there_are_as_many(classes, by):
    val, shifted = (judged(n, n, classes=classes) for n in (24, 8))
    probs = np.concatenate(
        [part.probs.astype(float).mean(0) for part in (val, shifted)]
    )
    target = np.concatenate([val.target, shifted.target])
    rows = np.concatenate([np.arange(24), np.tile(np.arange(24, 32), 3)])
    found = selection_score(by, [val, shifted])
    assert found == pytest.approx(refer_by_hand(by, probs, target, rows), rel=1e-9)


@pytest.mark.parametrize("oracle", [True, False])
def test_val_referral_is_the_released_one_but_for_its_invented_last_point(oracle):
    by = "val_referral" if oracle else "val_referral_kept"
    val, shifted = judged(30, 5), judged(10, 6)
    joint = [
        np.concatenate(pair)
        for pair in zip(
            (val.probs.mean(0, dtype=float), val.target),
            (shifted.probs.mean(0, dtype=float), shifted.target),
            strict=True,
        )
    ]
    curve = retina.balanced_referral_curve(
        "accuracy", *joint, np.repeat([False, True], (30, 10)), oracle=oracle
    )
    found = selection_score(by, [val, shifted])
    assert found == pytest.approx(curve.value[:-1].mean(), rel=1e-9)


def test_the_two_rules_may_choose_different_epochs():
    """One certain error counts little where referred items count as right."""
    target = np.zeros(20, int)
    sure = np.linspace(0.99, 0.6, 20)

    def of(wrong):
        prob = np.where(np.isin(np.arange(20), list(wrong)), 1 - sure, sure)
        return PredictedSplit(np.stack([prob, 1 - prob], -1)[None], target)

    few, late = of([0]), of(range(12, 20))
    ran = [selection_score("val_referral", [part, part]) for part in (few, late)]
    text = [selection_score("val_referral_kept", [part, part]) for part in (few, late)]
    assert ran[0] > ran[1]
    assert text[0] < text[1]


def test_benchmarks_declare_rules_that_training_has():
    declared = [
        selection
        for name in names("benchmarks")
        for selection in find("benchmarks", name)().selections
    ]
    assert declared
    for selection in declared:
        rule = RULES[selection.rule]
        if rule.retrieves:  # its splits are those of a run
            assert all(name.endswith(":val") for name in selection.splits)
        else:
            assert rule.splits == selection.splits


def binary(right_in, *, draws=1):
    """Return a method that is right about shifted items in one epoch only."""

    def build(backbone, task):
        backbone.register_buffer("now", torch.zeros(()))
        return backbone

    def epoch(network, moment, batches):
        network.now.fill_(moment.epoch)

    def predict(network, x, task):
        bright = x.mean((1, 2, 3))
        swapped = network.now != right_in
        certain = torch.where(bright > 0.5, 0.9, 0.1)
        # Shifted items are bright or dark, and have another contrast than others.
        wrong = (x.amax((1, 2, 3)) - x.amin((1, 2, 3)) < 1e-3) & swapped
        prob = torch.where(wrong, 1 - certain, certain)
        return {"probs": torch.stack([1 - prob, prob], -1).expand(draws, -1, -1)}

    return {"build": build, "epoch": epoch, "predict": predict, "select": {}}


def with_shifted(count=10):
    dataset = made.dataset(kind="classification")
    target = np.arange(count) % 2
    image = np.broadcast_to(
        np.where(target, 255, 0).astype(np.uint8)[:, None, None, None],
        (count, made.SIDE, made.SIDE, 1),
    )
    item = np.array([f"s{i}" for i in range(count)])
    moved = replace(
        dataset.splits["val"], image=image, target=target, item=item, extra={}
    )
    return replace(dataset, splits={**dataset.splits, "val/shifted": moved})


@pytest.mark.parametrize("draws", [1, 3])
def test_the_epoch_that_refers_best_on_the_joint_set_is_kept(shelf, tmp_path, draws):
    shelf(odd=binary(1, draws=draws))
    options = {"epochs": 4, "select_by": "val_referral", "normalise": "none"}
    spec = made.spec(method="odd", splits=("val", "val/shifted"), **options)
    run_alone(spec, with_shifted(), tmp_path)
    contents = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert contents["network"]["now"] == 1
    found = predictions.read(tmp_path / "predictions/val~shifted.safetensors")
    assert found.arrays["probs"].shape == (draws, 10, 2)
    right = found.arrays["probs"].mean(0).argmax(1) == found.arrays["target"]
    assert right.all()


@pytest.mark.parametrize(
    ("kind", "by", "said"),
    [
        (
            "classification",
            "val_referral",
            "needs the split 'val/shifted', which 'made'",
        ),
        ("regression", "val_auroc", "is for classification, and 'made' is regression"),
    ],
)
def test_a_rule_that_has_nothing_to_go_by_is_refused(shelf, tmp_path, kind, by, said):
    with pytest.raises(TrainingError, match=rf"select_by='{by}' {said}"):
        run_alone(made.spec(select_by=by), made.dataset(kind=kind), tmp_path)


def test_auroc_needs_two_classes_and_items_of_both(shelf, tmp_path):
    dataset = made.dataset(kind="classification")
    three = replace(dataset, task=Task(name="classification", classes=3))
    with pytest.raises(TrainingError, match="two classes, and 'made' has 3"):
        run_alone(made.spec(select_by="val_auroc"), three, tmp_path / "a")
    val = replace(dataset.splits["val"], target=np.zeros(20, int))
    one = replace(dataset, splits={**dataset.splits, "val": val})
    with pytest.raises(TrainingError, match="of both classes in the split 'val'"):
        run_alone(made.spec(select_by="val_auroc"), one, tmp_path / "b")
