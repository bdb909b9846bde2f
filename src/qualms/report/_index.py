"""Index pages: one for each judged benchmark, and one that links several.

They are plain HTML: no script, nothing to load from anywhere, and a policy that forbids
both. Every name in them is escaped.
"""

import base64
import hashlib
import os
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from qualms import __version__
from qualms.atomic import replacing
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report._findings import findings_html
from qualms.report._html import html_table, text
from qualms.report.figures import Drawing
from qualms.report.judged import check_numbers
from qualms.report.table import Table
from qualms.runs import environment
from qualms.wording import plural


class DrawnFigure(NamedTuple):
    """A figure and its files."""

    drawing: Drawing
    paths: tuple[Path, ...]


class LinkedPage(NamedTuple):
    """A page or file that an index links."""

    title: str
    path: Path
    summary: str = ""
    """Its contents, in a sentence or two."""
    files: tuple["LinkedPage", ...] = ()
    """Files that belong to it, such as tables and figures, in a list to unfold."""


def write_index(
    pages: Sequence[LinkedPage],
    path: Path,
    *,
    title: str = "What was made",
    command: str = "",
) -> Path:
    """Write one page that links others, such as those of several benchmarks.

    Args:
        pages: The linked pages, in order. Links are relative, so that the folder can be
            moved as a whole.
        path: Where the page goes.
        title: Its heading.
        command: What made everything; '' leaves the line out.
    """
    items = "".join(_item(page, path) for page in pages)
    return _write(path, title, [f'<ul class="pages">{items}</ul>', _made(command)])


def write_benchmark_page(
    results: BenchmarkResults,
    tables: Sequence[Table],
    figures: Sequence[DrawnFigure],
    path: Path,
    *,
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page of a judged benchmark, and return its path."""
    benchmark = results.benchmark
    parts = [
        _about(results),
        _contents(results, tables, figures),
        _checks(results),
        findings_html(results),
        *_tables(tables, path),
        *_figures(figures, path),
        _files(path),
        _notes(notes),
        _made(command, results.hardware),
    ]
    return _write(path, f"{benchmark.name}: {benchmark.title}", parts)


def benchmark_summary(results: BenchmarkResults, tables: Sequence[Table]) -> str:
    """Return a part of a page with the expected effects and some tables."""
    return _checks(results) + "".join(map(html_table, tables))


def page_style() -> str:
    """Return the style sheet that all pages share."""
    return (files("qualms.report") / "assets" / "index.css").read_text("utf-8")


def _item(page: LinkedPage, path: Path) -> str:
    link = _link(page.title, page.path, path)
    summary = f"<p>{text(page.summary)}</p>" if page.summary else ""
    items = "".join(_item(each, path) for each in page.files)
    if items:
        count = f"<summary>Files: {len(page.files)}</summary>"
        items = f"<details>{count}<ul>{items}</ul></details>"
    return f"<li>{link}{summary}{items}</li>"


def _about(results: BenchmarkResults) -> str:
    """Say what was evaluated, and on which data."""
    benchmark, plan = results.benchmark, results.plan
    variants = results.variants
    chip = ""
    if any(variant.simulated for variant in variants):
        all_simulated = all(variant.simulated for variant in variants)
        words = "simulated data" if all_simulated else "partly simulated data"
        chip = f'<p><span class="chip">{words}</span></p>'
    lines = [
        f"Benchmark {benchmark.name}, version {benchmark.version}"
        + (f", after {benchmark.paper}." if benchmark.paper else "."),
        f"Preset {plan.preset_text}: {plan.preset.note}." if plan.preset.note else "",
        f"{len(plan.rows)} {plural(len(plan.rows), 'row')}, judged on"
        f" {len(variants)} {plural(len(variants), 'dataset')}:",
    ]
    items = "".join(
        f"<li>{text(v.label)}: {'simulated' if v.simulated else 'real'} data"
        + (f", shifted: {text(v.shift)}" if v.shift else "")
        + "</li>"
        for v in variants
    )
    missing = ""
    if results.missing:
        are = "run is" if len(results.missing) == 1 else "runs are"
        missing = f"<p>{len(results.missing)} {are} missing.</p>"
    words = "".join(f"<p>{text(line)}</p>" for line in lines if line)
    return f"{chip}{words}<ul>{items}</ul>{missing}"


def _contents(
    results: BenchmarkResults, tables: Sequence[Table], figures: Sequence[DrawnFigure]
) -> str:
    links = ['<a href="#effects">Expected effects</a>'] if results.checks else []
    if results.findings:
        links.append('<a href="#findings">Findings of the paper</a>')
    links += [f'<a href="#{text(t.name)}">{text(t.title)}</a>' for t in tables]
    links += [
        f'<a href="#{text(f.drawing.name)}">{text(f.drawing.title)}</a>'
        for f in figures
    ]
    links.append('<a href="#files">Files</a>')
    items = "".join(f"<li>{link}</li>" for link in links)
    return f"<details><summary>Contents</summary><ul>{items}</ul></details>"


def _checks(results: BenchmarkResults) -> str:
    rows = []
    for check in results.checks:
        decided = "held" if check.held else "not held"
        verdict = decided if check.known else "unknown"
        numbers = check_numbers(results, check)
        meaning = check.expectation.meaning
        below = f"<p>{text(meaning)}</p>" if meaning else ""
        rows.append(
            f'<tr><td class="{verdict.replace(" ", "-")}">{verdict}</td>'
            f"<td>{text(check.expectation.text)}{below}</td><td>{text(numbers)}</td></tr>"
        )
    if not rows:
        return ""
    head = "<tr><th>verdict</th><th>effect</th><th>numbers</th></tr>"
    return (
        '<h2 id="effects">Expected effects</h2><div class="scroll"><table>'
        f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _tables(tables: Sequence[Table], path: Path) -> Iterator[str]:
    if tables:
        yield "<h2>Tables</h2>"
    for table in tables:
        links = " ".join(
            _link(kind, path.parent / "tables" / f"{table.name}.{ending}", path)
            for kind, ending in (("CSV", "csv"), ("LaTeX", "tex"))
        )
        opened = " open" if table.main else ""
        yield (
            f'<details id="{text(table.name)}"{opened}>'
            f"<summary>{text(table.title)}</summary>"
            f"{html_table(table, title=False)}<p>{links}</p></details>"
        )


def _figures(figures: Sequence[DrawnFigure], path: Path) -> Iterator[str]:
    if figures:
        yield "<h2>Figures</h2>"
    for drawing, paths in figures:
        pictures = [p for p in paths if p.suffix == ".png"]
        image = "".join(
            f'<img src="{_address(p, path)}" loading="lazy" '
            f'alt="{text(drawing.title)}">'
            for p in pictures
        )
        links = " ".join(_link(p.suffix[1:].upper(), p, path) for p in paths)
        yield (
            f'<figure class="picture" id="{text(drawing.name)}">'
            f"<h3>{text(drawing.title)}</h3>{image}"
            f"<figcaption>{text(drawing.caption)} {links}</figcaption></figure>"
        )


def _files(path: Path) -> str:
    link = _link("results.csv", path.parent / "results.csv", path)
    return (
        f'<h2 id="files">Files</h2><p>{link}: every number with its interval, repeats, '
        "tie group, difference from the best, seconds and parameters.</p>"
    )


def _notes(notes: Sequence[str]) -> str:
    items = "".join(f"<li>{text(note)}</li>" for note in notes)
    return f"<h2>Notes</h2><ul>{items}</ul>" if items else ""


def _made(command: str, hardware: Sequence[str] = ()) -> str:
    """Name the command, and the versions of all that has a part in the numbers."""
    versions = environment()
    by = f"Made by <code>{text(command)}</code> with " if command else "Made with "
    at = f", commit {text(versions['commit'])}" if versions["commit"] else ""
    packages = ", ".join(f"{name} {of}" for name, of in versions["packages"].items())
    using = f"Python {versions['python']}" + (f", {packages}" if packages else "")
    machines = f"<p>Runs on {text('; '.join(hardware))}.</p>" if hardware else ""
    first = f"<p>{by}qualms {text(__version__)}{at}; {text(using)}.</p>"
    return f"<footer>{first}{machines}</footer>"


def _link(title: str, target: Path, page: Path) -> str:
    return f'<a href="{_address(target, page)}">{text(title)}</a>'


def _address(target: Path, page: Path) -> str:
    """Return the address of `target` seen from the page; the folder can be moved."""
    relative = Path(os.path.relpath(target, page.parent)).as_posix()
    # Without a dot in front a first part such as "a:b" would be read as a protocol.
    return text("./" + quote(os.fsencode(relative)))


def _write(path: Path, title: str, parts: Sequence[str]) -> Path:
    style = page_style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'"
    )
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{text(title)}</h1>\n{chr(10).join(filter(None, parts))}\n"
        "</main>\n</body>\n</html>\n"
    )
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path
