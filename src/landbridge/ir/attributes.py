"""The attributes that passes leave each other: every key, what carries it, and how it is read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects import func, linalg
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation

from landbridge.errors import CompileError
from landbridge.executable.parts import SizeGuard
from landbridge.ir.types import SizeAttr, VDeviceAttr
from landbridge.sizes.size import Extent, Size, same

#: Any operation: the name that the model gave the node which it is part of.
NODE = "node"
#: Of a crossing: why it is a view or a copy.
WHY = "why"

# A printed module ------------------------------------------------------------------------------------------------

#: ``[name, number of its target]`` of each vdevice.
VDEVICES = "lb.vdevices"
#: What each open dimension may be.
DIMENSIONS = "lb.dimensions"

# @main ------------------------------------------------------------------------------------------------------------

#: The names of its inputs and outputs.
INPUT_NAMES = "lb.input_names"
OUTPUT_NAMES = "lb.output_names"
#: The names of its inputs, the last ones, that are parameters.
PARAMETER_NAMES = "lb.parameter_names"
#: ``{name: [shape, strides]}`` of inputs that are frames, whose argument is all that they span.
FRAMES = "lb.frames"
#: ``{name: [element]}`` of inputs that say what open dimensions are, each an integer or a Size.
ELEMENTS = "lb.elements"
GUARDS = "lb.guards"
#: Dimensions that data decide and of which 0 was not reckoned with.
SUPPOSED = "lb.supposed"
#: ``{pattern: #lb.vdevice}``: what the pass ``place`` is to put elsewhere.
PLACE = "lb.place"
#: ``{scope: scope}``: where the pass ``spill`` is to put what does not fit.
SPILL = "lb.spill"

# PrimFuncs and lowered functions ----------------------------------------------------------------------------------

#: The function is a PrimFunc.
PRIM = "lb.prim"
#: The number of the target that it is compiled for; 0 when absent.
TARGET = "lb.target"
#: How many arguments come before those that are memory for its temporaries.
SCRATCH = "lb.scratch"
#: It computes nothing: the bytes that a call moves.
MOVES = "lb.moves"
#: An output may be the memory of an input.
IN_PLACE = "lb.in_place"
#: Its last operand is where it reports accesses outside of the others, which it does not do.
CHECKED = "lb.checked"
#: The function is lowered: how many tasks a call has.
TASKS = "lb.tasks"

#: The function is lowered: the schedule chosen in words, and those weighed and not taken.
SCHEDULE = "lb.schedule"
WEIGHED = "lb.weighed"

#: The function is lowered: the Sizes that it takes, in the words of its operand before the tasks.
SIZES = "lb.sizes"

# linalg.generic ---------------------------------------------------------------------------------------------------

#: The bounds of its loops.
EXTENTS = "lb.extents"
#: ``[outer, inner, tile, extent]`` of each loop that was cut in two and whose last tile is not full.
BOUNDS = "lb.bounds"

# Operations of a memory-level @main -------------------------------------------------------------------------------

#: The vdevice that the bytes of ``memref.alloc`` and ``lb.constant`` are on, that computes a call, and that sees a
#: view from then on.
VDEVICE = "lb.vdevice"
#: Of a storage: the bytes that it has at least, and whether no plan has fewer than this one.
LOWER_BOUND = "lb.lower_bound"
PROVED_OPTIMAL = "lb.proved_optimal"

#: Shape and strides, in elements, of a frame; a dense one has no strides.
FrameLayout: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


def int_attr(value: Extent) -> Attribute:
    """``5`` as an attribute; a Size stands as ``lb.size``."""
    return SizeAttr(value) if isinstance(value, Size) else IntegerAttr(value, i64)


def int_of(attr: Attribute) -> int:
    """The integer of such an attribute."""
    if isinstance(attr, SizeAttr):
        return cast(int, attr.data)
    if isinstance(attr, IntegerAttr):
        return attr.value.data
    raise CompileError(f"{attr} is no integer")


def int_array(values: Sequence[Extent]) -> ArrayAttr[Any]:
    """``[1, 2, 3]`` as an attribute; a Size stands as ``lb.size``."""
    return ArrayAttr(map(int_attr, values))


def ints(attr: ArrayAttr[Any]) -> tuple[int, ...]:
    """The integers of such an attribute."""
    return tuple(map(int_of, attr))


def plain_attribute(value: Any) -> Attribute:
    """Plain data as an attribute: numbers, text, lists and dictionaries of them by name; raises CompileError for other
    values."""
    if isinstance(value, bool):
        return IntegerAttr(int(value), i1)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, list | tuple):
        return ArrayAttr([plain_attribute(each) for each in value])
    if isinstance(value, Mapping):
        return DictionaryAttr({str(name): plain_attribute(each) for name, each in value.items()})
    raise CompileError(f"{value!r:.60} is no plain data; numbers, text and lists of them are legal")


def plain_data(attribute: Attribute) -> Any:
    """An attribute as plain data: numbers, text, lists and dictionaries of them; raises CompileError for another."""
    if isinstance(attribute, IntegerAttr) and attribute.type == i1:
        return bool(attribute.value.data)
    if isinstance(attribute, IntegerAttr | FloatAttr):
        return attribute.value.data
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, ArrayAttr):
        return [plain_data(item) for item in attribute.data]
    if isinstance(attribute, DictionaryAttr):
        return {key: plain_data(value) for key, value in attribute.data.items()}
    raise CompileError(f"attribute {attribute} of a host call is no plain data; legal: numbers, text, lists of them")


def node_name(op: Operation) -> str:
    """The name that the model gave the node which ``op`` is part of; empty when it has none."""
    node = op.attributes.get(NODE)
    return node.data if isinstance(node, StringAttr) else ""


def set_node_name(op: Operation, name: str) -> None:
    """State the node that ``op`` is part of."""
    op.attributes[NODE] = StringAttr(name)


def crossing_reason(op: Operation) -> str:
    """Why a crossing is a view or a copy, in words; empty for what is no crossing of the model."""
    why = op.attributes.get(WHY)
    return why.data if isinstance(why, StringAttr) else ""


def set_crossing_reason(op: Operation, why: str) -> None:
    """State why the crossing ``op`` is a view or a copy."""
    op.attributes[WHY] = StringAttr(why)


def io_names(main: func.FuncOp) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the inputs and outputs of @main: those it carries, else made up from its tensor-level type."""
    inputs, outputs = _strings(main, INPUT_NAMES), _strings(main, OUTPUT_NAMES)
    if inputs is None:
        inputs = tuple(f"input_{i}" for i in range(len(main.function_type.inputs)))
    if outputs is None:
        outputs = tuple(f"output_{i}" for i in range(len(main.function_type.outputs)))
    return inputs, outputs


def set_io_names(main: func.FuncOp, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """State the names of the inputs and outputs of @main."""
    main.attributes[INPUT_NAMES] = _string_array(inputs)
    main.attributes[OUTPUT_NAMES] = _string_array(outputs)


def parameter_names(main: func.FuncOp) -> tuple[str, ...]:
    """The names of the inputs of @main, the last ones, that are parameters."""
    return _strings(main, PARAMETER_NAMES) or ()


def set_parameter_names(main: func.FuncOp, names: Sequence[str]) -> None:
    """State which inputs of @main, its last ones, are parameters."""
    main.attributes[PARAMETER_NAMES] = _string_array(names)


def supposed_dimensions(main: func.FuncOp) -> tuple[str, ...]:
    """The dimensions that data decide and that @main supposes to be at least 1."""
    return _strings(main, SUPPOSED) or ()


def set_supposed_dimensions(main: func.FuncOp, names: Sequence[str]) -> None:
    """State them."""
    main.attributes[SUPPOSED] = _string_array(names)


def frame_layouts(main: func.FuncOp) -> dict[str, FrameLayout]:
    """The layout of each input that is a frame, by name."""
    layouts = {}
    for name, layout in _dictionary(main, FRAMES).items():
        match layout:
            case ArrayAttr(data=(ArrayAttr() as shape, ArrayAttr() as strides)):
                layouts[name] = (ints(shape), ints(strides))
            case _:
                raise CompileError(f"{FRAMES} of {name!r} is {layout}; legal: [shape, strides], two lists of integers")
    return layouts


def set_frame_layouts(main: func.FuncOp, layouts: Mapping[str, FrameLayout]) -> None:
    """State the layouts of inputs that are frames, by name."""
    main.attributes[FRAMES] = DictionaryAttr(
        {name: ArrayAttr([int_array(shape), int_array(strides)]) for name, (shape, strides) in layouts.items()}
    )


def input_elements(main: func.FuncOp) -> dict[str, tuple[int, ...]]:
    """The elements of each input that says what open dimensions are, by name."""
    return {name: ints(cast(ArrayAttr[Any], found)) for name, found in _dictionary(main, ELEMENTS).items()}


def set_input_elements(main: func.FuncOp, elements: Mapping[str, Sequence[Extent]]) -> None:
    """State the elements of inputs that say what open dimensions are, by name."""
    main.attributes[ELEMENTS] = DictionaryAttr({name: int_array(each) for name, each in elements.items()})


def guards(main: func.FuncOp) -> tuple[SizeGuard, ...]:
    """What must hold for the dimensions of a run."""
    found = []
    for each in cast(ArrayAttr[Any], main.attributes.get(GUARDS, ArrayAttr(()))):
        match each:
            case ArrayAttr(data=(StringAttr(data=what), ArrayAttr() as numbers)):
                found.append(SizeGuard(what, *ints(numbers)))
            case _:
                raise CompileError(f"{GUARDS} has {each}; legal: [what, [found, legal]]")
    return tuple(found)


def set_guards(main: func.FuncOp, stated: Sequence[SizeGuard]) -> None:
    """State what must hold for the dimensions of a run."""
    main.attributes[GUARDS] = ArrayAttr(
        [ArrayAttr([StringAttr(guard.what), int_array([guard.found, guard.legal])]) for guard in stated]
    )


def take_place_requests(main: func.FuncOp) -> dict[str, VDeviceAttr]:
    """The places that were asked for, by pattern of a name, taken off @main."""
    asked = _dictionary(main, PLACE)
    main.attributes.pop(PLACE, None)
    return {pattern: place for pattern, place in asked.items() if isinstance(place, VDeviceAttr)}


def set_place_requests(main: func.FuncOp, places: Mapping[str, VDeviceAttr]) -> None:
    """Ask for places, by pattern of a name."""
    main.attributes[PLACE] = DictionaryAttr(dict(places))


def take_spill_requests(main: func.FuncOp) -> dict[str, str]:
    """The scopes that take what does not fit, by the scope that it leaves, taken off @main."""
    asked = _dictionary(main, SPILL)
    main.attributes.pop(SPILL, None)
    return {source: target.data for source, target in asked.items() if isinstance(target, StringAttr)}


def set_spill_requests(main: func.FuncOp, spill: Mapping[str, str]) -> None:
    """Name the scopes that take what does not fit."""
    main.attributes[SPILL] = DictionaryAttr({source: StringAttr(target) for source, target in spill.items()})


def open_requests(main: func.FuncOp) -> frozenset[str]:
    """Which of ``PLACE`` and ``SPILL`` are asked for, and not done yet."""
    return frozenset({PLACE, SPILL} & main.attributes.keys())


def is_prim(function: func.FuncOp) -> bool:
    """Whether ``function`` is a PrimFunc."""
    return PRIM in function.attributes


def mark_prim(function: func.FuncOp) -> None:
    """Make ``function`` a PrimFunc."""
    function.attributes[PRIM] = UnitAttr()


def target_number(function: func.FuncOp) -> int:
    """The number of the target that a PrimFunc is compiled for."""
    return _integer(function, TARGET) or 0


def set_target_number(function: func.FuncOp, target: int) -> None:
    """State the target that a PrimFunc is compiled for."""
    function.attributes[TARGET] = IntegerAttr(target, i64)


def moved_bytes(function: func.FuncOp) -> int:
    """The bytes that a call of a PrimFunc moves; 0 for one that computes."""
    found = _integer(function, MOVES)
    return 0 if found is None else found


def set_moved_bytes(function: func.FuncOp, nbytes: int) -> None:
    """State the bytes that a call of a PrimFunc moves; 0 for one that computes."""
    if not same(nbytes, 0):
        function.attributes[MOVES] = int_attr(nbytes)
    else:
        function.attributes.pop(MOVES, None)


def first_scratch(function: func.FuncOp) -> int | None:
    """The number of the first argument of a PrimFunc that is memory for its temporaries; None where there is none."""
    return _integer(function, SCRATCH)


def set_first_scratch(function: func.FuncOp, number: int) -> None:
    """State which argument of a PrimFunc is the first that is memory for its temporaries."""
    function.attributes[SCRATCH] = int_attr(number)


def is_in_place(function: func.FuncOp) -> bool:
    """Whether an output of a kernel may be the memory of an input."""
    return IN_PLACE in function.attributes


def mark_in_place(function: func.FuncOp) -> None:
    """Let an output of a kernel be the memory of an input."""
    function.attributes[IN_PLACE] = UnitAttr()


def is_checked(function: func.FuncOp) -> bool:
    """Whether a kernel tests its accesses and has a report as its last operand."""
    return CHECKED in function.attributes


def mark_checked(function: func.FuncOp) -> None:
    """State that the last operand of a kernel is its report."""
    function.attributes[CHECKED] = UnitAttr()


def task_count(function: func.FuncOp) -> int | None:
    """How many tasks a call of a lowered function has; None for a function that is not lowered."""
    return _integer(function, TASKS)


def set_task_count(function: func.FuncOp, tasks: Extent) -> None:
    """State how many tasks a call of a lowered function has."""
    function.attributes[TASKS] = int_attr(tasks)


def schedule_of(function: func.FuncOp) -> tuple[str, tuple[str, ...]]:
    """The schedule of a lowered function in words, and others that were weighed; empty where nobody said."""
    chosen = function.attributes.get(SCHEDULE)
    return chosen.data if isinstance(chosen, StringAttr) else "", _strings(function, WEIGHED) or ()


def set_schedule(function: func.FuncOp, chosen: str, weighed: Sequence[str]) -> None:
    """State the schedule of a lowered function in words, and others that were weighed."""
    function.attributes[SCHEDULE] = StringAttr(chosen)
    if weighed:
        function.attributes[WEIGHED] = _string_array(weighed)


def loop_extents(generic: linalg.ops.GenericOp) -> tuple[int, ...]:
    """The bounds of the loops of a ``linalg.generic``, which must carry them."""
    extents = generic.attributes[EXTENTS]
    assert isinstance(extents, ArrayAttr)  # whoever makes a generic states them
    return ints(extents)


def set_loop_extents(generic: linalg.ops.GenericOp, extents: Sequence[Extent]) -> None:
    """State the bounds of the loops of a ``linalg.generic``."""
    generic.attributes[EXTENTS] = int_array(extents)


def has_sizes(function: func.FuncOp) -> bool:
    """Whether a lowered function has the operand of Sizes before the tasks, of which it may need none."""
    return SIZES in function.attributes


def sizes_of(function: func.FuncOp) -> tuple[int, ...]:
    """The Sizes that a lowered function takes in its operand before the tasks."""
    sizes = function.attributes.get(SIZES)
    return ints(sizes) if isinstance(sizes, ArrayAttr) else ()


def set_sizes(function: func.FuncOp, sizes: Sequence[Extent]) -> None:
    """State the Sizes that a lowered function takes."""
    function.attributes[SIZES] = int_array(sizes)


def tile_bounds(generic: linalg.ops.GenericOp) -> list[tuple[int, ...]]:
    """``(outer, inner, tile, extent)`` of each loop that was cut in two and whose last tile is not full."""
    bounds = generic.attributes.get(BOUNDS)
    return [ints(bound) for bound in bounds] if isinstance(bounds, ArrayAttr) else []


def set_tile_bounds(generic: linalg.ops.GenericOp, bounds: Sequence[tuple[int, int, int, int]]) -> None:
    """State which loops were cut in two and have a last tile that is not full."""
    generic.attributes[BOUNDS] = ArrayAttr([int_array(bound) for bound in bounds])


def vdevice_stated(op: Operation) -> VDeviceAttr | None:
    """The vdevice that a memory-level operation states; None where the text has none."""
    place = op.attributes.get(VDEVICE)
    return place if isinstance(place, VDeviceAttr) else None


def placed_on(op: Operation) -> VDeviceAttr:
    """The vdevice of a memory-level operation, which bufferize has stated."""
    place = vdevice_stated(op)
    assert place is not None
    return place


def place_on(op: Operation, vdevice: VDeviceAttr) -> None:
    """State the vdevice of a memory-level operation."""
    op.attributes[VDEVICE] = vdevice


def plan_quality(storage: Operation) -> tuple[int, bool]:
    """The bytes that a storage has at least, and whether its plan is proved to be the smallest."""
    return _integer(storage, LOWER_BOUND) or 0, bool(_integer(storage, PROVED_OPTIMAL))


def set_plan_quality(storage: Operation, lower_bound: int, proved_optimal: bool) -> None:
    """State the bytes that a storage has at least, and whether its plan is proved to be the smallest."""
    storage.attributes[LOWER_BOUND] = int_attr(lower_bound)
    storage.attributes[PROVED_OPTIMAL] = IntegerAttr.from_bool(proved_optimal)


def _integer(op: Operation, key: str) -> int | None:
    number = op.attributes.get(key)
    return int_of(number) if isinstance(number, IntegerAttr | SizeAttr) else None


def _strings(op: Operation, key: str) -> tuple[str, ...] | None:
    names = op.attributes.get(key)
    return tuple(a.data for a in names if isinstance(a, StringAttr)) if isinstance(names, ArrayAttr) else None


def _string_array(names: Sequence[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(name) for name in names])


def _dictionary(op: Operation, key: str) -> Mapping[str, Attribute]:
    found = op.attributes.get(key)
    return found.data if isinstance(found, DictionaryAttr) else {}
