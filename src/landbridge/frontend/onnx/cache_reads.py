"""Reads of caches as torch's exporter writes them, in a form that reads a cache where it is.

Scaled dot-product attention transposes keys by way of three axes and scales them::

    Reshape(Transpose<perm = [0, 2, 1]>(Reshape(keys, [-1, steps, size])), [batch, heads, size, steps])

This becomes ``Transpose<perm = [0, 1, 3, 2]>(keys)``, and a scalar factor of the keys becomes one of the queries. Heads
that several heads of queries share are repeated::

    MatMul(left, Reshape(Expand(Unsqueeze<axes = [2]>(shared)), [batch, heads, ...]))

This becomes a product of the shared heads, whose rows are those of all heads of queries that share one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

import onnx_ir as ir

from landbridge.frontend.onnx.node_names import name_of_node
from landbridge.frontend.onnx.replaced_values import take_place

#: An element of a shape: a number, an axis of a value, or what is not known.
_Element: TypeAlias = "int | tuple[ir.Value, int] | None"

#: Operators whose result has the heads of an operand.
_ELEMENTWISE = frozenset({"Add", "Sub", "Mul", "Div", "Where", "Softmax", "Cast", "Clip", "Identity"})


def read_in_place(graph: ir.Graph, caches: Collection[ir.Value]) -> None:
    """Let the products of ``graph`` that read ``caches``, (batch, heads, steps, size), read them where they are."""
    for cache in caches:
        if cache.shape is not None and len(cache.shape) == 4:
            _read(graph, cache)


def _read(graph: ir.Graph, cache: ir.Value) -> None:
    for use in list(cache.uses()):
        _split_heads(graph, use.node, cache)
    for start in (cache, *(found for use in cache.uses() if (found := _repeated(use.node, cache)) is not None)):
        for use in list(start.uses()):
            transposed = _transposed_by(use.node, start)
            if transposed is not None:
                swap = ir.node("Transpose", [start], {"perm": [0, 1, 3, 2]}, name=f"{transposed.name}.swapped")
                node = transposed.producer()
                assert node is not None  # it is a Reshape
                graph.insert_before(node, [swap])
                take_place(graph, transposed, swap.outputs[0])
        for product, right in _products(start):
            _multiply(graph, product, right, start, cache)


def _producer(value: ir.Value | None, kind: str) -> ir.Node | None:
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type == kind and node.domain in ("", "ai.onnx") else None


def _repeated(node: ir.Node, cache: ir.Value) -> ir.Value | None:
    """Returns the heads of ``cache``, each several times in a row, where ``node`` begins to repeat them."""
    found = _expanded(node, cache)
    reshape = None if found is None else _only_use(found[0], "Reshape")
    if found is None or reshape is None or cache.shape is None:
        return None
    target = _elements(reshape.inputs[1])
    is_so = len(target) == 4 and target[1] == found[1] and target[3] == cache.shape[3]
    if not is_so:
        return None
    repeated = reshape.outputs[0]
    if repeated.shape is None:  # its axes are four, whatever they are
        repeated.shape = ir.Shape([each if isinstance(each, int) and each > 0 else None for each in target])
    return repeated


def _expanded(node: ir.Node, cache: ir.Value) -> tuple[ir.Value, int] | None:
    """Returns ``cache`` with its heads repeated along an axis of their own, and how many there are then, where ``node``
    begins that.
    """
    if node.op_type != "Unsqueeze" or node.domain not in ("", "ai.onnx") or _numbers(node.inputs[1]) not in ([2], [-3]):
        return None
    expand, shape = _only_use(node.outputs[0], "Expand"), cache.shape
    if expand is None or shape is None:
        return None
    target, wide = _elements(expand.inputs[1]), expand.outputs[0].shape
    if len(target) != 5 or not isinstance(heads := shape[1], int) or not isinstance(repeats := target[2], int):
        return None
    for at, axis in ((0, 0), (1, 1), (3, 2), (4, 3)):
        is_declared = wide is not None and len(wide) == 5 and _same(wide[at], shape[axis])
        if target[at] not in (1, (cache, axis), shape[axis]) and not is_declared:
            return None
    return expand.outputs[0], heads * repeats


def _split_heads(graph: ir.Graph, node: ir.Node, cache: ir.Value) -> None:
    """Let the repeated heads that ``node`` begins with be (batch, heads, steps, size) before they are transposed.

    An exporter that knows all extents joins batch and heads at once, for a transposition of three axes.
    """
    found = _expanded(node, cache)
    join = None if found is None else _only_use(found[0], "Reshape")
    swap = None if join is None else _only_use(join.outputs[0], "Transpose")
    back = None if swap is None else _only_use(swap.outputs[0], "Reshape")
    if found is None or join is None or swap is None or back is None or cache.shape is None:
        return
    batch, _, steps, size = cache.shape
    joined, split = _numbers(join.inputs[1]), _numbers(back.inputs[1])
    if joined is None or len(joined) != 3 or joined[1:] != [steps, size] or split != [batch, found[1], size, steps]:
        return
    if list(swap.attributes["perm"].as_ints()) != [0, 2, 1]:
        return
    shape = ir.node(
        "Constant", [], {"value_ints": [*split[:2], split[3], split[2]]}, name=f"{name_of_node(join)}.shape"
    )
    heads = ir.node("Reshape", [found[0], shape.outputs[0]], name=f"{name_of_node(join)}.heads")
    swapped = ir.node("Transpose", [heads.outputs[0]], {"perm": [0, 1, 3, 2]}, name=f"{name_of_node(swap)}.swapped")
    for each in (shape, heads):
        each.outputs[0].name = f"{each.name}.0"
    graph.insert_before(join, [shape, heads, swapped])
    take_place(graph, back.outputs[0], swapped.outputs[0])
    for unused in (back, swap, join):
        graph.remove(unused, safe=True)


def _same(one: object, other: object) -> bool:
    """Returns whether two declared extents are known to be equal."""
    names = [each.value if isinstance(each, ir.SymbolicDim) else each for each in (one, other)]
    return names[0] is not None and names[0] == names[1]


def _only_use(value: ir.Value, kind: str) -> ir.Node | None:
    uses = list(value.uses())
    if len(uses) != 1 or uses[0].idx != 0 or uses[0].node.op_type != kind:
        return None
    return uses[0].node


def _transposed_by(node: ir.Node, start: ir.Value) -> ir.Value | None:
    """Returns the transposed ``start`` where ``node`` begins to transpose its last two axes by way of three."""
    if node.op_type != "Reshape" or node.inputs[0] is not start:
        return None
    swap = _only_use(node.outputs[0], "Transpose")
    back = None if swap is None else _only_use(swap.outputs[0], "Reshape")
    if swap is None or back is None or list(swap.attributes["perm"].as_ints()) != [0, 2, 1]:
        return None
    is_so = _has_axes(node, start, [None, 2, 3]) and _has_axes(back, start, [0, 1, 3, 2])
    return back.outputs[0] if is_so else None


def _has_axes(reshape: ir.Node, start: ir.Value, axes: Sequence[int | None]) -> bool:
    """Returns whether the shape that ``reshape`` gives is these axes of ``start``; None stands for -1."""
    found = _elements(reshape.inputs[1])
    return len(found) == len(axes) and all(
        one == -1 if axis is None else one in ((start, axis), _extent(start, axis))
        for one, axis in zip(found, axes, strict=True)
    )


def _extent(value: ir.Value, axis: int) -> _Element:
    """Returns the extent that ``value`` has along ``axis``: a number where its producer gives one."""
    node = value.producer()
    if node is not None and node.op_type == "Reshape":
        target = _elements(node.inputs[1])
        number = target[axis] if axis < len(target) else None
        if isinstance(number, int) and number > 0:
            return number
    declared = None if value.shape is None else value.shape[axis]
    return declared if isinstance(declared, int) else (value, axis)


def _elements(shape: ir.Value | None) -> list[_Element]:
    """Returns the elements of ``shape``, a value that a Concat makes of numbers and of axes of other values."""
    if (numbers := _numbers(shape)) is not None:
        return list(numbers)
    if (joined := _producer(shape, "Concat")) is not None:
        return [element for part in joined.inputs for element in _elements(part)]
    if (part := _producer(shape, "Slice")) is not None and len(part.inputs) >= 3:
        whole, start, end = part.inputs[0], _numbers(part.inputs[1]), _numbers(part.inputs[2])
        axes, steps = (_numbers(part.inputs[n]) if len(part.inputs) > n else [d] for n, d in ((3, 0), (4, 1)))
        if start is not None and end is not None and axes in ([0], [-1]) and steps == [1]:
            return _elements(whole)[start[0] : end[0]]
    if (node := _producer(shape, "Shape")) is not None and (value := node.inputs[0]) is not None:
        rank = 0 if value.shape is None else len(value.shape)
        ends = [node.attributes[name].as_int() if name in node.attributes else None for name in ("start", "end")]
        axes_of: list[_Element] = [(value, axis) for axis in range(rank)]
        return axes_of[ends[0] : ends[1]]
    return [None]


def _numbers(value: ir.Value | None) -> list[int] | None:
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None or tensor.size > 8 else [int(each) for each in tensor.numpy().reshape(-1).tolist()]


def _products(start: ir.Value) -> list[tuple[ir.Node, list[ir.Node]]]:
    """Returns the products that ``start`` is the right operand of, with what is done to it before: a transposition, a
    scalar factor.
    """
    found: list[tuple[ir.Node, list[ir.Node]]] = []
    pending: list[tuple[ir.Value, list[ir.Node]]] = [(start, [])]
    while pending:
        value, before = pending.pop()
        for use in value.uses():
            node = use.node
            if node.op_type == "MatMul" and use.idx == 1 and node.inputs[1] is value:
                found.append((node, before))
            elif node.op_type == "Transpose" and not any(each.op_type == "Transpose" for each in before):
                if list(node.attributes["perm"].as_ints()) == [0, 1, 3, 2]:
                    pending.append((node.outputs[0], [*before, node]))
            elif node.op_type == "Mul" and _is_scalar(node.inputs[1 - use.idx]):
                pending.append((node.outputs[0], [*before, node]))
    return found


def _is_scalar(value: ir.Value | None) -> bool:
    """Returns whether ``value`` has one element, and no more axes than a cache."""
    return value is not None and value.shape is not None and len(value.shape) <= 4 and all(e == 1 for e in value.shape)


def _has_heads(value: ir.Value | None, heads: int) -> bool:
    """Returns whether ``value`` is (batch, heads, steps, size), by its shape or by that of what it is computed from."""
    if value is None:
        return False
    if value.shape is not None and len(value.shape) == 4 and isinstance(value.shape[1], int):
        return value.shape[1] == heads
    node = value.producer()
    if node is None or node.domain not in ("", "ai.onnx") or node.op_type not in _ELEMENTWISE:
        return False
    return heads > 1 and any(_has_heads(each, heads) for each in node.inputs)


def _multiply(graph: ir.Graph, product: ir.Node, before: Sequence[ir.Node], start: ir.Value, cache: ir.Value) -> None:
    """Let ``product`` multiply with ``cache`` itself, transposed where it was."""
    left = product.inputs[0]
    factors = [node for node in before if node.op_type == "Mul"]
    is_repeated = start is not cache
    heads = _elements(_producer(start, "Reshape").inputs[1])[1] if is_repeated else None  # type: ignore[union-attr]
    if left is None or not (factors or is_repeated) or (isinstance(heads, int) and not _has_heads(left, heads)):
        return
    created: list[ir.Node] = []
    stem = name_of_node(product)

    def op(kind: str, given: Sequence[ir.Value | None], name: str, **attributes: object) -> ir.Value:
        node = ir.node(kind, list(given), attributes, name=f"{stem}.{name}")  # type: ignore[arg-type]
        node.outputs[0].name = f"{stem}.{name}"
        created.append(node)
        return node.outputs[0]

    for number, factor in enumerate(factors):
        scalar = next(each for each in factor.inputs if _is_scalar(each))
        left = op("Mul", [left, scalar], f"scaled.{number}")
    right = cache
    if any(node.op_type == "Transpose" for node in before):
        right = op("Transpose", [cache], "keys", perm=[0, 1, 3, 2])
    if is_repeated:
        assert cache.shape is not None
        constant = [op("Constant", [], f"{name}", value_ints=[number]) for name, number in
                    (("same", 0), ("shared", cache.shape[1]), ("rest", -1), ("heads", heads))]  # fmt: skip
        width = op("Shape", [left], "width", start=3, end=4)
        left = op("Reshape", [left, op("Concat", [*constant[:3], width], "rows", axis=0)], "left")
        grouped = op("MatMul", [left, right], "grouped")
        columns = op("Shape", [grouped], "columns", start=3, end=4)
        shape = op("Concat", [constant[0], constant[3], constant[2], columns], "by_head", axis=0)
        result = op("Reshape", [grouped, shape], "product")
    else:
        result = op("MatMul", [left, right], "product")
    graph.insert_before(product, created)
    take_place(graph, product.outputs[0], result)
    graph.remove(product, safe=True)
