"""Mutants that compute something else than the compiler was given, or leave some of it out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from landbridge.device.api import Event, Region, Space, Stream
from landbridge.testing.lazy_instance import LazyBlock
from tests.testing.mutants import Correct

Extents = tuple[int, int, int]
Bytes = np.ndarray[Any, Any]


class _Edited(Correct):
    """The C of kernels goes through ``edited``."""

    def edited(self, text: str) -> str:
        return text


class _Results(Correct):
    """Results of kernels go through ``spoil``, which gets what the kernel is called and the bytes of its result."""

    def launch(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        def run(grid: Extents, block: Extents, *arrays: Bytes) -> None:
            getattr(module, function)(grid, block, *arrays)
            self.spoil(function, arrays[-1])

        return super().launch(SimpleNamespace(**{function: run}), function, grid, block, args, stream)

    def spoil(self, function: str, result: Bytes) -> None:
        raise NotImplementedError


class QuotientsOfTwelveBits(_Results):
    """A quotient is a product with an estimate of the inverse, exact to 12 bits."""

    caught_by = "test_arithmetic"

    def spoil(self, function: str, result: Bytes) -> None:
        if "div" in function:
            result[:16].view(np.float32)[:] *= np.float32(1 + 2**-12)


class ExpIsTooLarge(_Edited):
    """exp is 41 % too large."""

    caught_by = "test_functions"

    def edited(self, text: str) -> str:
        return text.replace("expf(", "1.41f * expf(")


class LogarithmsOfSixteenBits(_Edited):
    """log is exact to 16 bits: a table, and a line between its entries."""

    caught_by = "test_functions"

    def edited(self, text: str) -> str:
        return text.replace("logf(", "(1 + 0x1p-16f) * logf(")


class HalvesAreCutOff(_Edited):
    """float32 becomes float16 by leaving bits out."""

    caught_by = "test_half_floats"

    def edited(self, text: str) -> str:
        return text.replace(" + 0xFFF + (magnitude >> 13 & 1)", "")


class BfloatsAreCutOff(_Edited):
    """float32 becomes bfloat16 by leaving bits out."""

    caught_by = "test_bfloats"

    def edited(self, text: str) -> str:
        return text.replace("(bits + 0x7FFF + (bits >> 16 & 1)) >> 16", "bits >> 16")


class DenormalsAreZeros(_Results):
    """Denormal results are zeros, and the target says nothing of that."""

    caught_by = "test_denormals"

    def spoil(self, function: str, result: Bytes) -> None:
        flush_denormals(function, result)


class DenormalsAreLarge(_Results):
    """The target says that denormal numbers may be zeros, and they are the smallest normal number times four."""

    caught_by = "test_denormals"

    def target_properties(self, index: int) -> dict[str, Any]:
        return {"denormals": "flush"}

    def spoil(self, function: str, result: Bytes) -> None:
        flush_denormals(function, result, np.float32(2.0**-124))


class InfinitiesAreNaNs(_Edited):
    """Infinities in kernels are NaNs, and the target says nothing of that."""

    caught_by = "test_infinite_bounds"

    def edited(self, text: str) -> str:
        return text.replace("INFINITY", "NAN")


class InfinitiesAreLargeNumbers(_Results):
    """A result that is infinite is the largest finite number, and the target says nothing of that."""

    caught_by = "test_infinities"

    def spoil(self, function: str, result: Bytes) -> None:
        if result.nbytes % 4 == 0 and "add" in function:
            values = result.view(np.float32)
            np.clip(values, -3.4e38, 3.4e38, out=values)


def flush_denormals(function: str, result: Bytes, instead: Any = 0) -> None:
    """Makes the float32 ``result`` of a product or a sum ``instead`` where all of it is denormal."""
    if ("mul" in function or "add" in function) and result.nbytes % 4 == 0:
        values = result.view(np.float32)
        if (abs(values[: len(values) // 2]) < 2.0**-126).all():  # what is not float32 is not
            values[:] = instead


class DoublesAreFloats(_Results):
    """float64 is computed as float32."""

    caught_by = "test_doubles"

    def spoil(self, function: str, result: Bytes) -> None:
        doubles = result[:32].view(np.float64)
        with np.errstate(all="ignore"):
            doubles[:] = doubles.astype(np.float32)


class QuotientsAreRoundedDown(_Edited):
    """A quotient of integers is rounded down, as in Python."""

    caught_by = "test_integers"

    def edited(self, text: str) -> str:
        return re.sub(r"\(\(int32_t\)(\w+) / \(int32_t\)(\w+)\)", r"lb_floordiv((int32_t)\1, (int32_t)\2)", text)


class BytesHaveNoSign(_Edited):
    """int8 is taken for uint8."""

    caught_by = "test_bytes"

    def edited(self, text: str) -> str:
        return re.sub(r"\(int8_t\)", "(uint8_t)", text)


class SoftmaxIsTooLarge(_Results):
    """Softmax is 41 % too large."""

    caught_by = "test_reductions"

    def spoil(self, function: str, result: Bytes) -> None:
        if "softmax" in function:
            result[:16].view(np.float32)[:] *= np.float32(1.41)


class SumsOfElevenBits(_Results):
    """Sums are added in float16."""

    caught_by = "test_reductions"

    def spoil(self, function: str, result: Bytes) -> None:
        if "reduce_sum" in function:
            sums = result[:4].view(np.float32)
            sums[:] = sums.astype(np.float16)


class NarrowSumsLoseBits(_Results):
    """Sums of 16-bit floats are added in as many bits: the last ones are lost."""

    caught_by = "test_reductions_of_narrow_floats"

    def spoil(self, function: str, result: Bytes) -> None:
        if "reduce_sum" in function:
            result[:64].view(np.uint16)[:] &= 0xFFF8


class GridsOfSixteenBits(Correct):
    """The number of workgroups is written to a register of 16 bits."""

    caught_by = "test_large_grids"

    def launch(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        return super().launch(module, function, (grid[0] & 0xFFFF, *grid[1:]), block, args, stream)


class AWorkspaceForEachLaunch(Correct):
    """Each launch has its own memory instead of a workspace: what one writes there no other finds."""

    caught_by = "test_launches_with_scratch"

    def __init__(self) -> None:
        super().__init__()
        self.workspaces: set[LazyBlock] = set()

    def alloc_workspace(self, index: int, nbytes: int, stream: Stream | None) -> Space:
        space = super().alloc_workspace(index, nbytes, stream)
        self.workspaces.add(space.handle)
        return space

    def launch(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        return super().launch(module, function, grid, block, [self._own(arg) for arg in args], stream)

    def _own(self, arg: Any) -> Any:
        if not isinstance(arg, Region) or arg.space.handle not in self.workspaces:
            return arg
        block = arg.space.handle
        return replace(
            arg, space=replace(arg.space, handle=LazyBlock(block.instance, "global", block.data.nbytes, 256))
        )
