"""The notebooks run from top to bottom, and show what they showed when stored."""

import ast
import contextlib
import io
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = {path.stem: path for path in sorted(EXAMPLES.glob("*.ipynb"))}

TRAINING = ("own_data", "own_method", "values_study")
SUBSETS = ("in_domain", "shifted")


def code_cells(name):
    cells = json.loads(FILES[name].read_text("utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def stored(cell):
    """What a cell printed and what its last line was, as text."""
    texts = []
    for output in cell["outputs"]:
        assert output["output_type"] in ("stream", "display_data", "execute_result")
        shown = output.get("text") or output["data"].get("text/plain", "")
        texts.append("".join(shown))
    return "\n".join(texts)


def run(cell, names):
    """The same, now: the last line is shown if it is an expression."""
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed_text = io.StringIO()
    with contextlib.redirect_stdout(printed_text):
        exec(compile(tree, "notebook", "exec"), names)
        if last is None:
            return printed_text.getvalue()
        value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
    if hasattr(value, "_repr_html_"):
        assert value._repr_html_().startswith("<")
    return printed_text.getvalue() + ("" if value is None else repr(value))


def words(text):
    """A text without its numbers, which may differ in the last digits, and spaces."""
    plain = re.sub("<Figure .*?>", "", text)
    return re.sub(r"[\d\s.,\[\]-]+", " ", plain).split()


@pytest.fixture
def run_notebook(tmp_path, monkeypatch):
    """Runs a notebook in a folder of its own, and returns its variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))

    def run_cells(name, *, compared=True):
        names = {"__name__": "__main__"}
        for number, cell in enumerate(code_cells(name), 1):
            shown = run(cell, names)
            assert not compared or words(shown) == words(stored(cell)), (
                f"cell {number} shows something else than is stored; store it anew with"
                " jupyter nbconvert --to notebook --execute --inplace, in examples/"
            )
        return names

    return run_cells


def test_own_models_are_scored_and_their_plan_is_used(run_notebook, tmp_path):
    names = run_notebook("own_model")
    # What it is about: sets, plans, and their application were all made.
    assert (tmp_path / "own_model" / "plan.json").exists()
    assert names["applied"].check.verdict == "alike"
    assert names["plan"].apply(names["turned"]).check.verdict == "unlike"
    assert names["results"]["accuracy"].value == pytest.approx(0.926, abs=0.03)


def test_folds_of_nnunet_get_a_verdict(run_notebook):
    names = run_notebook("from_nnunet")
    assert (names["found"].n, names["found"].draws) == (36, 5)
    answers = {each.question: each.answer for each in names["results"].verdict}
    assert answers["survives_shift"] == "no"


def test_predictions_of_ones_own_are_scored(run_notebook):
    names = run_notebook("own_predictions")
    answers = {each.question: each.answer for each in names["results"].verdict}
    assert answers["survives_shift"] == "no"


def test_a_clinic_gets_a_plan_that_notices_another_camera(run_notebook, tmp_path):
    names = run_notebook("referral_clinic")
    assert names["applied"].check.verdict == "alike"
    assert names["answer"].check.verdict == "unlike"
    assert (tmp_path / "refer.csv").exists()


def test_a_shift_breaks_the_promise_of_intervals(run_notebook):
    names = run_notebook("conformal_shift")
    coverage = {s: names["results"].row("coverage", subset=s) for s in SUBSETS}
    assert coverage["in_domain"].low < 0.9 < coverage["in_domain"].high
    assert coverage["shifted"].high < 0.8


def test_embeddings_transfer_and_the_norm_does_not_help(run_notebook):
    names = run_notebook("embeddings")
    blur, norm = (each["r_auroc"].value for each in names["scored"])
    assert norm < 0.5 < blur


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINING)
def test_notebooks_that_train_run(run_notebook, name):
    names = run_notebook(name, compared=False)  # progress differs each time
    assert len(names["results"].table)


@pytest.mark.parametrize("name", FILES)
def test_notebooks_are_stored_whole_and_without_traces_of_a_machine(name):
    code = code_cells(name)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert any(cell["outputs"] for cell in code)
    assert not re.search(r"/(tmp|home|root|work)/", FILES[name].read_text("utf-8"))
