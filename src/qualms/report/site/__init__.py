"""The site: pages of benchmarks and predictions files that open from disk.

No page knows a paper. `docs/site.md` says how a page is added.
"""

from qualms.report.site._write import print_site, write_contents, write_site
from qualms.report.site.alone import PAGE_BYTES, write_page
from qualms.report.site.contents import SiteContents
from qualms.report.site.page import (
    DataFile,
    Download,
    Fragment,
    Page,
    fragment,
    section,
)

__all__ = [
    "PAGE_BYTES",
    "DataFile",
    "Download",
    "Fragment",
    "Page",
    "SiteContents",
    "fragment",
    "print_site",
    "section",
    "write_contents",
    "write_page",
    "write_site",
]
