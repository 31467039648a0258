"""One compile from model to Executable; each of its steps is a pass or a function of a package.

The steps: file -> graph (``frontend``) -> placed -> fused -> packed -> buffers -> plan (``passes``) -> kernels
(``passes/lower``) -> instructions (``emit``) and code (``codegen``) -> Executable.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from landbridge.analysis.access_errors import access_errors
from landbridge.codegen.generate import Generation
from landbridge.codegen.registry import check_target, declined
from landbridge.compiler.given_functions import as_functions, called_functions, compiled_functions, functions_of
from landbridge.compiler.options import CompileOptions
from landbridge.emit import emit, kernel_facts
from landbridge.emit.programs import together
from landbridge.errors import (
    AccessError,
    BudgetError,
    CompileError,
    FallbackWarning,
    InputError,
    PlacementError,
    UndecidedSizeError,
)
from landbridge.executable.executable import Executable
from landbridge.executable.kernel_facts import KERNELS, facts_text, renamed
from landbridge.executable.parts import KernelFacts, StateGrowth, VDevice, program_name
from landbridge.executable.state_growth import STATES, growths_text
from landbridge.files.output_file import write_text
from landbridge.frontend.ir_text import import_ir_text, is_ir_text
from landbridge.frontend.programs import Chosen, ChosenProgram, Imported, each_program
from landbridge.frontend.segments import Cut, cut, in_segments, is_in_pieces
from landbridge.frontend.tried import add_tried, tried_after
from landbridge.ir.budget import OF_CHOICES, SearchBudget
from landbridge.ir.empties import Empties
from landbridge.ir.graph_ops import CallOp, HostCallOp
from landbridge.ir.limits import check_time
from landbridge.ir.main_attributes import growths, set_unpacked_names
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name
from landbridge.ir.traversal import all_operations, operations_of
from landbridge.ir.verify_places import check_scopes
from landbridge.operators.implementations import HOST_PREFIX
from landbridge.package_version import package_version
from landbridge.passes.alias import check_proved, request_aliases
from landbridge.passes.lower.grid.loop_limits import guard_loops
from landbridge.passes.lower.in_groups import lower_kernels
from landbridge.passes.place import request_places
from landbridge.passes.progress import passes_to_do
from landbridge.passes.registry import run_pipeline
from landbridge.passes.spill import request_spill
from landbridge.reporting.stages import begin_stage
from landbridge.reporting.warning_notes import warn
from landbridge.sizes.dim import declared_dimensions
from landbridge.sizes.size import Extent, dimensions_of
from landbridge.targets import Target
from landbridge.targets.grid import takes_open_extents

if TYPE_CHECKING:
    import onnx_ir
    from onnx import ModelProto
    from xdsl.ir import Operation

    class TorchModel(Protocol):
        """A ``torch.nn.Module`` or ``torch.export.ExportedProgram``; torch is an optional dependency."""

        @property
        def state_dict(self) -> Any:
            """Returns the weights by name; it is a method of a module and a property of an exported program."""

    #: A model: a path, the bytes of a file, an ONNX model in memory, one of torch, IR (which is not changed) or its
    #: text.
    Model: TypeAlias = str | Path | bytes | ModelProto | IRModule | TorchModel | onnx_ir.Model

#: The entry of an Executable's metadata that says why its model was walked, a line for each walk.
WALKS = "import.walks"
#: What is tried where a model cannot be compiled for tensors without elements.
_NONE_EMPTY = "no tensor is without elements, unless data decide that"
#: The passes a model goes through, in order, before PrimFuncs are lowered.
PIPELINE = (
    "place",
    "dedup",
    "fold",
    "fuse",
    "fold_scale",
    "whole_numbers",
    "lengths",
    "support",
    "pack",
    "fold",
    "rows",
    "crossings",
    "finite",
    "assign_targets",
    "dedup",
    "bufferize",
    "prepare",
    "inplace",
    "updates",
    "alias",
    "moves",
    "scratch",
    "spill",
    "dedup",
    "reserve",
    "plan",
)


def compile_model(
    model: Model,
    targets: tuple[Target, ...],
    vdevices: tuple[VDevice, ...],
    options: CompileOptions,
    dump: str | Path | None,
) -> Executable:
    """Compiles ``model`` for ``targets``, to whose indices ``vdevices`` refer; other parameters are those of
    ``landbridge.compile``.
    """
    seconds: dict[str, float] = {}
    directory = None if dump is None else Path(dump)
    for target in targets:
        check_target(target)
    empties = Empties()
    walks: list[str] = []
    try:
        executable, noted = _of_sizes(model, targets, vdevices, options, directory, seconds, empties, walks)
    except BudgetError:
        raise
    except (CompileError, InputError) as error:
        if not empties.has_empty:
            raise
        empties = Empties(allowed=False)
        with tried_after(error, _NONE_EMPTY):
            executable, noted = _of_sizes(
                model, targets, vdevices, options, directory, seconds, empties, walks, _NONE_EMPTY
            )
    if noted:
        warn(f"these run on the host as numpy functions, not as kernels: {noted}", FallbackWarning)
    return _with_walks(executable, walks)


def _of_sizes(
    model: Model,
    targets: tuple[Target, ...],
    vdevices: tuple[VDevice, ...],
    options: CompileOptions,
    directory: Path | None,
    seconds: dict[str, float],
    empties: Empties,
    walks: list[str],
    why: str = "the model",
) -> tuple[Executable, str]:
    """Returns the program of ``model``, and a text that names its nodes that run on the host (empty for none).

    ``empties`` says which tensors may have no elements in a run. ``walks`` gets why the model was walked, a reason for
    each walk; that of the first is ``why``.
    """
    noted = ""
    not_empty: frozenset[str] = frozenset()
    first: CompileError | None = None
    while True:
        tried = nullcontext() if first is None else tried_after(first, why)
        with tried, _timed(seconds, "import"):
            programs = _import(model, targets, vdevices, options, not_empty, empties, walks, why)
        if not not_empty:
            noted = _host_operators(programs)
        pieces = _pieces(programs)
        if pieces is not None:
            if options.alias:
                raise CompileError(
                    "alias= is for programs whose sizes follow from those of the inputs; in this one, data decide "
                    "sizes: fix what decides by constants=, or leave alias= out"
                )
            programs = [ChosenProgram(module, [{}]) for module in pieces.modules]
        try:
            # Several programs share kernels under other names, so that code generation begins when all of them exist.
            others = [each for each in programs[1:] if not each.is_spare or each.module.prims()]
            early = not others and (len(programs) > 1 or not programs[0].chosen)
            with closing(Generation(early)) as code:
                executable = _compiled(programs, pieces, model, options, directory, seconds, code)
            return executable, noted
        except _MayBeEmptyError as error:
            first = first or error.reason
            if error.dimensions <= not_empty:
                if first is not error.reason:
                    add_tried(first, [(why, error.reason)])
                raise first from None
            assert pieces is not None
            of_inputs = dimensions_of(e for spec in pieces.inputs for e in (*spec.shape, *spec.elements))
            if empties.cut and not error.dimensions.isdisjoint(of_inputs):
                empties.cut = False  # instead of reporting that the data may not make it empty
                why = "inputs without elements do not cut the program"
            else:
                not_empty |= error.dimensions
                why = "what data fill is not empty"


class _MayBeEmptyError(CompileError):
    """Reports that a piece can be compiled only where the ``dimensions`` that data decide make no tensor empty, for
    ``reason``.
    """

    def __init__(self, dimensions: Iterable[str], reason: CompileError) -> None:
        self.dimensions, self.reason = frozenset(dimensions), reason


@contextmanager
def _may_be_empty(module: IRModule) -> Iterator[None]:
    """Raises _MayBeEmptyError where a size or an access cannot be decided because data may make a tensor empty."""
    try:
        yield
    except (UndecidedSizeError, AccessError) as error:
        dimensions = [name for name, symbol in module.dimensions().items() if symbol.low <= 0]
        if not dimensions:
            raise
        raise _MayBeEmptyError(dimensions, error) from None


def _compiled(
    programs: Sequence[ChosenProgram],
    pieces: Cut | None,
    model: Model,
    options: CompileOptions,
    directory: Path | None,
    seconds: dict[str, float],
    code: Generation,
) -> Executable:
    """Returns the Executable of ``programs``, which are ``pieces`` of one program where data decide sizes; kernels go
    to ``code`` as they are lowered, where code generation begins early.
    """
    created = []
    if len(programs) > 1:
        packs: dict[Hashable, Any] = {}
        for program in programs:
            program.module.packs = packs
    given, called = {}, frozenset[str]()
    if _is_ir(model):
        given, called = functions_of(programs[0].module), called_functions(programs[0].module)
    facts: list[dict[str, KernelFacts]] = []
    grown: list[tuple[StateGrowth, ...]] = []
    for number, program in enumerate(programs):
        module, folder = program.module, directory
        module.declined = declined
        request_places(module, options.place or {}, is_first=number == 0 or pieces is not None)
        request_spill(module, options.spill or {})
        set_unpacked_names(module.main, options.unpacked)
        request_aliases(module, {} if options.alias == "auto" else options.alias or {})
        steps = (*passes_to_do(module, PIPELINE), *(("check_accesses",) if options.sanitize else ()))
        _check_open(module)
        if directory is not None and number:
            folder = directory / program_name(number)
        try:
            with nullcontext() if pieces is None else _may_be_empty(module):
                code.begin(module.targets, len(operations_of(module.main, CallOp)))
                every = folder is not None or options.sanitize
                module = run_pipeline(module, steps, folder, seconds, module.sources, every=every)
                if "alias" not in steps:
                    check_proved(module)
                with _timed(seconds, "lower"), access_errors(module, generated=not _is_ir(model)):
                    lowered, variants = lower_kernels(module, code.add, options.tiles, verifies=every)
                guard_loops(module.main, lowered, module.targets)
        except (UndecidedSizeError, AccessError, PlacementError):
            if not program.is_spare:
                raise
            continue
        if folder is not None:
            write_text(folder / "lowered.mlir", str(lowered) + "\n", module.sources)
        with _timed(seconds, "emit"):
            created.append((emit(module, lowered, variants), lowered, program.chosen))
            facts.append(kernel_facts(module, lowered, variants))
            grown += [growths(module.main)] * max(len(program.chosen), 1)
    executable, lowered = created[0][:2]
    known = facts[0]
    others = list(compiled_functions(given, module, executable, called))
    if others:
        whole: list[Chosen] = [{}]
        alone = [(each, kernels, whole) for _, each, kernels in others]
        executable, lowered, _ = together([(executable, lowered, whole), *alone])
        executable = as_functions(executable, [name for name, _, _ in others])
    elif len(programs) > 1 or programs[0].chosen:
        executable, lowered, names = together(created)
        known = {
            renamed(key, new): each
            for new, facts_of_one in zip(names, facts, strict=True)
            for key, each in facts_of_one.items()
        }
    described: dict[str, str] = {}
    if pieces is not None:
        executable, described = in_segments(executable, pieces)
    elif any(grown):
        described[STATES] = growths_text({program_name(number): found for number, found in enumerate(grown)})
    with _timed(seconds, "codegen"):
        images = code.images(module.targets, lowered)
    metadata = {KERNELS: facts_text(known)} | described | _metadata(model, options.on_mismatch, seconds)
    return replace(executable, modules=images, metadata=metadata)


def _pieces(programs: Sequence[ChosenProgram]) -> Cut | None:
    """Returns the pieces of the program whose sizes data decide, None where there is none; raises CompileError for
    several.
    """
    found = [cut(program.module) for program in programs]
    if len(programs) > 1 and any(each is not None for each in found):
        raise CompileError(
            "inputs choose among programs of this model, and data decide sizes in these programs; only one of the "
            "two is supported: fix the inputs by constants="
        )
    return found[0]


def _host_operators(programs: Sequence[ChosenProgram]) -> str:
    """Returns a text that lists the nodes that run as Python functions, by what they do."""
    nodes: dict[str, list[str]] = {}
    for program in programs:
        for op in _operations(program.module):
            if isinstance(op, HostCallOp) and op.builtin.data.startswith(HOST_PREFIX):
                subject = op.builtin.data.removeprefix(HOST_PREFIX).partition("@")[0]
                nodes.setdefault(subject, []).append(node_name(op))
    return ", ".join(f"{subject} ({_some(list(dict.fromkeys(names)))})" for subject, names in nodes.items())


def _operations(module: IRModule) -> Iterator[Operation]:
    """Yields the operations of ``module`` and of the programs that its calls run."""
    yield from all_operations(module.main)
    for body in module.bodies.values():
        yield from _operations(body)


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _import(
    model: Model,
    targets: tuple[Target, ...],
    vdevices: tuple[VDevice, ...],
    options: CompileOptions,
    not_empty: Collection[str],
    empties: Empties,
    walks: list[str],
    why: str,
) -> list[ChosenProgram]:
    """Imports ``model`` and returns its programs, several where an input or sizes choose which of them runs.

    ``walks`` and ``why`` as in ``_of_sizes``.
    """
    if _is_ir(model):
        if options.alias == "auto":
            raise CompileError("alias='auto' is for models of nodes; name outputs and inputs of IR: alias={'y': 'x'}")
        return [ChosenProgram(_of_ir(model, targets, vdevices, options))]
    from landbridge.frontend.onnx.data_rules import data_rules
    from landbridge.frontend.onnx.import_request import ImportRequest
    from landbridge.frontend.onnx.importer import import_onnx

    o = options
    rules = data_rules(o.external_data, o.allow_links)

    of_choices = SearchBudget(OF_CHOICES)

    def created(chosen: Chosen, hosts: bool) -> Imported:
        found = import_onnx(
            ImportRequest(
                cast(Any, model),  # a model of torch has been exported
                targets,
                vdevices,
                shapes=o.shapes,
                dimensions=_dimensions(o, targets),
                constants=o.constants or {},
                frames=o.inputs or {},
                extra_outputs=o.extra_outputs,
                mutable=o.mutable,
                alias=o.alias,
                max_nodes=o.max_nodes,
                check_indices=o.check_indices,
                rules=rules,
                chosen=chosen,
                not_empty=not_empty,
                empties=empties,
                hosts=hosts,
                others=not not_empty,
                spares=not chosen,
                search=of_choices if chosen else None,
            )
        )
        of = f"a program for values of input {', '.join(map(repr, chosen))}" if chosen else why
        walks.extend(walk or of for walk in found.walks)
        return replace(found, spares=[each for each in found.spares if not is_in_pieces(each)])

    return each_program(created, of_choices)


def _is_ir(model: Model) -> bool:
    """Returns whether the kernels of ``model`` were given as IR instead of made from a model."""
    return isinstance(model, IRModule) or is_ir_text(model)


def _of_ir(
    model: Model, targets: tuple[Target, ...], vdevices: tuple[VDevice, ...], options: CompileOptions
) -> IRModule:
    o = options
    if is_ir_text(model):
        assert isinstance(model, str | Path)
        _refuse(o.shapes, o.inputs, o.extra_outputs, o.mutable, o.check_indices, o.dims)
        module = import_ir_text(model, targets, vdevices, o.constants)
        check_scopes(module)
        return module
    assert isinstance(model, IRModule)
    _refuse(o.shapes, o.inputs, o.extra_outputs, o.mutable, o.check_indices or o.constants, o.dims)
    if len(model.vdevices) > len(vdevices):
        raise CompileError(
            f"the IR uses {len(model.vdevices)} vdevices and target= gives {len(vdevices)}; "
            f"state {{vdevice name: target}} for {', '.join(v.name for v in model.vdevices)}"
        )
    module = replace(model, op=model.op.clone(), targets=targets, vdevices=vdevices, constants=dict(model.constants))
    module.add_main()
    check_scopes(module)
    return module


def _dimensions(options: CompileOptions, targets: tuple[Target, ...]) -> dict[str, Extent] | None:
    """Returns the declared open dimensions, by name; None where they are not declared and a target compiles no open
    ones, so each extent must be known.
    """
    if options.dims is None and not all(map(takes_open_extents, targets)):
        return None
    return declared_dimensions(options.dims or {})


def _check_open(module: IRModule) -> None:
    """Raises CompileError where the module has open dimensions (extents known only in a run) and one of its targets
    compiles known shapes only.
    """
    open_dimensions = module.dimensions()
    for target in module.targets:
        if open_dimensions and not takes_open_extents(target):
            raise CompileError(
                f"target {target.kind!r} makes code for known shapes only, and {', '.join(open_dimensions)} "
                f"{'is' if len(open_dimensions) == 1 else 'are'} open; give shapes=, or compile for a CPU"
            )


def _refuse(*of_imports: object) -> None:
    if any(of_imports):
        raise CompileError(
            "shapes=, dims=, inputs=, extra_outputs=, mutable=, unpacked= and check_indices= are for models that are "
            "imported; "
            "this one is IR already (of which text takes constants=)"
        )


def _with_walks(executable: Executable, walks: Sequence[str]) -> Executable:
    """Returns ``executable`` with the reasons of the ``walks`` of its model, a line for each; none for IR."""
    return replace(executable, metadata={**executable.metadata, WALKS: "\n".join(walks)}) if walks else executable


def _metadata(model: Model, on_mismatch: str, seconds: Mapping[str, float]) -> dict[str, str]:
    name = Path(model).stem if isinstance(model, str | Path) else _graph_name(model)
    metadata = {"model": name, "landbridge": package_version("landbridge"), "on_mismatch": on_mismatch}
    metadata.update((f"seconds.{phase}", f"{spent:.3f}") for phase, spent in seconds.items())
    metadata["seconds"] = f"{sum(seconds.values()):.3f}"
    return metadata


def _graph_name(model: object) -> str:
    return str(getattr(getattr(model, "graph", None), "name", "")) or "model"


@contextmanager
def _timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    begin_stage(phase)
    check_time(phase)
    began = time.perf_counter()
    yield
    seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - began
