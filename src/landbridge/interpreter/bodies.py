"""Scalar bodies of stages as lists of numpy calls, made once and run over any part of the loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, linalg, memref
from xdsl.ir import Block, Operation, SSAValue

from landbridge.errors import UnsupportedOperatorError
from landbridge.interpreter.accesses import Array, check_inside
from landbridge.interpreter.floats import fused
from landbridge.interpreter.scalars import number_of, rule_of, scalar_dtype

#: The values of a body while it runs, by index.
Slots: TypeAlias = list[Any]


class RepeatedElement(Exception):
    """Raised when iterations that run at once store to one element: they have to run one after the other."""


class StageBody:
    """Computes ``results``, values of ``block``, from the arrays of its arguments.

    ``unrounded`` are products of f32 that are returned in f64, where they are exact.
    """

    def __init__(self, block: Block, results: Sequence[SSAValue], unrounded: frozenset[SSAValue] = frozenset()) -> None:
        self._places: dict[SSAValue, int] = {}
        self._arguments = [self._location(a) for a in block.args]
        self._steps: list[Callable[[Slots, Mapping[SSAValue, Array], Sequence[Array]], None]] = []
        self._constants: list[tuple[int, Any]] = []
        needed = _needed(block, results)
        self.stores = any(isinstance(op, memref.StoreOp) for op in needed)
        for op in needed:
            self._add(op, unrounded)
        self._results = [self._location(v) for v in results]
        #: Whether results are unchanged arguments.
        self.copies = not self._steps and not self._constants

    def run(
        self, arguments: Sequence[Array | None], buffers: Mapping[SSAValue, Array], counters: Sequence[Array]
    ) -> list[Any]:
        """Returns the results, which broadcast to the loops; ``counters`` are those of ``accesses.counters_of``.

        Raises RepeatedElement before anything is stored if several iterations would store to one element.
        """
        slots: Slots = [None] * len(self._places)
        for index, value in self._constants:
            slots[index] = value
        for index, array in zip(self._arguments, arguments, strict=True):
            slots[index] = array
        for step in self._steps:
            step(slots, buffers, counters)
        return [slots[index] for index in self._results]

    def _location(self, value: SSAValue) -> int:
        return self._places.setdefault(value, len(self._places))

    def _add(self, op: Operation, unrounded: frozenset[SSAValue]) -> None:
        given = [self._location(v) for v in op.operands if not isinstance(op, memref.LoadOp | memref.StoreOp)]
        if isinstance(op, memref.StoreOp):
            self._add_store(op)
            return
        (result,) = op.results
        at = self._location(result)
        if isinstance(op, arith.ConstantOp):
            self._constants.append((at, number_of(op.value, scalar_dtype(result.type))))
        elif isinstance(op, linalg.ops.IndexOp):
            loop = op.dim.value.data

            def index(slots: Slots, buffers: Mapping[SSAValue, Array], counters: Sequence[Array]) -> None:
                slots[at] = counters[loop]

            self._steps.append(index)
        elif isinstance(op, memref.LoadOp):
            source, where = op.memref, [self._location(v) for v in op.indices]

            def load(slots: Slots, buffers: Mapping[SSAValue, Array], counters: Sequence[Array]) -> None:
                indices = tuple(slots[w] for w in where)
                check_inside(indices, buffers[source].shape)
                slots[at] = buffers[source][indices]

            self._steps.append(load)
        else:
            self._add_rule(op, at, given, unrounded)

    def _add_rule(self, op: Operation, at: int, given: list[int], unrounded: frozenset[SSAValue]) -> None:
        if op.results[0] in unrounded:
            a, b = given

            def product(slots: Slots, buffers: Mapping[SSAValue, Array], counters: Sequence[Array]) -> None:
                slots[at] = np.asarray(slots[a], np.float64) * np.asarray(slots[b], np.float64)

            self._steps.append(product)
            return
        factors = _fused_factors(op)
        if factors is not None:
            first, second, third, (sign_of_product, sign_of_addend) = factors
            a, b, c = self._location(first), self._location(second), self._location(third)

            def multiply_add(slots: Slots, buffers: Mapping[SSAValue, Array], counters: Sequence[Array]) -> None:
                x = slots[a] if sign_of_product > 0 else np.negative(slots[a])
                slots[at] = fused(x, slots[b], slots[c] if sign_of_addend > 0 else np.negative(slots[c]))

            self._steps.append(multiply_add)
            return
        rule = rule_of(op)

        def apply(slots: Slots, buffers: Mapping[SSAValue, Array], counters: Sequence[Array]) -> None:
            slots[at] = rule(*[slots[g] for g in given])

        self._steps.append(apply)

    def _add_store(self, op: memref.StoreOp) -> None:
        target, value = op.memref, self._location(op.value)
        where = [self._location(v) for v in op.indices]

        def store(slots: Slots, buffers: Mapping[SSAValue, Array], counters: Sequence[Array]) -> None:
            buffer = buffers[target]
            grid = np.broadcast_shapes(*(c.shape for c in counters))
            indices = tuple(np.broadcast_to(slots[w], grid) for w in where)
            check_inside(indices, buffer.shape)
            flat = np.ravel_multi_index(indices, buffer.shape) if buffer.ndim else np.zeros(grid, np.int64)
            if flat.size > 1 and np.unique(flat).size < flat.size:
                raise RepeatedElement
            buffer[indices] = np.broadcast_to(slots[value], grid)

        self._steps.append(store)


def _needed(block: Block, results: Iterable[SSAValue]) -> list[Operation]:
    """Returns the operations of ``block`` that ``results`` need, and those that store, in order."""
    wanted = set(results)
    found: list[Operation] = []
    for op in reversed(list(block.ops)):
        if isinstance(op, linalg.ops.YieldOp):
            continue
        if isinstance(op, memref.StoreOp) or not wanted.isdisjoint(op.results):
            if op.regions:
                raise UnsupportedOperatorError(f"{op.name} is not a scalar operation that is computed at compile time")
            found.append(op)
            wanted.update(op.operands)
    return found[::-1]


def contracts(op: Operation) -> bool:
    """Returns whether ``op`` may be contracted with another into one that rounds once."""
    flags = op.properties.get("fastmath")
    return isinstance(flags, arith.FastMathFlagsAttr) and "contract" in {flag.value for flag in flags.data}


def is_unrounded_product(value: SSAValue) -> bool:
    """Returns whether ``value`` is a product that only one sum uses, and need not be rounded before."""
    return type(value.owner) is arith.MulfOp and contracts(value.owner) and value.has_one_use()


def _fused_factors(op: Operation) -> tuple[SSAValue, SSAValue, SSAValue, tuple[int, int]] | None:
    """Returns (a, b, c, signs) of a sum or difference ``a * b + c`` that processors round once; None for another
    operation.

    The same products are fused as code generators for CPUs fuse: the first operand of the two that is one.
    """
    if not isinstance(op, arith.AddfOp | arith.SubfOp) or scalar_dtype(op.results[0].type).itemsize == 2:
        return None
    if not contracts(op):
        return None
    for number, value in enumerate(op.operands):
        if is_unrounded_product(value):
            a, b = value.owner.operands  # type: ignore[union-attr]
            signs = (1, 1) if isinstance(op, arith.AddfOp) else (1, -1) if number == 0 else (-1, 1)
            return a, b, op.operands[1 - number], signs
    return None
