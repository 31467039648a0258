"""Graphs of several nodes drawn from a seed: operators of every family over odd extents, operands constant and live.

A value knows whether any correct program gives the same bits of it: only such a value is rounded, compared or sorted,
so that results differ by no more than rounding. Bounds of its magnitude keep sums of integers exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]

OPSET = 20
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33)
#: The open dimension of graphs that have one, and the extent with which they are drawn.
OPEN, DRAWN = "N", 5
MOST_ELEMENTS = 6000
#: The largest magnitude: of whole numbers every sum is then exact in float32.
MOST = 1 << 20
FLOATS = ("float32", "float64")


class NoFit(Exception):
    """What was drawn does not fit the values there are."""


@dataclass(frozen=True)
class Value:
    """A tensor of a graph. ``bits``: every correct program computes the same bits; ``whole``: integers alone; ``most``:
    a bound of the magnitude."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bits: bool = True
    whole: bool = False
    most: float = 4.0

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))


@dataclass
class DrawnGraph:
    """A model, and which of its inputs and constants are real numbers, that may be perturbed."""

    model: onnx.ModelProto
    open: bool
    real: frozenset[str]
    inputs: dict[str, tuple[str, tuple[int, ...]]]
    kinds: tuple[str, ...]

    def feeds(self, extent: int, seed: int) -> dict[str, Array]:
        """Values of the inputs; ``extent`` of the open dimension, if there is one."""
        rng = np.random.default_rng(seed)
        found = {}
        for name, (dtype, shape) in self.inputs.items():
            given = (extent, *shape[1:]) if self.open else shape
            found[name] = number_strategy(rng, dtype, given, name in self.real)
        return found


def number_strategy(rng: np.random.Generator, dtype: str, shape: Sequence[int], real: bool) -> Array:
    """Random reals within 4, or integers from -4 to 4, of 0 to 4 without a sign."""
    if real:
        return np.clip(rng.normal(size=shape), -4, 4).astype(dtype)
    low = 0 if dtype.startswith("u") or dtype == "bool" else -4
    return rng.integers(low, 5 if dtype != "bool" else 2, shape).astype(dtype)


#: Kinds drawn as often as so many others: those with most schedules of their own.
FREQUENT = {
    **dict.fromkeys(("MatMul", "Gemm", "Einsum", "Conv"), 4),
    **dict.fromkeys(("MatMul of two", "ConvTranspose", "Softmax", "ReduceSum", "Cast", "Transpose"), 2),
}
#: A kind of node: adds one to a graph, or raises NoFit.
Kind = Callable[["Graph"], None]
KINDS: dict[str, Kind] = {}


@dataclass
class Graph:
    """A graph being drawn."""

    random: Random
    open: bool = False
    zero: bool = False
    values: list[Value] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    real: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def extent(self) -> int:
        """An extent, odd ones often."""
        return 0 if self.zero and self.random.random() < 0.1 else self.random.choice(EXTENTS)

    def shape(self, low: int = 1, high: int = 4) -> tuple[int, ...]:
        """A shape of ``low`` to ``high`` axes."""
        rank = self.random.randint(max(low, 1 + self.open), max(high, 1 + self.open))
        found = [self.extent() for _ in range(rank)]
        if self.open:
            found[0] = DRAWN
        while np.prod(found) > MOST_ELEMENTS // 4:
            found[self.random.randrange(self.open, rank)] = self.random.choice((1, 2, 3))
        return tuple(found)

    def axis(self, v: Value) -> int:
        """One of the axes of ``v`` that may be treated apart."""
        if v.rank <= self.open:
            raise NoFit
        return self.random.randrange(self.open, v.rank)

    def axes(self, v: Value) -> list[int]:
        """Some of these axes, in order."""
        if v.rank <= self.open:
            raise NoFit
        legal = range(self.open, v.rank)
        return sorted(self.random.sample(legal, self.random.randint(1, len(legal))))

    def leaf(self, dtype: str, shape: Sequence[int], *, whole: bool | None = None, live: bool | None = None) -> Value:
        """A new input, or a constant; where the graph is open a constant has no extent that is."""
        if whole is None:
            whole = dtype not in ("float16", *FLOATS) or self.random.random() < 0.5
        if live is None:
            live = self.random.random() < 0.4
        if self.open and live and (not shape or shape[0] != DRAWN):
            live = False
        elif self.open and not live and shape and shape[0] == DRAWN:
            shape = (1, *shape[1:])
        name = f"{'x' if live else 'c'}{len(self.inputs) + len(self.constants)}"
        if live:
            self.inputs[name] = dtype, tuple(shape)
        else:
            rng = np.random.default_rng(self.random.randrange(1 << 30))
            self.constants[name] = number_strategy(rng, dtype, shape, not whole)
        if not whole:
            self.real.add(name)
        v = Value(name, dtype, tuple(shape), True, whole)
        if live:
            self.values.append(v)
        return v

    def constant(self, array: Array) -> str:
        """The name of a constant that says how something is done."""
        name = f"k{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def pick(
        self,
        dtypes: Sequence[str] = FLOATS,
        low: int = 0,
        high: int = 5,
        *,
        bits: bool = False,
        whole: bool = False,
        most: float = MOST,
    ) -> Value:
        """A value there is, rather a late one, or a new input."""

        def fits(v: Value) -> bool:
            return (
                v.dtype in dtypes
                and low <= v.rank <= high
                and v.most <= most
                and (v.bits or not bits)
                and (v.whole or not whole)
            )

        found = [v for v in self.values if fits(v)]
        if found and self.random.random() < 0.85:
            return found[max(self.random.randrange(len(found)) for _ in range(2))]
        dtype = self.random.choice([d for d in dtypes for _ in range(6 if d in ("float32", "int64") else 1)])
        if most < 4 or high < max(low, 1 + self.open):
            raise NoFit
        return self.leaf(dtype, self.shape(low, min(high, 4)), whole=whole or None, live=True)

    def other_operand(self, v: Value, *, exact: bool = False) -> Value:
        """An operand that broadcasts with ``v``: of its shape, or of one with fewer or shorter axes."""
        kind = self.random.random()
        same = [
            w
            for w in self.values
            if w.dtype == v.dtype and w.shape == v.shape and (w.whole or not exact) and w.name != v.name
        ]
        if same and kind < 0.4:
            return self.random.choice(same)
        shape = list(v.shape)
        if kind > 0.6:
            shape = [1 if self.random.random() < 0.4 else e for e in shape]
        if kind > 0.8 and shape:
            shape = shape[self.random.randrange(len(shape)) :]
            if self.open and len(shape) < v.rank and shape and shape[0] == DRAWN:
                shape[0] = 1
        return self.leaf(v.dtype, shape, whole=True if exact else None)

    def add(
        self,
        op: str,
        inputs: Sequence[Value | str],
        shape: Sequence[int],
        dtype: str,
        *,
        bits: bool = False,
        whole: bool = False,
        most: float = 4.0,
        domain: str = "",
        **attributes: Any,
    ) -> Value:
        """A node of one output."""
        (made,) = self.add_several(
            op, inputs, [Value("", dtype, tuple(shape), bits, whole, most)], domain=domain, **attributes
        )
        return made

    def add_several(
        self, op: str, inputs: Sequence[Value | str], outputs: Sequence[Value], domain: str = "", **attributes: Any
    ) -> list[Value]:
        """A node whose outputs are like ``outputs``."""
        for v in outputs:
            if v.most > MOST or v.count > MOST_ELEMENTS:
                raise NoFit
        names = [v if isinstance(v, str) else v.name for v in inputs]
        made = [
            Value(f"{op.lower()}{len(self.nodes)}_{i}", v.dtype, v.shape, v.bits, v.whole, v.most)
            for i, v in enumerate(outputs)
        ]
        self.nodes.append(
            helper.make_node(op, names, [v.name for v in made], name=f"n{len(self.nodes)}", domain=domain, **attributes)
        )
        self.used.update(names)
        self.values += made
        return made

    def finished(self) -> DrawnGraph:
        """The model; what no node reads is its outputs."""
        nodes = [n for node in self.nodes for n in node.output]
        outputs = [v for v in self.values if v.name in nodes and v.name not in self.used]
        read = {name for node in self.nodes for name in node.input}
        inputs = {name: each for name, each in self.inputs.items() if name in read}
        graph = helper.make_graph(
            self.nodes,
            "drawn",
            [self._info(name, dtype, shape) for name, (dtype, shape) in inputs.items()],
            [self._info(v.name, v.dtype, v.shape) for v in outputs],
            [numpy_helper.from_array(a, name) for name, a in self.constants.items() if name in read],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        return DrawnGraph(model, self.open, frozenset(self.real), inputs, tuple(n.op_type for n in self.nodes))

    def _info(self, name: str, dtype: str, shape: Sequence[int]) -> onnx.ValueInfoProto:
        dims: list[int | str] = [*shape]
        if self.open:
            dims[0] = OPEN
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims)


def draw_graph(seed: int) -> DrawnGraph:
    """The graph of ``seed``: 3 to 15 nodes."""
    import graph_kinds  # noqa: F401  registers the kinds

    random = Random(seed)
    graph = Graph(random, open=random.random() < 0.2, zero=random.random() < 0.04)
    wanted, names = random.randint(3, 15), [name for name in sorted(KINDS) for _ in range(FREQUENT.get(name, 1))]
    for _ in range(20 * wanted):
        if len(graph.nodes) >= wanted:
            break
        kind = KINDS[random.choice(names)]
        state = len(graph.nodes), len(graph.values), graph.inputs, graph.constants, graph.used, graph.real
        graph.inputs, graph.constants = dict(graph.inputs), dict(graph.constants)
        graph.used, graph.real = set(graph.used), set(graph.real)
        try:
            kind(graph)
        except NoFit:
            del graph.nodes[state[0] :], graph.values[state[1] :]
            graph.inputs, graph.constants, graph.used, graph.real = state[2:]
    return graph.finished()
