"""SparseTensor: values and their indices. Programs only take and return dense tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from landbridge.array_type import Array
from landbridge.onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument
from landbridge.onnxruntime.element_types import element_name, element_of
from landbridge.onnxruntime.memory_info import check_device


class OrtSparseFormat(IntEnum):
    """The formats of the indices of a SparseTensor."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class SparseFormError(Fail, RuntimeError):
    """Raised for a sparse tensor where another form or a dense one is needed; a RuntimeError, as in onnxruntime."""


class SparseView:
    """The indices of a SparseTensor, by the names that its format has for them."""

    def __init__(self, indices: Mapping[str, Array]) -> None:
        self._indices = indices

    def indices(self) -> Array:
        """Returns COO indices: int64, one number or one of each axis for each value."""
        return self._indices["indices"]

    def inner(self) -> Array:
        """Returns CSR columns: int64, one for each value."""
        return self._indices["inner"]

    def outer(self) -> Array:
        """Returns CSR row offsets: int64, where each row begins among the values, and where the last one ends."""
        return self._indices["outer"]


class SparseTensor:
    """The 1-D ``values`` of a tensor of ``dense_shape``, whose other elements are 0; it uses the given memory in
    place.
    """

    def __init__(
        self, dense_shape: Sequence[int] | Array, values: Array, form: OrtSparseFormat, indices: Mapping[str, Array]
    ) -> None:
        self._shape = [int(extent) for extent in dense_shape]
        self._values, self._format = values, form
        self._indices = indices

    @classmethod
    def sparse_coo_from_numpy(
        cls, dense_shape: Sequence[int] | Array, values: Array, coo_indices: Array, ort_device: Any = None
    ) -> SparseTensor:
        """Returns a tensor of ``dense_shape`` with ``values`` at ``coo_indices``, which are not copied.

        ``coo_indices`` are int64: of shape [values], flat indices into the whole tensor, or [values, axes]. Raises
        InvalidArgument where they do not fit, Fail for a device that is not the host's CPU.
        """
        _check(ort_device)
        count, rank = len(values), len(dense_shape)
        if coo_indices.dtype != np.int64 or coo_indices.size not in (count, count * rank):
            raise InvalidArgument(
                f"coo_indices are {coo_indices.dtype}{list(coo_indices.shape)}; legal are int64[{count}] and "
                f"int64[{count}, {rank}]"
            )
        return cls(dense_shape, values, OrtSparseFormat.ORT_SPARSE_COO, {"indices": coo_indices})

    @classmethod
    def sparse_csr_from_numpy(
        cls,
        dense_shape: Sequence[int] | Array,
        values: Array,
        inner_indices: Array,
        outer_indices: Array,
        ort_device: Any = None,
    ) -> SparseTensor:
        """Returns a matrix with ``values`` in the columns ``inner_indices``, int64 [values].

        ``outer_indices``, int64 [rows + 1], are the positions in ``values`` where each row begins, and the number of
        values. Raises the errors of ``sparse_coo_from_numpy``.
        """
        _check(ort_device)
        if len(dense_shape) != 2 or len(inner_indices) != len(values) or len(outer_indices) != dense_shape[0] + 1:
            raise InvalidArgument(
                f"CSR is of a matrix; {len(values)} values of {list(dense_shape)} need as many inner indices, and an "
                f"outer index more than rows; there are {len(inner_indices)} and {len(outer_indices)}"
            )
        indices = {"inner": inner_indices, "outer": outer_indices}
        return cls(dense_shape, values, OrtSparseFormat.ORT_SPARSE_CSRC, indices)

    def values(self) -> Array:
        """Returns the array of values itself, not a copy."""
        return self._values

    def dense_shape(self) -> list[int]:
        """Returns the shape of the dense tensor."""
        return list(self._shape)

    def format(self) -> OrtSparseFormat:
        """Returns the format of the indices."""
        return self._format

    def data_type(self) -> str:
        """Returns the name of the tensor's type, such as ``sparse_tensor(float)``."""
        return f"sparse_tensor({element_name(element_of(self._values.dtype))})"

    def device_name(self) -> str:
        """Returns ``"cpu"``, where every SparseTensor is."""
        return "cpu"

    def as_coo_view(self) -> SparseView:
        """Returns a view of the COO indices; raises SparseFormError for another format."""
        return self._view(OrtSparseFormat.ORT_SPARSE_COO, "COO")

    def as_csrc_view(self) -> SparseView:
        """Returns a view of the CSR indices; raises SparseFormError for another format."""
        return self._view(OrtSparseFormat.ORT_SPARSE_CSRC, "CSR(C)")

    def as_blocksparse_view(self) -> SparseView:
        """Raises SparseFormError: block-sparse tensors are not supported."""
        return self._view(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE, "BlockSparse")

    def to_cuda(self, ort_device: object) -> SparseTensor:
        """Raises Fail: only the host's CPU is available."""
        raise Fail(
            "a SparseTensor stays on cpu:0; on other devices compile and run dense tensors with landbridge itself"
        )

    def _view(self, form: OrtSparseFormat, name: str) -> SparseView:
        if self._format != form:
            raise SparseFormError(f"this sparse tensor does not contain {name} format; it has {self._format.name}")
        return SparseView(self._indices)


def _check(device: Any) -> None:
    if device is not None:
        check_device(device.device_type(), device.device_id())
