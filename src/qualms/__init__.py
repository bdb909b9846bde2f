"""qualms: does a vision model know when it does not know, also under a shift?

`qualms.score(...)` judges predictions made anywhere; `qualms.run(...)` makes those of
a benchmark and judges them the same way. Importing the package loads no large library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Accumulator",
    "__version__",
    "compare",
    "evaluate",
    "judge",
    "list_runs",
    "plot",
    "predict",
    "predictions",
    "read_plan",
    "refer",
    "referral",
    "run",
    "score",
    "scores",
    "write_site",
]

if TYPE_CHECKING:
    from qualms import evaluate, predictions, referral, scores
    from qualms.catalogue import list_runs
    from qualms.evaluate import Accumulator, compare, score
    from qualms.launch.benchmarking import judge, run
    from qualms.referral import read_plan, refer
    from qualms.report import plot
    from qualms.report.site import write_site
    from qualms.trained.predict import predict

_LAZY = {
    "Accumulator": "qualms.evaluate",
    "compare": "qualms.evaluate",
    "judge": "qualms.launch.benchmarking",
    "list_runs": "qualms.catalogue",
    "plot": "qualms.report",
    "predict": "qualms.trained",
    "read_plan": "qualms.referral",
    "refer": "qualms.referral",
    "run": "qualms.launch.benchmarking",
    "score": "qualms.evaluate",
    "write_site": "qualms.report.site",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in __all__:
        return import_module(f"qualms.{name}")
    from qualms.wording import suggest

    raise AttributeError(
        f"module 'qualms' has no attribute {name!r}.{suggest(name, __all__)}"
    )


def __dir__() -> list[str]:
    """Return the public names, including those that are loaded on first use."""
    return sorted(__all__)
