"""How each benchmark is shown: the tables and figures of its paper, and more.

The folder is the registry: `qualms.shelf.find("report.papers", "regression")()` is what
shows the benchmark `regression`. A new benchmark adds a file or folder here.
"""

from qualms.report.papers._paper import Paper

__all__ = ["Paper"]
