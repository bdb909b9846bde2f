"""The site on this machine while runs are under way: `qualms report --serve`."""

from qualms.report.site.live._runs import LiveRuns
from qualms.report.site.live._server import LiveServer, serve
from qualms.report.site.live._site import LiveSite

__all__ = ["LiveRuns", "LiveServer", "LiveSite", "serve"]
