import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from qualms import predictions
from qualms.spec import Part
from qualms.training import TrainingError, _learner, _splits, run_alone, run_together
from qualms.training.seeds import seed, shuffled
from training import made


def weights(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["network"]


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one | other)


def close(one, other, **tolerance):
    for name in one | other:
        torch.testing.assert_close(one[name], other[name], **tolerance)


def by_hand(spec, dataset, *, batch=8, lr=1e-2):
    """Train the same network in plain PyTorch."""
    seed(spec.seed, "build")
    network = made.Tiny(3)
    optimiser = torch.optim.Adam(network.parameters(), lr)
    split = dataset.splits["train"]
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x = (torch.tensor(split.image).float() / 255 - mean) / std
    x, target = x.permute(0, 3, 1, 2).contiguous(), torch.tensor(split.target)
    for epoch in range(spec.training["epochs"]):
        seed(spec.seed, "epoch", epoch)
        network.train()
        for rows in shuffled(torch.arange(len(x)), spec.seed, epoch).split(batch):
            optimiser.zero_grad()
            error = network(x[rows])[:, 0] - target[rows]
            error.square().mean().backward()
            optimiser.step()
    return network.state_dict()


def test_training_is_the_plain_loop(shelf, tmp_path):
    spec, dataset = made.spec(), made.dataset()
    run_alone(spec, dataset, tmp_path)
    close(weights(tmp_path), by_hand(spec, dataset), rtol=1e-4, atol=1e-5)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(shelf, tmp_path):
    dataset = made.dataset()
    for name, number in (("a", 0), ("b", 0), ("c", 1)):
        run_alone(made.spec(number, method="dropout"), dataset, tmp_path / name)
    a, b, c = (weights(tmp_path / name) for name in "abc")
    assert same(a, b)
    assert not same(a, c)
    files = [tmp_path / name / "predictions/test.safetensors" for name in "ab"]
    first, second = map(predictions.read, files)
    assert all(np.array_equal(first.arrays[n], second.arrays[n]) for n in first.arrays)


def test_data_read_ahead_train_to_the_same_bits(shelf, tmp_path, monkeypatch):
    dataset = made.dataset()
    run_alone(made.spec(), dataset, tmp_path / "resident")
    monkeypatch.setattr(_splits, "_free_bytes", lambda _: 0.0)
    run_alone(made.spec(), dataset, tmp_path / "read")
    assert same(weights(tmp_path / "resident"), weights(tmp_path / "read"))


def test_runs_together_are_the_runs_alone(shelf, tmp_path):
    dataset, specs = made.dataset(), [made.spec(number) for number in range(3)]
    callbacks = made.CallbackLog()
    folders = [tmp_path / str(spec.seed) for spec in specs]
    run_together(specs, dataset, folders, callbacks=callbacks)
    run_alone(specs[1], dataset, tmp_path / "alone")
    assert same(weights(folders[1]), weights(tmp_path / "alone"))
    assert [told[:3] for told in callbacks.epochs if told[0] == 2] == [
        (2, 1, 3),
        (2, 2, 3),
        (2, 3, 3),
    ]


def test_runs_that_differ_in_more_than_their_seed_are_refused(shelf, tmp_path):
    specs = [made.spec(0), made.spec(1, epochs=4)]
    with pytest.raises(ValueError, match="must differ in their seed and in select_by"):
        run_together(specs, made.dataset(), [tmp_path / "a", tmp_path / "b"])


def test_a_failed_run_does_not_stop_the_others(shelf, tmp_path):
    built = []

    def build(backbone, task):
        backbone.factor = float("nan") if len(built) == 1 else 1.0
        built.append(backbone)
        return backbone

    def loss(network, batch, moment):
        return made.loss(network, batch, moment) * network.factor

    shelf(odd={"loss": loss, "build": build})
    specs = [made.spec(number, method="odd") for number in range(3)]
    folders = [tmp_path / str(number) for number in range(3)]
    with pytest.raises(TrainingError, match=r"1 of 3 runs failed \(seeds 1\).*loss"):
        run_together(specs, made.dataset(), folders)
    done = [(folder / "done.json").exists() for folder in folders]
    assert done == [True, False, True]


def test_what_is_done_is_not_done_again(shelf, tmp_path):
    run_alone(made.spec(), made.dataset(), tmp_path)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    shelf(plain={"loss": None})
    run_alone(made.spec(), made.dataset(), tmp_path)
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before


@pytest.mark.parametrize(
    "harm", [Path.unlink, lambda file: file.write_bytes(file.read_bytes()[:100])]
)
def test_predictions_that_were_removed_or_damaged_are_made_again(shelf, tmp_path, harm):
    spec, dataset = made.spec(), made.dataset()
    run_alone(spec, dataset, tmp_path)
    removed = tmp_path / "predictions/test.safetensors"
    before, weighed = predictions.read(removed), weights(tmp_path)
    harm(removed)
    callbacks = made.CallbackLog()
    run_alone(spec, dataset, tmp_path, callbacks=callbacks)
    again = predictions.read(removed)
    assert again.header == before.header
    assert np.array_equal(again.arrays["mean"], before.arrays["mean"])
    assert callbacks.epochs == []  # nothing is trained for it
    assert same(weights(tmp_path), weighed)


def test_equal_runs_write_equal_predictions(shelf, tmp_path):
    spec, dataset = made.spec(), made.dataset()
    for name in "ab":
        run_alone(spec, dataset, tmp_path / name)
    first, second = (
        {p.name: p.read_bytes() for p in (tmp_path / name / "predictions").iterdir()}
        for name in "ab"
    )
    assert first == second
    assert len(first) == len(spec.splits)
    seconds, others = (
        json.loads((tmp_path / name / "done.json").read_text()) for name in "ab"
    )
    differing = {key for key in seconds if seconds[key] != others[key]}
    assert differing == {"seconds", "images_per_second"}
    assert seconds["threads"] == torch.get_num_threads()


def test_a_folder_of_another_run_is_left_alone(shelf, tmp_path):
    run_alone(made.spec(), made.dataset(), tmp_path)
    with pytest.raises(TrainingError, match="holds another run"):
        run_alone(made.spec(1), made.dataset(), tmp_path)


def test_the_folder_says_what_the_run_is_and_how_it_went(shelf, tmp_path):
    callbacks = made.CallbackLog()
    spec = made.spec(validate=2)
    run_alone(spec, made.dataset(), tmp_path, callbacks=callbacks)
    assert (tmp_path / "spec.json").read_text() == spec.to_json()
    lines = [json.loads(s) for s in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1, 2]
    assert [line["val"] is None for line in lines] == [True, False, True]
    assert lines[0].keys() == {
        "epoch",
        "steps",
        "loss",
        "val",
        "images_per_second",
        "seconds",
        "lr",
    }
    assert [told[3] for told in callbacks.epochs] == [line["loss"] for line in lines]
    assert lines[2]["loss"] < lines[0]["loss"]
    done = json.loads((tmp_path / "done.json").read_text())
    assert done["hash"] == spec.hash
    assert done["parameters"] == sum(p.numel() for p in made.Tiny(3).parameters())
    assert done["seconds"] > 0
    assert done["images_per_second"] > 0
    data = json.loads((tmp_path / "environment.json").read_text())
    assert data["torch"] == torch.__version__


@pytest.mark.parametrize(("batch", "accumulate"), [(8, 1), (4, 3)])
def test_what_does_not_fill_a_step_can_be_left_for_another_epoch(
    shelf, tmp_path, batch, accumulate
):
    calls = []

    def loss(network, batch, moment):
        calls.append(batch.target)
        return made.loss(network, batch, moment)

    shelf(noting={"loss": loss})
    spec = made.spec(
        method="noting", batch=batch, accumulate=accumulate, partial=False, epochs=2
    )
    dataset = made.dataset()
    run_alone(spec, dataset, tmp_path)
    stride = batch * accumulate
    steps = 50 // stride
    assert len(calls) == 2 * steps * accumulate
    assert {len(target) for target in calls} == {batch}
    visited = torch.cat(calls).view(2, -1)
    for epoch, targets in enumerate(visited):
        order = shuffled(torch.arange(50), 0, epoch)[: steps * stride]
        assert torch.equal(targets, torch.tensor(dataset.splits["train"].target)[order])


def test_data_read_ahead_leave_out_the_same_items(shelf, tmp_path, monkeypatch):
    dataset, spec = made.dataset(), made.spec(partial=False)
    run_alone(spec, dataset, tmp_path / "resident")
    monkeypatch.setattr(_splits, "_free_bytes", lambda _: 0.0)
    run_alone(spec, dataset, tmp_path / "read")
    assert same(weights(tmp_path / "resident"), weights(tmp_path / "read"))


def test_a_split_that_fills_no_step_is_refused(shelf, tmp_path):
    spec = made.spec(batch=64, partial=False)
    with pytest.raises(TrainingError, match="one takes 64 items, and there are 50"):
        run_alone(spec, made.dataset(), tmp_path)


def test_a_last_batch_of_one_item_is_explained(shelf, tmp_path):
    def loss(network, batch, moment):
        torch.nn.functional.batch_norm(batch.x.mean((2, 3)), None, None, training=True)
        return made.loss(network, batch, moment)

    shelf(noting={"loss": loss})
    spec = made.spec(method="noting", batch=8, epochs=1)
    with pytest.raises(TrainingError, match=r"a single item.*partial=false"):
        run_alone(spec, made.dataset(train=9), tmp_path / "one")
    run_alone(spec, made.dataset(train=10), tmp_path / "two")


def test_8_bits_become_0_to_1_and_nothing_else_when_asked(shelf, tmp_path):
    calls = []

    def loss(network, batch, moment):
        calls.append(batch.x)
        return made.loss(network, batch, moment)

    shelf(noting={"loss": loss})
    dataset = made.dataset(channels=3)
    spec = made.spec(method="noting", normalise="none", epochs=1, batch=50)
    run_alone(spec, dataset, tmp_path)
    image = dataset.splits["train"].image[shuffled(torch.arange(50), 0, 0).numpy()]
    expected = torch.tensor(image).movedim(-1, 1).float() / 255
    torch.testing.assert_close(calls[0], expected)


class Replaced(made.Bare):
    """A network that remembers its convolution at the time of compiling."""

    def compile(self):
        self.compiled_with = type(self.conv)


class Other(torch.nn.Conv2d):
    pass


def test_a_network_is_compiled_with_the_layers_it_was_built_with(shelf, tmp_path):
    built = []

    def build(backbone, task):
        backbone.conv = Other(3, 8, 3, padding=1, bias=False)
        built.append(backbone)
        return backbone

    shelf(network=Replaced, other={"build": build})
    run_alone(made.spec(method="other", compile=True), made.dataset(), tmp_path)
    assert built[0].compiled_with is Other
    plain = {"conv.weight", "head.weight", "head.bias"}
    assert weights(tmp_path).keys() == plain


def test_accumulated_gradients_are_those_of_the_large_batch(shelf, tmp_path):
    shelf(network=made.Bare)
    dataset = made.dataset()
    run_alone(made.spec(batch=16), dataset, tmp_path / "large")
    run_alone(made.spec(batch=4, accumulate=4), dataset, tmp_path / "parts")
    close(
        weights(tmp_path / "large"), weights(tmp_path / "parts"), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("CUDA error: out of memory\nfrom the driver"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("[enforce fail at a.cpp] DefaultCPUAllocator: can't allocate"),
    ],
)
def test_too_little_memory_halves_the_batch_and_says_so(shelf, tmp_path, error):
    def hungry(network, batch, moment):
        if len(batch.x) > 4 and network.training:
            raise error
        return made.loss(network, batch, moment)

    shelf(network=made.Bare, hungry={"loss": hungry})
    dataset, callbacks = made.dataset(), made.CallbackLog()
    run_alone(
        made.spec(batch=16, method="hungry"),
        dataset,
        tmp_path / "h",
        callbacks=callbacks,
    )
    assert callbacks.messages == [
        "the device is out of memory; halving the batch to 8 and adding up gradients",
        "the device is out of memory; halving the batch to 4 and adding up gradients",
    ]
    run_alone(made.spec(batch=16), dataset, tmp_path / "whole")
    close(weights(tmp_path / "h"), weights(tmp_path / "whole"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("where", ["epoch", "after", "loss"])
def test_too_little_memory_between_steps_takes_fewer_items_at_once(
    shelf, tmp_path, where
):
    def hungry(network, *rest):
        for batch in rest[-1]():
            if len(batch.x) > 8:
                raise torch.OutOfMemoryError("CUDA out of memory")

    def choosy(network, batch, moment):
        if len(batch.x) > 8 and not network.training:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return made.loss(network, batch, moment)

    shelf(hungry={where: choosy if where == "loss" else hungry})
    spec = made.spec(method="hungry", batch=8, predict_batch=32, validate=1)
    callbacks = made.CallbackLog()
    run_alone(spec, made.dataset(), tmp_path, callbacks=callbacks)
    assert callbacks.messages == [
        "the device is out of memory; halving the batch to 4 and adding up gradients",
        "the device is out of memory; halving the batch to 2 and adding up gradients",
    ]
    assert (tmp_path / "done.json").exists()


def test_too_little_memory_for_one_item_is_an_error(shelf, tmp_path):
    def starved(network, batch, moment):
        raise torch.OutOfMemoryError("CUDA out of memory")

    shelf(starved={"loss": starved})
    with pytest.raises(TrainingError, match="out of memory even for a single item"):
        run_alone(made.spec(method="starved"), made.dataset(), tmp_path)


def test_a_loss_that_is_not_a_number_names_the_step_and_its_items(shelf, tmp_path):
    def breaking(network, batch, moment):
        loss = made.loss(network, batch, moment)
        # The third step of the second epoch; seven steps make an epoch.
        return torch.where(moment.progress * 21 > 9.5, torch.nan, 1.0) * loss

    shelf(breaking={"loss": breaking})
    spec, dataset = made.spec(method="breaking"), made.dataset()
    with pytest.raises(TrainingError) as caught:
        run_alone(spec, dataset, tmp_path)
    rows = shuffled(torch.arange(50), 0, 1)[16:24].numpy()
    names = ", ".join(dataset.splits["train"].item[rows])
    assert "the loss became nan in epoch 1, step 2;" in str(caught.value)
    assert "which is kept: epoch 0" in str(caught.value)
    assert str(caught.value).endswith(f"Items of the step: {names}")
    contents = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert contents["stand"]["epoch"] == 1
    assert all(part.isfinite().all() for part in contents["network"].values())


def test_progress_reaches_one_in_the_last_step(shelf, tmp_path):
    calls = []

    def loss(network, batch, moment):
        calls.append((moment.epoch, moment.items, float(moment.progress)))
        return made.loss(network, batch, moment)

    shelf(watching={"loss": loss})
    run_alone(made.spec(method="watching", epochs=2), made.dataset(), tmp_path)
    assert [epoch for epoch, _, _ in calls] == [0] * 7 + [1] * 7
    np.testing.assert_allclose([p for *_, p in calls], np.arange(1, 15) / 14, rtol=1e-6)


def test_hooks_are_called_in_evaluation_mode_without_gradients(shelf, tmp_path):
    called = []

    def note(name, network):
        called.append((name, network.training, torch.is_grad_enabled()))

    def after(network, batches):
        note("after", network)
        targets = torch.cat([batch.target for batch in batches()])
        assert targets.tolist() == made.dataset().splits["train"].target.tolist()

    shelf(
        hooked={
            "epoch": lambda network, *_: note("epoch", network),
            "after": after,
            "loss": lambda network, *rest: (
                note("loss", network) or made.loss(network, *rest)
            ),
        }
    )
    run_alone(made.spec(method="hooked", epochs=1, batch=50), made.dataset(), tmp_path)
    assert called == [
        ("epoch", False, False),
        ("loss", True, True),
        ("after", False, False),
    ]


def test_the_best_epoch_on_val_is_kept_when_asked(shelf, tmp_path):
    def loss(network, batch, moment):
        return made.loss(network, batch, moment) + (
            0 if network.training else (moment.epoch - 1) ** 2 * 1e4
        )

    shelf(bowl={"loss": loss})
    dataset = made.dataset()
    run_alone(
        made.spec(method="bowl", epochs=4, select_by="val_loss"),
        dataset,
        tmp_path / "a",
    )
    run_alone(made.spec(epochs=2), dataset, tmp_path / "b")
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))


def test_auroc_on_val_can_choose_the_epoch(shelf, tmp_path):
    def loss(network, batch, moment):
        logits = network(batch.x)[:, 0]
        return torch.nn.functional.binary_cross_entropy_with_logits(
            logits, batch.target.float()
        )

    def predict(network, x, task):
        return {"prob": network(x)[:, 0].sigmoid()[None]}

    shelf(binary={"loss": loss, "predict": predict, "select": {}})
    dataset = made.dataset(kind="classification")
    run_alone(made.spec(method="binary", select_by="val_auroc"), dataset, tmp_path)
    assert predictions.read(tmp_path / "predictions/val.safetensors").classes == 2


def test_looking_at_val_changes_nothing_else(shelf, tmp_path):
    run_alone(made.spec(), made.dataset(), tmp_path / "blind")
    run_alone(made.spec(validate=1), made.dataset(), tmp_path / "looking")
    assert same(weights(tmp_path / "blind"), weights(tmp_path / "looking"))


def test_channels_last_changes_nothing_but_the_layout(shelf, tmp_path):
    shelf(network=made.Bare)  # dropout draws its masks in the order of memory
    run_alone(made.spec(), made.dataset(), tmp_path / "first")
    run_alone(made.spec(channels_last=True), made.dataset(), tmp_path / "last")
    close(weights(tmp_path / "first"), weights(tmp_path / "last"), rtol=1e-3, atol=1e-4)


def test_a_gradient_can_be_clipped(shelf, tmp_path, monkeypatch):
    norms = []

    def step(optimiser, *rest):
        weights = [p for group in optimiser.param_groups for p in group["params"]]
        norms.append(torch.stack([p.grad.norm() for p in weights]).norm())

    monkeypatch.setattr(torch.optim.Adam, "step", step)
    run_alone(made.spec(clip=0.5), made.dataset(), tmp_path / "clipped")
    clipped, norms = norms, []
    run_alone(made.spec(), made.dataset(), tmp_path / "free")
    assert max(clipped) <= 0.5 + 1e-5
    assert min(norms) > 0.5


def test_a_run_can_continue_from_the_weights_of_another(shelf, tmp_path):
    dataset, first = made.dataset(), made.spec()
    run_alone(first, dataset, tmp_path / first.hash)
    second = made.spec(start=first.hash, lr=0.0)
    run_alone(second, dataset, tmp_path / second.hash)
    before, after = (weights(tmp_path / spec.hash) for spec in (first, second))
    assert torch.equal(before["head.weight"], after["head.weight"])


def test_continuing_from_a_run_that_is_not_there_is_refused(shelf, tmp_path):
    with pytest.raises(TrainingError, match="finish that one first"):
        run_alone(made.spec(start="0" * 16), made.dataset(), tmp_path / "a")


def test_a_method_for_another_task_is_refused(shelf, tmp_path):
    shelf(other={"needs": ("pixels",)})
    with pytest.raises(TrainingError, match="is for segmentation, and 'made' is regr"):
        run_alone(made.spec(method="other"), made.dataset(), tmp_path)


@pytest.mark.parametrize("name", ["gpu", "mps", "cuda:99"])
def test_a_device_that_is_not_there_is_named(shelf, tmp_path, name):
    with pytest.raises(TrainingError, match=name):
        run_alone(made.spec(), made.dataset(), tmp_path, device=name)


def test_recording_without_a_gpu_is_answered_with_a_message(shelf, tmp_path):
    callbacks = made.CallbackLog()
    run_alone(
        made.spec(capture=True),
        made.dataset(),
        tmp_path,
        device="cpu",
        callbacks=callbacks,
    )
    assert callbacks.messages == [
        "steps cannot be recorded without a CUDA device and stay eager"
    ]


def test_parts_of_the_shelves_train_end_to_end(tmp_path):
    spec = replace(
        made.spec(splits=("test",), epochs=3, batch=16),
        network=Part(name="resnet_small", options={"width": 4, "blocks": (1,)}),
        method=Part(
            name="gaussian", options={"warmup": 1, "frozen": 1, "select": ("gmm2",)}
        ),
    )
    run_alone(spec, made.dataset(), tmp_path)
    found = predictions.read(tmp_path / "predictions/test.safetensors")
    assert {"mean", "var", "select/gmm2"} <= found.arrays.keys()
    assert found.header.select == {"gmm2": "logmeanexp"}


def test_running_statistics_go_as_far_back_in_steps_however_many_passes_they_take():
    momenta = []
    for accumulate in (1, 4):
        backbone = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
        _learner._adapt_momentum(backbone, accumulate)
        momenta.append(backbone[1].momentum)
    assert momenta[0] == pytest.approx(0.1)
    assert (1 - momenta[1]) ** 4 == pytest.approx(0.9)


def test_a_plateau_without_validation_items_is_refused_before_training(shelf, tmp_path):
    whole = made.dataset()
    splits = {name: part for name, part in whole.splits.items() if name != "val"}
    with pytest.raises(TrainingError, match="'plateau' needs the split 'val'"):
        run_alone(
            made.spec(schedule="plateau"), replace(whole, splits=splits), tmp_path
        )


@pytest.mark.parametrize(("epochs", "told"), [(2, 1), (3, 0)])
def test_a_phase_that_training_never_reaches_is_told(shelf, tmp_path, epochs, told):
    shelf(plain={"phase": lambda epoch: "all" if epoch >= 2 else "warmup"})
    callbacks = made.CallbackLog()
    run_alone(made.spec(epochs=epochs), made.dataset(), tmp_path, callbacks=callbacks)
    assert callbacks.messages == told * [
        "2 epochs end in the method's phase 'warmup', and its last one, 'all', is never"
        " trained; train longer or shorten the others"
    ]


def test_an_epoch_of_several_passes_visits_every_item_as_often(shelf, tmp_path):
    calls = []

    def noted(network, batch, moment):
        calls.append(batch.target.clone())
        return made.loss(network, batch, moment)

    shelf(plain={"loss": noted})
    dataset = made.dataset(train=51)
    run_alone(made.spec(epoch_passes=8, epochs=2), dataset, tmp_path / "a")
    # As many passes as items in a batch: an epoch has a step for each item.
    assert [len(part) for part in calls] == [8] * 51 * 2
    whole = torch.cat(calls).view(16, 51)
    ordered = torch.from_numpy(dataset.splits["train"].target).sort().values
    assert torch.equal(whole.sort(1).values, ordered.expand(16, 51))
    assert not torch.equal(whole[0], whole[1])
    done = json.loads((tmp_path / "a/done.json").read_text())
    assert (done["epochs"], done["passes"], done["steps"]) == (2, 16, 102)
    lines = (tmp_path / "a/log.jsonl").read_text().splitlines()
    assert [json.loads(line)["steps"] for line in lines] == [51, 51]


def test_a_dice_loss_without_label_maps_is_refused(shelf, tmp_path):
    with pytest.raises(TrainingError, match="is for segmentation, and 'made' is regr"):
        run_alone(made.spec(loss="dice_likelihood"), made.dataset(), tmp_path)
