"""On a GPU: recorded steps equal eager ones, and streams do not mix."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from qualms import predictions
from qualms.methods import likelihood_loss, summarise
from qualms.scores import nearest_neighbour, retrieval_hits
from qualms.spec import Part, Task
from qualms.training import run_alone, run_together
from qualms.training._neighbours import find_nearest
from training import made

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]


def weights(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["network"]


def close(one, other, **tolerance):
    for name in one | other:
        torch.testing.assert_close(one[name], other[name], **tolerance)


def train(folder, number=0, **options):
    callbacks = made.CallbackLog()
    spec = made.spec(number, deterministic=True, **{"epochs": 6, **options})
    run_alone(spec, made.dataset(), folder, device="cuda", callbacks=callbacks)
    assert callbacks.messages == []
    return weights(folder)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"optimiser": "sgd", "lr": 1e-3},
        {"optimiser": "rmsprop", "lr": 1e-3},
        {"optimiser": "lamb", "weight_decay": 1e-4},
        {"schedule": "polynomial"},
        {"accumulate": 2, "clip": 1.0},
        {"channels_last": True},
    ],
)
def test_a_recorded_step_is_the_eager_one(shelf, tmp_path, options):
    eager = train(tmp_path / "eager", capture=False, **options)
    recorded = train(tmp_path / "recorded", capture=True, **options)
    close(eager, recorded, rtol=1e-4, atol=1e-5)


def test_a_recorded_step_draws_new_numbers_each_time(shelf, tmp_path):
    options = {"method": "dropout", "augment": ("hflip", "noise")}
    eager = train(tmp_path / "eager", capture=False, **options)
    recorded = train(tmp_path / "recorded", capture=True, **options)
    close(eager, recorded, rtol=1e-4, atol=1e-5)


def test_a_recorded_step_follows_the_weights_of_classes(shelf, tmp_path):
    def loss(network, batch, moment):
        error = torch.nn.functional.binary_cross_entropy_with_logits(
            network(batch.x)[:, 0], batch.target.float(), reduction="none"
        )
        return (error * batch.weight).mean()

    def predict(network, x, task):
        return {"prob": network(x)[:, 0].sigmoid()[None]}

    shelf(binary={"loss": loss, "predict": predict, "select": {}})
    chosen = {"class_weights": "minibatch", "deterministic": True, "epochs": 6}
    for name, capture in (("eager", False), ("recorded", True)):
        spec = made.spec(method="binary", capture=capture, **chosen)
        dataset = made.dataset(kind="classification")
        run_alone(spec, dataset, tmp_path / name, device="cuda")
    eager, recorded = (weights(tmp_path / name) for name in ("eager", "recorded"))
    close(eager, recorded, rtol=1e-4, atol=1e-5)


def test_a_recorded_step_draws_raters_swaps_and_scenes(shelf, tmp_path):
    dataset = replace(
        made.dataset(kind="segmentation"),
        task=Task(name="segmentation", classes=4, ignore=255),
        swaps={0: 2, 1: 3},
        swap_share=1 / 3,
    )

    def loss(network, batch, moment):
        return likelihood_loss(network(batch.x), batch, dataset.task)

    def predict(network, x, task):
        return summarise([network(x)], task)

    shelf(
        network=lambda channels: made.Tiny(channels, outputs=4, maps=True),
        maps={"loss": loss, "predict": predict, "select": {}},
    )
    chosen = {
        **{"epochs": 6, "epoch_passes": 2, "loss": "dice_likelihood"},
        **{"deterministic": True, "normalise": "item"},
        "augment": ("flips", "rotate", "zoom", "noise"),
    }
    for name, capture in (("eager", False), ("recorded", True)):
        callbacks, spec = (
            made.CallbackLog(),
            made.spec(method="maps", capture=capture, **chosen),
        )
        run_alone(spec, dataset, tmp_path / name, device="cuda", callbacks=callbacks)
        assert callbacks.messages == []
    eager, recorded = (weights(tmp_path / name) for name in ("eager", "recorded"))
    close(eager, recorded, rtol=1e-4, atol=1e-5)


def test_the_changes_of_two_views_are_recorded(tmp_path):
    dataset = made.dataset(kind="classification", channels=3)
    dataset = replace(dataset, task=Task(name="embedding", classes=2))
    changes = ("crop", "hue_jitter", "grey", "blur", "hflip")
    spec = replace(
        made.spec(capture=True, epochs=6, augment=changes),
        method=Part(name="infonce"),
        network=Part(name="resnet_small", options={"width": 4, "blocks": [1]}),
    )
    callbacks = made.CallbackLog()
    run_alone(spec, dataset, tmp_path, device="cuda", callbacks=callbacks)
    assert callbacks.messages == []


def test_neighbours_of_tf32_products_are_those_of_the_scores():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3000, 256)).astype(np.float32)
    rows[2000:2500] = rows[:500] + 1e-4 * rng.standard_normal((500, 256))
    rows[2990:] = rows[:10]
    target = rng.integers(0, 20, 3000)
    there = torch.from_numpy(rows).cuda(), torch.from_numpy(target).cuda()
    for tile in (None, 700, 1024):
        neighbours = find_nearest(*there, tile=tile)
        assert neighbours.nearest.tolist() == nearest_neighbour(rows).tolist()
        wanted = retrieval_hits(rows, target)
        np.testing.assert_allclose(neighbours.hits.cpu(), wanted, rtol=1e-12)


def test_a_head_is_recorded_on_cached_features(shelf, tmp_path):
    def loss(network, batch, moment):
        return (network(batch.x)[:, 0] - batch.target).square().mean()

    shelf(network=made.Body, head={"build": made.headed, "loss": loss})
    options = {"method": "head", "features": "cached"}
    eager = train(tmp_path / "eager", capture=False, **options)
    recorded = train(tmp_path / "recorded", capture=True, **options)
    close(eager, recorded, rtol=1e-4, atol=1e-5)
    learned = train(tmp_path / "learned", method="head")
    assert not torch.equal(eager["head.last.weight"], learned["head.last.weight"])


def test_every_phase_is_recorded_by_itself(shelf, tmp_path):
    def loss(network, batch, moment):
        return made.loss(network, batch, moment) * (1 if moment.epoch < 3 else 0.1)

    shelf(phased={"loss": loss, "phase": lambda epoch: epoch < 3})
    eager = train(tmp_path / "eager", method="phased", capture=False, epochs=8)
    recorded = train(tmp_path / "recorded", method="phased", capture=True, epochs=8)
    close(eager, recorded, rtol=1e-4, atol=1e-5)


def test_runs_together_are_the_runs_alone(shelf, tmp_path):
    specs = [
        made.spec(number, method="dropout", epochs=6, deterministic=True)
        for number in range(3)
    ]
    folders = [tmp_path / str(number) for number in range(3)]
    run_together(specs, made.dataset(), folders, device="cuda")
    for number, folder in enumerate(folders):
        alone = train(tmp_path / f"alone{number}", number, method="dropout")
        close(weights(folder), alone, rtol=1e-4, atol=1e-5)


def test_data_that_do_not_fit_are_read_ahead(shelf, tmp_path, monkeypatch):
    resident = train(tmp_path / "resident")
    monkeypatch.setattr("qualms.training._splits._free_bytes", lambda _: 0.0)
    close(resident, train(tmp_path / "read"), rtol=1e-4, atol=1e-5)


# With fp16 steps whose scaled gradients are infinite are skipped, which the first ones
# may be; two or three skipped steps of float32 move these weights by 0.010 to 0.015.
@pytest.mark.parametrize(
    ("precision", "far"), [("tf32", 0.01), ("bf16", 0.01), ("fp16", 0.05)]
)
def test_lower_precision_stays_close(shelf, tmp_path, precision, far):
    # Random numbers differ with the precision, and Adam would take whole steps where a
    # gradient is nothing but rounding.
    shelf(network=made.Bare)
    calm = {"optimiser": "sgd", "lr": 1e-3}
    full = train(tmp_path / "full", **calm)
    low = train(tmp_path / "low", precision=precision, **calm)
    close(full, low, rtol=far, atol=far)
    read = [
        predictions.read(tmp_path / name / "predictions/test.safetensors")
        for name in ("full", "low")
    ]
    one, other = (torch.from_numpy(p.arrays["mean"]) for p in read)
    torch.testing.assert_close(one, other, rtol=far, atol=2 * far)
