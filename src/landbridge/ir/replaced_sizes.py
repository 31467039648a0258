"""Replaces Sizes in IR that is built already: what holds in a range of a dimension holds in a narrower one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DictionaryAttr, IntAttr, IntegerAttr, i64
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineExpr, AffineMap
from xdsl.rewriter import Rewriter

from landbridge.identity_map import IdentityMap
from landbridge.ir.module import IRModule
from landbridge.ir.plain_attributes import int_attr
from landbridge.ir.prim_ops import SizeOp
from landbridge.ir.size_exprs import SizeExpr, extent_expr
from landbridge.ir.traversal import all_operations
from landbridge.ir.types import SizeAttr
from landbridge.sizes.size import Extent, Size, dimensions_of


def replace_sizes(module: IRModule, extent: Callable[[Extent], Extent]) -> None:
    """Replace each Size of ``module``, and of the programs that its calls run, by ``extent`` of it."""
    SizeReplacer(extent).operations([module.op])
    for body in module.bodies.values():
        replace_sizes(body, extent)


class SizeReplacer:
    """Replaces each Size of operations and values by ``extent`` of it, in place: values stay the same objects."""

    def __init__(self, extent: Callable[[Extent], Extent]) -> None:
        self._extent = extent
        self._replaced: dict[Attribute, Attribute] = {}
        #: The same by identity, as the hash of a type walks all of it.
        self._found: IdentityMap[Attribute, Attribute] = IdentityMap()

    def operations(self, operations: Iterable[Operation]) -> None:
        """Replace the Sizes of ``operations``, and of the operations in their regions."""
        sizes: list[SizeOp] = []
        for root in operations:
            for op in all_operations(root):
                self._in_attributes(op.attributes)
                self._in_attributes(op.properties)
                for result in op.results:
                    self.value(result)
                for region in op.regions:
                    for block in region.blocks:
                        for argument in block.args:
                            self.value(argument)
                if isinstance(op, SizeOp) and isinstance(op.size, IntegerAttr):
                    sizes.append(op)
        for op in sizes:  # a number now
            assert isinstance(op.size, IntegerAttr)
            Rewriter.replace_op(op, arith.ConstantOp(IntegerAttr(op.size.value.data, i64)))

    def value(self, value: SSAValue) -> None:
        """Replace the Sizes in the type of ``value``."""
        ty = self.attribute(value.type)
        if ty is not value.type:
            # Rewriter would make another value, and tables of a walk have values as keys
            value._type = ty

    def attribute(self, attribute: Attribute) -> Attribute:
        """Returns ``attribute`` with its Sizes replaced; the same object if it has none to replace."""
        found = self._found.get(attribute)
        if found is None:
            found = self._replaced.get(attribute)
            if found is None:
                found = self._replaced[attribute] = self._new(attribute)
            self._found[attribute] = found
        return found

    def _in_attributes(self, attributes: dict[str, Attribute]) -> None:
        for name, attribute in attributes.items():
            new = self.attribute(attribute)
            if new is not attribute:
                attributes[name] = new

    def _new(self, attribute: Attribute) -> Attribute:
        match attribute:
            case SizeAttr():
                extent = self._extent(attribute.data)
                return attribute if extent == attribute.data else int_attr(extent)
            case IntAttr() if isinstance(attribute.data, Size):
                extent = self._extent(attribute.data)
                return attribute if extent == attribute.data else IntAttr(cast(int, extent))
            case AffineMapAttr():
                results = tuple(map(self._expression, attribute.data.results))
                same = all(new is old for new, old in zip(results, attribute.data.results, strict=True))
                shape = attribute.data.num_dims, attribute.data.num_symbols
                return attribute if same else AffineMapAttr(AffineMap(*shape, results))
            case ArrayAttr():
                array: list[Any] = [self.attribute(each) for each in attribute.data]
                same = all(new is old for new, old in zip(array, attribute.data, strict=True))
                return attribute if same else ArrayAttr(array)
            case DictionaryAttr():
                entries = {name: self.attribute(each) for name, each in attribute.data.items()}
                same = all(entries[name] is each for name, each in attribute.data.items())
                return attribute if same else DictionaryAttr(entries)
            case ParametrizedAttribute() if attribute.parameters:
                old = attribute.parameters
                parameters = [self.attribute(each) for each in old]
                same = all(new is each for new, each in zip(parameters, old, strict=True))
                return attribute if same else type(attribute).new(parameters)
        return attribute

    def _expression(self, expression: AffineExpr) -> AffineExpr:
        if isinstance(expression, SizeExpr):
            extent = self._extent(expression.value)
            return expression if extent == expression.value else extent_expr(extent)
        if isinstance(expression, AffineBinaryOpExpr):
            left, right = self._expression(expression.lhs), self._expression(expression.rhs)
            if left is not expression.lhs or right is not expression.rhs:
                return AffineExpr.binary(expression.kind, left, right)
        return expression


class SizedOperations:
    """Finds the operations of ``block`` by the dimensions that they mention; each is searched once."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._searched: set[Operation] = set()
        self._by_name: dict[str, dict[Operation, None]] = {}
        self._names: dict[Attribute, frozenset[str]] = {}

    def replace(self, names: Collection[str], extent: Callable[[Extent], Extent]) -> None:
        """Replace the Sizes of operations that mention dimensions among ``names`` by ``extent`` of them."""
        op = self._block.last_op
        while op is not None and op not in self._searched:
            self._search(op)
            op = op.prev_op
        found = dict.fromkeys(op for name in names for op in self._by_name.pop(name, ()))
        SizeReplacer(extent).operations(found)
        for op in found:
            self._search(op)

    def _search(self, root: Operation) -> None:
        self._searched.add(root)
        for op in all_operations(root):
            attributes = [*op.attributes.values(), *op.properties.values(), *(result.type for result in op.results)]
            attributes += [a.type for region in op.regions for block in region.blocks for a in block.args]
            for attribute in attributes:
                for name in self._mentioned(attribute):
                    self._by_name.setdefault(name, {})[root] = None

    def _mentioned(self, attribute: Attribute) -> frozenset[str]:
        if (found := self._names.get(attribute)) is None:
            found = self._names[attribute] = frozenset(dimensions_of(sizes_in(attribute)))
        return found


def sizes_in(attribute: Attribute) -> Iterator[Extent]:
    """Yields the Sizes in ``attribute`` and its parts, and some of the numbers."""
    match attribute:
        case SizeAttr() | IntAttr():
            yield attribute.data
        case AffineMapAttr():
            for result in attribute.data.results:
                yield from (e.value for e in result.dfs() if isinstance(e, SizeExpr))
        case ArrayAttr():
            for each in attribute.data:
                yield from sizes_in(each)
        case DictionaryAttr():
            for each in attribute.data.values():
                yield from sizes_in(each)
        case ParametrizedAttribute():
            for each in attribute.parameters:
                yield from sizes_in(each)
