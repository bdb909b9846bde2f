"""What a site is on disk: its policy, its sizes, its links, and what it may replace."""

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from qualms.report.site import DataFile, Download, write_contents
from qualms.report.site._read import contents_of_parts
from qualms.report.site.alone import write_benchmark_page
from qualms.report.site.assets import chart_kinds, chart_script, script, style
from qualms.report.site.contents import SiteContents
from qualms.report.site.leaderboard import main_tables
from qualms.report.stored_report import read_report
from report.site.made_site import HOSTILE, contents, hostile_contents, report
from report.small_study import small_study

PAGE_BYTES, SCRIPT_BYTES = 500_000, 60_000
EVERY_SCRIPT = script() + "".join(map(chart_script, chart_kinds()))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "site"
    write_contents(contents(), out)
    return out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    out = tmp_path_factory.mktemp("hostile") / "site"
    write_contents(hostile_contents(), out)
    return out


class Links(HTMLParser):
    """Collects ids, links, and what no page may have."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.bad, self.tags = [], [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src"):
                self.links.append(value)
            if name == "style" or name.startswith("on"):
                self.bad.append((tag, name, value))
        named = dict(attributes)
        if tag == "script" and "src" not in named and "data-name" not in named:
            self.bad.append((tag, "inline"))


def pages(site):
    return {path: Links(path.read_text("utf-8")) for path in site.glob("*.html")}


def test_a_site_has_a_page_for_everything(site):
    names = {path.name for path in site.iterdir()}
    assert {"index.html", "gaps.html", "mine.html", "careful-careless.html"} <= names
    assert "careful" in (site / "careful-careless.html").read_text("utf-8")


@pytest.mark.parametrize("which", ["site", "hostile"])
def test_every_link_leads_somewhere_and_every_id_is_unique(which, request):
    folder = request.getfixturevalue(which)
    found = pages(folder)
    every = [name for page in found.values() for name in page.ids]
    shared = [name for name in every if every.count(name) > 1]
    assert set(shared) <= {"main"}  # of each page
    for path, page in found.items():
        assert page.bad == []
        for target in page.links:
            if target.startswith("https:"):
                continue
            file, _, anchor = unquote(target).partition("#")
            leads = folder / file if file else path
            assert leads.is_file(), target
            if anchor:
                assert anchor in found[leads].ids, target


def test_the_policy_allows_the_files_of_the_site_alone(site):
    for path in site.glob("*.html"):
        policy = re.search(r'Policy" content="([^"]*)"', path.read_text("utf-8"))[1]
        assert "unsafe" not in policy
        assert "default-src &#x27;none&#x27;" in policy
        assert "http" not in policy


def test_a_single_file_has_the_hashes_of_its_script_and_style(tmp_path):
    path = write_contents(contents(), tmp_path / "site.html", single=True)
    text = path.read_text("utf-8")
    policy = re.search(r'Policy" content="([^"]*)"', text)[1]
    assert "unsafe" not in policy
    assert "&#x27;self&#x27;" not in policy
    blocks = re.findall(r"<(script|style)>(.*?)</\1>", text, re.S)
    assert [kind for kind, _ in blocks] == ["style", "script"]
    for _, code in blocks:
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert f"sha256-{digest}" in policy
    links = Links(text)
    assert links.bad == [("style", "inline")] * 0 + [("script", "inline")]
    for target in links.links:
        if target.startswith("#"):
            assert target[1:] in links.ids
        elif not target.startswith("https://arxiv.org/"):
            assert target.startswith("data:application/octet-stream;base64,")
    assert sorted(set(links.ids)) == sorted(links.ids)
    values = re.findall(r'data-name="([^"]+)">(.*?)</script>', text)
    assert values
    for _, value in values:
        json.loads(value)


def test_neither_script_nor_style_can_end_its_element():
    assert "</script" not in EVERY_SCRIPT.lower()
    assert "</style" not in style().lower()


def test_scripts_make_no_markup_of_texts_and_run_no_texts():
    for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
        assert word not in EVERY_SCRIPT
    for word in ("new Function", "fetch(", "XMLHttpRequest", "import("):
        assert word not in EVERY_SCRIPT
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", EVERY_SCRIPT + style())


def test_a_site_stays_small(site):
    for path in site.glob("*.html"):
        scripts = re.findall(r'src="(assets/[^"]+)"', path.read_text("utf-8"))
        assert sum((site / each).stat().st_size for each in scripts) <= SCRIPT_BYTES
        data = site / "data" / f"{path.stem}.js"
        beside = data.stat().st_size if data.exists() else 0
        assert path.stat().st_size + beside <= PAGE_BYTES, path
    assert all(p.stat().st_size <= 1_000_000 for p in (site / "data").iterdir())


def test_no_hostile_name_is_run_or_leaves_the_folder(hostile):
    files = [path for path in hostile.rglob("*") if path.is_file()]
    assert all(re.fullmatch(r"[\w.-]+", path.name) for path in files)
    for path in hostile.glob("*.html"):
        text = path.read_text("utf-8")
        assert "<img" not in text
        assert "alert(1)</script>" not in text
        assert "\x1b" not in text
        assert "\x00" not in text
    for path in (hostile / "data").glob("*.js"):
        text = path.read_text("utf-8")
        assert text.isascii()
        assert "<" not in text
        for line in text.splitlines():
            put = re.fullmatch(r'qualms\.put\(("[\w-]+"),(.*)\);', line)
            json.loads(put[1])
            json.loads(put[2])


def test_exports_run_no_formula(hostile):
    tables = [path.read_text("utf-8") for path in (hostile / "files").glob("*.csv")]
    assert tables
    for text in tables:
        assert not re.search(r'(^|,)"?[=+@]', text, re.M)


@pytest.mark.parametrize("name", ["a/b", "..", "a b", "", "é", "a\n"])
def test_names_of_files_are_plain(name):
    with pytest.raises(ValueError, match="letters, digits and hyphens"):
        DataFile(name=name, value=1)
    with pytest.raises(ValueError, match="letters, digits and hyphens"):
        Download(name=name, content=b"")


def test_figures_are_saved_for_paper_with_their_captions(tmp_path):
    made = contents(labels=("$bad \\math{ \ud800 x" + 300 * "y",), names=())
    out = write_contents(replace(made, on_paper=True), tmp_path / "site").parent
    (pdf,) = out.glob("files/*-figure-1.pdf")
    assert pdf.read_bytes().startswith(b"%PDF")
    assert "How it is read." in pdf.with_suffix(".txt").read_text("utf-8")
    page = out / f"{made.benchmarks[0].slug}.html"
    assert f'href="files/{pdf.name}"' in page.read_text("utf-8")


def test_figures_of_a_judged_benchmark_are_copied(tmp_path):
    figures = tmp_path / "judged" / "figures"
    figures.mkdir(parents=True)
    (figures / "figure_1.pdf").write_bytes(b"%PDF drawn before")
    judged = report(folder=tmp_path / "judged")
    made = contents_of_parts([judged], [])
    out = write_contents(made, tmp_path / "site").parent
    copied = out / "files" / "mine-figure-1.pdf"
    assert copied.read_bytes() == b"%PDF drawn before"


def test_a_former_site_is_replaced_as_a_whole(tmp_path):
    out = tmp_path / "site"
    write_contents(contents(), out)
    (out / "stale.html").write_text("old")
    write_contents(SiteContents(), out)
    assert not (out / "stale.html").exists()
    assert not (out / "mine.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_other_files_are_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="holds other files"):
        write_contents(SiteContents(), tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(NotADirectoryError, match="add --single"):
        write_contents(SiteContents(), tmp_path / "thesis.tex")


def test_methods_have_pages_that_leaderboards_link(site):
    method = (site / "method-map.html").read_text("utf-8")
    assert "Accuracy" in method
    assert "every.csv" in method
    assert "method-map.html" in (site / "index.html").read_text("utf-8")
    assert "method-map.html" in (site / "methods.html").read_text("utf-8")
    swag = (site / "method-swag.html").read_text("utf-8")
    assert "https://arxiv.org/abs/1902.02476" in swag  # from the docstring of its file
    lines = (site / "files" / "method-map-mine-every.csv").read_text("utf-8")
    assert "ours_low" in lines
    assert "clinic" in lines


def test_a_benchmark_alone_links_no_page_that_is_not_there(tmp_path):
    path = write_benchmark_page(report(), tmp_path / "index.html")
    links = Links(path.read_text("utf-8"))
    inside = [each for each in links.links if each.startswith("#page-")]
    assert {each[1:] for each in inside} <= set(links.ids)


def test_differences_are_on_a_page_with_every_pair(site):
    text = (site / "compare.html").read_text("utf-8")
    assert "careful, careless" in text
    pairs = (site / "files" / "compare-files-1-pairs.csv").read_text("utf-8")
    assert "reference" in pairs.splitlines()[0]
    assert "cannot be compared" in text


def test_an_empty_site_says_so(tmp_path):
    path = write_contents(SiteContents(), tmp_path / "new" / "site")
    assert "Does it know" in path.read_text("utf-8")
    assert "Nothing is missing" in (path.parent / "gaps.html").read_text("utf-8")


def test_files_with_the_same_items_share_a_page(hostile):
    shown = contents(names=HOSTILE[:12])
    assert [len(group.files) for group in shown.groups] == [5, 5, 2]
    assert [group.comparison is not None for group in shown.groups] == [True] * 3
    names = [path.name for path in hostile.glob("*.html")]
    names = [each for each in names if not each.startswith(("method", "compare"))]
    assert len(names) == 3 + 2 * 4 + 4
    alone = contents(names=("careful",)).groups[0]
    assert alone.comparison is None
    assert alone.slug == alone.files[0].slug == "careful"


def test_a_front_page_of_many_benchmarks_links_the_last_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.report.site.pages.front.PAGE_LETTERS", 5_000)
    made = contents(labels=tuple(f"study {i}" for i in range(9)), names=())
    out = write_contents(made, tmp_path / "site").parent
    front = (out / "index.html").read_text("utf-8")
    slugs = [shown.slug for shown in made.benchmarks]
    assert all(f'href="{slug}.html"' in front for slug in slugs)
    boards = [slug for slug in slugs if f'data-of="index-{slug}-board"' in front]
    assert boards == slugs[:1]
    # So many benchmarks are not in the navigation of every page.
    gaps = (out / "gaps.html").read_text("utf-8")
    assert not any(f'href="{slug}.html"' in gaps for slug in slugs)


def test_a_table_of_results_alone_has_the_numbers_of_every_row(tmp_path):
    results = small_study()
    results.table.to_csv(tmp_path / "results.csv")
    for board in main_tables(read_report(tmp_path)):
        assert len(board.lines) > 1
        for line in board.lines:
            assert all(math.isfinite(cell.mean) for cell in line.cells), line.labels
        assert not any("method" in column.keys for column in board.columns)
