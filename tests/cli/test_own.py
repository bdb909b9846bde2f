"""`qualms run own`: data of one's own, from files to tables, as a user does it."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from qualms.cli import app, main
from qualms.datasets import open_dataset
from qualms.launch import RunOutcome, data_key, prepare_datasets, running
from qualms.predictions import read
from qualms.runs import is_done, log_path, run_folder
from qualms.spec import RunSpec
from qualms.training import run_alone

MOVED = "+elastic_transform-1"


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(path)


def in_this_process(specs, *, out, data, callbacks, **_):
    """Make runs one after another, without processes that would import torch."""
    places = prepare_datasets([spec.dataset for spec in specs], data)
    for spec in {spec.hash: spec for spec in specs}.values():
        folder = run_folder(out, spec)
        done = is_done(folder, spec)
        if not done:
            dataset = open_dataset(places[data_key(spec.dataset)])
            run_alone(spec, dataset, folder, device="cpu", callbacks=callbacks)
        yield RunOutcome(
            spec=spec,
            folder=folder,
            status="skipped" if done else "done",
            seconds=0.0,
            error="",
            log=log_path(folder),
        )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "run_all", in_this_process)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUALMS_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def undrawn(monkeypatch):
    """Pages without figures, which take longest."""
    monkeypatch.setattr("qualms.report.benchmark.find_spec", lambda _: None)


def ran(*words):
    result = CliRunner().invoke(
        app, ["run", "own", *words, "--device", "cpu", "--workers", "1"]
    )
    assert result.exit_code == 0, result.output
    return result.output


def numbers(name):
    """Means of results.csv by row, subset and score, and by rule of intervals."""
    (path,) = Path(f"runs/own/{name}").glob("**/results.csv")
    lines = path.read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    means = {}
    for r in rows:
        rule = [r["interval"]] if r.get("interval") else []
        key = (r["row"], r["subset"], r["score"], *rule)
        means.setdefault(key, float(r["value"] or "nan"))
    return means


def refused(capsys, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["qualms", "run", *words, "--workers", "1"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return " ".join(capsys.readouterr().err.split())


def classes(root):
    """Dark and bright squares, and shifted ones that are all of middle grey."""
    rng = np.random.default_rng(0)
    for split, count in {"train": 24, "val": 6, "test": 8, "shifted": 8}.items():
        for name, grey in {"dark": 60, "bright": 190}.items():
            level = 125 if split == "shifted" else grey
            for number in range(count):
                pixels = rng.normal(level, 8, (8, 8))
                save(root / split / name / f"{number}.png", pixels)
    return root


def test_class_folders_are_trained_and_judged_in_domain_and_shifted(here, monkeypatch):
    monkeypatch.setattr("qualms.report._draw.KINDS", ("png",))  # half the time
    classes(here / "squares")
    asked = ("--from", "squares", "--methods", "map,temperature,deep_ensemble")
    asked += ("--seeds", "0,1", "-o", "epochs=12", "-o", "network.width=4")
    output = ran(*asked)
    assert "squares: classification, 2 classes; 8 x 8, grey, 8 bit" in output
    assert "train 48, val 12, test 16, test/shifted 16" in output
    for label in ("plain network", "temperature", "deep ensemble of 2"):
        assert label in output
    values = numbers("squares")
    for row in ("map", "temperature", "deep_ensemble"):
        assert values[row, "in_domain", "accuracy"] > 0.9
        assert values[row, "shifted", "accuracy"] < 0.8
    lent = [values[row, "all", "accuracy"] for row in ("map", "temperature")]
    assert lent[0] == lent[1]
    (folder,) = (here / "runs" / "own" / "squares").iterdir()
    assert folder.name.startswith("part-map,temperature,deep_ensemble,seeds_0-1,epoch")
    linked = sorted(path.name for path in (folder / "predictions").iterdir())
    kinds = ("map", "temperature")
    assert linked == [f"{name}-seed{seed}" for name in kinds for seed in (0, 1)]
    file = next((folder / "predictions" / "map-seed1").glob("test.*"))
    assert read(file).header.seed == 1
    first = Path("runs/own/squares", folder.name, "predictions", "map-seed0")
    assert f"qualms refer {first / file.name} --budget" in output
    assert (folder / "index.html").is_file()
    assert {path.stem for path in (folder / "figures").glob("*.png")} >= {
        *("figure_squares_scores", "figure_squares_referral_accuracy"),
    }
    assert "4 skipped" in ran(*asked, "--no-judge")
    save(here / "squares" / "train" / "dark" / "0.png", np.zeros((8, 8)))
    assert "4 of 4 runs lack a result" in ran(*asked, "--dry-run")


def corrupted(name):
    """Values of results.csv by row, score, corruption and severity."""
    (path,) = Path(f"runs/own/{name}").glob("**/results.csv")
    lines = path.read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return {
        (r["row"], r["score"], r["corruption"], r["severity"]): float(r["value"])
        for r in rows
        if r["subset"] == "shifted" and r["corruption"] and r["value"]
    }


def test_test_items_are_corrupted_and_a_trained_run_predicts_more(here, monkeypatch):
    monkeypatch.setattr("qualms.report._draw.KINDS", ("png",))
    classes(here / "squares")
    asked = ("--from", "squares", "--methods", "map", "--seeds", "0")
    asked += ("-o", "epochs=12", "-o", "network.width=4")
    output = ran(*asked, "--corrupt", "bright*,contrast", "--severity", "5")
    assert "1 run: 1 done" in output
    values = corrupted("squares")
    kinds = {(corruption, severity) for _, _, corruption, severity in values}
    assert kinds == {("brightness", "5"), ("contrast", "5")}
    assert values["map", "accuracy", "contrast", "5"] > 0.9
    (folder,) = (here / "runs" / "own" / "squares").iterdir()
    figure = folder / "figures" / "figure_corruptions_accuracy.png"
    assert figure.is_file()
    page = (folder / "index.html").read_text()
    assert "Accuracy ↑ of corrupted items" in page
    (run,) = here.glob("runs/own/*/checkpoint.pt")
    weights = run.read_bytes()
    more = ("--corrupt", "contrast,impulse_noise", "--severity", "1,5", "--no-judge")
    assert "1 run: 1 done" in ran(*asked, *more)
    assert run.read_bytes() == weights
    assert len((run.parent / "log.jsonl").read_text().splitlines()) == 12
    names = {path.name for path in run.parent.glob("predictions/*")}
    assert {f"test+contrast-{severity}.safetensors" for severity in (1, 5)} <= names
    file = read(run.parent / "predictions" / "test+contrast-1.safetensors")
    assert file.header.split == "test+contrast-1"
    assert file.header.options["corruption"]["severity"] == 1
    assert "1 skipped" in ran(*asked, "--no-judge")


@pytest.mark.usefixtures("undrawn")
def test_masks_move_with_corrupted_pictures_and_volumes_have_their_own(here):
    rng = np.random.default_rng(0)
    lines = ["path,mask"]
    for number in range(9):
        mask = np.zeros((20, 24 + number))
        mask[4:12, 5:15] = 1
        save(here / "own" / f"{number}.png", 60 + 120 * mask + rng.normal(0, 9))
        save(here / "own" / f"mask{number}.png", mask)
        lines.append(f"{number}.png,mask{number}.png")
    (here / "own" / "items.csv").write_text("\n".join(lines))
    quick = ("-o", "epochs=1", "-o", "epoch_passes=2", "--seeds", "0")
    quick += ("-o", "network.width=2", "--methods", "map")
    ran("--from", "own", *quick, "--corrupt", "elastic_transform", "--severity", "1")
    values = corrupted("own")
    assert 0 <= values["map", "dice", "elastic_transform", "1"] <= 1
    (folder,) = here.glob("runs/own/*/predictions")
    stored, moved = (read(folder / f"test{more}") for more in ("", MOVED))
    pairs = zip(stored.maps, moved.maps, strict=True)
    assert all((one.raters != other.raters).any() for one, other in pairs)
    balls(here / "scans")
    output = ran("--from", "scans", *quick, "--corrupt", "blur", "--severity", "2")
    assert "scans: segmentation" in output
    assert ("map", "dice", "scanner_blur", "2") in corrupted("scans")


def test_a_toml_file_repeats_it_and_any_method_may_be_asked_for(here):
    classes(here / "squares")
    (here / "own.toml").write_text(
        """
        from = "squares"
        name = "my squares"
        shift = "all of middle grey"
        methods = ["map", "snapshot"]
        seeds = [3]
        dataset.side = 6
        network.name = "resnet_small"
        network.width = 2
        training.epochs = 2
        training.batch = 16
        """
    )
    output = ran("--from", "own.toml", "--no-judge")
    assert "my_squares: classification" in output
    assert "6 x 6" in output
    assert "2 runs: 2 done" in output
    specs = [path.read_text() for path in (here / "runs" / "own").glob("*/spec.json")]
    for text in specs:
        assert '"seed":3' in text.replace(" ", "")
        assert '"epochs":2' in text.replace(" ", "")
    assert {"map", "snapshot"} == {RunSpec.from_json(t).method.name for t in specs}
    more = ran("--from", "own.toml", "--methods", "swag", "--seeds", "1", "--dry-run")
    assert "1 of 1 runs lack a result" in more


@pytest.mark.usefixtures("undrawn")
def test_no_run_replaces_the_page_of_another(here):
    classes(here / "squares")
    asked = ("--from", "squares", "--methods", "map", "-o", "network.width=2")
    pages = {}
    for epochs in ("epochs=1", "epochs=2"):
        ran(*asked, "--seeds", "0", "-o", epochs)
        found = set((here / "runs" / "own" / "squares").glob("**/index.html"))
        (new,) = found - pages.keys()
        assert all(page.read_bytes() == text for page, text in pages.items())
        pages[new] = new.read_bytes()


@pytest.mark.usefixtures("undrawn")
def test_numbers_and_masks_are_judged_by_the_scores_of_their_tasks(here):
    rng = np.random.default_rng(0)
    for number in range(40):
        value = rng.uniform(0, 10)
        save(here / "own" / f"{number}.png", rng.normal(20 * value, 5, (8, 8)))
        mask = np.zeros((8, 8))
        mask[: 2 + number % 4] = 255
        save(here / "own" / f"mask{number}.png", mask)
    paths = [f"{number}.png" for number in range(40)]
    tables = {
        "numbers": [f"{p},{float(n) / 7:.3f}" for n, p in enumerate(paths)],
        "masks": [f"{p},mask{p}" for p in paths],
    }
    for name, column in (("numbers", "target"), ("masks", "mask")):
        text = "\n".join([f"path,{column}", *tables[name]])
        (here / "own" / f"{name}.csv").write_text(text)
    quick = (
        "-o",
        "epochs=1",
        "-o",
        "network.width=2",
        "--seeds",
        "0",
    )
    ran("--from", "own/numbers.csv", "--methods", "gaussian,laplace", *quick)
    values = numbers("numbers")
    assert values["gaussian", "all", "coverage", "gaussian"] >= 0
    assert values["laplace", "all", "mae"] > 0
    output = ran("--from", "own/masks.csv", "--methods", "map", *quick)
    assert "segmentation, 2 classes" in output
    assert 0 <= numbers("masks")["map", "all", "dice"] <= 1


@pytest.mark.usefixtures("undrawn")
def test_groups_notes_and_overfitting_are_said(here):
    rng = np.random.default_rng(0)
    lines = ["path,target,group,age,extra/dose"]
    for number in range(60):
        save(here / "own" / f"{number}.png", rng.normal(100, 40, (6, 6)))
        lines.append(f"{number}.png,{rng.normal():.3f},{'AB'[number % 2]},7,{number}.5")
    (here / "own" / "items.csv").write_text("\n".join(lines))
    quick = ("-o", "epochs=200", "-o", "lr=0.02", "-o", "network.width=8")
    said = ran("--from", "own", "--methods", "gaussian", "--seeds", "0", *quick)
    assert "note: columns of items.csv that are not read: age" in said
    assert "note: test has 9 items" in said
    found = numbers("own")
    assert {("gaussian", f"group={name}", "mae") for name in "AB"} <= found.keys()
    page = next(here.glob("runs/own/own/*/index.html")).read_text()
    assert "columns of items.csv that are not read: age" in page
    assert "intervals hold far fewer targets than they promise" in page
    (file,) = here.glob("runs/own/own/*/predictions/gaussian-seed0/test.safetensors")
    kept = read(file).arrays
    names = [f"{dose - 0.5:.0f}.png" for dose in kept["extra/dose"]]
    assert names == kept["item"].tolist()


@pytest.mark.usefixtures("undrawn")
def test_other_methods_leave_the_first_page_as_it_is(here):
    classes(here / "squares")
    quick = ("--from", "squares", "--seeds", "0", "-o", "epochs=1")
    ran(*quick, "--methods", "map", "-o", "network.width=2")
    (page,) = here.glob("runs/own/**/index.html")
    before = page.read_bytes()
    ran(*quick, "--methods", "mc_dropout", "-o", "network.width=2")
    assert page.read_bytes() == before
    assert len(list(here.glob("runs/own/**/index.html"))) == 2


def balls(root):
    """Six volumes of different shapes with a bright ball, seen by two raters."""
    import nibabel

    root.mkdir()
    rng = np.random.default_rng(0)
    lines = ["path,mask_a,mask_b,split"]
    for number, split in enumerate(("train", "train", "train", "val", "test", "test")):
        shape = (17 + number, 24 - number, 14)
        away = [np.arange(n) - n / 2 for n in shape]
        far = np.sqrt(sum(a**2 for a in np.meshgrid(*away, indexing="ij")))
        image = 900.0 * (far < 5) + rng.normal(0, 100, shape)
        kinds = {"scan": image.astype(np.float32), "a": far < 5, "b": far < 6}
        for kind, values in kinds.items():
            stored = values if kind == "scan" else values.astype(np.uint8)
            volume = nibabel.Nifti1Image(stored, np.diag([1.0, 1.0, 2.5, 1.0]))
            nibabel.save(volume, root / f"{kind}{number}.nii.gz")
        named = ",".join(f"{kind}{number}.nii.gz" for kind in kinds)
        lines.append(f"{named},{split}")
    (root / "items.csv").write_text("\n".join(lines))


@pytest.mark.usefixtures("undrawn")
def test_volumes_of_different_shapes_are_trained_on_patches_and_judged_whole(here):
    balls(here / "scans")
    words = ("--from", "scans", "-o", "patch=16", "-o", "lr=0.02", "--seeds", "0")
    quick = ("-o", "epochs=2", "-o", "epoch_passes=8", "-o", "network.width=2")
    output = ran(*words, *quick, "--methods", "map,mc_dropout")
    assert "segmentation, 2 classes; about 18 x 23 x 14, grey, more than 8" in output
    values = numbers("scans")
    assert values["map", "all", "dice"] > 0.5
    assert values["mc_dropout", "all", "dice"] > 0.5
    paths = list(here.glob("runs/own/*/predictions/test"))
    assert len(paths) == 2
    for path in paths:
        shapes = [maps.raters.shape for maps in read(path).maps]
        assert shapes == [(2, 21, 20, 14), (2, 22, 19, 14)]


@pytest.mark.usefixtures("undrawn")
def test_pictures_of_different_sizes_with_masks_are_segmented_as_they_are(here):
    rng = np.random.default_rng(0)
    lines = ["path,mask"]
    for number in range(9):
        high, wide = 20 + 3 * number, 40 - 2 * number
        mask = np.zeros((high, wide))
        mask[4:12, 5:15] = 1
        save(here / "own" / f"{number}.png", 60 + 120 * mask + rng.normal(0, 9))
        save(here / "own" / f"mask{number}.png", mask)
        lines.append(f"{number}.png,mask{number}.png")
    (here / "own" / "items.csv").write_text("\n".join(lines))
    words = ("--from", "own", "-o", "epochs=1", "-o", "epoch_passes=2", "--seeds", "0")
    quick = ("-o", "network.width=2", "--methods", "map,laplace")
    output = ran(*words, *quick)
    assert "segmentation, 2 classes; about" in output
    for row in ("map", "laplace"):
        assert 0 <= numbers("own")[row, "all", "dice"] <= 1
    dry = ran(*words, *quick, "-o", "patch=8", "--dry-run")
    assert "lack a result" in dry


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["own"],
            "own is about your own data: name a folder, a table in CSV or a TOML",
        ),
        (["own", "--from", "none"], "expected a folder of images or a CSV at none"),
        (["own", "--from", "none.toml"], "there is no file none.toml"),
        (["own", "--from", "bad.toml"], "no key 'method_s' in bad.toml. Did you mean"),
        (["own", "--from", "broken.toml"], "broken.toml is not TOML"),
        (["own", "--from", "deep.toml"], "deep.toml must not be nested more than 50"),
        (["own", "--from", "dots.toml"], "dots.toml must not be nested more than 50"),
        (
            ["own", "--from", "date.toml"],
            "'dataset.side' in date.toml must be text, a number, true or false, got 2",
        ),
        (["own", "--from", "less.toml"], "less.toml must name the data: add from ="),
        (["own", "--from", "few", "--preset", "paper"], "have no presets, got 'paper'"),
        (["retina", "--from", "few"], "retina has data of its own: leave out --from"),
        (["retina", "--corrupt", "fog"], "corruptions are of your own data: name a"),
        (
            ["own", "--from", "few", "--corrupt", "fogg"],
            "no corruption 'fogg'. Did you mean 'fog'? Known: bias_field, brightness",
        ),
        (
            ["own", "--from", "few", "--corrupt", "fog", "--severity", "0-9"],
            "severities must lie in 1 to 5, as in 1-5 or 1,3,5, got '0-9'",
        ),
        (
            ["own", "--from", "few", "--severity", "2"],
            "a severity is that of a corruption: name corruptions with --corrupt",
        ),
        (
            ["own", "--from", "few", "--corrupt", "ghosting"],
            "corruption 'ghosting' needs images of at least 16 pixels along each side",
        ),
        (["own", "--from", "severe.toml"], "'severity' in severe.toml must list numb"),
        (
            ["own", "--from", "few", "--methods", "swagg"],
            "no 'swagg' in the methods of own. Did you mean 'swag'",
        ),
        (
            ["own", "--from", "few", "-o", "dataset.sides=3"],
            "no option 'sides' for folder. Did you mean 'side'",
        ),
        (
            ["own", "--from", "few", "--methods", "gaussian"],
            "own is about classification, and 'gaussian' serves regression",
        ),
    ],
)
def test_mistakes_are_answered_with_a_sentence(words, said, here, capsys, monkeypatch):
    for number in range(8):
        save(here / "few" / "ab"[number % 2] / f"{number}.png", np.zeros((4, 4)))
    (here / "bad.toml").write_text('from = "few"\nmethod_s = ["map"]\n')
    (here / "broken.toml").write_text("from = few")
    (here / "less.toml").write_text("seeds = [1]")
    (here / "severe.toml").write_text('from = "few"\nseverity = [6]')
    deep = "[" * 2000 + "]" * 2000
    (here / "deep.toml").write_text(f'from = "few"\ndataset.side = {deep}')
    (here / "dots.toml").write_text(f'from = "few"\nname{".a" * 2000} = 1')
    (here / "date.toml").write_text('from = "few"\ndataset.side = 2020-01-02')
    assert said in refused(capsys, monkeypatch, *words)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("network.name=resnet_small", "network.fold=2"), "fails on items of 7 x 7"),
        (("batch=500", "partial=false"), "leaves no step: one takes 500 items"),
    ],
)
def test_a_dry_run_builds_the_network_and_refuses_what_training_would(
    here, capsys, monkeypatch, options, sentence
):
    rng = np.random.default_rng(0)
    for number in range(24):
        name = ("dark", "bright")[number % 2]
        save(here / "squares" / name / f"{number}.png", rng.normal(90, 9, (7, 7)))
    words = ("own", "--from", "squares", "--methods", "map", "--seeds", "0")
    words += ("--device", "cpu", "--dry-run")
    for option in options:
        words += ("-o", option)
    answer = refused(capsys, monkeypatch, *words)
    assert "squares" in answer or "folder" in answer
    assert "would fail: " in answer
    assert sentence in answer
    assert not (here / "runs").exists()


def test_patches_far_larger_than_the_items_are_refused(here, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    for number in range(12):
        save(here / "own" / "images" / f"{number}.png", rng.normal(90, 9, (32, 32)))
        mask = np.zeros((32, 32))
        mask[: 5 + number] = 1
        save(here / "own" / "masks" / f"{number}.png", mask)
    words = ("own", "--from", "own", "--methods", "map", "--seeds", "0")
    answer = refused(capsys, monkeypatch, *words, "-o", "patch=800", "--dry-run")
    assert "patch=800 must not be far larger than the items, and the largest" in answer
    assert "32 x 32 pixels; choose at most its sides" in answer
