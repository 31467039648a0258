"""Collects the dimensions that operations and their kernels depend on, which a segment of a program has to know."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import func
from xdsl.ir import Attribute, Operation

from landbridge.ir.graph_ops import CallOp
from landbridge.ir.replaced_sizes import sizes_in
from landbridge.sizes.size import Size, dimensions_of
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
            sizes = [e for e in sizes_in(attribute) if isinstance(e, Size)]
            symbols = dimensions_of(sizes)
            self.symbols |= symbols
            found = self._seen[attribute] = frozenset(symbols)
        return found
