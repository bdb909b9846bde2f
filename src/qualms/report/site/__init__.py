"""The site: pages of benchmarks and predictions files that open from disk.

No page knows a paper. `docs/site.md` says how a page is added.
"""

from qualms.report.site._write import write_contents
from qualms.report.site.contents import SiteContents
from qualms.report.site.page import Block, DataFile, Download, Page, block, section

__all__ = [
    "Block",
    "DataFile",
    "Download",
    "Page",
    "SiteContents",
    "block",
    "section",
    "write_contents",
]
