"""`qualms predict`: pictures of the user's, and a network of timm with its weights."""

import csv
import importlib
import json
import re
import shutil
import socket
import sys
import types

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import qualms
from qualms.cli import app, main
from qualms.networks import load_torchvision
from qualms.predictions import read

load_torchvision()
import timm  # noqa: E402 - it imports torchvision
from timm.data import create_transform, resolve_model_data_config  # noqa: E402

CLASSES = ("cat", "dog", "owl")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Class folders of three splits, a table of the test items, and weights."""
    home = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    for split in ("train", "val", "test"):
        for number, name in enumerate(CLASSES):
            folder = home / "imgs" / split / name
            folder.mkdir(parents=True)
            for i in range(2):
                shape = (30 + 4 * i, 40) if number else (30, 40, 3)
                pixels = rng.integers(0, 255, shape, dtype=np.uint8)
                Image.fromarray(pixels).save(folder / f"{i}.png")
    paths = sorted(p.relative_to(home).as_posix() for p in home.glob("imgs/test/*/*"))
    with (home / "items.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "target", "group", "shifted"])
        for i, path in enumerate(paths):
            rows.writerow([path, path.split("/")[2], "ab"[i % 2], i // 4])
    torch.manual_seed(0)
    torch.save(network().state_dict(), home / "w.pt")
    (home / "classes.txt").write_text("\n".join(CLASSES) + "\n")
    return home


def network():
    return timm.create_model("test_resnet", num_classes=3).eval()


def told(monkeypatch, capsys, *arguments):
    """The sentence that the command ends in."""
    monkeypatch.setattr(sys, "argv", ["qualms", "predict", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    return capsys.readouterr().err


def predicted(place, *more, source="imgs", out="p.npz"):
    given = ["--from", place / source, "--weights", place / "w.pt"]
    arguments = ["timm:test_resnet", *given, "--out", place / out, *more]
    done = CliRunner().invoke(app, ["predict", *map(str, arguments)])
    assert done.exit_code == 0, done.exception or done.output
    return read(place / out), done.output


def test_predictions_are_those_of_timm_for_pictures_as_timm_prepares_them(place):
    found, said = predicted(place)
    model = network()
    model.load_state_dict(torch.load(place / "w.pt"))
    prepare = create_transform(**resolve_model_data_config(model))
    names = found.arrays["item"]
    assert sorted(names) == [f"test/{c}/{i}.png" for c in CLASSES for i in range(2)]
    pictures = [Image.open(place / "imgs" / name).convert("RGB") for name in names]
    with torch.no_grad():
        expected = model(torch.stack([prepare(p) for p in pictures])).softmax(1)
    assert found.arrays["probs"][0] == pytest.approx(expected.numpy(), abs=1e-5)
    assert found.arrays["target"].tolist() == [0, 0, 1, 1, 2, 2]
    assert (found.header.dataset, found.header.split) == ("imgs", "test")
    assert "6 items, 1 draw by plain, 3 classes" in said
    assert "taken for cat, dog, owl, in this order" in said


def test_progress_is_shown_where_it_takes_long(place, monkeypatch):
    for name in ("FIRST", "EVERY"):
        monkeypatch.setattr(f"qualms.progress.{name}", 0.001)
    _, said = predicted(place, "--batch", "1", out="slow.npz")
    assert re.search(r"timm:test_resnet: \d of 6 items, .* items/s, about", said)


def test_classes_of_a_table_go_by_the_file_that_names_them(place):
    other = place / "other.json"
    other.write_text(json.dumps({"owl": 0, "cat": 1, "dog": 2}))
    plain = predicted(place)[0].arrays
    found, said = predicted(place, "--classes", other, source="items.csv")
    assert found.arrays["target"].tolist() == [1, 1, 2, 2, 0, 0]
    assert found.header.classes == ("owl", "cat", "dog")
    assert found.arrays["group"].tolist() == ["a", "b"] * 3
    assert found.arrays["shifted"].tolist() == [False] * 4 + [True] * 2
    assert np.allclose(found.arrays["probs"], plain["probs"])
    assert "note" not in said


def test_methods_are_fitted_to_the_splits_that_they_are_for(place):
    both = ("--fit", place / "imgs", "--val", place / "imgs")
    for method, draws in (("laplace", 3), ("temperature", 1)):
        options = ["-o", "draws=3"] if draws > 1 else []
        found, _ = predicted(place, "--method", method, *both, *options)
        assert (found.draws, found.header.method) == (draws, method)


def test_pictures_without_classes_are_predicted_and_not_scored(place):
    found, said = predicted(place, source="imgs/val/dog")
    assert found.n == 2
    assert "target" not in found.arrays
    assert "cannot be scored" in said


def test_what_does_not_fit_ends_in_a_sentence(place, tmp_path, monkeypatch, capsys):
    imgs = shutil.copytree(place / "imgs", tmp_path / "imgs")

    def refused(*more, name="timm:test_resnet", out="x.npz"):
        given = ("--from", imgs, "--out", tmp_path / out)
        weights = () if "--weights" in more else ("--weights", place / "w.pt")
        return told(monkeypatch, capsys, name, *given, *weights, *more)

    classes = place / "c.txt"
    for text, sentence in {
        "cat\ndog": "names 2 classes, and the network has 3 outputs",
        "cat\ndog\ndog": "names dog more than once",
        "cat\ndog\nhen": "does not name owl",
        "cat\n\nowl": "fill what is empty",
    }.items():
        classes.write_text(text)
        assert sentence in refused("--classes", classes)
    assert "no 'test_resnt' in timm. Did you mean" in refused(name="timm:test_resnt")
    assert "no item in" in refused("--split", "train/x")
    assert "must be a whole number" in refused("--method", "laplace", "-o", "draws=few")
    assert "--fit DIR on the command line" in refused("--method", "laplace")
    assert "has no dropout layer" in refused("--method", "mc_dropout")
    assert "which is no file" in refused("--weights", place / "none.pt")
    assert "must end in" in refused(out="x.txt")
    bad = imgs / "test" / "cat" / "bad.png"
    bad.write_text("no picture")
    message = refused("--workers", "1")
    assert message.startswith(f"qualms: cannot read {bad}: ")
    assert message.endswith("repair that file or remove it\n")
    bad.unlink()
    (imgs / "test" / "fox").mkdir()
    Image.new("L", (9, 9)).save(imgs / "test" / "fox" / "a.png")
    message = refused()
    assert (
        "the network has 3 classes, and the items have 4 (cat, dog, fox, owl)"
        in message
    )


def test_targets_are_of_all_items_or_of_none(place, monkeypatch, capsys):
    table = place / "some.csv"
    one, other = sorted(place.glob("imgs/test/*/0.png"))[:2]
    given = ("timm:test_resnet", "--from", table, "--weights", place / "w.pt")
    given += ("--out", place / "x.npz", "--classes", place / "classes.txt")
    table.write_text(f"path,target\n{one},cat\n{other},\n")
    message = told(monkeypatch, capsys, *given)
    assert "line 3 of some.csv must have a target as line 2 of some.csv has" in message


def test_weights_that_cannot_be_had_are_asked_for_as_a_file(place, monkeypatch, capsys):
    def unreachable(*_, **__):
        raise OSError("no connection")

    monkeypatch.setattr(timm, "create_model", unreachable)
    given = ("--from", place / "items.csv", "--out", place / "x.npz")
    message = told(monkeypatch, capsys, "timm:resnet50", *given)
    assert "cannot be loaded: no connection" in message
    assert "--weights FILE" in message


@pytest.fixture
def closed_hub(monkeypatch):
    """A hub whose port nobody listens to."""
    constants = importlib.import_module("huggingface_hub.constants")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return constants


def test_a_hub_that_cannot_be_reached_is_not_asked_again_and_again(
    place, monkeypatch, capsys, closed_hub
):
    asked = []
    monkeypatch.setattr("time.sleep", asked.append)
    given = ("--from", place / "items.csv", "--out", place / "x.npz")
    name = "timm:test_vit.r160_in1k"
    message = told(monkeypatch, capsys, name, *given)
    assert f"cannot be loaded: {closed_hub.ENDPOINT} cannot be reached" in message
    assert "not in its cache; state the path of a file" in message
    assert asked == []
    assert not closed_hub.HF_HUB_OFFLINE


def test_a_hub_that_answers_is_asked_and_a_user_who_is_offline_is_not(monkeypatch):
    from qualms.networks._hub import quick_hub

    constants = importlib.import_module("huggingface_hub.constants")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        there = f"http://127.0.0.1:{listening.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", there)
        with quick_hub() as hub:
            assert hub.is_reachable
            assert not constants.HF_HUB_OFFLINE
        monkeypatch.setenv("http_proxy", there)
        monkeypatch.setattr(constants, "ENDPOINT", "http://hub.invalid")
        with quick_hub() as hub:
            assert hub.is_reachable  # through the proxy
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        with quick_hub() as hub:
            assert not hub.is_reachable
        assert constants.HF_HUB_OFFLINE


EMBEDDED = ("--task", "embedding")
UNCERTAINTIES = ["inverse_norm", "entropy", "flips"]


def test_pictures_are_embedded_by_the_layer_before_the_classifier(place):
    found, said = predicted(place, *EMBEDDED, "--thumbnails", "8")
    model = network()
    model.load_state_dict(torch.load(place / "w.pt"))
    prepare = create_transform(**resolve_model_data_config(model))
    names = found.arrays["item"]
    opened = [Image.open(place / "imgs" / name).convert("RGB") for name in names]
    x = torch.stack([prepare(p) for p in opened])
    with torch.no_grad():
        features = model.forward_features(x)
        wanted = model.forward_head(features, pre_logits=True)
        probs = model.forward_head(features).softmax(1)
        mirrored = model.forward_head(model.forward_features(x.flip(-1)), True)
    arrays = found.arrays
    assert arrays["embedding"] == pytest.approx(wanted.numpy(), abs=1e-5)
    length = wanted.norm(dim=1).numpy()
    assert arrays["uncertainty/inverse_norm"] == pytest.approx(1 / length, rel=1e-4)
    entropy = torch.special.entr(probs).sum(1).numpy()
    assert arrays["uncertainty/entropy"] == pytest.approx(entropy, abs=1e-4)
    cosine = torch.cosine_similarity(wanted, mirrored).numpy()
    assert arrays["uncertainty/flips"] == pytest.approx(1 - cosine, abs=1e-5)
    assert list(found.named("uncertainty")) == UNCERTAINTIES
    assert list(found.named("uncertainty_cropped")) == UNCERTAINTIES
    assert "predicted" not in arrays  # nobody says which output is which class
    assert found.header.classes == CLASSES
    assert arrays["target"].tolist() == [0, 0, 1, 1, 2, 2]
    assert arrays["thumbnail"].shape == (6, 8, 8, 3)
    assert "uncertainties: inverse_norm, entropy, flips" in said
    assert qualms.score(found).row("crop_rate").n == 6


def test_embedded_classes_need_not_be_those_of_the_network(place):
    few = place / "few.txt"
    few.write_text("dog\nfox\ncat\n")
    found, said = predicted(place, *EMBEDDED, "--classes", few, "--no-views")
    assert found.header.classes == ("dog", "fox", "cat", "owl")
    assert found.arrays["target"].tolist() == [2, 2, 0, 0, 3, 3]
    assert list(found.named("uncertainty")) == ["inverse_norm", "entropy"]
    assert "the classifier does not know owl, so that its classes are not" in said
    found, _ = predicted(
        place, *EMBEDDED, "--classes", place / "classes.txt", "--no-views"
    )
    plain = predicted(place)[0].arrays["probs"][0].argmax(1)
    assert found.arrays["predicted"].tolist() == plain.tolist()
    unlabelled, _ = predicted(place, *EMBEDDED, source="imgs/val/dog")
    assert unlabelled.n == 2


def test_a_network_without_a_classifier_embeds_and_does_not_classify(
    place, tmp_path, monkeypatch, capsys
):
    state = {
        name: part
        for name, part in torch.load(place / "w.pt").items()
        if not name.startswith("fc.")
    }
    torch.save(state, tmp_path / "bare.pt")
    given = ("--from", place / "imgs", "--weights", tmp_path / "bare.pt")
    out = ("--out", tmp_path / "x.npz")
    message = told(monkeypatch, capsys, "timm:test_resnet", *given, *out)
    assert "and have none; say --task embedding" in message
    arguments = ["predict", "timm:test_resnet", *given, *out, *EMBEDDED]
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    assert list(read(tmp_path / "x.npz").named("uncertainty")) == [
        "inverse_norm",
        "flips",
    ]


class PictureTower(torch.nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def test_networks_of_open_clip_embed_with_named_weights(place, monkeypatch, capsys):
    """The calls are those of open_clip 3; `test_open_clip.py` asks the real one."""
    made = []

    def create(name, *, pretrained, weights_only):
        made.append((name, pretrained, weights_only))
        model = torch.nn.Module()
        model.visual = PictureTower()
        return model, None, lambda p: torch.tensor(np.array(p)).permute(2, 0, 1) / 255

    library = types.ModuleType("open_clip")
    library.list_models = lambda: ["ViT-B-32", "RN50"]
    library.list_pretrained_tags_by_model = lambda _: ["laion2b"]
    library.create_model_and_transforms = create
    monkeypatch.setitem(sys.modules, "open_clip", library)
    given = ("--from", place / "imgs" / "test" / "cat", "--out", place / "clip.npz")
    asked = ("open_clip:ViT-B-32", *given, *EMBEDDED)
    arguments = [*asked, "--weights", "laion2b", "--batch", "1"]
    done = CliRunner().invoke(app, ["predict", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    assert made == [("ViT-B-32", "laion2b", True)]
    assert read(place / "clip.npz").arrays["embedding"].shape == (2, 3)
    message = told(monkeypatch, capsys, *asked)
    assert "has several weights of 'ViT-B-32': say which with --weights" in message
    message = told(monkeypatch, capsys, *asked, "--weights", "laion")
    assert "Did you mean 'laion2b'" in message
    message = told(monkeypatch, capsys, "open_clip:ViT-B-3", *asked[1:])
    assert "no 'ViT-B-3' in open_clip. Did you mean 'ViT-B-32'" in message
    monkeypatch.setitem(sys.modules, "open_clip", None)
    assert "install 'open_clip_torch'" in told(monkeypatch, capsys, *asked)
