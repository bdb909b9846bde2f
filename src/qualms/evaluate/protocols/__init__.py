"""How a benchmark is judged, where its task's ordinary scores are not enough.

The folder is the registry: `protocols/retina.py` defines `retina()`, the `Protocol` of
the benchmark `retina`. A benchmark without a file here is judged by its task.
"""

from qualms.evaluate.protocols._protocol import (
    AbsentError,
    Beside,
    Protocol,
    Repeat,
    protocol_of,
)

__all__ = ["AbsentError", "Beside", "Protocol", "Repeat", "protocol_of"]
