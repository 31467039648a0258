"""compile(): makes an Executable from a model and a target, or returns the cached one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from inspect import signature
from math import inf
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from landbridge.compiler.cache import look_up
from landbridge.compiler.options import CompileOptions, check_form, unknown_options
from landbridge.errors import CompileError, ImportModelError, InputError, TargetError
from landbridge.executable.executable import Executable
from landbridge.executable.parts import VDevice
from landbridge.files.output_file import check_folder
from landbridge.frontend.input_spec import InputSpec
from landbridge.ir.budget import MAX_NODES
from landbridge.ir.limits import Limits, limited, limits_of
from landbridge.process.exhaustion import reports_exhaustion
from landbridge.process.garbage import collector_paused
from landbridge.process.sanitizing import sanitize_requested
from landbridge.reporting.warning_notes import noting
from landbridge.sizes.dim import Dim
from landbridge.targets import Target

if TYPE_CHECKING:
    from landbridge.compiler.compilation import Model
    from landbridge.compiler.tuning import Tuning
    from landbridge.passes.place import Places

#: What the extra ``compile`` brings and the run side does without.
_COMPILER = ("xdsl", "onnx", "onnx_ir", "llvmlite")

#: Text, dict or Target of one target, or those of several by vdevice name.
Targets: TypeAlias = str | Target | Mapping[str, Any]


@reports_exhaustion("a model was compiled")
def compile(
    model: Model,
    args: Any = None,
    target: Targets = "llvm",
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    dims: Mapping[str, Dim | str | int] | None = None,
    inputs: Mapping[str, InputSpec] | None = None,
    extra_outputs: Sequence[str] = (),
    constants: Mapping[str, Any] | None = None,
    mutable: Sequence[str] = (),
    unpacked: Sequence[str] = (),
    place: Places | None = None,
    spill: Mapping[str, str] | None = None,
    alias: Mapping[str, str] | Literal["auto"] | None = None,
    dump: str | Path | None = None,
    on_mismatch: Literal["error", "copy"] = "error",
    max_nodes: int = MAX_NODES,
    limits: Limits | Mapping[str, float] | None = None,
    check_indices: bool = False,
    sanitize: bool | None = None,
    external_data: str | Path | None = None,
    allow_links: bool = False,
    optimize: Literal["full", "fast"] = "full",
    tune: float | None = None,
    **unknown: NoReturn,
) -> Executable:
    """Compile ``model`` for ``target``.

    Text of IR, or the path of an ``.mlir`` file, is what ``dump`` writes, after any pass: compiling goes on from there.

    A ``torch.nn.Module`` or ``torch.export.ExportedProgram`` goes through torch's own ONNX exporter (the extra
    ``torch``). Weights that no pass packs stay the module's own memory: do not train it while the program is used.

    - ``args``: example inputs of a module, a tuple or one tensor; ``kwargs``: those by name. Other models have none,
      and a target may be the second argument: ``lb.compile("model.onnx", "llvm")``.
    - ``dynamic_shapes``: which axes of a module's inputs stay open, and their ranges, as ``torch.export`` takes it.
    - ``target``: one target, or ``{vdevice name: target}``; the first vdevice holds inputs and outputs, unless kernels
      of a CPU that shares its memory use them too: then they are in the CPU's.
    - ``shapes``: shapes of inputs by name. An extent that is text is open, ``"W"`` or an expression of such names: the
      program runs for all of its values. So does one that the file leaves open, on CPU targets; others need a number.
    - ``dims``: what open dimensions may be, by name: a ``Dim``, a number, or text as ``"32..2560:8"`` (multiples of 8).
      One that is not declared is in the widest range in which the model can be run (docs/open-dimensions.md).
    - ``inputs``: the formats of the application's frames, by input, where the model takes another: dtype, layout,
      strides, normalization, size. The first kernel reads them as they are.
    - ``extra_outputs``: names of inner tensors to return too, after the model's outputs.
    - ``constants``: values of inputs that are fixed now, by name; of IR text its constants, by symbol, as
      ``Executable.constants`` has them. Those that are not given are made up, with a ModelWarning. Where elements of an
      int64 input are text, ``["N", 4]``, it stays an input, and a run reads from it what these dimensions are.
    - ``mutable``: names of weights that ``Session.set_params`` may replace: packed when they are set, never folded.
    - ``unpacked``: names of such weights whose own memory kernels read, in the model's layout, so that
      ``set_params(copy=False)`` can bind it. They need not be in ``mutable``. Kernels are slower without packing.
    - ``place``: where results of nodes are, and by exact name inputs and constants: ``{pattern: place}``, the first
      pattern (of ``fnmatch``) that matches counts, or a function from a ``PlacedNode`` to a place or None. A place is a
      VDevice or text: ``"npu"``, ``"npu@global.vtcm"``, ``"npu@global.vtcm[2]"`` (axis separators). Fusion keeps a
      tensor whose place its reader's result does not share.
    - ``spill``: scopes to the scopes that take what does not fit, ``{"global.vtcm": "global"}``; without it such a
      program is refused.
    - ``alias``: outputs that may be the memory of an input, ``{"present": "past"}``: a caller may bind one buffer to
      both, as ``Session.bind_state`` does, and kernels write there what is new. One that would overwrite what is still
      read is refused, with the node. Updates of parts of an input (ScatterND, TensorScatter) have it by themselves.
      ``"auto"`` requests it for the caches that are found: of attention, and Concat of past and new steps.
    - ``dump``: a directory for the IR after each pass.
    - ``max_nodes``: how many nodes the model may have with its functions, loops and recurrent layers unfolded; more
      are refused before the work is done.
    - ``limits``: for untrusted models: ``lb.Limits(bytes=, nodes=, seconds=)``, or a mapping of these; BudgetError
      where it takes more. Nodes are the fewer of these and of ``max_nodes``.
    - ``check_indices``: a run that meets an index out of range raises IndexRangeError, which names the node, the
      operand and what would be legal. The host looks at all indices, and copies them; without it runs follow the
      policy of docs/operators.md, which costs nothing.
    - ``sanitize``: CPU kernels test every index, skip what is outside of an operand, and a run raises SanitizerError,
      which names the node, the operand, the bytes, and whether it was a load or a store. Kernels whose accesses cannot
      be proved compile too then. Runs are several times slower. Left out, as the variable LANDBRIDGE_SANITIZE says.
    - ``external_data``: the folder that paths to external data begin at; that of the model's file, if left out. A model
      in memory with external data has none, and needs it.
    - ``allow_links``: links to external data may lead anywhere, for models whose makers you trust. Without it a link
      leads to a file in that folder, or is one of the Hugging Face cache that the model is in.
    - ``optimize``: with ``"fast"`` the result is a first program of numpy functions, which is made in milliseconds,
      while a process of low priority compiles the full one into the cache on disk. A Session takes the full one between
      two runs. Results of the first differ in the last bits, because its sums have another order. It is made for shapes
      and dims that are numbers, the default target and no other options; else, and without a cache, the full program is
      compiled (docs/compile-cache.md).
    - ``tune``: seconds for measuring, on one core of this machine, other tiles of the kernels with the most predicted
      time. The fastest are kept on disk, and compiles with ``tune=`` have them, with ``tune=0`` without measuring.
      Results are the same to the bit. The program itself is compiled each time (docs/explain-a-run.md).
    - ``on_mismatch``: what binding does where a device cannot use memory in place as its target declares.

    A result is kept on disk, and given again for the same model, targets and options (docs/compile-cache.md).

    Raises CompileError (see ``landbridge.errors``) and TargetError; the message says what would be legal.
    """
    if isinstance(args, str | Target | Mapping):
        args, target = None, args
    if unknown:
        raise unknown_options(unknown, signature(compile).parameters)
    check_form(locals())
    check_compiler()
    if is_torch_model(model):
        from landbridge.frontend.torch import export

        exported = export(model, args, kwargs, dynamic_shapes)
        model, shapes, dims = exported.model, exported.shapes(shapes), exported.dims(dims)
    elif args is not None or kwargs is not None or dynamic_shapes is not None:
        raise InputError(
            "args=, kwargs= and dynamic_shapes= are for models of torch; give shapes= or dims=, and a target as text"
        )
    else:
        _check_model(model)
    if on_mismatch not in ("error", "copy"):
        raise CompileError(f"on_mismatch={on_mismatch!r}; legal: 'error', 'copy'")
    if optimize not in ("full", "fast"):
        raise InputError(f"optimize={optimize!r}; legal: 'full', 'fast'")
    if dump is not None:
        if not isinstance(dump, str | PathLike):
            raise InputError(f"dump= takes the path of a folder, not {type(dump).__name__}")
        check_folder(dump)
    bounds = limits_of(limits)
    if bounds is not None and bounds.nodes is not None:
        max_nodes = min(max_nodes, bounds.nodes)
    targets, vdevices = _resolve(target)
    options = CompileOptions(
        shapes=shapes,
        dims=dims,
        inputs=inputs,
        extra_outputs=extra_outputs,
        constants=constants,
        mutable=(*mutable, *(name for name in dict.fromkeys(unpacked) if name not in mutable)),
        unpacked=tuple(unpacked),
        place=place,
        spill=spill,
        alias=alias,
        on_mismatch=on_mismatch,
        max_nodes=max_nodes,
        check_indices=check_indices,
        sanitize=sanitize_requested() if sanitize is None else sanitize,
        external_data=external_data,
        allow_links=allow_links,
    )
    tuning = None if tune is None else _tuning(tune, targets)
    if tuning is not None:
        options = replace(options, tiles=tuning)
    entry = None if dump is not None or tuning is not None else look_up(model, targets, vdevices, options)
    if entry is not None and entry.found is not None:
        return entry.found
    if optimize == "fast" and entry is not None and bounds is None:
        from landbridge.compiler.first_result import first_then_full  # few compiles want it

        first = first_then_full(model, targets, options, MAX_NODES, entry)
        if first is not None:
            return first
    # IR is several 100,000 objects that live until the end; collecting garbage among them took a third of the time.
    with collector_paused():
        # imported here, as they import the compiler's packages, and what shows progress
        from landbridge.compiler.compilation import compile_model
        from landbridge.compiler.progress import compile_progress

        with noting() as reported, limited(bounds), compile_progress(_name(model)):
            executable = compile_model(model, targets, vdevices, options, dump)
            if tuning is not None and tune and tuning.measure(tune):
                executable = compile_model(model, targets, vdevices, options, dump)
    if entry is not None:
        entry.keep(executable, reported)
    return executable


def _tuning(seconds: object, targets: Sequence[Target]) -> Tuning:
    """Returns what measures tiles for ``targets``; raises InputError for a time that is none."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < inf:
        raise InputError(f"tune={seconds!r}; legal: seconds from 0, as tune=30")
    from landbridge.compiler.tuning import Tuning, check_tunable  # few compiles want it

    check_tunable(targets)
    return Tuning()


def _name(model: object) -> str:
    """Returns the name under which the progress of a compile shows ``model``: that of its file, else ``a model``."""
    is_path = isinstance(model, PathLike) or (isinstance(model, str) and "\n" not in model)
    return Path(model).name if is_path else "a model"  # type: ignore[arg-type]


def is_torch_model(model: object) -> bool:
    """Returns whether ``model`` is a torch module or exported program; torch is not imported for it."""
    kinds = (("torch.nn", "Module"), ("torch.export", "ExportedProgram"))
    known = [getattr(sys.modules[module], name, None) for module, name in kinds if module in sys.modules]
    return any(isinstance(kind, type) and isinstance(model, kind) for kind in known)


def has_compiler() -> bool:
    """Returns whether this installation can compile; otherwise it only loads and runs programs."""
    return not _missing()


def _missing() -> list[str]:
    return [name for name in _COMPILER if sys.modules.get(name) is None and find_spec(name) is None]


def check_compiler() -> None:
    """Raises CompileError where this installation cannot compile, with the packages that it lacks."""
    missing = _missing()
    if missing:
        raise CompileError(
            f"compiling needs {', '.join(missing)}, and this install only loads and runs programs; add the compiler "
            "with: pip install 'landbridge[compile]' (Python 3.11 or newer), or compile on another machine and load "
            "the .lbx here"
        )


def _check_model(model: object) -> None:
    """Raises ImportModelError for an object that no model can be read from."""
    kind = type(model).__name__
    if isinstance(model, str | bytes | Path) or kind in ("ModelProto", "IRModule"):
        return
    remedies = {
        "Executable": "it is compiled already: make a Session of it",
        "GraphProto": "give the model that the graph is of, or onnx.helper.make_model(graph)",
        "bytearray": "give bytes(...) of it",
        "BytesIO": "give its getvalue()",
        "BufferedReader": "give its path, or read()",
    }
    way = remedies.get(kind, "legal: a path, the bytes of a file, an onnx.ModelProto, a torch module, or IR")
    raise ImportModelError(f"{_article(kind)} is not a model: {way}")


def _article(kind: str) -> str:
    return f"a{'n' if kind[:1] in 'aeiouAEIOU' else ''} {kind}"


def _resolve(target: Targets) -> tuple[tuple[Target, ...], tuple[VDevice, ...]]:
    """Returns the targets, and the vdevices that refer to them."""
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
