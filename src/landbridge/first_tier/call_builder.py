"""Builds the calls of a program: values with known shapes, kernels that make them, views, and what is constant.

A kernel whose operands are all constant runs at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from landbridge.array_type import Array
from landbridge.dtypes import dtype_name, numpy_dtype
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.numpy_kernels.registry import call
from landbridge.records import record

#: Shape and dtype name of a result.
TensorType = tuple[tuple[int, ...], str]

#: Bytes of a constant that is computed; one of more is left to the compiler, as the model may be made to take memory.
_MOST_BYTES = 1 << 28
#: Axes that arrays of every version of numpy may have.
_MOST_AXES = 32


@record(frozen=True, eq=False, repr=False)
class ShapedValue:
    """A tensor: its shape and dtype name, and its elements where they are constant.

    ``source``: the value whose bytes it has, in another shape; itself, for None.
    """

    shape: tuple[int, ...]
    dtype: str
    constant: Array | None = None
    source: ShapedValue | None = None

    @property
    def nbytes(self) -> int:
        """Returns the bytes of the dense tensor."""
        return prod(self.shape) * numpy_dtype(self.dtype).itemsize

    @property
    def root(self) -> ShapedValue:
        """Returns the value whose memory this one has."""
        return self if self.source is None else self.source


@record(frozen=True, eq=False)
class KernelCall:
    """A call of ``kernel`` on ``operands`` for ``results``, of node ``node``.

    ``overwrites``: whether it may write its first result onto the first operand, of the same shape and dtype.
    """

    kernel: str
    operands: tuple[ShapedValue | None, ...]
    results: tuple[ShapedValue, ...]
    attributes: Mapping[str, object]
    node: str
    overwrites: bool


class CallBuilder:
    """The calls of a program so far. ``node`` is the name of the node that is translated."""

    def __init__(self) -> None:
        self.calls: list[KernelCall] = []
        self.node = ""

    def constant(self, array: Array) -> ShapedValue:
        """Returns ``array`` as a value; it is C-contiguous and never written again."""
        dense = np.ascontiguousarray(array).reshape(array.shape)
        dense.flags.writeable = False
        return ShapedValue(dense.shape, dtype_name(dense.dtype), dense)

    def call(
        self,
        kernel: str,
        operands: Sequence[ShapedValue | None],
        results: Sequence[TensorType],
        attributes: Mapping[str, object] | None = None,
        *,
        overwrites: bool = False,
    ) -> tuple[ShapedValue, ...]:
        """Returns the results of ``kernel``: constants where all operands are.

        Raises NotTakenError where computing those fails: the compiler says what is wrong.
        """
        options = dict(attributes or {})
        for shape, _ in results:
            if min(shape, default=0) < 0 or len(shape) > _MOST_AXES:
                raise NotTakenError(f"a result of shape {shape}")
        if all(operand is None or operand.constant is not None for operand in operands):
            return self._computed(kernel, operands, results, options)
        values = tuple(ShapedValue(shape, dtype) for shape, dtype in results)
        self.calls.append(KernelCall(kernel, tuple(operands), values, options, self.node, overwrites))
        return values

    def view(self, value: ShapedValue, shape: Sequence[int]) -> ShapedValue:
        """Returns the elements of ``value`` in another shape of as many; raises NotTakenError for other numbers."""
        if prod(shape) != prod(value.shape) or min(shape, default=0) < 0 or len(shape) > _MOST_AXES:
            raise NotTakenError(f"a view of shape {list(shape)} of {list(value.shape)}")
        if value.constant is not None:
            return self.constant(value.constant.reshape(shape))
        return ShapedValue(tuple(shape), value.dtype, None, value.root)

    def _computed(
        self,
        kernel: str,
        operands: Sequence[ShapedValue | None],
        results: Sequence[TensorType],
        attributes: Mapping[str, object],
    ) -> tuple[ShapedValue, ...]:
        if sum(prod(shape) * numpy_dtype(dtype).itemsize for shape, dtype in results) > _MOST_BYTES:
            raise NotTakenError("a constant of more than 256 MiB that is computed")
        created = [np.empty(shape, numpy_dtype(dtype)) for shape, dtype in results]
        try:
            call(kernel, [None if each is None else each.constant for each in operands], created, attributes)
        except (ValueError, IndexError, TypeError, ArithmeticError) as error:
            raise NotTakenError(f"{kernel} of constants: {error}") from error
        return tuple(map(self.constant, created))
