"""The type of numpy's arrays, for annotations.

numpy 1.21, which Ubuntu 22.04 has for its Python 3.10, takes no parameters of it when a module is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]
else:
    Array = np.ndarray
