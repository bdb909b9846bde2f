"""The notebook runs from top to bottom, and shows what it showed when it was stored."""

import ast
import contextlib
import io
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

FILE = Path(__file__).parents[1] / "examples" / "own_model.ipynb"
CELLS = json.loads(FILE.read_text("utf-8"))["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]


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
        exec(compile(tree, FILE.name, "exec"), names)
        if last is None:
            return printed_text.getvalue()
        value = eval(compile(ast.Expression(last.value), FILE.name, "eval"), names)
    if hasattr(value, "_repr_html_"):
        assert value._repr_html_().startswith("<")
    return printed_text.getvalue() + ("" if value is None else repr(value))


def words(text):
    """A text without its numbers, which may differ in the last digits, and spaces."""
    plain = re.sub("<Figure .*?>", "", text)
    return re.sub(r"[\d\s.,\[\]-]+", " ", plain).split()


def test_the_notebook_runs_and_says_what_is_stored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    names = {"__name__": "__main__"}
    for number, cell in enumerate(CODE, 1):
        assert words(run(cell, names)) == words(stored(cell)), (
            f"cell {number} shows something else than is stored; store it anew with "
            "jupyter nbconvert --to notebook --execute --inplace, in examples/"
        )
    # What it is about: sets, plans, and their application were all made.
    assert (tmp_path / "own_model" / "plan.json").exists()
    assert names["applied"].check.verdict == "alike"
    assert names["plan"].apply(names["turned"]).check.verdict == "unlike"
    assert names["results"]["accuracy"].value == pytest.approx(0.926, abs=0.03)


def test_the_notebook_is_stored_whole_and_without_traces_of_a_machine():
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    assert any("image/png" in o.get("data", {}) for c in CODE for o in c["outputs"])
    assert not re.search(r"/(tmp|home|root|work)/", FILE.read_text("utf-8"))
