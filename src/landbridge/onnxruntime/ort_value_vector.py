"""OrtValueVector: OrtValues in a row, as ``run_with_ortvaluevector`` takes and fills them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from landbridge.onnxruntime.ort_value import OrtValue


class OrtValueVector(list[OrtValue]):
    """A list with onnxruntime's names for its methods."""

    def push_back(self, value: OrtValue) -> None:
        """Append ``value``."""
        self.append(value)

    def reserve(self, count: int) -> None:
        """Nothing: a list grows by itself."""

    def shrink_to_fit(self) -> None:
        """Nothing: a list shrinks by itself."""

    def element_type_at(self, index: int) -> int:
        """ONNX's number of the elements of the value at ``index``."""
        return self[index].element_type()

    def dlpack_at(self, index: int) -> Any:
        """A DLPack capsule over the memory of the value at ``index``."""
        return self[index].__dlpack__()

    def to_dlpacks(self, to_tensor: Callable[[Any], Any] | None = None) -> list[Any]:
        """A DLPack capsule of each value, or what ``to_tensor`` makes of it."""
        capsules = (value.__dlpack__() for value in self)
        return list(capsules) if to_tensor is None else [to_tensor(capsule) for capsule in capsules]
