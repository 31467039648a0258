"""Tests of what kernels compute: compiled by the compiler's own pipeline, compared with numpy within stated bounds."""

from __future__ import annotations

import math

import numpy as np

from landbridge.dtypes import has_numpy_dtype
from landbridge.executable.device_image import DeviceImage
from landbridge.targets.arithmetic import arithmetic_of
from landbridge.testing.conformance import arithmetic_cases as cases
from landbridge.testing.conformance.computations import ComputationCase

_ROWS = 66_001  # more than 16 bits count
_MEMORY = 1 << 25  # bytes of operand and result


class ArithmeticConformance(ComputationCase):
    """Tests operators on every type of number. Bounds are those of docs/numbers.md, or those that OpenCL allows."""

    def test_arithmetic(self) -> None:
        """Sums and products of float32 are rounded correctly, quotients within 2.5 ulp and roots within 3;
        comparisons, extremes and roundings to integers are exact."""
        self.expect_computed(cases.basic("float32"))

    def test_functions(self) -> None:
        """Transcendental functions of float32 are within their bound: exp and log 3 ulp, sin and cos 4, tan and tanh
        5, pow and erf 16."""
        self.expect_computed(cases.functions("float32"))

    def test_half_floats(self) -> None:
        """float16 is converted correctly, and computed as float32 is, then rounded once."""
        self.expect_computed([*cases.casts("float16"), *cases.basic("float16"), *cases.functions("float16")])

    def test_bfloats(self) -> None:
        """bfloat16 is converted correctly, and computed as float32 is, then rounded once."""
        if not has_numpy_dtype("bfloat16"):
            self.skip("has its bfloat16 compared with ml-dtypes', which does not import on this machine")
        self.expect_computed([*cases.casts("bfloat16"), *cases.basic("bfloat16"), *cases.functions("bfloat16")])

    def test_doubles(self) -> None:
        """float64 has 53 bits: sums, products, quotients and roots are rounded correctly."""
        if np.finfo(np.longdouble).nmant <= np.finfo(np.float64).nmant:
            self.skip("has float64 compared with numpy's longdouble, which has no more bits on this machine")
        self.expect_computed([*cases.basic("float64"), *cases.functions("float64")])

    def test_denormals(self) -> None:
        """Denormal numbers of float32 are computed with, unless the target's option denormals says that they may be
        zeros."""
        if arithmetic_of(self.target()).flushes_denormals is None:
            self.skip("has a target that says nothing of denormal numbers")
        self.expect_computed(cases.denormals())

    def test_infinities(self) -> None:
        """Infinities of float32 are computed with, unless the target's option infinities says that there are none."""
        if arithmetic_of(self.target()).infinities is False:
            self.skip("has a target without infinities")
        self.expect_computed(cases.infinities())

    def test_infinite_bounds(self) -> None:
        """An infinity in a kernel or a constant is a bound that no number passes, on targets without infinities too."""
        self.expect_computed(cases.bounds())

    def test_integers(self) -> None:
        """Integers are exact: sums and products wrap, quotients are rounded towards zero, and a remainder has the sign
        of its divisor."""
        self.expect_computed(
            [
                *cases.integers("int32", ("Add", "Mul", "Div", "Mod")),
                *cases.integers("int64", ("Mul", "Div")),
                *cases.integers("uint8", ("Sub", "Div", "Greater", "BitShift")),
            ]
        )

    def test_bytes(self) -> None:
        """int8 is exact as other integers are; products of int8 and uint8 are added in int32; quantized numbers are
        rounded to the nearest, halves to even, and saturate."""
        self.expect_computed([*cases.integers("int8", ("Add", "Mul", "Div", "Mod")), *cases.bytes_products()])

    def test_reductions(self) -> None:
        """Sums, extremes, softmaxes and matrix products are of all their elements, along each axis, in rows of any
        length."""
        self.expect_computed(cases.reductions())

    def test_reductions_of_narrow_floats(self) -> None:
        """Sums and softmaxes of float16 and bfloat16 are added in float32."""
        names = filter(has_numpy_dtype, ("float16", "bfloat16"))
        self.expect_computed([case for name in names for case in cases.reductions(name)])

    def test_large_grids(self) -> None:
        """A grid may have more than 65,535 workgroups, as many as the target says: all of them run."""
        target, rows = self.target(), cases.many_rows(_ROWS)
        if self.capacity() < _MEMORY:
            self.skip(f"has {self.capacity()} bytes of memory, too few for {_ROWS} rows")
        executable, _ = self.compiled([rows], target)
        images = [module.image for module in executable.modules if isinstance(module.image, DeviceImage)]
        sequences = [sequence for image in images for sequence in image.functions.values()]
        largest = max((math.prod(launch.grid) for each in sequences for launch in each.launches), default=0)
        if largest <= 65_535:
            self.skip(f"has a code generator that makes {largest} workgroups of {_ROWS} rows")
        self.expect_computed([rows])
