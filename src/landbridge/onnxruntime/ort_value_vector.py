"""OrtValueVector: a list of OrtValues, as ``run_with_ortvaluevector`` takes and fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from landbridge.onnxruntime.ort_value import OrtValue


class OrtValueVector(list[OrtValue]):
    """A list of OrtValues that also has the method names of onnxruntime's class."""

    def push_back(self, value: OrtValue) -> None:
        """Appends ``value``."""
        self.append(value)

    def reserve(self, count: int) -> None:
        """Does nothing, as a list grows by itself."""

    def shrink_to_fit(self) -> None:
        """Does nothing, as a list shrinks by itself."""

    def element_type_at(self, index: int) -> int:
        """Returns the ONNX type of the elements of the value at ``index``."""
        return self[index].element_type()

    def dlpack_at(self, index: int) -> Any:
        """Returns a DLPack capsule of the memory of the value at ``index``, which is not copied and which the capsule
        keeps alive.
        """
        return self[index].__dlpack__()

    def to_dlpacks(self, to_tensor: Callable[[Any], Any] | None = None) -> list[Any]:
        """Returns a DLPack capsule of each value, or what ``to_tensor`` makes of each capsule."""
        capsules = (value.__dlpack__() for value in self)
        return list(capsules) if to_tensor is None else [to_tensor(capsule) for capsule in capsules]
