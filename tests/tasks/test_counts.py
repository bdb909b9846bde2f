"""A task of one's own: it is scored, compared, referred, trained and shown."""

from pathlib import Path

import numpy as np
import pytest

import qualms
from qualms import predictions, shelf
from qualms.report.site import write_site
from qualms.shelf import find, including
from qualms.training.trial import try_method

COUNTS = Path(__file__).parents[1] / "outside_parts" / "counts"


@pytest.fixture(autouse=True)
def included(monkeypatch):
    for name, value in including([COUNTS]).items():
        monkeypatch.setenv(name, value)


def file_of(folder, seed, noise, draws=3):
    rng = np.random.default_rng(seed)
    rate = np.random.default_rng(0).gamma(2.0, 3.0, 400)
    arrays = {
        "target": np.random.default_rng(1).poisson(rate),
        "rate": rate * np.exp(rng.normal(0, noise, (draws, 400))),
        "item": np.array([f"slide {number}" for number in range(400)]),
        "group": np.where(np.arange(400) % 2, "left", "right"),
    }
    return predictions.write(folder / f"counts_{seed}.npz", arrays)


def test_it_is_a_task_beside_the_others():
    assert "counts" in shelf.names("tasks")
    assert shelf.tasks_with("counts") == ("counts",)
    assert "counts" in find("methods", "map")().tasks
    assert "counts" not in find("methods", "ssn")().tasks


def test_a_file_is_read_scored_and_answered(tmp_path):
    path = file_of(tmp_path, 2, 0.1)
    assert predictions.read(path).task == "counts"
    results = qualms.score(path)
    assert results["poisson_deviance"].value == pytest.approx(1.1, abs=0.3)
    assert results["poisson_deviance"].low < results["poisson_deviance"].value
    answers = {answer.question: answer.answer for answer in results.verdict}
    assert answers == {"accurate": "yes", "finds_errors": "yes"}


def test_files_are_compared(tmp_path):
    files = [qualms.score(file_of(tmp_path, *each)) for each in ((2, 0.1), (3, 1.0))]
    comparison = qualms.compare(files)
    contrast = next(c for c in comparison.contrasts if c.score == "poisson_deviance")
    assert contrast.tied == (contrast.best,)


def test_items_are_referred(tmp_path):
    plan = qualms.refer(file_of(tmp_path, 2, 0.1), budget=0.2)
    assert plan.uncertainty.name == "spread"
    kept = plan.outcomes[0].measures[0]
    assert (kept.score, kept.kept.value < kept.before.value) == ("mae", True)
    assert len(plan.apply(file_of(tmp_path, 4, 0.1)).items.row) > 0


def test_a_wrong_array_is_a_sentence(tmp_path):
    with pytest.raises(predictions.PredictionsError, match="counts predictions need"):
        predictions.build({"target": [1, 2]}, task="counts")
    with pytest.raises(predictions.PredictionsError, match="'rate'"):
        predictions.build({"target": [1, 2], "rate": [-1.0, 2.0]})


@pytest.mark.parametrize("method", ["map", "mc_dropout"])
def test_methods_train_on_it(method):
    tried = try_method(find("methods", method)(), "counts", epochs=5)
    assert tried.losses[1] < tried.losses[0]
    assert tried.arrays["rate"].shape[1] == 48


def test_a_page_shows_it(tmp_path):
    path = file_of(tmp_path, 2, 0.1)
    site = tmp_path / "site"
    write_site(path, out=site)
    pages = {page.name: page.read_text("utf-8") for page in site.glob("*.html")}
    assert "Deviance" in "".join(pages.values())
    assert "planner.html" in pages
