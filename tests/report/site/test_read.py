"""What a site is made of: folders, tables, files and results, in any mix."""

import json

import numpy as np
import pytest

import qualms
from qualms.predictions import write
from qualms.report.benchmark import write_all
from qualms.report.site import write_site
from qualms.report.site._read import SiteRequest, read_contents
from report.small_study import small_study


def read(*sources, **more):
    return read_contents(SiteRequest(sources=sources, **more))


def arrays(n=60, shift=0):
    target = np.arange(n) % 2
    prob = np.clip(target * 0.6 + 0.2 + 0.01 * (np.arange(n) % 7) + shift, 0, 1)
    return {"target": target, "prob": prob}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A runs folder with a judged benchmark, a part of it, and runs without results."""
    out = tmp_path_factory.mktemp("runs")
    for name in ("demo", "demo/part-a"):
        folder = out / "mine" / name
        folder.mkdir(parents=True)
        write_all(small_study(), folder, command="qualms run mine")
    for number, record in enumerate(({"hash": "0" * 16}, {}, {"error": "no memory"})):
        run = out / "other" / (str(number) * 16)
        run.mkdir(parents=True)
        (run / "spec.json").write_text("{}")
        name = "failed.json" if "error" in record else "done.json"
        (run / name).write_text(json.dumps(record))
    return out


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.npz"
    write(path, arrays())
    return path


def test_a_runs_folder_gives_every_judged_benchmark(runs):
    contents = read(runs)
    assert [shown.slug for shown in contents.benchmarks] == ["mine-demo", "mine-demo-2"]
    for shown in contents.benchmarks:
        assert shown.report.complete
        assert shown.report.figures == ()
        assert len(shown.report.tables) > 1
        assert shown.report.command == "qualms run mine"
    assert contents.simulated


@pytest.mark.parametrize("below", ["mine", "mine/demo/part-a", "mine/demo/results.csv"])
def test_a_folder_below_gives_what_is_in_it(runs, below):
    contents = read(runs / below)
    assert len(contents.benchmarks) == (2 if below == "mine" else 1)
    assert all(shown.report.complete for shown in contents.benchmarks)


def test_gaps_name_what_makes_them_good(runs):
    gaps = {gap.what: gap for gap in read(runs).gaps}
    unjudged = gaps["results of other"]
    assert unjudged.why == "1 finished run and no results"
    assert unjudged.remedy == f"qualms run other --out {runs}"
    failed = gaps["run 2222222222222222"]
    assert failed.why == "it failed: no memory"
    assert failed.remedy.endswith("log.txt")


def test_a_results_table_alone_is_shown_and_the_rest_is_a_gap(runs, tmp_path):
    table = tmp_path / "some.csv"
    table.write_bytes((runs / "mine/demo/results.csv").read_bytes())
    contents = read(table)
    (shown,) = contents.benchmarks
    assert not shown.report.complete
    assert shown.report.name == "mine"
    (gap,) = contents.gaps
    assert gap.what == "figures, effects and declared tables of mine"
    path = write_site(table, out=tmp_path / "site")
    page = (path.parent / "mine.html").read_text("utf-8")
    assert "Only the results table of this benchmark was given" in page
    assert "0.85" in page  # the mean of two repeats


def test_files_with_the_same_items_share_a_page(tmp_path):
    for name, shift in (("a", 0), ("b", 0.05)):
        write(tmp_path / f"{name}.npz", arrays(shift=shift))
    write(tmp_path / "c.npz", arrays(n=80))
    contents = read(*(tmp_path / f"{name}.npz" for name in "abc"))
    assert [group.slug for group in contents.groups] == ["a-b", "c"]
    assert contents.groups[0].comparison is not None
    assert [file.slug for file in contents.files] == ["a", "b", "c"]
    assert contents.files[1].path == tmp_path / "b.npz"


def test_validation_predictions_of_a_folder_belong_to_its_other_files(tmp_path):
    folder = tmp_path / "predictions"
    folder.mkdir()
    for name, n in (("val", 40), ("test", 60), ("test~shifted", 50)):
        write(folder / f"{name}.npz", arrays(n=n))
    contents = read(folder)
    assert [file.path.stem for file in contents.files] == ["test", "test~shifted"]
    assert {file.val for file in contents.files} == {folder / "val.npz"}
    scored = [row.settings for row in contents.files[0].results.rows]
    assert any("recalibration" in settings for settings in scored)


def test_results_from_python_are_shown_as_well(file):
    scored = qualms.score(file, resamples=0, name="mine")
    contents = read(scored, small_study())
    assert contents.benchmarks[0].report.complete
    assert [each.results.name for each in contents.files] == ["mine"]


def test_names_of_equal_files_differ_by_their_folders(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "test.npz", arrays(n=60 if name == "one" else 80))
    contents = read(tmp_path / "one" / "test.npz", tmp_path / "two" / "test.npz")
    names = [file.results.name for file in contents.files]
    assert names == ["test (one/test)", "test (two/test)"]
    named = read(tmp_path / "one" / "test.npz", names=["mine"])
    assert named.files[0].results.name == "mine"


def test_mistakes_are_sentences(tmp_path, file):
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        read(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds neither judged results nor"):
        read(tmp_path / "empty")
    with pytest.raises(ValueError, match="--name must be given once per file"):
        read(file, names=["a", "b"])
    with pytest.raises(ValueError, match="--val must be given once per file"):
        read(file, val=[file, file])


def test_other_files_in_the_way_are_found_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "thesis.tex").write_text("years")
    monkeypatch.setattr("qualms.report.site._write.read_contents", lambda _: 1 / 0)
    with pytest.raises(FileExistsError, match="holds other files"):
        write_site("anything", out=tmp_path / "site")


def test_links_of_predictions_are_followed_once(runs, tmp_path):
    folder = tmp_path / "judged"
    folder.mkdir()
    write_all(small_study(), folder)
    target = tmp_path / "run" / "predictions"
    target.mkdir(parents=True)
    links = folder / "predictions" / "clinic"
    links.mkdir(parents=True)
    (links / "map-seed0").symlink_to(target)
    (links / "broken").symlink_to(tmp_path / "nowhere")
    (shown,) = read(folder).benchmarks
    ((labels, path),) = shown.report.predictions()
    assert labels == {"variant": "clinic", "run": "map-seed0"}
    assert path == links / "map-seed0"


def test_several_sources_in_one_list_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"got a list of 2; write write_site\(\*sour"):
        write_site(["a.npz", "b.npz"], out=tmp_path / "site")
    assert not (tmp_path / "site").exists()
