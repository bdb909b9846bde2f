"""`qualms predict`: pictures of the user's, and a network of timm with its weights."""

import csv
import json
import shutil
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

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
    assert "cannot be had: no connection" in message
    assert "--weights FILE" in message
