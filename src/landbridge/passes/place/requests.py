"""Placement requests of a caller of ``compile``: nodes, inputs and constants, each with a placement."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TypeAlias

from xdsl.ir import Block, Operation

from landbridge.errors import PlacementError, TargetError
from landbridge.executable.parts import BLOCKED, TensorSpec, VDevice
from landbridge.ir.graph_ops import CallOp, HostCallOp, ViewOp, viewed
from landbridge.ir.main_attributes import io_names, set_place_requests
from landbridge.ir.module import IRModule, symbol_name
from landbridge.ir.op_attributes import node_name
from landbridge.ir.traversal import all_operations
from landbridge.ir.types import VDeviceAttr, dtype_of, shape_of
from landbridge.records import record
from landbridge.text.did_you_mean import did_you_mean


@record(frozen=True)
class PlacedNode:
    """A node, as passed to a placement function.

    ``name`` is that of the model. ``operator`` is the PrimFunc's or the host builtin's name without its number.
    ``inputs`` and ``outputs`` declare shapes and dtypes; their names are empty.
    """

    name: str
    operator: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


#: A placement: a VDevice, its text form (``"npu"``, ``"npu@global.vtcm"``), or None for the default.
Wanted: TypeAlias = VDevice | str | None

#: The most names of each sort that an error lists.
_SHOWN = 8

#: Placements by pattern, of which the first match counts, or a function of the node.
Places: TypeAlias = Mapping[str, VDevice | str] | Callable[[PlacedNode], Wanted]


@record(frozen=True)
class Requests:
    """The requested placements, by pattern of a name."""

    places: Mapping[str, VDeviceAttr]

    def of_node(self, op: CallOp | HostCallOp) -> VDeviceAttr:
        """Returns the placement of a node's results: that of the first pattern that matches its name, else the default.

        Intermediate values between the calls of one node stay in ordinary memory.
        """
        name = node_name(op)
        vdevice = next((p for pattern, p in self.places.items() if fnmatchcase(name, pattern)), VDeviceAttr.of())
        return VDeviceAttr.of(vdevice.index.data) if isinstance(op, CallOp) and _is_inner(op) else vdevice

    def of_constant(self, symbol: str) -> VDeviceAttr | None:
        """Returns the placement of a constant, which matches only its exact name."""
        return next((vdevice for name, vdevice in self.places.items() if symbol_name(name) == symbol), None)


def request_places(module: IRModule, places: Places, *, is_first: bool = True) -> None:
    """Record ``places`` in ``module``, for the pass ``vdevice``.

    ``is_first``: ``module`` is the first program of its model, which has all that can be named. Another may lack nodes
    and constants, as a program for extents of 0 lacks those without elements; what it lacks is left out.

    Names are those of nodes, for their results, as patterns of ``fnmatch``; and those of inputs, outputs and constants,
    which match exactly: an input then crosses to its placement at the start of a run, an output is produced there, and
    a constant is put there at binding. Raises PlacementError for an unknown vdevice, scope or axis separator, and for a
    name that does not exist.
    """
    if not isinstance(places, Mapping):
        places = {glob.escape(node.name): wanted for node in _nodes(module) if (wanted := places(node)) is not None}
    if not places:
        return
    nodes = {node_name(op) for op in all_operations(module.main) if isinstance(op, CallOp | HostCallOp)}
    inputs, outputs = io_names(module.main)
    requested: dict[str, VDeviceAttr] = {}
    for pattern, wanted in places.items():
        vdevice = _resolve(module, pattern, wanted)
        symbols = module.symbols_of(pattern)
        named = pattern in inputs or bool(symbols) or any(fnmatchcase(node, pattern) for node in nodes)
        if named:
            requested |= dict.fromkeys((pattern, *sorted(symbols)), vdevice)
        elif pattern in outputs and (is_first or _is_of_call(module, outputs.index(pattern))):
            requested[glob.escape(_maker(module, pattern, outputs.index(pattern)))] = requested[pattern] = vdevice
        elif is_first:
            legal = ", ".join(f"{subject} {_some(found)}" for subject, found in (
                ("nodes", nodes), ("inputs", inputs), ("outputs", outputs), ("constants", module.constants)
            ) if found)  # fmt: skip
            raise PlacementError(
                f"place={{{pattern!r}: {str(wanted)!r}}} matches no node, input, output or constant; legal: {legal}"
            )
    set_place_requests(module.main, requested)


def _some(names: Iterable[str]) -> str:
    """Returns the first few names, in words."""
    found = sorted(names)
    return ", ".join(found[:_SHOWN]) + ", ..." * (len(found) > _SHOWN)


def _is_of_call(module: IRModule, number: int) -> bool:
    """Returns whether output ``number`` is a result of a call."""
    return isinstance(_producer(module, number), CallOp | HostCallOp)


def _producer(module: IRModule, number: int) -> Operation | Block | None:
    last = module.main.body.block.last_op
    return viewed(last.operands[number]).owner if last is not None else None


def _maker(module: IRModule, output: str, number: int) -> str:
    """Returns the name of the node that produces output ``number``; raises PlacementError if there is none."""
    producer = _producer(module, number)
    if not isinstance(producer, CallOp | HostCallOp):
        raise PlacementError(
            f"output {output!r} is not a result of a node of its own; place the nodes that it comes from"
        )
    return node_name(producer)


def _is_inner(op: CallOp) -> bool:
    """Returns whether ``op`` is not the last call of its node: the node's results come from another call."""
    name, pending = node_name(op), list(op.res)
    users: list[Operation] = []
    while name and pending:
        for use in pending.pop().uses:
            if isinstance(use.operation, ViewOp):
                pending.append(use.operation.result)
            else:
                users.append(use.operation)
    return bool(users) and all(isinstance(user, CallOp) and node_name(user) == name for user in users)


def _resolve(module: IRModule, pattern: str, wanted: VDevice | str) -> VDeviceAttr:
    """Returns ``wanted`` in the numbers of ``module``, checked against the memory that its Target declares."""
    subject = f"place={{{pattern!r}: {str(wanted)!r}}}"
    if not isinstance(wanted, str | VDevice):
        raise PlacementError(f"{subject}: legal: the name of a vdevice, as 'cpu', or a VDevice")
    vdevice = VDevice.parse(wanted) if isinstance(wanted, str) else wanted
    index = _number(module, vdevice, subject)
    target = module.target_of(index)
    separators = vdevice.axis_separators
    if separators == BLOCKED and not target.memory:
        raise PlacementError(
            f"{subject}: target {target.kind!r} describes no memory to choose a layout by; give axis separators, or a "
            "Target with memory=, as Target.from_device returns it"
        )
    if target.memory:
        try:
            kind = target.memory_kind(vdevice.scope)
        except TargetError as error:
            raise PlacementError(f"{subject}: {error}") from error
        if separators != BLOCKED and len(separators) != kind.ndim - 1:
            raise PlacementError(
                f"{subject}: {len(separators)} axis separators for scope {kind.scope!r}, which has "
                f"{kind.ndim} dimension{'s' * (kind.ndim > 1)}; legal: {kind.ndim - 1}, the axis that begins each "
                f"dimension but the first{', or [blocked], with which the compiler chooses' * (kind.ndim > 1)}"
            )
    return VDeviceAttr.of(index, vdevice.scope, () if separators == BLOCKED else separators)


def _number(module: IRModule, wanted: VDevice, subject: str) -> int:
    """Returns the number of the vdevice named ``wanted``, else of the vdevice whose target has that name."""
    names = [v.name for v in module.vdevices]
    if wanted.name in names:
        return names.index(wanted.name)
    of_kind = [i for i, v in enumerate(module.vdevices) if module.targets[v.target].kind == wanted.name]
    if wanted.target < len(of_kind):
        return of_kind[wanted.target]
    raise PlacementError(f"{subject}: no such vdevice{did_you_mean(wanted.name, names)}; legal: {', '.join(names)}")


def _nodes(module: IRModule) -> Iterator[PlacedNode]:
    for op in all_operations(module.main):
        if not isinstance(op, CallOp | HostCallOp):
            continue
        called = op.callee_name if isinstance(op, CallOp) else op.builtin.data
        specs = [
            tuple(TensorSpec("", shape_of(v.type), dtype_of(v.type)) for v in values) for values in (op.inputs, op.res)
        ]
        yield PlacedNode(node_name(op), called.rstrip("0123456789").rstrip("_"), specs[0], specs[1])
