"""Open every page of a site in Chromium: weight, height, faults, and pictures of it.

A line for each page: kilobytes as opened and with every figure drawn, milliseconds to
the load event, heights on a desktop and a phone, what scrolls sideways, complaints of
the console, requests that leave the disk, serious findings of axe, and pages of PDF.
The last line says whether all pages are as `docs/site.md` promises.

    python bench/site_pages.py demo/site
    python bench/site_pages.py demo/site --pictures docs/pictures/site
"""

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote, urlsplit

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

DESKTOP, PHONE = (1280, 900), (390, 844)
MOST_BYTES = 500_000
"""Bytes of a page as opened."""
SERIOUS = ("serious", "critical")
DRAWN = "[...qualms.waiting.keys()].length === 0"
FOLDED = "document.querySelectorAll('details').forEach((d) => { d.open = true; })"
FRONT = "index"
"""The page whose first screen is a picture of its own."""
QUALITY = 42
"""Of compressed pictures."""
WIDEST = 1000
"""Pixels that they are wide at most."""
TALLEST = 2
"""Screens of a page that a picture shows at most."""


@dataclass
class Visit:
    """What was seen on a page."""

    name: str
    opened: int = 0
    """Bytes of the page and of what it loaded by itself."""
    drawn: int = 0
    """Bytes with the data of every figure."""
    load: float = 0.0
    heights: list[int] = field(default_factory=list)
    sideways: list[int] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    axe: list[str] = field(default_factory=list)
    paper: int = 0

    @property
    def as_promised(self) -> bool:
        """Whether nothing is wrong with it."""
        wrong = (*self.complaints, *self.outside, *self.axe, *self.sideways)
        return not wrong and self.opened <= MOST_BYTES and self.paper > 0


def main() -> None:
    """Visit the pages, print a line for each, and take pictures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path, help="folder of a site")
    parser.add_argument("--pages", nargs="*", help="names of pages; default all")
    parser.add_argument("--pictures", type=Path, help="folder for pictures")
    parser.add_argument("--whole", action="store_true", help="pictures of whole pages")
    parser.add_argument("--only-pictures", action="store_true", help="no checks")
    options = parser.parse_args()
    paths = sorted(options.site.glob("*.html"))
    if options.pages:
        paths = [path for path in paths if path.stem in options.pages]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        if options.pictures:
            take_pictures(browser, paths, options.pictures, whole=options.whole)
        visits = [] if options.only_pictures else list(print_visits(browser, paths))
        browser.close()
    sys.exit(0 if all(visit.as_promised for visit in visits) else 1)


def print_visits(browser: Browser, paths: Sequence[Path]) -> Iterator[Visit]:
    """Print what is seen on pages, as a table."""
    heads = ("page", "kB opened", "kB drawn", "load ms", "height 1280 / 390")
    more = ("sideways", "console", "outside", "axe light + dark", "PDF pages", "ok")
    print("| " + " | ".join((*heads, *more)) + " |")
    print("|---" * len((*heads, *more)) + "|")
    visits = []
    for path in paths:
        visits.append(visited(browser, path))
        print(line(visits[-1]), flush=True)
        yield visits[-1]
    good = sum(visit.as_promised for visit in visits)
    print(f"\n{good} of {len(visits)} pages are as promised.")
    for visit in visits:
        for fault in (*visit.complaints, *visit.outside, *visit.axe):
            print(f"- {visit.name}: {fault}")


def line(visit: Visit) -> str:
    """Return a visit as a line of a table."""
    cells = (
        visit.name,
        f"{visit.opened / 1000:.0f}",
        f"{visit.drawn / 1000:.0f}",
        f"{visit.load:.0f}",
        " / ".join(f"{height:,}" for height in visit.heights),
        str(max(visit.sideways, default=0)),
        str(len(visit.complaints)),
        str(len(visit.outside)),
        str(len(visit.axe)),
        str(visit.paper),
        "yes" if visit.as_promised else "**no**",
    )
    return "| " + " | ".join(cells) + " |"


def visited(browser: Browser, path: Path) -> Visit:
    """Open a page on a desktop and a phone, in both themes."""
    visit = Visit(path.stem)
    for size, dark in ((DESKTOP, False), (PHONE, True)):
        page = opened(browser, path, visit, size=size, dark=dark)
        if not visit.opened:
            page.wait_for_timeout(150)
            visit.opened = visit.drawn
            entry = "performance.getEntriesByType('navigation')[0].loadEventEnd"
            visit.load = page.evaluate(entry)
        draw_all(page)
        box = "[document.documentElement.scrollWidth, document.body.scrollHeight]"
        width, height = page.evaluate(box)
        visit.heights.append(height)
        visit.sideways += [width - size[0]] if width > size[0] else []
        page.evaluate(FOLDED)
        draw_all(page)
        opened_width = page.evaluate("document.documentElement.scrollWidth")
        visit.sideways += [opened_width - size[0]] if opened_width > size[0] else []
        visit.axe += list(axe_findings(page))
        if not dark:
            visit.paper = page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n")
        page.context.close()
    return visit


def opened(
    browser: Browser, path: Path, visit: Visit, *, size: tuple[int, int], dark: bool
) -> Page:
    """Open a page, and note what it loads and says."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
    )
    page = context.new_page()
    first = not visit.drawn
    loaded: set[str] = set()

    def note(address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme == "file":
            if first and address not in loaded:
                loaded.add(address)
                visit.drawn += Path(unquote(parts.path)).stat().st_size
        elif parts.scheme not in ("data", "blob"):
            visit.outside.append(address)

    page.on("request", lambda request: note(request.url))
    page.on("requestfailed", lambda request: visit.complaints.append(request.url))
    page.on("console", lambda message: visit.complaints.append(message.text))
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    page.goto(path.resolve().as_uri())
    return page


def draw_all(page: Page) -> None:
    """Draw figures that are not in view; the policy forbids `wait_for_function`."""
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for _ in range(400):
        if page.evaluate(DRAWN):
            return
        page.wait_for_timeout(25)


def axe_findings(page: Page) -> Iterator[str]:
    """Yield the serious findings of axe."""
    from axe_playwright_python.sync_playwright import Axe

    # It would read the style sheet once more, which the policy forbids.
    found = Axe().run(page, options={"preload": False}).response["violations"]
    for each in found:
        if each["impact"] in SERIOUS:
            yield f"{each['id']}: {each['nodes'][0]['html'][:120]}"


def take_pictures(
    browser: Browser, paths: Sequence[Path], folder: Path, *, whole: bool
) -> None:
    """Save pictures of pages: on a desktop, on a phone, and in the dark."""
    folder.mkdir(parents=True, exist_ok=True)
    looks = (("desktop", DESKTOP, False), ("phone", PHONE, False))
    for path in paths:
        for name, size, dark in (*looks, ("dark", DESKTOP, True)):
            page = opened(browser, path, Visit(path.stem), size=size, dark=dark)
            draw_all(page)
            page.wait_for_timeout(100)
            most = 10**6 if whole else TALLEST * size[1]
            height = min(page.evaluate("document.body.scrollHeight"), most)
            area = {"x": 0, "y": 0, "width": size[0], "height": height}
            shot = page.screenshot(full_page=True, clip=area)
            picture = picture_of(shot)
            stem = folder / f"{path.stem}-{name}"
            if whole:
                picture.save(stem.with_suffix(".png"))
            else:
                picture.thumbnail((WIDEST, 10**5), Image.Resampling.LANCZOS)
                picture.save(stem.with_suffix(".webp"), quality=QUALITY, method=6)
            if path.stem == FRONT and name == "desktop" and not whole:
                first = picture_of(page.screenshot())
                first.save(folder / "first.webp", quality=80, method=6)
            page.context.close()


def picture_of(shot: bytes) -> Image.Image:
    """Return a picture of the bytes of a screenshot."""
    return Image.open(BytesIO(shot)).convert("RGB")


if __name__ == "__main__":
    main()
