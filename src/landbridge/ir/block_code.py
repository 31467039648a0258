"""Canonical text of a graph block: equal for blocks that do the same to arguments of other types."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from landbridge.ir.graph_ops import CallOp
from landbridge.ir.module import IRModule

#: Attributes that only hold names.
_NAMES = ("callee", "node")


def block_code(module: IRModule, block: Block, results: list[SSAValue], outside: dict[SSAValue, int]) -> list[str]:
    """Returns a line for each operation of ``block``, with its kernel, then one for each of ``results``.

    ``outside`` numbers the values that other blocks define; values that are new to it are added. Texts of two blocks
    are comparable if both were created with one ``outside``.
    """

    def name_of(value: SSAValue) -> str:
        found = indices.get(value)
        return f"outside {outside.setdefault(value, len(outside))}" if found is None else found

    prims = module.prims()
    indices: dict[SSAValue, str] = {value: f"argument {at}" for at, value in enumerate(block.args)}
    lines: list[str] = []
    for op in block.walk():
        indices.update((result, f"{len(lines)}.{at}") for at, result in enumerate(op.results))
        operands = [name_of(value) for value in op.operands]
        attributes = {**op.attributes, **op.properties}
        attribute_texts = sorted(f"{name}={each}" for name, each in attributes.items() if name not in _NAMES)
        name = op.callee_name if isinstance(op, CallOp) else None
        kernel = "" if name is None else str(prims[name]).replace(f"@{name}", "@", 1)
        lines.append(f"{op.name} {operands} {attribute_texts} {[str(r.type) for r in op.results]} {kernel}")
    return [*lines, *map(name_of, results)]
