"""Types of the arrays that functions take and return, defined once for all modules."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Index = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
"""Numbers of any precision, such as maps that are stored in float32."""
