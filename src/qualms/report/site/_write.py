"""`qualms.write_site`: from results and files to a site on disk."""

import shutil
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from rich.console import Console

from qualms.atomic import replace_folder, replacing, temporary_path
from qualms.evaluate import ScoreOptions
from qualms.report.site._read import SiteRequest, SiteSource, read_contents
from qualms.report.site.assets import chart_script, charts_of, script, style
from qualms.report.site.contents import TITLE, SiteContents
from qualms.report.site.page import Page
from qualms.report.site.registry import all_pages
from qualms.report.site.shell import (
    SCRIPT,
    STYLE,
    chart_path,
    data_path,
    data_script,
    file_contents,
    page_text,
    single_text,
)
from qualms.report.site.text import print_contents
from qualms.wording import in_one_line

MARK = "qualms-site.txt"
"""A file by which a folder is known as a site that may be replaced."""


def write_contents(contents: SiteContents, out: Path, *, single: bool = False) -> Path:
    """Write a site, and return the path of its first page.

    Args:
        contents: What the site is made of.
        out: Its folder; with `single` the file, or the folder of `index.html`.
        single: Whether everything is in one file.
    """
    pages = all_pages(contents)
    if single:
        return _write_single(pages, contents, out)
    check_folder(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(out)
    try:
        temporary.mkdir()
        _write_pages(pages, contents, temporary)
        replace_folder(temporary, out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return out / "index.html"


@in_one_line
def write_site(  # noqa: PLR0913 - the options of the command
    *sources: SiteSource,
    out: str | PathLike[str],
    single: bool = False,
    val: str | Path | Sequence[str | Path] = (),
    names: Sequence[str] = (),
    title: str = TITLE,
    options: ScoreOptions | None = None,
    command: str = "",
    data: str | PathLike[str] | None = None,
) -> Path:
    """Write a site that opens from disk, and return the path of its first page.

    Args:
        sources: Any mix of folders of `qualms run`, results tables, predictions files
            and folders, results of `qualms.run` and `qualms.judge`, and of
            `qualms.score`.
        out: The folder of the site: a new one, an empty one, or a former site, which
            is replaced. With `single` a file.
        single: Whether everything is in one file, to be mailed.
        val: Validation predictions, one for each predictions file or one for all.
        names: What to call the predictions files, in order.
        title: Heading of the front page.
        options: Level and so on of the scores of predictions files.
        command: What made the site; it stands on every page.
        data: Folder of prepared datasets, for pictures of items.
    """
    _check_sources(sources)
    path = Path(out)
    if not single:
        check_folder(path)  # before the work
    request = SiteRequest(
        sources=sources,
        val=[val] if isinstance(val, str | Path) else val,
        names=names,
        options=options,
        title=title,
        command=command,
        data=None if data is None else Path(data),
    )
    return write_contents(read_contents(request), path, single=single)


def _check_sources(sources: Sequence[object]) -> None:
    """Raise if several sources are in one list, of which nothing would be shown."""
    for source in sources:
        if isinstance(source, list | tuple) and not hasattr(source, "_fields"):
            raise TypeError(
                f"sources must stand one after the other, got a {type(source).__name__}"
                f" of {len(source)}; write write_site(*sources, out=...)"
            )


def print_site(
    *sources: SiteSource,
    val: str | Path | Sequence[str | Path] = (),
    names: Sequence[str] = (),
    options: ScoreOptions | None = None,
    console: Console | None = None,
) -> None:
    """Print what the front page of a site says; the arguments are of `write_site`."""
    request = SiteRequest(
        sources=sources,
        val=[val] if isinstance(val, str | Path) else val,
        names=names,
        options=options,
    )
    print_contents(read_contents(request), console=console)


def check_folder(out: Path) -> None:
    """Raise unless a site may be written to `out`: a new, empty or former site."""
    if not out.exists():
        return
    if not out.is_dir():
        raise NotADirectoryError(
            f"a site needs a folder, and {out} is a file; choose another path, or add"
            " --single for one file"
        )
    if any(out.iterdir()) and not (out / MARK).is_file():
        raise FileExistsError(
            f"{out} holds other files, which a site would replace; choose a new or an"
            " empty folder"
        )


def _write_single(pages: Sequence[Page], contents: SiteContents, out: Path) -> Path:
    other = out.is_file() or (out.suffix and not out.is_dir())
    if out.suffix != ".html" and other:
        raise FileExistsError(
            f"a site of one file needs a name that ends in .html, got {out}; call it"
            f" {out.with_suffix('.html').name}, or name a folder"
        )
    path = out if out.suffix == ".html" else out / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(single_text(pages, contents), encoding="utf-8")
    return path


def _write_pages(pages: Sequence[Page], contents: SiteContents, out: Path) -> None:
    for folder in ("assets", "data", "files"):
        (out / folder).mkdir()
    texts = {SCRIPT: script(), STYLE: style(), MARK: "A site written by qualms.\n"}
    kinds = charts_of(page.html.text for page in pages)
    texts |= {chart_path(kind): chart_script(kind) for kind in kinds}
    for page in pages:
        texts[page.path] = page_text(page, pages, contents)
        at_once = [data for data in page.data if not data.on_demand]
        if at_once:
            texts[data_path(page.slug)] = data_script(at_once)
        texts |= {
            data_path(data.name): data_script([data])
            for data in page.data
            if data.on_demand
        }
    for path, text in texts.items():
        (out / path).write_text(text, encoding="utf-8")
    for name, content in file_contents(pages):
        (out / "files" / name).write_bytes(content)
