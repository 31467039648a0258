"""compile(): a model and a target in, an Executable out. Everything it does is a named pass or a named room.

A model's way: file -> graph (``frontend``) -> placed -> fused -> packed -> buffers -> plan (``passes``) -> kernels
(``passes/lower``) -> instructions (``emit``) and code (``codegen``) -> Executable.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.generate import generate
from landbridge.codegen.registry import check_target, declined
from landbridge.emit import emit
from landbridge.errors import CompileError, TargetError
from landbridge.executable.executable import Executable
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.frontend.ir_text import import_ir_text, is_ir_text
from landbridge.input_spec import InputSpec
from landbridge.ir.attributes import target_number
from landbridge.ir.budget import MAX_NODES
from landbridge.ir.module import IRModule
from landbridge.output_file import check_folder, write_text
from landbridge.passes.lower import lower_module
from landbridge.passes.place import Places, request_places
from landbridge.passes.progress import passes_to_do
from landbridge.passes.registry import run_pipeline
from landbridge.passes.spill import request_spill
from landbridge.targets import Target

if TYPE_CHECKING:
    from onnx import ModelProto

    #: A model: a path, the bytes of a file, an ONNX model in memory, IR (which is not changed) or its text.
    Model: TypeAlias = str | Path | bytes | ModelProto | IRModule

#: Text, dict or Target of one target, or those of several by vdevice name.
Targets: TypeAlias = str | Target | Mapping[str, Any]

#: The passes a model goes through, in order, before PrimFuncs are lowered.
PIPELINE = (
    "place",
    "dedup",
    "fold",
    "fuse",
    "fold_scale",
    "support",
    "pack",
    "fold",
    "crossings",
    "assign_targets",
    "dedup",
    "bufferize",
    "prepare",
    "inplace",
    "moves",
    "spill",
    "dedup",
    "plan",
)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No cyclic garbage collection meanwhile: IR is a few hundred thousand objects that live until the end, and
    walking them again and again took a third of a compile."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_collector_paused()
def compile(
    model: Model,
    target: Targets = "llvm",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    inputs: Mapping[str, InputSpec] | None = None,
    extra_outputs: Sequence[str] = (),
    constants: Mapping[str, Any] | None = None,
    mutable: Sequence[str] = (),
    place: Places | None = None,
    spill: Mapping[str, str] | None = None,
    dump: str | Path | None = None,
    on_mismatch: Literal["error", "copy"] = "error",
    max_nodes: int = MAX_NODES,
    check_indices: bool = False,
) -> Executable:
    """Compile ``model`` for ``target``.

    Text of IR, or the path of an ``.mlir`` file, is what ``dump`` writes, after any pass: compiling goes on from there.

    - ``target``: one target, or ``{vdevice name: target}``; the first vdevice holds inputs and outputs, unless kernels
      of a CPU look at them too, which shares its memory: then they are in the CPU's.
    - ``shapes``: static shapes of inputs by name, needed where the file leaves them open.
    - ``inputs``: what the application's frames are, by input, where that is not what the model takes: dtype, layout,
      strides, normalization, size. The first kernel reads them as they are.
    - ``extra_outputs``: names of inner tensors to return too, after the model's outputs.
    - ``constants``: values of inputs that are fixed now, by name; of IR text its constants, by symbol, as
      ``Executable.constants`` has them. Those that are not given are made up, with a ModelWarning.
    - ``mutable``: names of weights that ``Session.set_params`` may replace: packed when they are set, never folded.
    - ``place``: where results of nodes are, and by exact name inputs and constants: ``{pattern: place}``, the first
      pattern (of ``fnmatch``) that matches counts, or a function from a ``PlacedNode`` to a place or None. A place is a
      VDevice or text: ``"npu"``, ``"npu@global.vtcm"``, ``"npu@global.vtcm[2]"`` (axis separators). Fusion keeps a
      tensor whose place its reader's result does not share.
    - ``spill``: scopes to the scopes that take what does not fit, ``{"global.vtcm": "global"}``; without it such a
      program is refused.
    - ``dump``: a directory for the IR after each pass.
    - ``max_nodes``: how many nodes the model may have with its functions, loops and recurrent layers unfolded; more
      are refused before the work is done.
    - ``check_indices``: a run that meets an index out of range raises IndexRangeError, which names the node, the
      operand and what would be legal. The host looks at all indices, and copies them; without it runs follow the
      policy of docs/operators.md, which costs nothing.
    - ``on_mismatch``: what binding does where a device cannot use memory in place as its target said.

    Raises CompileError (see ``landbridge.errors``) and TargetError; the message says what would be legal.
    """
    if on_mismatch not in ("error", "copy"):
        raise CompileError(f"on_mismatch={on_mismatch!r}; legal: 'error', 'copy'")
    seconds: dict[str, float] = {}
    directory = None if dump is None else Path(dump)
    if directory is not None:
        check_folder(directory)
    with _timed(seconds, "target"):
        targets, vdevices = _resolve(target)
        for resolved in targets:
            check_target(resolved)
    with _timed(seconds, "import"):
        module = _import(
            model, targets, vdevices, shapes, inputs, extra_outputs, constants, mutable, max_nodes, check_indices
        )
        module.declined = declined
        request_places(module, place or {})
        request_spill(module, spill or {})
    module = run_pipeline(module, passes_to_do(module, PIPELINE), directory, seconds, module.sources)
    with _timed(seconds, "lower"):
        lowered = lower_module(module)
        if directory is not None:
            write_text(directory / "lowered.mlir", str(lowered) + "\n", module.sources)
    with _timed(seconds, "emit"):
        executable = emit(module, lowered)
    with _timed(seconds, "codegen"):
        images = _generate(module, lowered)
    return replace(executable, modules=images, metadata=_metadata(model, on_mismatch, seconds))


def _resolve(target: Targets) -> tuple[tuple[Target, ...], tuple[VDevice, ...]]:
    """Targets, and the vdevices that use them."""
    if not isinstance(target, Mapping) or "kind" in target:
        resolved = target if isinstance(target, Target) else Target(target)
        name = resolved.device_types[0] if resolved.device_types else resolved.kind
        return (resolved,), (VDevice(name, 0),)
    if not target:
        raise TargetError("target={} names no vdevice; state one target, or {vdevice name: target}")
    targets: list[Target] = []
    vdevices = []
    for name, spec in target.items():
        resolved = spec if isinstance(spec, Target) else Target(spec)
        if resolved not in targets:
            targets.append(resolved)
        vdevices.append(VDevice(str(name), targets.index(resolved)))
    return tuple(targets), tuple(vdevices)


def _import(
    model: Model,
    targets: tuple[Target, ...],
    vdevices: tuple[VDevice, ...],
    shapes: Mapping[str, Sequence[int]] | None,
    inputs: Mapping[str, InputSpec] | None,
    extra_outputs: Sequence[str],
    constants: Mapping[str, Any] | None,
    mutable: Sequence[str],
    max_nodes: int,
    check_indices: bool,
) -> IRModule:
    if is_ir_text(model):
        assert isinstance(model, str | Path)
        _refuse(shapes, inputs, extra_outputs, mutable, check_indices)
        return import_ir_text(model, targets, vdevices, constants)
    if not isinstance(model, IRModule):
        from landbridge.frontend.onnx import import_onnx

        return import_onnx(
            model, shapes, targets, vdevices, extra_outputs, constants, mutable, inputs, max_nodes, check_indices
        )
    _refuse(shapes, inputs, extra_outputs, mutable, check_indices or constants)
    if len(model.vdevices) > len(vdevices):
        raise CompileError(
            f"the IR uses {len(model.vdevices)} vdevices and target= gives {len(vdevices)}; "
            f"state {{vdevice name: target}} for {', '.join(v.name for v in model.vdevices)}"
        )
    return replace(model, op=model.op.clone(), targets=targets, vdevices=vdevices, constants=dict(model.constants))


def _refuse(*of_imports: object) -> None:
    if any(of_imports):
        raise CompileError(
            "shapes=, inputs=, extra_outputs=, mutable= and check_indices= are for models that are imported; this one "
            "is IR already (of which text takes constants=)"
        )


def _generate(module: IRModule, lowered: ModuleOp) -> tuple[ModuleImage, ...]:
    """One image for each target, holding the functions that are placed on it."""
    if len(module.targets) == 1:
        return (generate(lowered, module.targets[0]),)
    number = {name: target_number(f) for name, f in module.prims().items()}
    parts: list[list[func.FuncOp]] = [[] for _ in module.targets]
    for op in list(lowered.body.block.ops):
        if isinstance(op, func.FuncOp):
            lowered.body.block.detach_op(op)
            parts[number[op.sym_name.data]].append(op)
    return tuple(generate(ModuleOp(list(part)), target) for target, part in zip(module.targets, parts, strict=True))


def _metadata(model: Model, on_mismatch: str, seconds: Mapping[str, float]) -> dict[str, str]:
    name = Path(model).stem if isinstance(model, str | Path) else _graph_name(model)
    metadata = {"model": name, "landbridge": _version(), "on_mismatch": on_mismatch}
    metadata.update((f"seconds.{phase}", f"{spent:.3f}") for phase, spent in seconds.items())
    metadata["seconds"] = f"{sum(seconds.values()):.3f}"
    return metadata


def _graph_name(model: object) -> str:
    return str(getattr(getattr(model, "graph", None), "name", "")) or "model"


def _version() -> str:
    try:
        return version("landbridge")
    except PackageNotFoundError:  # run from a source tree
        return "0"


@contextmanager
def _timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - began
