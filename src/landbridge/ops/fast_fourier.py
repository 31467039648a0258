"""Fourier transforms as a kernel of short stages: a product with a small table, then butterflies, each of which leaves
its results in the order that the next one reads (Stockham's order, so that nothing is permuted).

Between stages a row of points stands as ``[blocks, 2, done]``: ``blocks`` transforms of ``done`` points each, real
parts before imaginary ones, so that vectors lie along bins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import prod
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.size_exprs import extent_expr
from landbridge.ops.butterflies import Complex, butterfly
from landbridge.ops.context import Array, OpContext, Operand
from landbridge.ops.fourier_plan import FourierPlan
from landbridge.records import record
from landbridge.sizes.size import Extent, product, same

#: Points from which on the stages of a few rows are kernels of their own, whose tasks many threads share.
_LONG_ROW = 1 << 15
_FEW_ROWS = 4

#: The indices at which an operand has part ``part`` of point ``at``, in a row that ``lead`` counts.
Location: TypeAlias = Callable[[Sequence[Any], Any, Any], Sequence[Any]]


@record(frozen=True, eq=False)
class Signal:
    """The input of a transform: elements of ``operand``, in rows that loops of extents ``rows`` count.

    A row has ``used`` points of ``parts`` parts each (1: real, 2: complex), whose indices ``location`` gives. Points
    are first multiplied by ``window``, of ``used`` elements or more.
    """

    operand: Operand
    rows: tuple[Extent, ...]
    used: Extent
    parts: int
    location: Location
    window: Operand | None = None


@record(frozen=True)
class Spectrum:
    """The output of a transform of ``points`` points: the first ``bins`` bins of each row, of ``parts`` parts each (1:
    the real one, 2: complex), at the indices that ``location`` gives in a result of ``shape``.

    ``inverse``: it is the inverse transform, which is divided by ``points``.
    """

    points: int
    bins: int
    parts: int
    inverse: bool
    shape: Sequence[Extent]
    location: Location


@record(frozen=True, eq=False)
class _Stage:
    """One stage of a transform. ``write(p, source, tables, target)`` builds its loops: they read ``source`` and the
    constants ``tables``, and write ``target``, whose extents are those of the rows, then ``shape``.
    """

    shape: tuple[int, ...]
    write: Callable[[PrimBuilder, SSAValue, Sequence[SSAValue], SSAValue], None]
    tables: Sequence[Operand] = field(default_factory=tuple)


def roots(exponents: Array, points: int, sign: int) -> Array:
    """Returns ``exp(sign * 2 pi i e / points)`` of each integer e of ``exponents``: complex128, of the same shape."""
    # within one period: the rounding of a larger angle would be an error of as many more eps
    return np.asarray(np.exp(sign * 2j * np.pi * (exponents % points) / points))


def transformed(c: OpContext, signal: Signal, spectrum: Spectrum, plan: FourierPlan) -> Operand:
    """Computes the transform of each row, in the dtype of the signal; missing points count as 0."""
    dtype = c.dtype(signal.operand)
    stages = _Stages(signal, spectrum, plan, accumulator(dtype))
    chain, rows = stages.chain(), signal.rows
    kind = numpy_dtype(stages.dtype)

    def values(stage: _Stage) -> list[SSAValue]:
        return [c.value(t.astype(kind) if isinstance(t, np.ndarray) else t) for t in stage.tables]

    if spectrum.points >= _LONG_ROW and c.g.expected(product(rows)) < _FEW_ROWS:
        current = c.value(signal.operand)
        for stage in chain:
            last = stage is chain[-1]
            shape = (spectrum.shape, dtype) if last else ((*rows, *stage.shape), stages.dtype)

            def one(p: PrimBuilder, stage: _Stage = stage) -> None:
                stage.write(p, p.inputs[0], p.inputs[1:], p.outputs[0])

            current = c.g.call("fourier", [current, *values(stage)], [shape], one)[0]
        return current

    def build(p: PrimBuilder) -> None:
        source, tables = p.inputs[0], p.inputs[1:]
        for stage in chain:
            target = p.outputs[0] if stage is chain[-1] else p.temp((*rows, *stage.shape), stages.dtype)
            stage.write(p, source, tables[: len(stage.tables)], target)
            source, tables = target, tables[len(stage.tables) :]

    operands = [c.value(signal.operand), *(v for stage in chain for v in values(stage))]
    return c.g.call("fourier", operands, [(spectrum.shape, dtype)], build)[0]


class _Stages:
    """Builds the stages of one transform, which compute in ``dtype``, the accumulator of the signal's."""

    def __init__(self, signal: Signal, spectrum: Spectrum, plan: FourierPlan, dtype: str) -> None:
        self.signal, self.spectrum, self.plan, self.dtype = signal, spectrum, plan, dtype
        self.lead = len(signal.rows)
        self.sign = 1 if spectrum.inverse else -1

    def chain(self) -> list[_Stage]:
        """Returns the stages in order; the first reads the signal's operand, the last writes the result."""
        signal, spectrum, plan = self.signal, self.spectrum, self.plan
        scale = 1 / spectrum.points if spectrum.inverse else 1.0
        if plan.length:
            return [*self._convolution(scale), self._result()]
        if signal.window is None and same(signal.used, spectrum.points) is True:
            return [*self._transform(signal.location, signal.parts, self.sign, scale), self._result()]
        first = self._weighed()
        return [first, *self._transform(_interleaved, signal.parts, self.sign, scale), self._result()]

    def _generic(
        self, p: PrimBuilder, extents: Sequence[Extent], ins: Sequence[Access], outs: Sequence[Access], body: Any
    ) -> None:
        p.generic("p" * (self.lead + len(extents)), (*self.signal.rows, *extents), ins, outs, body)

    def _weighed(self) -> _Stage:
        """Returns the stage that multiplies points by their window and appends zeros: [points, parts]."""
        signal, points, n = self.signal, self.spectrum.points, self.lead
        window = [] if signal.window is None else [signal.window]

        def write(p: PrimBuilder, source: SSAValue, tables: Sequence[SSAValue], target: SSAValue) -> None:
            ins: list[Access] = [(source, lambda *d: signal.location(d[:n], d[n], d[n + 1]))]
            ins += [(t, lambda *d: [d[n]]) for t in tables]

            def weigh(s: ScalarBuilder, v: Value, *weight: Value) -> Value:
                v = s.cast(v, self.dtype)
                return v * s.cast(weight[0], self.dtype) if weight else v

            self._generic(p, (signal.used, signal.parts), ins, [(target, lambda *d: d)], weigh)
            used = extent_expr(signal.used)
            self._zeros(p, points - signal.used, target, lambda d, at, part: [*d, at + used, part], signal.parts)

        return _Stage((points, signal.parts), write, window)

    def _zeros(self, p: PrimBuilder, count: Extent, target: SSAValue, location: Location, parts: int) -> None:
        if same(count, 0) is not True:
            n = self.lead
            outs: list[Access] = [(target, lambda *d: location(d[:n], d[n], d[n + 1]))]
            self._generic(p, (count, parts), [], outs, lambda s: s.const(0, self.dtype))

    def _transform(self, location: Location, parts: int, sign: int, scale: float) -> list[_Stage]:
        """Returns the stages from points at ``location`` to [1, 2, points]."""
        first, *others = self.plan.radices
        points = prod(self.plan.radices)
        stages = [self._table(points, first, location, parts, sign, scale)]
        done = first
        for radix in others:
            stages.append(self._butterflies(points, radix, done, sign))
            done *= radix
        return stages

    def _table(self, points: int, radix: int, location: Location, parts: int, sign: int, scale: float) -> _Stage:
        """Returns the stage of transforms of ``radix`` points at a distance of ``points / radix``, by one product."""
        blocks, n, rows = points // radix, self.lead, self.signal.rows
        w = roots(np.outer(np.arange(radix), np.arange(radix)), radix, sign) * scale
        # [point, in part, out part, bin]
        table = np.stack([np.stack([w.real, w.imag], 1), np.stack([-w.imag, w.real], 1)], 1)[:, :parts]

        def write(p: PrimBuilder, source: SSAValue, tables: Sequence[SSAValue], target: SSAValue) -> None:
            p.generic(
                "p" * (n + 3) + "rr",
                (*rows, blocks, 2, radix, radix, parts),
                [
                    (source, lambda *d: location(d[:n], d[n + 3] * blocks + d[n], d[n + 4])),
                    (tables[0], lambda *d: [d[n + 3], d[n + 4], d[n + 1], d[n + 2]]),
                ],
                [(target, lambda *d: d[: n + 3])],
                lambda s, total, x, w: total + x * w,
                init=0,
            )

        return _Stage((blocks, 2, radix), write, [table])

    def _butterflies(self, points: int, radix: int, done: int, sign: int) -> _Stage:
        """Returns the stage that joins ``radix`` transforms of ``done`` points each to one of ``radix * done``."""
        blocks, n = points // (radix * done), self.lead
        w = roots(np.outer(np.arange(1, radix), np.arange(done)), radix * done, sign)
        table = np.stack([w.real, w.imag], 1)  # [point - 1, part, bin]

        def write(p: PrimBuilder, source: SSAValue, tables: Sequence[SSAValue], target: SSAValue) -> None:
            pairs = [(i, part) for i in range(radix) for part in range(2)]
            ins: list[Access] = [
                (source, lambda *d, i=i, part=part: [*d[:n], d[n] + i * blocks, part, d[n + 1]]) for i, part in pairs
            ]
            ins += [(tables[0], lambda *d, i=i, part=part: [i - 1, part, d[n + 1]]) for i, part in pairs[2:]]
            outs: list[Access] = [
                (target, lambda *d, i=i, part=part: [*d[: n + 1], part, d[n + 1] + i * done]) for i, part in pairs
            ]

            def body(s: ScalarBuilder, *values: Value) -> list[Value]:
                elements = [Complex(*pair) for pair in zip(values[::2], values[1::2], strict=True)]
                points, factors = elements[:radix], elements[radix:]
                weighed = [points[0], *(v.times(w) for v, w in zip(points[1:], factors, strict=True))]
                return [v for bin_ in butterfly(weighed, sign) for v in bin_]

            self._generic(p, (blocks, done), ins, outs, body)

        return _Stage((blocks, 2, radix * done), write, [table])

    def _result(self) -> _Stage:
        """Returns the stage that stores the requested bins in the layout of the model."""
        spectrum, n = self.spectrum, self.lead

        def write(p: PrimBuilder, source: SSAValue, _: Sequence[SSAValue], target: SSAValue) -> None:
            self._generic(
                p,
                (spectrum.bins, spectrum.parts),
                [(source, lambda *d: [*d[:n], 0, d[n + 1], d[n]])],
                [(target, lambda *d: spectrum.location(d[:n], d[n], d[n + 1]))],
                lambda s, v: v,
            )

        return _Stage((), write)

    def _convolution(self, scale: float) -> list[_Stage]:
        """Returns the transform as a circular convolution of ``plan.length``: k n is (k**2 + n**2 - (k - n)**2) / 2."""
        points, length = self.spectrum.points, self.plan.length
        chirp = roots(np.arange(points) ** 2, 2 * points, self.sign)
        kernel = np.zeros(length, np.complex128)
        kernel[:points] = chirp.conj()
        kernel[length - points + 1 :] = chirp[:0:-1].conj()
        filter_ = np.fft.fft(kernel) / length * scale
        planes = [np.stack([v.real, v.imag]) for v in (chirp, filter_)]
        return [
            self._chirped(planes[0]),
            *self._transform(_planar, 2, -1, 1.0),
            self._multiplied(planes[1], length),
            *self._transform(lambda lead, at, part: [*lead, 0, part, at], 2, 1, 1.0),
            self._multiplied(planes[0], points),
        ]

    def _chirped(self, chirp: Array) -> _Stage:
        """Returns the stage that multiplies points by the chirp and their window and appends zeros: [2, length]."""
        signal, length, n = self.signal, self.plan.length, self.lead
        window = [] if signal.window is None else [signal.window]

        def write(p: PrimBuilder, source: SSAValue, tables: Sequence[SSAValue], target: SSAValue) -> None:
            ins: list[Access] = [
                (source, lambda *d, part=part: signal.location(d[:n], d[n], part)) for part in range(signal.parts)
            ]
            ins += [(tables[0], lambda *d, part=part: [part, d[n]]) for part in range(2)]
            ins += [(t, lambda *d: [d[n]]) for t in tables[1:]]

            def body(s: ScalarBuilder, *values: Value) -> list[Value]:
                given, (re, im), *weight = (
                    values[: signal.parts],
                    values[signal.parts :][:2],
                    *values[signal.parts + 2 :],
                )
                factor = Complex(re, im)
                for w in weight:
                    factor = Complex(factor.re * w, factor.im * w)
                if signal.parts == 1:
                    return [given[0] * factor.re, given[0] * factor.im]
                return list(Complex(*given).times(factor))

            outs: list[Access] = [(target, lambda *d, part=part: [*d[:n], part, d[n]]) for part in range(2)]
            self._generic(p, (signal.used,), ins, outs, body)
            used = extent_expr(signal.used)
            self._zeros(p, length - signal.used, target, lambda d, at, part: [*d, part, at + used], 2)

        return _Stage((2, length), write, [chirp, *window])

    def _multiplied(self, factors: Array, count: int) -> _Stage:
        """Returns the stage that multiplies the first ``count`` of [1, 2, length] by a table of factors [2, count]."""
        n = self.lead

        def write(p: PrimBuilder, source: SSAValue, tables: Sequence[SSAValue], target: SSAValue) -> None:
            ins: list[Access] = [(source, lambda *d, part=part: [*d[:n], 0, part, d[n]]) for part in range(2)]
            ins += [(tables[0], lambda *d, part=part: [part, d[n]]) for part in range(2)]
            outs: list[Access] = [(target, lambda *d, part=part: [*d[:n], 0, part, d[n]]) for part in range(2)]

            def body(s: ScalarBuilder, *v: Value) -> list[Value]:
                return list(Complex(v[0], v[1]).times(Complex(v[2], v[3])))

            self._generic(p, (count,), ins, outs, body)

        return _Stage((1, 2, count), write, [factors])


def _interleaved(lead: Sequence[Any], at: Any, part: Any) -> Sequence[Any]:
    return [*lead, at, part]


def _planar(lead: Sequence[Any], at: Any, part: Any) -> Sequence[Any]:
    return [*lead, part, at]
