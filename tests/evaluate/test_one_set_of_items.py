"""Where a file marks shifted items, everything said is about the in-domain ones."""

import json
import re

import numpy as np
import pytest
from rich.console import Console

import qualms
from qualms.evaluate import Scored
from qualms.report import print_results
from qualms.report.site import write_page

SHIFTED = np.arange(240) >= 150


@pytest.fixture(scope="module")
def arrays():
    """Three classes; those of shifted items are guessed."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 3, len(SHIFTED))
    logits = rng.normal(size=(len(SHIFTED), 3))
    logits[np.arange(len(SHIFTED)), target] += np.where(SHIFTED, 0.0, 2.5)
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    group = np.where(np.arange(len(SHIFTED)) % 2, "site_1", "site_2")
    return {"probs": probs, "target": target, "shifted": SHIFTED, "group": group}


@pytest.fixture(scope="module")
def results(arrays):
    return qualms.score(arrays, resamples=0, by_group=True, name="mine")


def right(arrays, chosen):
    return float((arrays["probs"].argmax(1) == arrays["target"])[chosen].mean())


def printed(results, **options):
    console = Console(width=80)
    with console.capture() as capture:
        print_results(Scored(results=(results,)), console=console, **options)
    return capture.get()


@pytest.fixture
def drawn(tmp_path):
    """Return the names of the curves and panels on the page of results."""

    def names(results):
        write_page(Scored(results=(results,)), tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text("utf-8")
        blocks = re.findall(r'data-name="([^"]+)">(.*?)</script>', page)
        return {
            name.removeprefix("files-figure-"): {
                *(panel["title"] for panel in json.loads(value)["panels"]),
                *(m["name"] for p in json.loads(value)["panels"] for m in p["marks"]),
            }
            for name, value in blocks
        }

    return names


def test_a_score_by_name_is_what_the_verdict_says(results, arrays):
    in_domain = right(arrays, ~SHIFTED)
    assert results["accuracy"].value == pytest.approx(in_domain)
    assert f"{in_domain:.0%} (" in results.verdict[0].because
    assert results["shifted/accuracy"].value == pytest.approx(right(arrays, SHIFTED))
    # The mixture has its own name, and scores of both kinds of items are about both.
    assert results["all/accuracy"].value == pytest.approx(right(arrays, slice(None)))
    assert results["ood_auroc"].subset == "all"
    assert results.row("aurc", uncertainty="entropy").subset == "in_domain"


def test_all_items_together_on_request(arrays, drawn):
    together = qualms.score(arrays, resamples=0, subset="all", by_group=True)
    share = right(arrays, slice(None))
    assert together["accuracy"].value == pytest.approx(share)
    assert f"{share:.0%} (" in together.verdict[0].because
    # Whether a shift is survived compares both kinds of items in any case.
    assert together.verdict[-1].answer == "no"
    text = printed(together, brief=True)
    assert "all items (240)" in text
    assert "about in-domain and shifted items together" in text
    assert not any("in-domain" in names for names in drawn(together).values())
    shifted = qualms.score(arrays, resamples=0, subset="shifted")
    assert shifted["accuracy"].value == pytest.approx(right(arrays, SHIFTED))


def test_groups_are_of_the_same_items(results, arrays):
    for kind, chosen in (("in_domain", ~SHIFTED), ("shifted", SHIFTED)):
        of_group = chosen & (arrays["group"] == "site_1")
        row = results[f"{kind}/group=site_1/accuracy"]
        assert row.value == pytest.approx(right(arrays, of_group))
    assert (
        results["group=site_1/accuracy"] is results["in_domain/group=site_1/accuracy"]
    )
    lines = printed(results, brief=True).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("group "))
    assert [line.split()[0] for line in lines[start + 1 : start + 9 : 1] if line][
        :1
    ] == ["in-domain"]
    assert "site_1  75" in "\n".join(lines)
    assert "site_1  45" in "\n".join(lines)


def test_tables_and_pages_have_both_kinds_and_not_their_mixture(results, drawn):
    for text in (printed(results), printed(results, chosen=True)):
        sections = {"in-domain", "shifted", "all", "balanced"} & set(text.split("\n"))
        assert sections == {"in-domain", "shifted", "all"}
        # Of all items there are only scores of telling the shifted ones apart.
        together = text.split("\nall\n")[1].split("\n\n")[0]
        assert "OOD AUROC" in together
        assert "Accuracy" not in together
    shown = drawn(results)
    for kind in ("in-domain", "shifted"):
        assert kind in shown["reliability"]
        assert kind in shown["uncertainty-entropy"]
    mixed = {"all", "all items", "balanced"}
    assert not any(mixed & names for names in shown.values())
    assert "ood-roc" in shown


def test_plots_have_both_kinds_and_not_their_mixture(results):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")

    def legend(axes):
        return [text.get_text() for text in axes.get_legend().get_texts()]

    assert legend(results.plot("ece")) == ["in-domain", "shifted"]
    histogram = legend(results.plot("uncertainty/entropy"))
    assert histogram == [
        "in-domain, correct",
        "in-domain, wrong",
        "shifted, correct",
        "shifted, wrong",
    ]
    assert legend(results.plot("shifted/uncertainty/entropy")) == ["correct", "wrong"]
    ticks = [t.get_text() for t in results.plot("accuracy").get_yticklabels()]
    assert ticks[:2] == ["in-domain", "shifted"]
    assert "all" not in ticks
    assert results.plot("all/ece").get_title() == "mine, all"
    pyplot.close("all")


def test_files_without_a_mark_have_one_set_of_items(arrays):
    plain = {name: a for name, a in arrays.items() if name != "shifted"}
    results = qualms.score(plain, resamples=0, by_group=True)
    assert {row.subset for row in results.rows} == {
        "all",
        "group=site_1",
        "group=site_2",
    }
    assert results.subset == results["ece"].subset == "all"
    with pytest.raises(ValueError, match=r"must be all for .*, got 'shifted'"):
        qualms.score(plain, resamples=0, subset="shifted")
    with pytest.raises(ValueError, match=r"'in-domain'. Did you mean 'in_domain'"):
        qualms.score(plain, resamples=0, subset="in-domain")


def test_notes_on_a_dead_uncertainty_are_about_the_same_items(arrays):
    # Sure of in-domain items and unsure of shifted ones, and wrong way round in each.
    wrong = arrays["probs"].argmax(1) != arrays["target"]
    mine = np.where(SHIFTED, 5.0, 0.0) - wrong
    results = qualms.score(arrays | {"uncertainty/mine": mine}, resamples=0)
    (note,) = [note for note in results.notes if "is not ranked" in note]
    assert note.startswith("uncertainty 'mine' (in-domain) is below chance")


def test_other_tasks_divide_their_drawings_too():
    rng = np.random.default_rng(1)
    target = rng.normal(size=len(SHIFTED))
    numbers = {"mean": target + rng.normal(size=len(SHIFTED)), "target": target}
    numbers |= {"var": np.full(len(SHIFTED), 1.0), "shifted": SHIFTED}
    curves = qualms.score(numbers, resamples=0).shown().curves
    pairs = {(curve.name, curve.subset) for curve in curves}
    names = {name for name, _ in pairs}
    assert pairs == {(n, s) for n in names for s in ("in_domain", "shifted")}
    assert len(pairs) == len(curves)
    embedded = {
        "embedding": rng.normal(size=(len(SHIFTED), 4)),
        "target": rng.integers(0, 3, len(SHIFTED)),
        "predicted": rng.integers(0, 3, len(SHIFTED)),
        "uncertainty/mine": rng.random(len(SHIFTED)),
        "shifted": SHIFTED,
    }
    options = qualms.evaluate.ScoreOptions(resamples=0, nearest=(2,))
    results = qualms.score(embedded, options=options)
    assert [h.subset for h in results.shown().histograms] == ["in_domain", "shifted"]
    for score in ("recall_at_k", "accuracy"):
        assert results[score].n == 150
        assert results[f"shifted/{score}"].n == 90
