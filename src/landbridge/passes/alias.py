"""Proves which outputs may alias an input, so that a state stays in one memory.

``compile(alias=)`` requests aliases, and one without a proof is an error. The pass also finds outputs by itself that
are an input with parts updated, as caches are. A kernel that gets one memory for both then works in place; given two,
it copies as before.
"""

from __future__ import annotations

from collections.abc import Mapping

from landbridge.analysis.aliasing import Aliasing, Shared
from landbridge.analysis.overwriting import copies_whole
from landbridge.errors import CompileError
from landbridge.ir.graph_ops import CallOp
from landbridge.ir.kernel_attributes import is_in_place
from landbridge.ir.main_attributes import aliases, io_names, set_aliases, set_node_types
from landbridge.ir.memory_ops import AllocStorageOp
from landbridge.ir.module import IRModule
from landbridge.passes.inplace import in_place_twin
from landbridge.passes.registry import register_pass


def request_aliases(module: IRModule, alias: Mapping[str, str]) -> None:
    """Request that outputs may alias inputs, by name, for the pass ``alias`` to prove.

    Raises CompileError for an unknown name, an input that is named twice, and IR that has a plan.
    """
    if not alias:
        return
    if any(isinstance(op, AllocStorageOp) for op in module.main.body.block.ops):
        raise CompileError("alias= is for IR without a plan; give an earlier dump")
    inputs, outputs = io_names(module.main)
    for output, input in alias.items():
        requested = f"alias={{{output!r}: {input!r}}}"
        for subject, name, legal in (("output", output, outputs), ("input", input, inputs)):
            if name not in legal:
                raise CompileError(f"{requested}: there is no {subject} {name!r}; legal: {', '.join(legal)}")
    twice = [name for name in set(alias.values()) if list(alias.values()).count(name) > 1]
    if twice:
        raise CompileError(f"alias= makes two outputs the memory of input {min(twice)!r}; legal: one")
    set_aliases(module.main, aliases(module.main) | dict(alias))


@register_pass("alias")
def alias(module: IRModule) -> None:
    """Prove which outputs may be the memory of an input, and let their kernels work in place."""
    requested = aliases(module.main)
    aliasing = Aliasing(module)
    found: dict[str, str] = {}
    for output in sorted(aliasing.outputs, key=lambda name: name not in requested):  # requests come first
        input = requested.get(output) or _updated(module, aliasing, output)
        if not input or input in found.values():
            continue
        shared = aliasing.shared(output, input)
        if isinstance(shared, Shared):
            found[output] = input
            _work_in_place(module, shared.call)
        elif output in requested:
            raise CompileError(f"output {output!r} cannot be the memory of input {input!r}: {shared}")
    set_aliases(module.main, found)
    set_node_types(module.main, {})
    module.drop_unused()


def check_proved(module: IRModule) -> None:
    """Raises CompileError unless each alias that ``module``, IR with a plan, declares is one that ``alias`` proves."""
    declared = aliases(module.main)
    aliasing = Aliasing(module) if declared else None
    for output, input in declared.items():
        assert aliasing is not None
        shared = aliasing.shared(output, input)
        call = shared.call if isinstance(shared, Shared) else None
        if call is not None and not is_in_place(module.prims()[call.callee_name]):
            shared = f"the kernel {call.callee_name} is not one that works in place"
        if not isinstance(shared, Shared):
            raise CompileError(
                f"output {output!r} cannot be the memory of input {input!r}, as this IR with a plan declares: {shared}"
            )


def _updated(module: IRModule, aliasing: Aliasing, output: str) -> str:
    """Returns the input that ``output`` is a copy of before it is updated; empty if there is none."""
    first = aliasing.first_writer(output)
    if not isinstance(first, CallOp) or not copies_whole(module.prims()[first.callee_name]):
        return ""
    return next((name for name in aliasing.inputs if aliasing.reads_whole(first, name)), "")


def _work_in_place(module: IRModule, call: CallOp | None) -> None:
    if call is not None and not is_in_place(module.prims()[call.callee_name]):
        call.callee_name = in_place_twin(module, call.callee_name)
