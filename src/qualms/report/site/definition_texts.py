"""The definitions of scores, as the documentation of this package has them.

`docs/definitions.md` is the one place where a score is defined. It is brought into the
markup of pages here, with an anchor at each score, which tables link.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from qualms.documentation import documentation
from qualms.report.site.markup import Child, Html, element, link
from qualms.report.site.page import slug

PAGE = "definitions"
_CODE = re.compile(r"`([^`]+)`")
_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)")
_HEADING = re.compile(r"#{2,4} +(.*)")


@cache
def definition_lines() -> tuple[str, ...]:
    """Return the lines of the definitions; none where this package has no texts."""
    page = documentation().get(PAGE)
    return () if page is None else tuple(page.read_text("utf-8").splitlines())


@cache
def defined_scores() -> frozenset[str]:
    """Return the names of all scores that are defined."""
    rows = (line for line in definition_lines() if line.startswith("| `"))
    return frozenset(name for row in rows for name in _names(_cells(row)[0]))


def definition_link(score: str, words: Child) -> Child:
    """Return words as a link to the definition of a score, where there is one."""
    if score not in defined_scores():
        return words
    return link(f"{PAGE}.html#{_anchor(score)}", words)


def definition_sections() -> Iterator[tuple[str, list[Html]]]:
    """Yield the title and the pieces of each section."""
    linked: set[str] = set()
    title, block = "", list[str]()
    for line in (*definition_lines()[1:], "## "):
        heading = _HEADING.fullmatch(line) if line != "## " else None
        if heading or line == "## ":
            pieces = list(_pieces(block, linked))
            if title:
                yield title, pieces
            title, block = heading[1] if heading else "", []
        else:
            block.append(line)


def _pieces(lines: Sequence[str], linked: set[str]) -> Iterator[Html]:
    """Yield tables, lists and paragraphs of a section."""
    for block in _blocks(lines):
        if block[0].startswith("|"):
            yield _table(block, linked)
        elif block[0].startswith("- "):
            joined = " ".join(line.strip() for line in block)
            items = [each for each in re.split(r"(?:^| )- (?=\S)", joined) if each]
            yield element("ul", [element("li", _inline(item)) for item in items])
        else:
            yield element("p", _inline(" ".join(block)))


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield lines that belong together: a table, a list, or a paragraph."""
    block: list[str] = []
    for line in (*lines, ""):
        in_table = bool(block) and block[0].startswith("|")
        in_list = bool(block) and block[0].startswith("- ")
        begins = line.startswith("|") != in_table
        begins |= line.startswith("- ") and not in_list
        if block and (not line.strip() or begins):
            yield block
            block = []
        if line.strip():
            block.append(line)


def _table(lines: Sequence[str], linked: set[str]) -> Html:
    head, *rows = (_cells(line) for line in lines if not line.startswith("|--"))
    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", [_head(cell) for cell in head])),
            element("tbody", [_row(cells, linked) for cells in rows]),
        ),
        class_="scroll defined",
        tabindex=0,
        role="region",
        aria_label=_plain(head[0]) or "definitions",
    )


def _head(cell: str) -> Html:
    return element("th", _inline(cell), scope="col") if cell else element("td")


def _row(cells: Sequence[str], linked: set[str]) -> Html:
    first, *others = cells
    return element(
        "tr",
        element("th", list(_anchored(first, linked)), scope="row"),
        [element("td", _inline(cell)) for cell in others],
    )


def _anchored(cell: str, linked: set[str]) -> Iterator[Child]:
    """Yield a first cell; each score in it has its anchor where it stands first."""
    at = 0
    for match in _CODE.finditer(cell):
        name = match[1]
        anchor = None if name in linked else _anchor(name)
        linked.add(name)
        yield from _inline(cell[at : match.start()])
        yield element("code", name, id=anchor)
        at = match.end()
    yield from _inline(cell[at:])


def _inline(text: str) -> Iterable[Child]:
    """Yield a text with code, bold words and links to the web."""
    at = 0
    for match in _INLINE.finditer(text):
        yield text[at : match.start()]
        code, bold, words, address = match.groups()
        if code:
            yield element("code", code)
        elif bold:
            yield element("b", bold)
        else:
            yield link(address, words) if address.startswith("https://") else words
        at = match.end()
    yield text[at:]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _names(cell: str) -> list[str]:
    return _CODE.findall(cell)


def _plain(cell: str) -> str:
    return _CODE.sub(r"\1", cell)


def _anchor(score: str) -> str:
    return slug(f"{PAGE}-{score}")
