"""The registry of pages: the folder `pages`.

Each module of that folder without a leading underscore has the function of its name,
`front(contents) -> Iterable[Page]`. There is no list to add it to. It knows no paper:
what is special to a benchmark comes in its `BenchmarkReport`.
"""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules

from qualms.report.site import pages
from qualms.report.site.contents import SiteContents
from qualms.report.site.page import Page

Builder = Callable[[SiteContents], Iterable[Page]]


def builders() -> Iterator[Builder]:
    """Yield the builders of all pages."""
    for module in iter_modules(pages.__path__):
        if not module.name.startswith("_"):
            path = f"{pages.__name__}.{module.name}"
            yield getattr(import_module(path), module.name)


def all_pages(contents: SiteContents) -> tuple[Page, ...]:
    """Return the pages of a site, in the order of the navigation."""
    built = [page for build in builders() for page in build(contents)]
    paths = [page.path for page in built]
    doubled = sorted({path for path in paths if paths.count(path) > 1})
    if doubled:
        raise ValueError(f"pages must have different paths; several have {doubled}")
    return tuple(sorted(built, key=lambda page: (page.order, page.path)))
