"""import_onnx imports an ONNX model as an IRModule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import combinations
from typing import Any

import onnx_ir as ir
from xdsl.dialects.builtin import ModuleOp

from landbridge.errors import CompileError, NodeError, ShapeError, UndecidedSizeError
from landbridge.frontend.onnx.attempts import Attempts
from landbridge.frontend.onnx.decisions import Decisions
from landbridge.frontend.onnx.earlier_walks import EarlierWalks
from landbridge.frontend.onnx.empty_specializations import from_zero, may_be_zero, name_of, where_zero
from landbridge.frontend.onnx.fitting_sizes import naming_inputs
from landbridge.frontend.onnx.found_states import prepare_states
from landbridge.frontend.onnx.graph_walk import Branches
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.load import load_model, release
from landbridge.frontend.onnx.main_function import build_main
from landbridge.frontend.onnx.model_inputs import model_inputs
from landbridge.frontend.onnx.node_names import name_of_node
from landbridge.frontend.onnx.open_ranges import in_open_ranges
from landbridge.frontend.onnx.other_specializations import other_branches, where_broadcast, without_windows
from landbridge.frontend.onnx.parameters import promote_parameters
from landbridge.frontend.onnx.specializations import Specializations
from landbridge.frontend.programs import Imported
from landbridge.frontend.tried import add_tried
from landbridge.ir.budget import Budget, SearchBudget
from landbridge.ir.data_dimensions import DataDimensions
from landbridge.ir.empties import Empties
from landbridge.ir.graph_builder import Broadcasting
from landbridge.ir.main_attributes import input_elements, io_names, set_aliases, set_node_types
from landbridge.ir.module import IRModule
from landbridge.ir.permissions import Permission, Permissions
from landbridge.ir.types import shape_of
from landbridge.records import record
from landbridge.sizes.dim import identifier
from landbridge.sizes.size import Extent, dimension, dimensions_of


def import_onnx(request: ImportRequest) -> Imported:
    """Returns the modules of an ONNX model, with ``func.func @main(inputs) -> outputs`` and their names as attributes.

    Raises ImportModelError (no valid model), InputError (unknown names), ShapeError (shapes that contradict each
    other), BudgetError (more than ``max_nodes``) and UnsupportedOperatorError, which lists every operator and dimension
    that cannot be compiled.
    """
    loaded, sources, files = load_model(request.model, request.max_nodes, request.rules)
    states, shapes = prepare_states(
        loaded.graph,
        request.alias,
        request.shapes or {},
        request.dimensions or {},
        is_together=len(request.vdevices) == 1 or all(target.on_host for target in request.targets),
    )
    empty = IRModule(
        ModuleOp([]),
        request.targets,
        request.vdevices,
        parameters=promote_parameters(loaded.graph, request.mutable),
        sources=sources,
        files=files,
    )
    return _Import(replace(request, shapes=shapes), loaded, states, empty).all()


@record(eq=False)
class _Import:
    """The import of the model ``loaded``. ``empty`` is a module without functions, which each walk begins with.

    ``states``: the inputs that outputs share memory with, by output. ``decided``: dimensions that data decide, in all
    walks. ``earlier``: what walks have computed.
    ``walks`` says why the model was walked, once for each walk, and ``purpose`` what the present one is for.
    """

    request: ImportRequest
    loaded: ir.Model
    states: Mapping[str, str]
    empty: IRModule
    branches: Branches = field(default_factory=Branches)
    broadcasting: Broadcasting = field(default_factory=Broadcasting)
    specializations: Specializations = field(default_factory=Specializations)
    earlier: EarlierWalks = field(default_factory=EarlierWalks)
    decided: set[str] = field(default_factory=set)
    purpose: str = ""
    walks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.search = self.request.search or SearchBudget.for_model(len(self.loaded.graph))
        self.branches.is_separate = self.request.around is not None
        hosts = {Permission.HOST} if self.request.hosts else set()
        self.permissions = Permissions(hosts)
        self.attempts = Attempts(self._attempt, self.request.dimensions is not None, self.permissions, self.branches)

    def all(self) -> Imported:
        """Returns the modules; raises as ``import_onnx``. The error lists what was tried after it occurred."""
        try:
            return self._found()
        except CompileError as error:
            if self.request.around is None:
                add_tried(error, ((permission.value, why) for permission, why in self.attempts.failed))
            raise
        finally:
            self.earlier = EarlierWalks()  # its arrays would live as long as this object

    def _found(self) -> Imported:
        try:
            found = self._with_others(self.attempts.all())
            if not isinstance(self.request.model, ir.Model):
                release(self.loaded)
            return found
        except UndecidedSizeError:
            raise
        except (ShapeError, NodeError) as error:
            if Permission.REFUSE in self.permissions.useful:
                self.permissions.granted.add(Permission.REFUSE)
                with suppress(CompileError):
                    return self._with_others(self.attempts.with_reads())
                self.permissions.granted.discard(Permission.REFUSE)
            if not isinstance(error, ShapeError):
                raise
            named = naming_inputs(error, self.request.shapes or {}, self._of_any_shapes, _shapes)
            if named is error:
                raise  # an error must not be its own cause
            raise named from error

    def _attempt(self) -> IRModule:
        if self.request.dimensions is None:
            return self._walk(None, {}, self.request.shapes or {})
        self.specializations = Specializations(begin=self.request.begin)
        return self._search(self.specializations)

    def _search(self, specializations: Specializations) -> IRModule:
        """Returns the module for the first ranges of dimensions that fit, beginning with those of
        ``specializations``.
        """
        request = self.request
        decisions = Decisions(
            _by_identifier(request.dimensions or {}),
            self.decided,
            request.around is not None,
            specializations,
            self.permissions,
            self.broadcasting,
        )

        def walk(decisions: Decisions, elements: Mapping[str, tuple[Extent, ...]]) -> IRModule:
            return self._walk(decisions, elements, request.shapes or {})

        return in_open_ranges(walk, decisions, request.empties)

    def _other(self, specializations: Specializations) -> IRModule:
        """Returns ``_search`` for other sizes; their number is limited, and each is a search of its own."""
        self.search = self.request.search or SearchBudget.for_model(len(self.loaded.graph))
        return self._search(specializations)

    def _of_any_shapes(self) -> IRModule:
        """Returns the module for the shapes that the file declares."""
        decisions = Decisions(broadcasting=self.broadcasting)
        return in_open_ranges(lambda known, elements: self._walk(known, elements, {}), decisions)

    def _walk(
        self,
        decisions: Decisions | None,
        elements: Mapping[str, tuple[Extent, ...]],
        shapes: Mapping[str, Sequence[int | str]],
    ) -> IRModule:
        """Returns the module that one walk of the model builds."""
        request, graph = self.request, self.loaded.graph
        self.search.begin_walk()
        budget = Budget(request.max_nodes)
        known = {**elements, **request.chosen}
        reasons = self.purpose or self._granted(), "" if decisions is None else decisions.why
        self.walks.append("; ".join(filter(None, reasons)))
        declared = None if decisions is None else decisions.known
        decisions = Decisions(broadcasting=self.broadcasting) if decisions is None else decisions
        of_inputs = None if declared is None else {n: e for n, e in declared.items() if n not in self.decided}
        inputs = model_inputs(graph, shapes, request.constants, request.frames, of_inputs, known)
        decisions.pairs = list(_along_one_axis(inputs.shapes.values()))
        data = DataDimensions(
            declared,
            self.permissions,
            self.decided,
            request.not_empty,
            request.empties,
            request.around or (),
        )
        try:
            built = build_main(
                replace(self.empty, op=ModuleOp([]), constants={}, bodies={}),
                self.loaded,
                inputs,
                request.extra_outputs,
                budget,
                request.check_indices,
                data,
                self.branches,
                self._import_body,
                decisions,
                self.earlier,
            )
        finally:
            decisions.weighed = data.weighed
            self.search.end_walk(budget.spent)
        set_aliases(built.main, self.states if request.alias == "auto" else {})
        set_node_types(built.main, {name_of_node(node): node.op_type for node in graph} if self.states else {})
        return built

    def _import_body(
        self,
        body: ir.Model,
        shapes: Mapping[str, Sequence[Any]],
        of_whole: Mapping[str, Extent],
        elements: Mapping[str, tuple[Any, ...]],
        lengths: Collection[str],
    ) -> IRModule:
        request = self.request
        return import_onnx(
            ImportRequest(
                body,
                request.targets,
                request.vdevices,
                shapes=shapes,
                dimensions=of_whole,
                max_nodes=request.max_nodes,
                check_indices=request.check_indices,
                chosen=elements,
                not_empty=request.not_empty,
                hosts=Permission.HOST in self.permissions.granted,
                around=(*of_whole, *request.not_empty),
                begin={name: dimension(name, int(name in request.not_empty)) for name in lengths},
                search=self.search,
            )
        ).module

    def _with_others(self, module: IRModule) -> Imported:
        """Returns ``module`` with those for other sizes that the request asks for."""
        request, search, first = self.request, self._other, self.specializations
        dimensions = request.dimensions or {}
        self.earlier.begin_others()
        others: list[IRModule] = []
        spares: list[IRModule] = []
        if request.others and not self.decided:
            self.permissions.granted |= {Permission.REFUSE} & self.permissions.useful
            self.purpose = "a program for the other result of a comparison"
            others.extend(other_branches(first, search))
            if request.spares:
                self.purpose = "a program for extents of 1"
                spares.extend(where_broadcast(first, self.broadcasting, search))
                self.purpose = "a program for images smaller than a window"
                spares.extend(without_windows(module, first, dimensions, search))
                if request.empties.allowed and not module.bodies:
                    self.purpose = "a program for inputs without elements"
                    inputs = _shapes(module).values()
                    spares.extend(where_zero(self._may_be_zero(module), inputs, first, search))
        empties: Empties = request.empties
        if request.spares and empties.allowed and empties.cut and (module.bodies or self.decided):
            self.purpose = "the program for inputs without elements too"
            module = from_zero(module, self._may_be_zero(module), first, search)
        return Imported(module, others, spares, self.walks)

    def _granted(self) -> str:
        """Returns a text that names what the present attempt may do and the first may not; empty for the first."""
        return ", ".join(each.value for each in Permission if each in self.permissions.granted)

    def _may_be_zero(self, module: IRModule) -> list[str]:
        shapes = [*_shapes(module).values(), *_trips(module, self.branches)]
        return may_be_zero(shapes, self.request.dimensions or {})


def _by_identifier(dimensions: Mapping[str, Extent]) -> dict[str, Extent]:
    return {identifier(name): each for name, each in dimensions.items()}


def _along_one_axis(shapes: Iterable[Sequence[Extent]]) -> Iterator[tuple[str, str]]:
    """Yields pairs of dimensions of two inputs of equal rank, by name, that are along the same axis, in the order of
    the inputs.
    """
    # there may be many inputs, but few different shapes
    named = dict.fromkeys(tuple(name_of(e) for e in shape) for shape in shapes)
    for one, other in combinations((names for names in named if any(names)), 2):
        for a, b in zip(one, other, strict=True) if len(one) == len(other) else ():
            if a and b and a != b:
                yield a, b


def _trips(module: IRModule, branches: Branches) -> list[tuple[Extent, ...]]:
    """Returns the elements of inputs of ``@main`` that are trip counts of loops, and not extents of shapes."""
    elements = input_elements(module.main).values()
    return [tuple(e for e in each if dimensions_of([e]).keys() & branches.trips) for each in elements]


def _shapes(module: IRModule) -> dict[str, Sequence[Extent]]:
    """Returns the shapes of the inputs of ``@main`` by name."""
    main = module.main
    names, _ = io_names(main)
    return {name: shape_of(a.type) for name, a in zip(names, main.body.block.args, strict=False)}
