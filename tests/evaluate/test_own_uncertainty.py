"""A file that brings an uncertainty of its own is judged by it."""

import numpy as np
import pytest
from rich.console import Console

import qualms
from qualms import predictions
from qualms.evaluate import Scored, score_files
from qualms.report import print_results

N = 200


@pytest.fixture(scope="module")
def arrays():
    """Two classes; entropy says nothing, `mine` knows every mistake."""
    rng = np.random.default_rng(0)
    target = np.arange(N) % 2
    wrong = rng.random(N) < 0.3
    sure = rng.uniform(0.6, 0.9, N)
    prob = np.where(wrong ^ (target == 1), sure, 1 - sure)
    mine = wrong + rng.random(N)
    return {"target": target, "prob": prob, "uncertainty/mine": mine}


def finds_errors(results):
    (answer,) = (a for a in results.verdict if a.question == "finds_errors")
    return answer


def printed(*results):
    console = Console(width=80)
    with console.capture() as capture:
        print_results(Scored(results=results), brief=True, console=console)
    return capture.get()


def by(text, score):
    """What stands in the column `by` of the lines of a score."""
    lines = [line for line in text.splitlines() if f"{score}  " in line]
    return [line.split(score)[1].split()[0] for line in lines]


def test_its_own_uncertainty_is_what_verdict_and_scores_use(arrays):
    results = qualms.score(arrays, resamples=0)
    assert results.uncertainty == "mine"
    answer = finds_errors(results)
    assert answer.answer == "yes"
    assert " by mine; cut " in answer.because
    entropy = results.row("aurc", uncertainty="entropy").value
    assert answer.because.endswith(f"; {entropy:.2f} by entropy")
    assert results["aurc"].settings == {"uncertainty": "mine"}
    text = printed(results)
    assert by(text, "AURC") == ["mine", "entropy"]
    assert by(text, "risk at coverage") == ["mine"]
    # Without it, nothing finds these errors.
    bare = {name: a for name, a in arrays.items() if "/" not in name}
    assert finds_errors(qualms.score(bare, resamples=0)).answer != "yes"


def test_of_several_it_is_the_named_one_or_the_first(arrays, tmp_path):
    rng = np.random.default_rng(1)
    several = arrays | {f"uncertainty/{n}": rng.random(N) for n in ("b", "a")}
    for ending in ("npz", "safetensors", "csv"):
        path = predictions.write(tmp_path / f"p.{ending}", several)
        assert qualms.score(path, resamples=0).uncertainty == "mine"
    named = qualms.score(several, resamples=0, header={"uncertainty": "a"})
    assert " by a; " in finds_errors(named).because
    for name in ("mine", "b", "entropy"):
        value = named.row("aurc", uncertainty=name).value
        assert f"{value:.2g} by {name}" in finds_errors(named).because
    chosen = qualms.score(
        several, resamples=0, header={"uncertainty": "a"}, uncertainty="b"
    )
    assert chosen["aurc"].settings == {"uncertainty": "b"}
    with pytest.raises(
        LookupError, match=r"must be one of .*mine.* got 'minee'. Did you"
    ):
        qualms.score(several, resamples=0, uncertainty="minee")
    with pytest.raises(LookupError, match="header 'uncertainty' must be one of"):
        qualms.score(several, resamples=0, header={"uncertainty": "theirs"})


def test_the_command_takes_a_name(arrays, tmp_path):
    from typer.testing import CliRunner

    from qualms.cli import app

    path = str(predictions.write(tmp_path / "p.npz", arrays))
    arguments = ["score", path, "--uncertainty", "entropy"]
    text = CliRunner().invoke(app, arguments).output
    assert " by entropy; cut " in text
    assert by(text, "AURC") == ["entropy"]


def test_files_with_different_uncertainties_are_shown_beside_entropy(arrays, tmp_path):
    theirs = {name.replace("mine", "theirs"): a for name, a in arrays.items()}
    paths = [
        predictions.write(tmp_path / f"{name}.npz", a)
        for name, a in (("a", arrays), ("b", theirs))
    ]
    scored = score_files(paths)
    text = printed(*scored.results)
    assert by(text, "AURC") == ["mine", "entropy", "theirs"]


def test_embeddings_and_numbers_have_uncertainties_of_their_own():
    rng = np.random.default_rng(2)
    embedded = {
        "embedding": rng.normal(size=(N, 4)),
        "target": rng.integers(0, 3, N),
        "uncertainty/first": rng.random(N),
        "uncertainty/second": rng.random(N),
    }
    because = finds_errors(qualms.score(embedded, resamples=0)).because
    assert " by first; cut 0.55, coin 0.5; 0." in because
    assert because.endswith(" by second")
    second = qualms.score(embedded, resamples=0, uncertainty="second")
    assert second["r_auroc"].settings == {"uncertainty": "second"}
    target = rng.normal(size=N)
    error = rng.normal(size=N)
    numbers = {"target": target, "mean": target + error, "var": np.ones(N)}
    numbers["select/mine"] = np.abs(error)
    header = {"select": {"mine": "mean"}}
    results = qualms.score(numbers, resamples=0, header=header)
    assert finds_errors(results).answer == "yes"
    assert " by mine; cut " in finds_errors(results).because
    assert " by interval length" in finds_errors(results).because


def test_group_histograms_are_of_the_same_uncertainty(arrays):
    grouped = arrays | {"group": np.arange(N) % 3}
    results = qualms.score(grouped, resamples=0)
    names = {bars.name for bars in results.histograms if "group=" in bars.subset}
    assert names == {"uncertainty/mine"}
