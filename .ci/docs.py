"""Build the documentation: `build/docs` is written, `build/site` is made of it.

`docs/*.md` are copied, with a link for every page that they name. Pages of the shelves,
of the commands and of the public modules are generated, and the notebooks of
`examples/` are executed. Zensical builds the site, and MkDocs checks its links again,
since each finds what the other passes over. Any warning is a failure.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[1]
OUT = ROOT / "build" / "docs"
BIN = ROOT / ".venv" / "bin"
SHELVES = {
    "methods": "What gives a network uncertainty: `qualms run --methods NAME`.",
    "datasets": "What networks are trained and tested on: `qualms prepare NAME`.",
    "benchmarks": "What `qualms run NAME --preset PRESET` runs and judges.",
    "configs": "Named sets of options: `qualms run --config NAME`.",
    "networks": "Backbones: `-o network=NAME`.",
    "readers": "Layouts of other tools: `qualms score FOLDER`.",
}
API_HEAD = "# {module}\n\n::: {module}\n    options:\n      show_root_heading: false\n"


def main() -> None:
    """Write all pages, then build and check."""
    shutil.rmtree(OUT.parent, ignore_errors=True)
    OUT.mkdir(parents=True)
    copy_pages()
    write_shelves()
    write_scores()
    write_commands()
    write_modules()
    copy_sources()
    seconds = write_notebooks()
    check("zensical", "build", "--strict", "--clean")
    check("mkdocs", "build", "--strict", "--config-file", str(checking_config()))
    pages = len(list((ROOT / "build" / "site").rglob("*.html")))
    for name, value in seconds.items():
        print(f"{name}: {value:.1f} s")
    print(f"{pages} pages: build/site/index.html; no warning of either builder")


def copy_pages() -> None:
    """Copy what is written by hand, with links to the pages that a text names."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = linked(page.read_text("utf-8"), "")
        text = anchored(text) if page.stem == "definitions" else text
        (OUT / page.name).write_text(text, "utf-8")
    shutil.copytree(ROOT / "docs" / "pictures", OUT / "pictures")
    shutil.copy(ROOT / "docs" / "public_names.txt", OUT)
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    (OUT / "changelog.md").write_text(linked(changelog, ""), "utf-8")


def linked(text: str, up: str) -> str:
    """Turn `docs/NAME.md` in a text into a link, except within code."""

    def link(match: re.Match[str]) -> str:
        name = match[1]
        known = (ROOT / "docs" / f"{name}.md").is_file()
        return f"[{name.replace('_', ' ')}]({up}{name}.md)" if known else match[0]

    parts = re.split(r"(^ *```.*?^ *```)", text, flags=re.S | re.M)
    pattern = r"(?<!\[)`docs/(\w+)\.md`(?!\])"
    return "".join(
        part if part.lstrip().startswith("```") else re.sub(pattern, link, part)
        for part in parts
    )


def anchored(text: str) -> str:
    """Give every score that a row of a table defines an anchor, the first time."""
    named: set[str] = set()

    def anchor(match: re.Match[str]) -> str:
        names = [name for name in re.findall(r"`(\w+)`", match[1]) if name not in named]
        named.update(names)
        marks = "".join(f'<a id="score-{name}"></a>' for name in names)
        return f"| {marks}{match[1]}|"

    return re.sub(r"^\|((?: *`\w+`,?)+[^|]*)\|", anchor, text, flags=re.M)


def write_shelves() -> None:
    """Write a page for each shelf: every part with what it is and its options."""
    from qualms.cli._shelves import TABLES

    for shelf, about in SHELVES.items():
        if shelf not in TABLES:
            continue
        columns, rows, _ = TABLES[shelf]()
        lines = [f"# All {shelf}\n", about, ""]
        lines += list(markdown_table(columns, rows))
        write(f"reference/{shelf}.md", "\n".join(lines))


def markdown_table(columns: tuple[str, ...], rows: object) -> Iterator[str]:
    """Write rows of text as a table in Markdown; the first column is code."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for first, *cells in rows:  # type: ignore[attr-defined]
        texts = [f"`{first}`", *(escaped(cell) for cell in cells)]
        yield f"| {' | '.join(texts)} |"


def escaped(cell: str) -> str:
    """Keep a text within its cell."""
    plain = cell.replace("\\[", "[").replace("|", "\\|").replace("\n", " ")
    return re.sub(r"[<>*_]", lambda sign: f"\\{sign[0]}", plain)


def write_scores() -> None:
    """Write a page of all scores, each with its documentation and a link."""
    import inspect

    from qualms import scores
    from qualms.cli._shelves import TABLES

    columns, rows, _ = TABLES["scores"]()
    lines = [
        "# All scores",
        "",
        "[Definitions](../definitions.md) has the exact formula and conventions of "
        "each score, and what the papers' released code does otherwise. [Intervals]"
        "(../intervals.md) says how its interval is made and how often it holds, and "
        "[the verdict](../verdict.md) which scores answer its questions.",
        "",
    ]
    for row in rows:
        entry = dict(zip(columns, row, strict=True))
        function = getattr(scores, entry["name"], None)
        text = inspect.getdoc(function) or entry["what"]
        lines += [f"## `{entry['name']}`", "", *score_facts(entry), ""]
        lines += ["```text", text, "```", ""]
    write("reference/scores.md", "\n".join(lines))


def score_facts(entry: dict[str, str]) -> Iterator[str]:
    """Write label, direction, range and the place that defines a score."""
    better = entry["better"]
    mark = f"score-{entry['name']}"
    defined = f'id="{mark}"' in (OUT / "definitions.md").read_text("utf-8")
    place = f"../definitions.md#{mark}" if defined else "../definitions.md"
    yield (
        f"**{entry['label']}**: {better} is better; {entry['range']}. "
        f"[Definition]({place}), [interval](../intervals.md)."
    )


def write_commands() -> None:
    """Write what `--help` of every command prints."""
    helps = [("qualms", printed_help())]
    verbs = re.findall(r"^  (\w+)  ", helps[0][1].split("Commands:")[1], re.M)
    helps += [(f"qualms {verb}", printed_help(verb)) for verb in verbs]
    lines = ["# The command line", ""]
    for title, text in helps:
        lines += [f"## `{title}`", "", "```text", text.rstrip(), "```", ""]
    write("reference/commands.md", "\n".join(lines))


def printed_help(*words: str) -> str:
    """Return the help of a command at 80 columns."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    words = (*words, "--help")
    return subprocess.run(
        [BIN / "qualms", *words], check=True, capture_output=True, text=True,
        env=environment,
    ).stdout  # fmt: skip


def write_modules() -> None:
    """Write a page for each public module, which mkdocstrings fills."""
    sys.path.insert(0, str(ROOT / "tests"))
    from public_names import public_modules

    for module in public_modules():
        write(f"api/{module}.md", API_HEAD.format(module=module))


def copy_sources() -> None:
    """Copy the sources with a fence around every example of a docstring.

    mkdocstrings reads Markdown, in which a list of numbers would be a link.
    """
    for path in sorted((ROOT / "src" / "qualms").rglob("*.py")):
        copy = ROOT / "build" / "source" / path.relative_to(ROOT / "src")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(fenced_examples(path.read_text("utf-8")), "utf-8")


def fenced_examples(source: str) -> str:
    """Put every block that begins with >>> between fences."""
    block = re.compile(r"^( *)>>> .*(?:\n(?!\1\"\"\"|\1''')\1\S.*|\n\1 +\S.*)*", re.M)
    return block.sub(
        lambda match: f"{match[1]}```pycon\n{match[0]}\n{match[1]}```", source
    )


def write_notebooks() -> dict[str, float]:
    """Execute the notebooks, write them as pages, and return how long each took."""
    seconds = {}
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        start = time.monotonic()
        notebook = nbformat.read(path, as_version=4)
        work = ROOT / "build" / "notebooks" / path.stem
        work.mkdir(parents=True)
        NotebookClient(
            notebook, timeout=600, resources={"metadata": {"path": str(work)}}
        ).execute()
        body, resources = MarkdownExporter().from_notebook_node(notebook)
        for name, data in resources["outputs"].items():
            picture = OUT / "tutorials" / f"{path.stem}_files" / name
            picture.parent.mkdir(parents=True, exist_ok=True)
            picture.write_bytes(data)
            body = body.replace(f"]({name})", f"]({path.stem}_files/{name})")
        write(f"tutorials/{path.stem}.md", linked(body, "../"))
        seconds[path.name] = time.monotonic() - start
    return seconds


def checking_config() -> Path:
    """Write the configuration for MkDocs, which has other themes, and return it."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    for own, other in (
        ("name: material", "name: mkdocs"),
        ("docs_dir: build/docs", "docs_dir: docs"),
        ("site_dir: build/site", "site_dir: checked"),
        ("paths: [build/source]", "paths: [source]"),
    ):
        assert own in text, own
        text = text.replace(own, other)
    path = ROOT / "build" / "check.yml"
    path.write_text(text, "utf-8")
    return path


def write(name: str, text: str) -> None:
    """Write one page."""
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def check(*words: str) -> None:
    """Run a builder; end with what it prints where it fails or warns."""
    done = subprocess.run(
        [BIN / words[0], *words[1:]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "DISABLE_MKDOCS_2_WARNING": "true"},
    )
    warned = re.search(r"^\s*(WARNING|Warning|ERROR)", done.stdout, re.M)
    if done.returncode or warned:
        sys.exit(f"{' '.join(words)} failed or warned:\n{done.stdout}")


if __name__ == "__main__":
    main()
