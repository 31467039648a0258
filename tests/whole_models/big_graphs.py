"""Models of any number of nodes, a family each: whatever a model can hold many of, one family holds many of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

#: A model with about as many nodes as it is asked for.
Family: TypeAlias = Callable[[int], ModelProto]

FAMILIES: dict[str, Family] = {}


def family(build: Family) -> Family:
    """Make ``build`` one of FAMILIES."""
    FAMILIES[build.__name__] = build
    return build


def _values(names: Sequence[str], shape: Sequence[int]) -> list[ValueInfoProto]:
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]


def _model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    initializers: Sequence[TensorProto] = (),
    functions: Sequence[FunctionProto] = (),
) -> ModelProto:
    graph = helper.make_graph(nodes, "big", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=list(functions))


def _tensor(name: str, array: object, dtype: type = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.asarray(array, dtype), name)


def _chain(operators: Sequence[str], n: int, shape: Sequence[int]) -> ModelProto:
    """``n`` nodes of one input and one output, operators in turn."""
    nodes = [helper.make_node(operators[i % len(operators)], [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    return _model(nodes, _values(["v0"], shape), _values([f"v{n}"], shape))


@family
def elementwise(n: int) -> ModelProto:
    """A chain that fuses."""
    return _chain(["Relu", "Neg"], n, [64])


@family
def softmaxes(n: int) -> ModelProto:
    """A chain of equal kernels that do not fuse."""
    return _chain(["Softmax"], n, [4, 16])


@family
def biases(n: int) -> ModelProto:
    """A chain that adds a constant at each step, all of one size and all different."""
    nodes, constants = [], []
    for i in range(n // 2):
        nodes.append(helper.make_node("Softmax", [f"v{i}"], [f"s{i}"]))
        nodes.append(helper.make_node("Add", [f"s{i}", f"c{i}"], [f"v{i + 1}"]))
        constants.append(_tensor(f"c{i}", np.arange(8) + i))
    return _model(nodes, _values(["v0"], [2, 8]), _values([f"v{n // 2}"], [2, 8]), constants)


@family
def products(n: int) -> ModelProto:
    """A chain of matrix products with a weight each."""
    nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(n)]
    weights = [_tensor(f"w{i}", np.eye(8) + i) for i in range(n)]
    return _model(nodes, _values(["v0"], [4, 8]), _values([f"v{n}"], [4, 8]), weights)


@family
def residuals(n: int) -> ModelProto:
    """Convolutions with a skip around each, three nodes a step."""
    steps = n // 3
    nodes, weights = [], []
    for i in range(steps):
        nodes.append(helper.make_node("Conv", [f"v{i}", f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
        nodes.append(helper.make_node("Add", [f"r{i}", f"v{i}"], [f"v{i + 1}"]))
        weights.append(_tensor(f"w{i}", np.full((8, 8, 3, 3), i + 1)))
    return _model(nodes, _values(["v0"], [1, 8, 8, 8]), _values([f"v{steps}"], [1, 8, 8, 8]), weights)


@family
def reshapes(n: int) -> ModelProto:
    """A chain of views, with one kernel at its end."""
    nodes = [helper.make_node("Reshape", [f"v{i}", f"s{i % 2}"], [f"v{i + 1}"]) for i in range(n)]
    nodes.append(helper.make_node("Softmax", [f"v{n}"], ["y"]))
    shapes = [_tensor("s0", [8, 2], np.int64), _tensor("s1", [4, 4], np.int64)]
    return _model(nodes, _values(["v0"], [4, 4]), _values(["y"], [4, 4] if n % 2 == 0 else [8, 2]), shapes)


@family
def transposes(n: int) -> ModelProto:
    """Softmax and Transpose in turn."""
    return _chain(["Softmax", "Transpose"], n, [8, 8])


@family
def fan_out(n: int) -> ModelProto:
    """One value that everyone reads, an output each."""
    nodes = [helper.make_node("Softmax", ["x"], [f"y{i}"], axis=i % 2) for i in range(n)]
    return _model(nodes, _values(["x"], [4, 4]), _values([f"y{i}" for i in range(n)], [4, 4]))


@family
def fan_in(n: int) -> ModelProto:
    """As many inputs as nodes, and one concatenation of all."""
    names = [f"x{i}" for i in range(n)]
    nodes = [helper.make_node("Softmax", [name], [f"s{name}"]) for name in names]
    nodes.append(helper.make_node("Concat", [f"s{name}" for name in names], ["y"], axis=0))
    return _model(nodes, _values(names, [2, 4]), _values(["y"], [2 * n, 4]))


@family
def sums(n: int) -> ModelProto:
    """One Sum of as many inputs."""
    names = [f"x{i}" for i in range(n)]
    return _model([helper.make_node("Sum", names, ["y"])], _values(names, [16]), _values(["y"], [16]))


@family
def long_lived(n: int) -> ModelProto:
    """Values that all live until a chain reads them in turn: the planner sees every pair at once."""
    half = n // 2
    nodes = [helper.make_node("Softmax", ["x" if i == 0 else f"v{i - 1}"], [f"v{i}"]) for i in range(half)]
    nodes.append(helper.make_node("Softmax", [f"v{half - 1}"], ["a0"]))
    for i in range(half):
        nodes.append(helper.make_node("MatMul", [f"a{i}", f"v{i}"], [f"a{i + 1}"]))
    return _model(nodes, _values(["x"], [8, 8]), _values([f"a{half}"], [8, 8]))


@family
def split(n: int) -> ModelProto:
    """One tensor in as many parts, a kernel for each, together again."""
    parts = [f"p{i}" for i in range(n)]
    nodes = [helper.make_node("Split", ["x"], parts, axis=0)]
    nodes += [helper.make_node("Softmax", [part], [f"s{part}"]) for part in parts]
    nodes.append(helper.make_node("Concat", [f"s{part}" for part in parts], ["y"], axis=0))
    return _model(nodes, _values(["x"], [n, 8]), _values(["y"], [n, 8]))


@family
def shapes(n: int) -> ModelProto:
    """Kernels of as many different shapes, sixteen at the most."""
    names = [f"x{i}" for i in range(n)]
    nodes = [helper.make_node("Softmax", [name], [f"y{name}"]) for name in names]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4 + i % 16]) for i, name in enumerate(names)]
    outputs = [
        helper.make_tensor_value_info(f"y{name}", TensorProto.FLOAT, [2, 4 + i % 16]) for i, name in enumerate(names)
    ]
    return _model(nodes, inputs, outputs)


@family
def constants(n: int) -> ModelProto:
    """Nodes that fold at import, and Constant nodes."""
    nodes = [helper.make_node("Constant", [], ["v0"], value=_tensor("", np.ones(4)))]
    for i in range(n):
        nodes.append(helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]))
    nodes.append(helper.make_node("Add", [f"v{n}", "x"], ["y"]))
    return _model(nodes, _values(["x"], [4]), _values(["y"], [4]))


@family
def unnamed_constants(n: int) -> ModelProto:
    """Scalars made by handlers, which have one hint."""
    nodes = []
    for i in range(n // 2):
        nodes.append(helper.make_node("Softmax", [f"v{i}"], [f"s{i}"]))
        nodes.append(helper.make_node("Gather", [f"s{i}", f"i{i}"], [f"v{i + 1}"], axis=1))
    tables = [_tensor(f"i{i}", np.roll(np.arange(8), i), np.int64) for i in range(n // 2)]
    return _model(nodes, _values(["v0"], [2, 8]), _values([f"v{n // 2}"], [2, 8]), tables)


@family
def dead(n: int) -> ModelProto:
    """Nodes whose results nobody reads."""
    nodes = [helper.make_node("Softmax", ["x"], [f"d{i}"], axis=i % 2) for i in range(n)]
    nodes.append(helper.make_node("Softmax", ["x"], ["y"]))
    return _model(nodes, _values(["x"], [4, 4]), _values(["y"], [4, 4]))


def _branch(name: str, nodes: Sequence[NodeProto], output: str) -> GraphProto:
    return helper.make_graph(nodes, name, [], _values([output], [4, 4]))


@family
def branches(n: int) -> ModelProto:
    """Ifs in a chain, three nodes each, whose condition is known when the model runs."""
    steps, nodes = n // 3, []
    for i in range(steps):
        then = _branch("then", [helper.make_node("Softmax", [f"v{i}"], [f"t{i}"])], f"t{i}")
        other = _branch("else", [helper.make_node("Neg", [f"v{i}"], [f"e{i}"])], f"e{i}")
        nodes.append(helper.make_node("If", ["c"], [f"v{i + 1}"], then_branch=then, else_branch=other))
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    return _model(nodes, [flag, *_values(["v0"], [4, 4])], _values([f"v{steps}"], [4, 4]))


@family
def calls(n: int) -> ModelProto:
    """Calls of one local function in a chain."""
    body = [helper.make_node("Softmax", ["a"], ["b"])]
    function = helper.make_function("local", "f", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    nodes = [helper.make_node("f", [f"v{i}"], [f"v{i + 1}"], domain="local") for i in range(n)]
    return _model(nodes, _values(["v0"], [4, 4]), _values([f"v{n}"], [4, 4]), functions=[function])


@family
def loop(n: int) -> ModelProto:
    """Loops of up to 500 trips."""
    steps, nodes = -(-n // 500), []
    trips = n // steps
    for i in range(steps):
        body = helper.make_graph(
            [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Softmax", ["a"], ["b"])],
            "body",
            [
                helper.make_tensor_value_info("trip", TensorProto.INT64, []),
                helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                *_values(["a"], [4, 4]),
            ],
            [helper.make_tensor_value_info("on", TensorProto.BOOL, []), *_values(["b"], [4, 4])],
        )
        nodes.append(helper.make_node("Loop", ["trips", "", f"v{i}"], [f"v{i + 1}"], body=body))
    return _model(nodes, _values(["v0"], [4, 4]), _values([f"v{steps}"], [4, 4]), [_tensor("trips", trips, np.int64)])


@family
def scan(n: int) -> ModelProto:
    """A Scan over as many rows, which are collected."""
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "r"], ["b"]), helper.make_node("Softmax", ["b"], ["o"])],
        "body",
        _values(["a", "r"], [8]),
        _values(["b", "o"], [8]),
    )
    node = helper.make_node("Scan", ["s", "x"], ["e", "y"], body=body, num_scan_inputs=1)
    return _model(
        [node],
        [*_values(["s"], [8]), *_values(["x"], [n // 2, 8])],
        [*_values(["e"], [8]), *_values(["y"], [n // 2, 8])],
    )


@family
def normalizations(n: int) -> ModelProto:
    """BatchNormalization without a convolution, whose parameters fold."""
    steps, nodes, parameters = n // 2, [], []
    for i in range(steps):
        names = [f"{k}{i}" for k in "sbmv"]
        parameters += [_tensor(name, np.full(8, i + 1)) for name in names]
        nodes.append(helper.make_node("BatchNormalization", [f"x{i}", *names], [f"n{i}"]))
        nodes.append(helper.make_node("Softmax", [f"n{i}"], [f"x{i + 1}"]))
    return _model(nodes, _values(["x0"], [2, 8]), _values([f"x{steps}"], [2, 8]), parameters)


@family
def readers(n: int) -> ModelProto:
    """One value that as many elementwise kernels read, whose results become one."""
    parts = [f"r{i}" for i in range(n)]
    nodes = [helper.make_node("Softmax", ["x"], ["s"])]
    nodes += [helper.make_node("Mul", ["s", f"k{i}"], [part]) for i, part in enumerate(parts)]
    nodes.append(helper.make_node("Concat", parts, ["y"], axis=0))
    scales = [_tensor(f"k{i}", np.full(16, i)) for i in range(n)]
    return _model(nodes, _values(["x"], [1, 16]), _values(["y"], [n, 16]), scales)


@family
def slices(n: int) -> ModelProto:
    """A chain of slices, each a view of the one before, and a kernel that reads a part of each."""
    third = n // 3
    nodes, outputs = [], []
    for i in range(third):
        nodes.append(helper.make_node("Slice", [f"v{i}", "one", "end", "zero"], [f"v{i + 1}"]))
        nodes.append(helper.make_node("Slice", [f"v{i + 1}", "zero", "one", "zero"], [f"h{i}"]))
        nodes.append(helper.make_node("Softmax", [f"h{i}"], [f"y{i}"]))
        outputs.append(f"y{i}")
    tensors = [_tensor("one", [1], np.int64), _tensor("end", [1 << 40], np.int64), _tensor("zero", [0], np.int64)]
    return _model(nodes, _values(["v0"], [third + 1, 16]), _values(outputs, [1, 16]), tensors)


@family
def concats(n: int) -> ModelProto:
    """A chain of concatenations, each a part of the next."""
    half = n // 2
    nodes = [helper.make_node("Softmax", ["x"], ["v0"])]
    for i in range(half):
        nodes.append(helper.make_node("Softmax", ["x"], [f"s{i}"], axis=i % 2))
        nodes.append(helper.make_node("Concat", [f"v{i}", f"s{i}"], [f"v{i + 1}"], axis=0))
    return _model(nodes, _values(["x"], [1, 16]), _values([f"v{half}"], [half + 1, 16]))


@family
def maxima(n: int) -> ModelProto:
    """One Max of as many elementwise kernels."""
    parts = [f"r{i}" for i in range(n)]
    nodes = [helper.make_node("Mul", ["x", f"k{i}"], [part]) for i, part in enumerate(parts)]
    nodes.append(helper.make_node("Max", parts, ["y"]))
    return _model(
        nodes, _values(["x"], [64]), _values(["y"], [64]), [_tensor(f"k{i}", np.full(64, i)) for i in range(n)]
    )


@family
def gathers(n: int) -> ModelProto:
    """A table of as many indices, one node."""
    node = helper.make_node("Gather", ["x", "i"], ["y"])
    return _model([node], _values(["x"], [16, 4]), _values(["y"], [n, 4]), [_tensor("i", np.arange(n) % 16, np.int64)])


@family
def names(n: int) -> ModelProto:
    """Nodes whose names are long: as many characters in all times a hundred."""
    nodes = []
    for i in range(n // 10):
        name = f"{'scope/' * 150}{i}"
        nodes.append(helper.make_node("Softmax", [f"v{i}"], [f"s{i}{name}"], name=name))
        nodes.append(helper.make_node("Identity", [f"s{i}{name}"], [f"v{i + 1}"], name=f"{name}_"))
    return _model(nodes, _values(["v0"], [4, 4]), _values([f"v{n // 10}"], [4, 4]))
