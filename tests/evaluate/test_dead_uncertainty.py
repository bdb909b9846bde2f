"""An uncertainty that says nothing is named, and never marked as the best."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import qualms
from evaluate import made_embeddings
from plans import part_of
from qualms.benchmarks.url import url
from qualms.evaluate import Scored, ScoreOptions, compare
from qualms.evaluate.benchmark import judge_plan
from qualms.report import print_results, to_json

BARE = ScoreOptions(resamples=0, workers=2)


def file(**uncertainties):
    """Wrong items are those of low margin, and every file has the same items."""
    rng = np.random.default_rng(0)
    target, margin = np.arange(600) % 2, rng.random(600)
    right = rng.random(600) < 0.5 + 0.5 * margin
    prob = np.where(right == (target == 1), 0.5 + margin / 2, 0.5 - margin / 2)
    return {"target": target, "prob": prob} | {
        f"uncertainty/{name}": of(margin) for name, of in uncertainties.items()
    }


def noted(arrays):
    return [
        note for note in qualms.score(arrays, options=BARE).notes if "ranked" in note
    ]


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (np.ones_like, "is constant: it orders nothing"),
        (lambda m: m, "is below chance: keeping what it calls certain raises the risk"),
        (
            lambda m: np.where(np.arange(600) % 4, 0.0, (7 * m) % 1),
            "has its smallest value on 75% of the items",
        ),
    ],
)
def test_a_dead_uncertainty_is_named(of, words):
    (note,) = noted(file(own=of))
    assert note.startswith(f"uncertainty 'own' {words}")
    assert note.endswith("it is not ranked")


def test_a_confidence_is_noticed():
    (note,) = noted(file(own=lambda margin: margin))
    assert "If it is a confidence, store its negative" in note


def test_the_note_stands_first_where_scores_are_printed():
    result = qualms.score(file(own=np.ones_like), options=BARE)
    console = Console(record=True, width=200, file=StringIO())
    print_results(Scored(results=(result,)), brief=True, console=console)
    printed = console.export_text()
    assert "note: uncertainty 'own' is constant" in printed
    assert to_json(Scored(results=(result,)))["files"][0]["notes"][0] in printed


def test_one_that_announces_errors_is_not_dead():
    assert not noted(file(own=lambda margin: 1.0 - margin))
    # Few values, most of them the smallest, may still tell right items from wrong.
    assert not noted(file(own=lambda margin: (margin < 0.4).astype(float)))


def test_files_are_not_ranked_by_a_dead_uncertainty():
    files = {
        "dead": file(own=np.ones_like),
        "alive": file(own=lambda margin: 1.0 - margin),
        "noisy": file(own=lambda margin: 1.0 - np.round(margin, 1)),
    }
    results = [qualms.score(a, options=BARE, name=n) for n, a in files.items()]
    contrasts = {c.key: c for c in compare(results).contrasts}
    own = contrasts["aurc", "all", (("uncertainty", "own"),)]
    assert "dead" not in own.tied
    assert "dead" in contrasts["accuracy", "all", ()].tied
    both = compare(results[:2]).contrasts
    (own,) = (c for c in both if c.key == own.key)
    assert own.reason == "an uncertainty is constant: it orders nothing"


def test_rows_of_a_benchmark_are_not_marked_by_one_below_chance(tmp_path, monkeypatch):
    made = made_embeddings.made_arrays

    def turned(spec, *args, **more):
        arrays = made(spec, *args, **more)
        if spec.method.name != "elk":
            return arrays
        return {
            name: -value if name.startswith("uncertainty/") else value
            for name, value in arrays.items()
        }

    monkeypatch.setattr(made_embeddings, "made_arrays", turned)
    plan = part_of(
        url().plan("small"),
        variants=("species",),
        rows=("ce", "elk", "hetxl"),
        seeds=(1, 2, 3),
        pools=((1,), (2,), (3,)),
    )
    made_embeddings.make_embedding_runs(plan, tmp_path)
    judged = judge_plan(plan, tmp_path, options=BARE)
    (note,) = (n for n in judged.notes if n.startswith("the uncertainty is below"))
    assert "R-AUROC 0." in note
    assert note.split(": ")[-1].startswith("ELK on")
    at = {"variant": "species", "uncertainty": None, "subset": "all"}
    for score in ("r_auroc", "crop_rate"):
        marked = {
            row: judged.result(row=row, score=score, **at) for row in ("elk", "ce")
        }
        assert not marked["elk"].tied
        assert marked["elk"].best != "elk"
        assert marked["ce"].best
    assert judged.result(row="elk", score="recall_at_1", **at).best
