"""Collects the dimensions that operations and their kernels depend on, which a segment of a program has to know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects import func
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DictionaryAttr, IntAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute

from landbridge.ir.graph_ops import CallOp
from landbridge.ir.size_exprs import SizeExpr
from landbridge.ir.types import SizeAttr
from landbridge.sizes.size import Extent, Size, dimensions_of
from landbridge.sizes.terms import Symbol


class SegmentSizes:
    """Finds dimensions by name in a module whose kernels are ``prims``."""

    def __init__(self, prims: Mapping[str, func.FuncOp]) -> None:
        self._prims = prims
        self._prim_symbols: dict[str, frozenset[str]] = {}
        self._seen: dict[Attribute, frozenset[str]] = {}
        #: All dimensions found so far.
        self.symbols: dict[str, Symbol] = {}

    def of_operation(self, op: Operation) -> set[str]:
        """Returns the dimensions that ``op``, and the kernel that it calls, depend on."""
        found: set[str] = set()
        for each in op.walk():
            attributes = [*each.attributes.values(), *each.properties.values(), *(r.type for r in each.results)]
            attributes += [a.type for region in each.regions for block in region.blocks for a in block.args]
            if isinstance(each, CallOp):
                found |= self._of_prim(each.callee_name)
            for attribute in attributes:
                found |= self.of_attribute(attribute)
        return found

    def _of_prim(self, name: str) -> frozenset[str]:
        if name not in self._prim_symbols:
            self._prim_symbols[name] = frozenset(self.of_operation(self._prims[name]))
        return self._prim_symbols[name]

    def of_attribute(self, attribute: Attribute) -> frozenset[str]:
        found = self._seen.get(attribute)
        if found is None:
            sizes = [e for e in _sizes_in(attribute) if isinstance(e, Size)]
            symbols = dimensions_of(sizes)
            self.symbols |= symbols
            found = self._seen[attribute] = frozenset(symbols)
        return found


def _sizes_in(attribute: Attribute) -> Iterable[Extent]:
    """Yields the Sizes in ``attribute`` and its parts."""
    match attribute:
        case SizeAttr() | IntAttr():
            yield attribute.data
        case AffineMapAttr():
            for result in attribute.data.results:
                yield from (e.value for e in result.dfs() if isinstance(e, SizeExpr))
        case ArrayAttr():
            for each in attribute.data:
                yield from _sizes_in(each)
        case DictionaryAttr():
            for each in attribute.data.values():
                yield from _sizes_in(each)
        case ParametrizedAttribute():
            for each in attribute.parameters:
                yield from _sizes_in(each)
