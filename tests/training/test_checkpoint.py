import errno
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from qualms import predictions
from qualms.training import TrainingError, _checkpoint, run_alone
from training import made


class StopError(Exception):
    """An error that ends a run in the middle, as a power cut would."""


def stopped(monkeypatch, spec, folder, epochs):
    with monkeypatch.context() as patched:
        made.stop_after(patched, epochs, StopError)
        with pytest.raises(StopError):
            run_alone(spec, made.dataset(), folder)


def held(folder, name="checkpoint.pt"):
    return torch.load(folder / name, weights_only=True)


def same_weights(one, other):
    one, other = held(one)["network"], held(other)["network"]
    return all(torch.equal(one[name], other[name]) for name in one | other)


@pytest.mark.parametrize("optimiser", ["adam", "sgd", "rmsprop", "lamb"])
def test_a_stopped_run_goes_on_to_the_same_bits(
    shelf, tmp_path, monkeypatch, optimiser
):
    spec = made.spec(
        epochs=4,
        optimiser=optimiser,
        schedule="plateau",
        select_by="val_loss",
        augment=("hflip", "noise"),
        lr=1e-3,
    )
    run_alone(spec, made.dataset(), tmp_path / "whole")
    stopped(monkeypatch, spec, tmp_path / "parts", 1)
    stopped(monkeypatch, spec, tmp_path / "parts", 3)
    run_alone(spec, made.dataset(), tmp_path / "parts")
    assert same_weights(tmp_path / "whole", tmp_path / "parts")
    lines = (tmp_path / "parts/log.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [0, 1, 2, 3]


def test_a_method_sees_the_same_progress_when_a_run_goes_on(
    shelf, tmp_path, monkeypatch
):
    calls = []

    def look(network, moment, batches):
        calls.append(float(moment.progress))

    shelf(looking={"epoch": look})
    spec = made.spec(method="looking", epochs=3)
    run_alone(spec, made.dataset(), tmp_path / "whole")
    whole, calls[:] = list(calls), []
    stopped(monkeypatch, spec, tmp_path / "parts", 2)
    run_alone(spec, made.dataset(), tmp_path / "parts")
    assert calls == whole == pytest.approx([0, 1 / 3, 2 / 3])


def test_the_log_forgets_epochs_that_are_trained_again(shelf, tmp_path, monkeypatch):
    spec = made.spec()
    stopped(monkeypatch, spec, tmp_path, 2)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"epoch": 2, "loss": 1.0}\n{"epo')
    run_alone(spec, made.dataset(), tmp_path)
    lines = [json.loads(s) for s in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1, 2]
    assert "lr" in lines[2]


def test_two_checkpoints_are_kept_while_training_and_one_afterwards(
    shelf, tmp_path, monkeypatch
):
    spec = made.spec()
    stopped(monkeypatch, spec, tmp_path, 2)
    assert held(tmp_path)["stand"]["epoch"] == 2
    assert held(tmp_path, "checkpoint.previous.pt")["stand"]["epoch"] == 1
    run_alone(spec, made.dataset(), tmp_path)
    assert not (tmp_path / "checkpoint.previous.pt").exists()
    assert held(tmp_path).keys() == {"hash", "data", "network", "stand"}


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_bit(path):
    state = torch.load(path, weights_only=True)
    # In the middle of a weight: the archive opens, but its checksum is wrong.
    value = state["network"]["conv.weight"].numpy().tobytes()[:64]
    data = bytearray(path.read_bytes())
    data[data.index(value) + 3] ^= 1
    path.write_bytes(data)


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut, flip_a_bit, empty])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(
    shelf, tmp_path, monkeypatch, damage
):
    spec, callbacks = made.spec(), made.CallbackLog()
    run_alone(spec, made.dataset(), tmp_path / "whole")
    stopped(monkeypatch, spec, tmp_path / "parts", 2)
    damage(tmp_path / "parts/checkpoint.pt")
    run_alone(spec, made.dataset(), tmp_path / "parts", callbacks=callbacks)
    assert len(callbacks.messages) == 1
    assert "checkpoint.pt is damaged" in callbacks.messages[0]
    assert "going back to the one before" in callbacks.messages[0]
    assert [told[1] for told in callbacks.epochs] == [2, 3]
    assert same_weights(tmp_path / "whole", tmp_path / "parts")


def test_without_a_good_checkpoint_training_starts_anew(shelf, tmp_path, monkeypatch):
    spec, callbacks = made.spec(), made.CallbackLog()
    stopped(monkeypatch, spec, tmp_path, 2)
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        cut(tmp_path / name)
    run_alone(spec, made.dataset(), tmp_path, callbacks=callbacks)
    assert len(callbacks.messages) == 2
    assert [told[1] for told in callbacks.epochs] == [1, 2, 3]


def test_a_checkpoint_of_another_run_is_refused(shelf, tmp_path, monkeypatch):
    stopped(monkeypatch, made.spec(), tmp_path / "a", 2)
    (tmp_path / "b").mkdir()
    (tmp_path / "a/checkpoint.pt").rename(tmp_path / "b/checkpoint.pt")
    with pytest.raises(TrainingError, match="belongs to run"):
        run_alone(made.spec(1), made.dataset(), tmp_path / "b")


def test_a_checkpoint_that_other_code_wrote_is_refused_in_a_sentence(
    shelf, tmp_path, monkeypatch
):
    spec = made.spec()
    stopped(monkeypatch, spec, tmp_path, 1)
    shelf(network=made.Bare)
    with pytest.raises(TrainingError, match=r"does not fit .* delete the folder"):
        run_alone(spec, made.dataset(), tmp_path)
    assert (tmp_path / "checkpoint.pt").exists()


def test_a_checkpoint_of_an_earlier_version_is_refused_in_a_sentence(
    shelf, tmp_path, monkeypatch
):
    spec = made.spec()
    stopped(monkeypatch, spec, tmp_path, 1)
    state = held(tmp_path)
    state["stand"]["best"] = None
    torch.save(state, tmp_path / "checkpoint.pt")
    with pytest.raises(TrainingError, match=r"does not fit .* delete the folder"):
        run_alone(spec, made.dataset(), tmp_path)


def test_a_file_that_would_run_code_is_not_loaded(tmp_path):
    torch.save({"hash": "x", "bad": Path}, tmp_path / "checkpoint.pt")
    message = []
    assert _checkpoint.read_checkpoint(tmp_path, "x", message.append) is None
    assert "is damaged" in message[0]


def test_a_full_disk_ends_in_a_sentence_and_keeps_the_checkpoint(
    shelf, tmp_path, monkeypatch
):
    spec = made.spec()
    stopped(monkeypatch, spec, tmp_path, 1)

    def full(_, path):
        Path(path).write_bytes(b"half of it")
        raise RuntimeError("[enforce fail at file.cc] . unexpected pos 9 vs 8")

    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", full)
        with pytest.raises(TrainingError, match=r"may be full .*; free space"):
            run_alone(spec, made.dataset(), tmp_path)
    assert held(tmp_path)["stand"]["epoch"] == 1
    assert list(tmp_path.glob(".qualms-*")) == []
    run_alone(spec, made.dataset(), tmp_path)
    run_alone(spec, made.dataset(), tmp_path / "whole")
    assert same_weights(tmp_path, tmp_path / "whole")


def test_a_read_only_folder_ends_in_a_sentence(shelf, tmp_path, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(TrainingError, match=r"cannot write to .*run: Permission"):
        run_alone(made.spec(), made.dataset(), tmp_path / "run")


def test_a_full_disk_while_predicting_ends_in_a_sentence(shelf, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("safetensors.numpy.save_file", full)
        with pytest.raises(TrainingError, match="No space left on device"):
            run_alone(made.spec(), made.dataset(), tmp_path)
    run_alone(made.spec(), made.dataset(), tmp_path)
    assert (tmp_path / "done.json").exists()


class _Stream:
    """A stream whose events have always happened."""

    def record_event(self):
        return self

    def synchronize(self):
        pass


def test_a_writer_in_the_background_writes_what_was_there_when_it_was_asked(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "current_stream", _Stream)
    monkeypatch.setattr(_checkpoint, "_pinned", torch.empty_like)
    gate, weights = threading.Event(), torch.zeros(3)
    with ThreadPoolExecutor(1) as writer:
        writer.submit(gate.wait)
        saver = _checkpoint.CheckpointWriter(tmp_path, writer)
        saver.save({"hash": "h", "network": {"w": weights}, "more": torch.ones(2)})
        weights += 1
        assert not saver.idle
        saver.save({"hash": "h", "network": {"w": weights}})  # too soon: left out
        gate.set()
        saver.wait()
        assert held(tmp_path)["network"]["w"].tolist() == [0, 0, 0]
        saver.save({"hash": "h", "network": {"w": weights}})
        saver.settle()
    state = _checkpoint.read_checkpoint(tmp_path, "h", pytest.fail)
    assert state["network"]["w"].tolist() == [1, 1, 1]
    assert "more" not in state


def test_predictions_of_weights_that_were_lost_are_made_again(
    shelf, tmp_path, monkeypatch
):
    """Lose the checkpoint as if the machine failed after predicting, before writing."""
    spec = made.spec()
    stopped(monkeypatch, spec, tmp_path, 2)
    stale = tmp_path / "predictions" / "val.safetensors"
    stale.parent.mkdir()
    stale.write_bytes(b"of other weights")
    run_alone(spec, made.dataset(), tmp_path)
    run_alone(spec, made.dataset(), tmp_path / "whole")
    fresh = tmp_path / "whole" / "predictions" / "val.safetensors"
    found, expected = (predictions.read(path).arrays for path in (stale, fresh))
    np.testing.assert_array_equal(found["mean"], expected["mean"])


def test_the_names_in_a_checkpoint_stay_since_older_ones_must_load(shelf, tmp_path):
    with pytest.raises(InterruptedError):
        run_alone(made.spec(), made.dataset(), tmp_path, callbacks=_StopsAfterAnEpoch())
    names = {"hash", "data", "network", "optimiser", "scaler", "stand"}
    assert held(tmp_path).keys() == names
    state = held(tmp_path)["stand"]
    plain = {"epoch", "seconds", "fit_seconds", "fitted"}
    assert state.keys() == {*plain, "best", "plateau"}
    assert state["plateau"].keys() == {"best", "waited", "factor"}


class _StopsAfterAnEpoch(made.CallbackLog):
    def epoch(self, *_):
        raise InterruptedError
