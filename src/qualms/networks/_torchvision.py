"""Makes torchvision importable beside a torch that lacks its compiled operators.

The torchvision wheel of PyPI is compiled for the CUDA build of torch. Beside the CPU
build its library does not load and importing it fails with "operator torchvision::nms
does not exist", and so do timm and torchmetrics, which import it. Declaring the two
operators it looks for is enough for all that qualms uses; detection operators stay out
of reach. Call `load` before anything that imports torchvision.
"""

import importlib
import sys

import torch

_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
# The declarations live as long as this object does.
_DECLARED: list[torch.library.Library] = []


def load() -> None:
    """Import torchvision, declaring the missing operators only if it must be."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
        _declare()
        importlib.import_module("torchvision")


def _declare() -> None:
    library = torch.library.Library(  # type: ignore[no-untyped-call]
        "torchvision", "DEF"
    )
    for schema in _OPERATORS:
        library.define(schema)  # type: ignore[no-untyped-call]
    _DECLARED.append(library)
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
