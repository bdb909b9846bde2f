"""The shell: what stands around every page, and the policy that browsers enforce.

The policy forbids everything but the site's own scripts, styles and pictures: nothing
is loaded from a network, and no script or style stands in the page itself. A site of
one file lists the hashes of its script and style instead.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from qualms.processes import cores, each
from qualms.report._draw import drawn_pdf
from qualms.report.figures import Drawing
from qualms.report.site.assets import chart_script, charts_of, script, style
from qualms.report.site.contents import Made, SiteContents
from qualms.report.site.markup import Html, element, html_of, link
from qualms.report.site.page import DataFile, Page, plain_data

MANY = 8
"""From so many figures on, several processes draw them."""
SCRIPT, STYLE = "assets/site.js", "assets/site.css"
_PAGE_LINK = re.compile(r'href="([\w-]+)\.html(#[\w.~%-]*)?"')
_FILE_LINK = re.compile(r'href="files/([^"]+)"')


def page_text(page: Page, pages: Sequence[Page], contents: SiteContents) -> str:
    """Return a page of a site of several files."""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " base-uri 'none'; form-action 'none'"
    )
    head = [
        element("link", rel="stylesheet", href=STYLE),
        # In the head, so that the theme is known before anything is drawn.
        element("script", src=SCRIPT),
    ]
    head += [
        element("script", src=chart_path(kind), defer=True)
        for kind in charts_of([page.html.text])
    ]
    if any(not data.on_demand for data in page.data):
        head.append(element("script", src=data_path(page.slug), defer=True))
    body = [
        _top(pages, current=page),
        element("main", _content(page), id="main", class_="wrap"),
        _footer(contents.made),
    ]
    return _document(_window_title(page), policy, head, body)


def single_text(pages: Sequence[Page], contents: SiteContents) -> str:
    """Return a site as one file, with everything inside."""
    kinds = charts_of(page.html.text for page in pages)
    code, look = script() + "".join(map(chart_script, kinds)), style()
    policy = (
        f"default-src 'none'; script-src '{_hash(code)}'; style-src '{_hash(look)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    # Neither of them holds the end of its own element: tests say so.
    head = [Html(f"<style>{look}</style>"), Html(f"<script>{code}</script>")]
    files = dict(file_contents(pages))
    data = {each.name: each for page in pages for each in page.data}
    body = [
        _top(pages, current=None),
        element(
            "main",
            [
                element(
                    "article", _content(page), id=f"page-{page.slug}", class_="page"
                )
                for page in pages
            ],
            id="main",
            class_="wrap",
        ),
        _footer(contents.made),
    ]
    text = _document(contents.title, policy, head, body)
    text = _FILE_LINK.sub(lambda m: f'href="{_inside(files[m[1]])}"', text)
    text = _PAGE_LINK.sub(lambda m: f'href="{m[2] or f"#page-{m[1]}"}"', text)
    blocks = "".join(map(_data_block, data.values()))
    return text.replace("</body>", f"{blocks}</body>")


def chart_path(kind: str) -> str:
    """Return the path of the script of a kind of chart in the site."""
    return f"assets/{kind}.js"


def data_path(name: str) -> str:
    """Return the path of a data script in the site."""
    return f"data/{name}.js"


def data_script(data: Iterable[DataFile]) -> str:
    """Return a script that hands data to the charts."""
    return "".join(f"qualms.put({_json(d.name)},{_json(d.value)});\n" for d in data)


def file_contents(pages: Iterable[Page]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and bytes of each file that readers can save.

    Figures are drawn by several processes where there are many.
    """
    files = {file.name: file.content for page in pages for file in page.downloads}
    figures = {n: each for n, each in files.items() if isinstance(each, Drawing)}
    for name, content in files.items():
        if isinstance(content, bytes):
            yield name, content
        elif isinstance(content, Path):
            yield name, content.read_bytes()
    workers = cores() if len(figures) >= MANY else 1
    drawn = each(drawn_pdf, list(figures.values()), workers=workers, script=False)
    yield from zip(figures, drawn, strict=True)


def _document(title: str, policy: str, head: list[Html], body: list[Html]) -> str:
    first = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
    ]
    page = element(
        "html",
        element("head", first, head),
        element("body", link("#main", "Skip to the content", class_="skip"), body),
        lang="en",
    )
    return f"<!doctype html>\n{page.text}\n"


def _window_title(page: Page) -> str:
    return f"{page.title} · qualms"


def _top(pages: Sequence[Page], *, current: Page | None) -> Html:
    """Return the bar with the navigation and the switch of the theme."""
    items = [
        element(
            "li",
            link(
                page.path,
                element("bdi", page.nav),
                aria_current="page" if page is current else None,
            ),
        )
        for page in pages
        if page.nav
    ]
    mark = element(
        "svg",
        element("path", d="M2,3V11M2,7H24M24,3V11"),
        element("circle", cx=11, cy=7, r=4),
        viewBox="0 0 26 14",
        aria_hidden="true",
    )
    switch = element("button", "Theme: auto", type="button", class_="theme")
    return element(
        "header",
        element(
            "div",
            link(pages[0].path, mark, "qualms", class_="logo"),
            element("nav", element("ul", items, class_="nav"), aria_label="Pages"),
            switch,
            class_="wrap",
        ),
        class_="top",
    )


def _content(page: Page) -> Html:
    chips = [element("li", chip, class_="chip") for chip in page.chips]
    if page.simulated:
        chips.insert(0, element("li", "Simulated data", class_="chip simulated"))
    return html_of(
        [
            element("ul", chips, class_="chips") if chips else None,
            element("h1", element("bdi", page.title)),
            element("p", page.lead, class_="lead") if page.lead else None,
            page.html,
        ]
    )


def _footer(provenance: Made) -> Html:
    versions = ", ".join(f"{name} {of}" for name, of in provenance.versions.items())
    by = (
        ("Made by ", element("code", provenance.command))
        if provenance.command
        else ("Made",)
    )
    when = f" on {provenance.when.partition('T')[0]}" if provenance.when else ""
    return element(
        "footer",
        element("p", by, when, f" with {versions}." if versions else "."),
        element(
            "p",
            "Ranges are 95 % intervals where nothing else is said. ● marks the best of"
            " a column and all that cannot be told apart from it.",
        ),
        class_="wrap",
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _json(value: object) -> str:
    """Return JSON that may stand in a script: nothing in it can end the script."""
    text = json.dumps(plain_data(value), allow_nan=False, separators=(",", ":"))
    # json.dumps leaves no characters beyond ASCII, so only these matter.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data_block(data: DataFile) -> str:
    """Return data as an element that no browser runs."""
    kind = 'type="application/json"'
    return f'<script {kind} data-name="{data.name}">{_json(data.value)}</script>'


def _inside(content: bytes) -> str:
    """Return an address that holds a whole file."""
    text = base64.b64encode(content).decode("ascii")
    return f"data:application/octet-stream;base64,{text}"
