"""Small graphs that are drawn: open extents, sizes that are computed, given or constant, and runs of several sizes.

A graph grows by a node at a time. onnxruntime runs each node at every size, and says what fits: a node that it refuses
at a size from 1 on is not taken, and one that it refuses where an extent is 0 ends the run of that size.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]

OPSET = 18
#: Elements of the largest tensor of a graph.
_LARGEST = 1 << 15


@dataclass(frozen=True)
class Run:
    """What is given, and what onnxruntime makes of it, by name."""

    feeds: dict[str, Array]
    expected: dict[str, Array]


@dataclass(frozen=True)
class Graph:
    """A model whose runs differ in the sizes of their inputs alone, and in the elements that say sizes."""

    model: onnx.ModelProto
    runs: list[Run]


def drawn(seed: int) -> Graph:
    """The graph of ``seed``, with at least one run."""
    return _Drawing(seed).graph()


class _Drawing:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.noise = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        #: Of each name the array of each run; None where onnxruntime had none.
        self.values: dict[str, list[Array | None]] = {}
        self.inputs: list[onnx.ValueInfoProto] = []
        self.count = 0
        names = "abc"[: self.random.choice((1, 2, 2, 3))]
        ranges = ((2, 9), (2, 9), (1, 1), (10, 40), (1, 12))
        self.sizes = [{n: self.random.randint(*each) for n in names} for each in ranges]
        if self.random.random() < 0.6:
            empty = {n: self.random.randint(1, 6) for n in names}
            empty[self.random.choice(names)] = 0
            self.sizes.append(empty)
        self.floats = [self.data(names) for _ in range(self.random.choice((1, 1, 2)))]

    # Values that are given ------------------------------------------------------------------------------------------

    def name(self, of: str) -> str:
        self.count += 1
        return f"{of}{self.count}"

    def data(self, names: str) -> str:
        """An input of floats, some of whose extents are open."""
        rank = self.random.choice((1, 2, 2, 3, 3, 4))
        axes = [self.random.choice((*names, *names, 1, 2, 3, 4, 8)) for _ in range(rank)]
        if not any(isinstance(a, str) for a in axes):
            axes[self.random.randrange(rank)] = self.random.choice(names)
        shapes = [tuple(sizes[a] if isinstance(a, str) else a for a in axes) for sizes in self.sizes]
        return self.given("x", axes, [self.floats_of(shape) for shape in shapes])

    def floats_of(self, shape: Sequence[int]) -> Array:
        """Eighths, so that most sums are exact, in any order."""
        return (self.noise.integers(-16, 17, shape) / 8).astype(np.float32)

    def given(self, of: str, axes: Sequence[int | str], arrays: list[Array]) -> str:
        name = self.name(of)
        kind = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(axes)))
        self.values[name] = list(arrays)
        return name

    def constant(self, array: Any, dtype: Any = np.int64) -> str:
        name = self.name("c")
        self.constants[name] = np.array(array, dtype)
        self.values[name] = [self.constants[name]] * len(self.sizes)
        return name

    # Nodes ----------------------------------------------------------------------------------------------------------

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str] | None:
        """The results of a node; None where onnxruntime does not take it."""
        names = [self.name("v") for _ in range(outputs)]
        made = helper.make_node(op, inputs, names, **attributes)
        results = self.results(made)
        if results is None:
            return None
        self.nodes.append(made)
        for i, name in enumerate(names):
            self.values[name] = [None if r is None else r[i] for r in results]
        return names

    def results(self, node: onnx.NodeProto) -> list[list[Array] | None] | None:
        used = [name for name in node.input if name]
        infos = []
        for name in dict.fromkeys(used):
            known = next((a for a in self.values[name] if a is not None), None)
            assert known is not None
            infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(known.dtype), None))
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
        graph = helper.make_graph([node], "one", infos, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        try:
            session = _session(model)
        except Exception:
            return None
        found: list[list[Array] | None] = []
        for i, sizes in enumerate(self.sizes):
            feeds = {name: self.values[name][i] for name in used}
            if any(array is None for array in feeds.values()):
                found.append(None)
                continue
            try:
                results = session.run(None, feeds)
            except Exception:
                if 0 not in sizes.values():
                    return None
                results = None
            if results is not None and node.op_type == "ReduceMean" and not np.size(self.values[used[0]][i]):
                results = None if np.size(results[0]) else results  # ONNX does not say what a mean of nothing is
            if results is not None and any(np.size(r) > _LARGEST or not _is_tame(r) for r in results):
                return None
            found.append(results)
        return found

    def shapes(self, name: str) -> list[tuple[int, ...]]:
        """The shapes of ``name`` in the runs that are not at 0."""
        return [
            a.shape for a, s in zip(self.values[name], self.sizes, strict=True) if 0 not in s.values() and a is not None
        ]

    def rank(self, name: str) -> int:
        return len(self.shapes(name)[0])

    def pick(self, ranks: Sequence[int] = (0, 1, 2, 3, 4, 5)) -> str | None:
        """A float tensor, of late ones mostly."""
        legal = [name for name in self.floats if self.rank(name) in ranks]
        return self.random.choice(legal[-4:] if self.random.random() < 0.7 else legal) if legal else None

    # Numbers --------------------------------------------------------------------------------------------------------

    def number(self, low: int = 1, high: int = 6) -> str | None:
        """A tensor of one integer: constant, of an input, of data or computed from an extent."""
        way = self.random.random()
        if way < 0.35:
            return self.constant([self.random.randint(low, high)])
        if way < 0.55:
            return self.given("k", [1], [np.array([self.random.randint(low, high)]) for _ in self.sizes])
        if way < 0.62:
            x = self.given("f", [1], [np.array([self.random.randint(low, high)], np.float32) for _ in self.sizes])
            doubled = self.node("Add", x, x)
            halved = doubled and self.node("Mul", doubled[0], self.constant([0.5], np.float32))
            made = halved and self.node("Cast", halved[0], to=TensorProto.INT64)
            return made[0] if made else None
        return self.computed()

    def extent(self, name: str, axis: int) -> str:
        shape = self.node("Shape", name)
        assert shape is not None
        made = self.node("Gather", shape[0], self.constant([axis]))
        assert made is not None
        return made[0]

    def computed(self) -> str | None:
        name = self.pick((1, 2, 3, 4, 5))
        if name is None:
            return None
        number: str | None = self.extent(name, self.random.randrange(self.rank(name)))
        for _ in range(self.random.choice((0, 1, 1, 2))):
            op = self.random.choice(("Add", "Sub", "Mul", "Div", "Neg", "Max", "Min"))
            assert number is not None
            if op == "Neg":
                made = self.node(op, number)
            else:
                made = self.node(op, number, self.constant([self.random.randint(1, 3)]))
            number = made[0] if made else None
            if number is None:
                return None
        return number

    def vector(self, values: Sequence[str | None]) -> str | None:
        if any(n is None for n in values):
            return None
        made = self.node("Concat", *[n for n in values if n], axis=0)
        return made[0] if made else None

    # The whole ------------------------------------------------------------------------------------------------------

    def graph(self) -> Graph:
        for _ in range(self.random.randint(1, 7)):
            for _ in range(12):
                step = self.random.choice(STEPS)
                if step(self):
                    break
        names = [n for n in self.floats if n not in {i.name for i in self.inputs}] or self.floats
        outputs = [names[-1]]
        if len(names) > 2 and self.random.random() < 0.3:
            outputs.append(self.random.choice(names[:-1]))
        return self.finished(outputs)

    def finished(self, outputs: list[str]) -> Graph:
        needed, nodes = set(outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                nodes.insert(0, node)
                needed.update(node.input)
        if not nodes:
            node = helper.make_node("Relu", [outputs[0]], ["y"])
            nodes, outputs, results = [node], ["y"], self.results(node)
            assert results is not None
            self.values["y"] = [None if r is None else r[0] for r in results]
        infos = []
        for name in outputs:
            array = next(a for a in self.values[name] if a is not None)
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            infos.append(helper.make_tensor_value_info(name, kind, [f"{name}_{i}" for i in range(array.ndim)]))
        inputs = [i for i in self.inputs if i.name in needed]
        made = [numpy_helper.from_array(a, n) for n, a in self.constants.items() if n in needed]
        graph = helper.make_graph(nodes, "drawn", inputs, infos, made)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        session = _session(model)
        runs = []
        for i in range(len(self.sizes)):
            feeds = {v.name: self.values[v.name][i] for v in inputs}
            if all(self.values[name][i] is not None for name in outputs):
                found = session.run(None, feeds)
                runs.append(Run(feeds, dict(zip(outputs, found, strict=True))))  # type: ignore[arg-type]
        return Graph(model, runs)


def _session(model: onnx.ModelProto) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def _is_tame(array: Array) -> bool:
    return array.dtype.kind != "f" or not array.size or bool(np.abs(array).max() < 1e4)


# What a graph grows by. Each says whether it did. ------------------------------------------------------------

Step = Callable[[_Drawing], bool]


def _add(d: _Drawing, made: list[str] | None) -> bool:
    if made is None:
        return False
    for name in made:
        known = next((a for a in d.values[name] if a is not None), None)
        if known is None or known.dtype != np.float32:
            continue
        d.floats.append(name)
    return True


def _unary(d: _Drawing) -> bool:
    x = d.pick()
    op = d.random.choice(("Relu", "Tanh", "Neg", "Abs", "Sigmoid", "HardSwish", "Floor", "Identity"))
    return x is not None and _add(d, d.node(op, x))


def _binary(d: _Drawing) -> bool:
    x, y = d.pick(), d.pick()
    if x is None or y is None:
        return False
    if d.random.random() < 0.2:
        shape = d.shapes(x)[0]
        y = d.constant(d.floats_of([1] * (len(shape) - 1)) if shape else 0.5, np.float32)
    return _add(d, d.node(d.random.choice(("Add", "Sub", "Mul", "Max", "Min")), x, y))


def _where(d: _Drawing) -> bool:
    x, y = d.pick(), d.pick()
    if x is None or y is None:
        return False
    more = d.node(d.random.choice(("Greater", "LessOrEqual")), x, d.constant(0.0625, np.float32))
    return more is not None and _add(d, d.node("Where", more[0], x, y))


def _reshape(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3, 4))
    if x is None:
        return False
    rank, kind = d.rank(x), d.random.randrange(6)
    target: str | None
    if kind == 0:
        target = d.constant([-1])
    elif kind == 1:
        target = d.constant([0] * (rank - 1) + [-1, d.random.choice((1, 2, 4))])
    elif kind == 2:
        target = d.constant([d.random.choice((1, 2, 3, 4)), -1])
    elif kind == 3 and rank > 1:  # two axes become one
        at = d.random.randrange(rank - 1)
        both = d.node("Mul", d.extent(x, at), d.extent(x, at + 1))
        rest = [d.extent(x, i) for i in range(rank)]
        target = d.vector([*rest[:at], both[0] if both else None, *rest[at + 2 :]])
    elif kind == 4:  # of another's extents
        y = d.pick((1, 2, 3, 4))
        shape = d.node("Shape", y) if y else None
        target = shape[0] if shape else None
    else:
        axis, by = d.random.randrange(rank), d.random.choice((1, 2, 4))
        parts = [[d.extent(x, i)] for i in range(rank)]
        quotient = d.node("Div", parts[axis][0], d.constant([by]))
        parts[axis] = [quotient[0] if quotient else "", d.constant([by])]
        target = d.vector([each for part in parts for each in part])
    return target is not None and _add(d, d.node("Reshape", x, target))


def _flatten(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3, 4))
    return x is not None and _add(d, d.node("Flatten", x, axis=d.random.randint(0, d.rank(x))))


def _unsqueeze(d: _Drawing) -> bool:
    x = d.pick((0, 1, 2, 3))
    return x is not None and _add(d, d.node("Unsqueeze", x, d.constant([d.random.randint(0, d.rank(x))])))


def _squeeze(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3, 4, 5))
    return x is not None and _add(d, d.node("Squeeze", x, d.constant([d.random.randrange(d.rank(x))])))


def _transpose(d: _Drawing) -> bool:
    x = d.pick((2, 3, 4))
    if x is None:
        return False
    perm = list(range(d.rank(x)))
    d.random.shuffle(perm)
    return _add(d, d.node("Transpose", x, perm=perm))


def _bound(d: _Drawing) -> str | None:
    # 2**31 - 1 and 2**63 - 1 are the other end to onnxruntime where the step is below 0, against ONNX.
    if d.random.random() < 0.5:
        return d.constant([d.random.choice((0, 0, 1, 2, -1, -2, -3, 5, 2**31 - 2, 2**63 - 2, -(2**31), -(2**63)))])
    return d.number(-3, 6)


def _slice(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3, 4))
    if x is None:
        return False
    axes = d.random.sample(range(d.rank(x)), d.random.randint(1, min(2, d.rank(x))))
    starts, ends = d.vector([_bound(d) for _ in axes]), d.vector([_bound(d) for _ in axes])
    steps: str | None = d.constant([d.random.choice((1, 1, 1, 2, 3, -1, -1, -2)) for _ in axes])
    if d.random.random() < 0.15:
        steps = d.vector([d.number(1, 3) for _ in axes])
    if starts is None or ends is None or steps is None:
        return False
    written = [a - d.rank(x) if d.random.random() < 0.3 else a for a in axes]
    return _add(d, d.node("Slice", x, starts, ends, d.constant(written), steps))


def _concat(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3, 4))
    y = d.pick((d.rank(x),)) if x else None
    if x is None or y is None:
        return False
    parts = [x, y, x][: d.random.choice((2, 2, 3))]
    d.random.shuffle(parts)
    return _add(d, d.node("Concat", *parts, axis=d.random.randrange(d.rank(x))))


_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp", "ReduceProd")


def _reduce(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3, 4))
    if x is None:
        return False
    axes = d.random.sample(range(d.rank(x)), d.random.randint(1, d.rank(x)))
    op, keep = d.random.choice(_REDUCTIONS), d.random.randrange(2)
    if d.random.random() < 0.25:
        return _add(d, d.node(op, x, keepdims=keep))
    if op == "ReduceSum":
        return _add(d, d.node(op, x, d.constant(axes), keepdims=keep))
    return _add(d, d.node(op, x, d.constant(axes), keepdims=keep))


def _arg(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3))
    if x is None:
        return False
    op, axis = d.random.choice(("ArgMax", "ArgMin")), d.random.randrange(d.rank(x))
    made = d.node(op, x, axis=axis, keepdims=d.random.randrange(2))
    return made is not None and _add(d, d.node("Cast", made[0], to=TensorProto.FLOAT))


def _gather(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3, 4))
    if x is None:
        return False
    axis, way = d.random.randrange(d.rank(x)), d.random.randrange(4)
    if way == 0:
        indices: str | None = d.constant(d.random.choice((0, -1, [0], [0, -1, 0], [[0], [-1]], [1, 0])))
    elif way == 1:
        name = d.extent(x, axis)
        less = d.node("Sub", name, d.constant([1]))
        indices = less[0] if less else None
    elif way == 2:
        indices = d.given("i", [3], [d.noise.integers(-1, 1, 3) for _ in d.sizes])
    else:
        length = d.node("Squeeze", d.extent(x, axis), d.constant([0]))
        made = d.node("Range", d.constant(0), length[0], d.constant(d.random.choice((1, 2)))) if length else None
        indices = made[0] if made else None
    return indices is not None and _add(d, d.node("Gather", x, indices, axis=axis))


def _gather_elements(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3))
    if x is None:
        return False
    axis = d.random.randrange(d.rank(x))
    made = d.node("ArgMin", x, axis=axis)
    return made is not None and _add(d, d.node("GatherElements", x, made[0], axis=axis))


def _product(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3, 4))
    if x is None:
        return False
    ends = {shape[-1] for shape in d.shapes(x)}
    if len(ends) == 1 and d.random.random() < 0.7:
        y: str | None = d.constant(d.floats_of([ends.pop(), d.random.choice((1, 3, 8, 17))]), np.float32)
    elif d.random.random() < 0.5:
        perm = list(range(d.rank(x)))
        perm[-2:] = perm[-2:][::-1]
        made = d.node("Transpose", x, perm=perm)
        y = made[0] if made else None
    else:
        y = d.pick((1, 2, 3))
    if y is None:
        return False
    return _add(d, d.node("MatMul", x, y) if d.random.random() < 0.8 else d.node("MatMul", y, x))


def _pad(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3, 4))
    if x is None:
        return False
    rank = d.rank(x)
    mode = d.random.choice(("constant", "constant", "edge", "reflect", "wrap"))
    axes = d.random.sample(range(rank), d.random.randint(1, min(2, rank)))
    pads = d.vector(
        [d.number(0, 3) if d.random.random() < 0.5 else d.constant([d.random.randint(-1, 2)]) for _ in axes * 2]
    )
    if pads is None:
        return False
    value = d.constant(0.5, np.float32) if d.random.random() < 0.3 else ""
    return _add(d, d.node("Pad", x, pads, value, d.constant(axes), mode=mode))


def _resize(d: _Drawing) -> bool:
    x = d.pick((3, 4))
    if x is None:
        return False
    rank = d.rank(x)
    mode = d.random.choice(("nearest", "linear", "cubic"))
    where = d.random.choice(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))
    more = {"mode": mode, "coordinate_transformation_mode": where}
    if mode == "nearest":
        more["nearest_mode"] = d.random.choice(("floor", "round_prefer_floor", "ceil"))
    count = d.random.randint(1, 2)
    if d.random.random() < 0.5:
        # onnxruntime rounds the length that align_corners divides by, against ONNX
        factors = (2.0, 1.0, 3.0) if where == "align_corners" else (2.0, 1.5, 3.0, 0.5)
        scales = [1.0] * (rank - count) + [d.random.choice(factors) for _ in range(count)]
        return _add(d, d.node("Resize", x, "", d.constant(scales, np.float32), **more))
    sizes = d.vector([d.extent(x, i) for i in range(rank - count)] + [d.number(1, 12) for _ in range(count)])
    return sizes is not None and _add(d, d.node("Resize", x, "", "", sizes, **more))


def _expand(d: _Drawing) -> bool:
    x = d.pick((0, 1, 2, 3))
    if x is None:
        return False
    if d.random.random() < 0.3:
        y = d.pick((1, 2, 3))
        shape = d.node("Shape", y) if y else None
        return shape is not None and _add(d, d.node("Expand", x, shape[0]))
    added = [d.number() for _ in range(d.random.randint(0, 1))]
    retained = [d.constant([1]) if d.random.random() < 0.5 else d.extent(x, i) for i in range(d.rank(x))]
    if not added + retained:
        return False
    target = d.vector(added + retained)
    return target is not None and _add(d, d.node("Expand", x, target))


def _tile(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3))
    if x is None:
        return False
    repeats = d.vector([d.number(0, 3) if d.random.random() < 0.5 else d.constant([1]) for _ in range(d.rank(x))])
    return repeats is not None and _add(d, d.node("Tile", x, repeats))


def _filled(d: _Drawing) -> bool:
    shape = d.vector([d.number(0, 5) for _ in range(d.random.randint(1, 2))])
    if shape is None:
        return False
    return _add(d, d.node("ConstantOfShape", shape, value=numpy_helper.from_array(np.array([0.5], np.float32))))


def _range(d: _Drawing) -> bool:
    number = d.number(0, 9)
    limit = d.node("Squeeze", number, d.constant([0])) if number else None
    made = d.node("Range", d.constant(d.random.choice((0, 0, 1))), limit[0], d.constant(1)) if limit else None
    return made is not None and _add(d, d.node("Cast", made[0], to=TensorProto.FLOAT))


def _running(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3))
    if x is None:
        return False
    return _add(
        d,
        d.node(
            "CumSum",
            x,
            d.constant(d.random.randrange(d.rank(x))),
            exclusive=d.random.randrange(2),
            reverse=d.random.randrange(2),
        ),
    )


def _top(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3))
    k = d.number(1, 3)
    if x is None or k is None:
        return False
    axis = d.random.randrange(d.rank(x))
    made = d.node("TopK", x, k, axis=axis, outputs=2, largest=d.random.randrange(2))
    return made is not None and _add(d, made[:1])


def _split(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3))
    if x is None:
        return False
    axis = d.random.randrange(d.rank(x))
    if d.random.random() < 0.4:
        return _add(d, d.node("Split", x, axis=axis, outputs=2, num_outputs=2))
    number = d.number(0, 3)
    rest = d.node("Sub", d.extent(x, axis), number) if number else None
    sizes = d.vector([number, rest[0]]) if rest else None
    return sizes is not None and _add(d, d.node("Split", x, sizes, axis=axis, outputs=2))


def _rows(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3))
    op = d.random.choice(("Softmax", "LogSoftmax", "LayerNormalization"))
    if x is None:
        return False
    axis = d.random.randrange(d.rank(x))
    if op == "LayerNormalization":
        return _add(d, d.node(op, x, d.constant([1.0], np.float32), axis=axis))
    return _add(d, d.node(op, x, axis=axis))


def _convolution(d: _Drawing) -> bool:
    x = d.pick((3, 4))
    if x is None:
        return False
    channels, spatial = {s[1] for s in d.shapes(x)}, d.rank(x) - 2
    if len(channels) > 1:
        return False
    kernel = [d.random.choice((1, 2, 3)) for _ in range(spatial)]
    weights = d.constant(d.floats_of([d.random.choice((1, 4, 16)), channels.pop(), *kernel]), np.float32)
    more = {"strides": [d.random.choice((1, 1, 2)) for _ in kernel]}
    if d.random.random() < 0.6:
        more["pads"] = [k // 2 for k in kernel] * 2
    return _add(d, d.node("Conv", x, weights, **more))


def _pool(d: _Drawing) -> bool:
    x = d.pick((3, 4))
    if x is None:
        return False
    op = d.random.choice(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"))
    if op.startswith("Global"):
        return _add(d, d.node(op, x))
    kernel = [d.random.choice((1, 2, 3)) for _ in range(d.rank(x) - 2)]
    more: dict[str, Any] = {"strides": [d.random.choice((1, 2)) for _ in kernel]}
    if d.random.random() < 0.6:
        more["pads"] = [k // 2 for k in kernel] * 2
    if d.random.random() < 0.3:
        more["ceil_mode"] = 1
    return _add(d, d.node(op, x, kernel_shape=kernel, **more))


def _sizes_as_data(d: _Drawing) -> bool:
    x = d.pick((1, 2, 3, 4))
    if x is None:
        return False
    shape = d.node(d.random.choice(("Shape", "Size")), x)
    made = d.node("Cast", shape[0], to=TensorProto.FLOAT) if shape else None
    return made is not None and _add(d, made)


def _hot(d: _Drawing) -> bool:
    x, depth = d.pick((1, 2, 3)), d.number(1, 5)
    if x is None or depth is None:
        return False
    places = d.node("ArgMax", x, axis=d.random.randrange(d.rank(x)), keepdims=0)
    if places is None:
        return False
    return _add(d, d.node("OneHot", places[0], depth, d.constant([0.25, 1], np.float32), axis=d.random.choice((-1, 0))))


def _found(d: _Drawing) -> bool:
    x = d.pick((1, 2))
    if x is None:
        return False
    axis = d.random.randrange(d.rank(x))
    others = [i for i in range(d.rank(x)) if i != axis]
    best = d.node("ReduceMax", x, d.constant(others), keepdims=0) if others else [x]
    good = d.node("Greater", best[0], d.constant(0.0625, np.float32)) if best else None
    return good is not None and _add(d, d.node("Compress", x, good[0], axis=axis))


def _triangle(d: _Drawing) -> bool:
    x = d.pick((2, 3))
    return x is not None and _add(
        d, d.node("Trilu", x, d.constant(d.random.randint(-1, 1)), upper=d.random.randrange(2))
    )


STEPS: tuple[Step, ...] = (
    _unary, _unary, _binary, _binary, _binary, _where, _reshape, _reshape, _reshape, _reshape, _flatten, _unsqueeze,
    _squeeze, _transpose, _transpose, _slice, _slice, _slice, _concat, _concat, _concat, _reduce, _reduce, _reduce,
    _arg, _gather, _gather, _gather_elements, _product, _product, _product, _pad, _pad, _resize, _resize, _expand,
    _tile, _filled, _range, _running, _top, _split, _split, _rows, _rows, _convolution, _convolution, _pool,
    _sizes_as_data, _hot, _found, _triangle,
)  # fmt: skip
