"""The attributes of a module and of its ``@main``: every key, with functions that read and write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr

from landbridge.errors import CompileError
from landbridge.executable.parts import SizeGuard, StateGrowth
from landbridge.ir.plain_attributes import dictionary_at, int_array, ints, string_array, strings_at
from landbridge.ir.types import VDeviceAttr
from landbridge.sizes.size import Extent

#: ``[name, target number]`` of each vdevice.
VDEVICES = "lb.vdevices"
#: The range of each open dimension.
DIMENSIONS = "lb.dimensions"
#: The names of @main's inputs and outputs.
INPUT_NAMES = "lb.input_names"
OUTPUT_NAMES = "lb.output_names"
#: The names of @main's last inputs, which are parameters.
PARAMETER_NAMES = "lb.parameter_names"
#: The names of parameters whose own memory kernels read in each run.
UNPACKED_NAMES = "lb.unpacked_names"
#: ``{name: [shape, strides]}`` of inputs that are frames; their argument is the whole memory that they span.
FRAMES = "lb.frames"
#: ``{name: [element]}`` of inputs whose elements define open dimensions; each element is an integer or a Size.
ELEMENTS = "lb.elements"
#: ``{output name: input name}``: outputs that may alias an input. They are requests until the pass ``alias`` has run,
#: and proved from then on.
ALIAS = "lb.alias"
#: ``{node name: operator}`` of the model's nodes, until the pass ``alias`` has run: what a refused request names.
NODE_TYPES = "lb.node_types"
GUARDS = "lb.guards"
#: ``{input name: [[axis, before, after], positions, "slides" or "each"]}``: how the states grow, as StateGrowth has it;
#: the last is left out for those that neither slide nor have the position of each new element.
GROWTH = "lb.growth"
_SLIDES, _EACH = "slides", "each"
#: Dimensions that data decide and that the code assumes are not 0.
SUPPOSED = "lb.supposed"
#: ``{pattern: #lb.vdevice}``: the placements that the pass ``location`` is to apply.
PLACE = "lb.place"
#: ``{scope: scope}``: where the pass ``spill`` moves what does not fit.
SPILL = "lb.spill"

#: Shape and strides, in elements, of a frame; a dense one has no strides.
FrameLayout: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


def io_names(main: func.FuncOp) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the names of the inputs and outputs of @main: those it carries, else names made from its tensor-level
    type."""
    inputs, outputs = strings_at(main, INPUT_NAMES), strings_at(main, OUTPUT_NAMES)
    if inputs is None:
        inputs = tuple(f"input_{i}" for i in range(len(main.function_type.inputs)))
    if outputs is None:
        outputs = tuple(f"output_{i}" for i in range(len(main.function_type.outputs)))
    return inputs, outputs


def set_io_names(main: func.FuncOp, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Set the names of the inputs and outputs of @main."""
    main.attributes[INPUT_NAMES] = string_array(inputs)
    main.attributes[OUTPUT_NAMES] = string_array(outputs)


def parameter_names(main: func.FuncOp) -> tuple[str, ...]:
    """Returns the names of the parameters of @main, which are its last inputs."""
    return strings_at(main, PARAMETER_NAMES) or ()


def set_parameter_names(main: func.FuncOp, names: Sequence[str]) -> None:
    """Set which of @main's last inputs are parameters."""
    main.attributes[PARAMETER_NAMES] = string_array(names)


def unpacked_names(main: func.FuncOp) -> tuple[str, ...]:
    """Returns the names of parameters of which no packed or otherwise prepared copy may be made."""
    return strings_at(main, UNPACKED_NAMES) or ()


def set_unpacked_names(main: func.FuncOp, names: Sequence[str]) -> None:
    """Set which parameters of @main kernels read as they are; ``names`` that are none of them are left out."""
    known = [name for name in parameter_names(main) if name in names]
    if known:
        main.attributes[UNPACKED_NAMES] = string_array(known)


def supposed_dimensions(main: func.FuncOp) -> tuple[str, ...]:
    """Returns the dimensions that data decide and that @main assumes to be at least 1."""
    return strings_at(main, SUPPOSED) or ()


def set_supposed_dimensions(main: func.FuncOp, names: Sequence[str]) -> None:
    """Set the dimensions that data decide and that @main assumes to be at least 1."""
    main.attributes[SUPPOSED] = string_array(names)


def frame_layouts(main: func.FuncOp) -> dict[str, FrameLayout]:
    """Returns the layout of each input that is a frame, by name."""
    layouts = {}
    for name, layout in dictionary_at(main, FRAMES).items():
        match layout:
            case ArrayAttr(data=(ArrayAttr() as shape, ArrayAttr() as strides)):
                layouts[name] = (ints(shape), ints(strides))
            case _:
                raise CompileError(f"{FRAMES} of {name!r} is {layout}; legal: [shape, strides], two lists of integers")
    return layouts


def set_frame_layouts(main: func.FuncOp, layouts: Mapping[str, FrameLayout]) -> None:
    """Set the layouts of inputs that are frames, by name."""
    main.attributes[FRAMES] = DictionaryAttr(
        {name: ArrayAttr([int_array(shape), int_array(strides)]) for name, (shape, strides) in layouts.items()}
    )


def input_elements(main: func.FuncOp) -> dict[str, tuple[int, ...]]:
    """Returns the elements of each input that defines open dimensions, by name."""
    return {name: ints(cast(ArrayAttr[Any], found)) for name, found in dictionary_at(main, ELEMENTS).items()}


def set_input_elements(main: func.FuncOp, elements: Mapping[str, Sequence[Extent]]) -> None:
    """Set the elements of the inputs that define open dimensions, by name."""
    main.attributes[ELEMENTS] = DictionaryAttr({name: int_array(each) for name, each in elements.items()})


def aliases(main: func.FuncOp) -> dict[str, str]:
    """Returns the input that each aliased output may share memory with, by the name of the output."""
    found = {}
    for output, input in dictionary_at(main, ALIAS).items():
        if not isinstance(input, StringAttr):
            raise CompileError(f"{ALIAS} of {output!r} is {input}; legal: the name of an input")
        found[output] = input.data
    return found


def set_aliases(main: func.FuncOp, found: Mapping[str, str]) -> None:
    """Set which outputs may alias which inputs."""
    if found:
        main.attributes[ALIAS] = DictionaryAttr({output: StringAttr(input) for output, input in found.items()})
    else:
        main.attributes.pop(ALIAS, None)


def node_types(main: func.FuncOp) -> dict[str, str]:
    """Returns the operators of the model's nodes, by the name of the node, where @main has them."""
    return {name: kind.data for name, kind in dictionary_at(main, NODE_TYPES).items() if isinstance(kind, StringAttr)}


def set_node_types(main: func.FuncOp, found: Mapping[str, str]) -> None:
    """Set the operators of the model's nodes, by the name of the node."""
    if found:
        main.attributes[NODE_TYPES] = DictionaryAttr({name: StringAttr(kind) for name, kind in found.items()})
    else:
        main.attributes.pop(NODE_TYPES, None)


def growths(main: func.FuncOp) -> tuple[StateGrowth, ...]:
    """Returns how the states of @main grow."""
    found = []
    for name, each in dictionary_at(main, GROWTH).items():
        match each:
            case ArrayAttr(data=(ArrayAttr() as extents, StringAttr(data=positions), *rest)) if len(
                extents.data
            ) == 3 and rest in ([], [StringAttr(_SLIDES)], [StringAttr(_EACH)]):
                axis, before, after = ints(extents)
                slides, has_each = (rest == [StringAttr(each)] for each in (_SLIDES, _EACH))
                found.append(StateGrowth(name, axis, before, after, positions, slides, has_each))
            case _:
                raise CompileError(
                    f"{GROWTH} of {name!r} is {each}; legal: [[axis, before, after], positions], and "
                    f'"{_SLIDES}" or "{_EACH}"'
                )
    return tuple(found)


def set_growths(main: func.FuncOp, found: Sequence[StateGrowth]) -> None:
    """Set how the states of @main grow."""
    given = {}
    for g in found:
        further = [StringAttr(_SLIDES)] * g.slides + [StringAttr(_EACH)] * g.has_each
        given[g.name] = ArrayAttr([int_array([g.axis, g.before, g.after]), StringAttr(g.positions), *further])
    main.attributes[GROWTH] = DictionaryAttr(given)


def guards(main: func.FuncOp) -> tuple[SizeGuard, ...]:
    """Returns the conditions that the dimensions of a run must meet."""
    found = []
    for each in cast(ArrayAttr[Any], main.attributes.get(GUARDS, ArrayAttr(()))):
        match each:
            case ArrayAttr(data=(StringAttr(data=subject), ArrayAttr() as values)):
                found.append(SizeGuard(subject, *ints(values)))
            case _:
                raise CompileError(f"{GUARDS} has {each}; legal: [what, [found, legal]]")
    return tuple(found)


def set_guards(main: func.FuncOp, declared: Sequence[SizeGuard]) -> None:
    """Set the conditions that the dimensions of a run must meet."""
    main.attributes[GUARDS] = ArrayAttr(
        [ArrayAttr([StringAttr(guard.subject), int_array([guard.found, guard.legal])]) for guard in declared]
    )


def take_place_requests(main: func.FuncOp) -> dict[str, VDeviceAttr]:
    """Remove the requested placements from @main and return them, by pattern of a name."""
    requested = dictionary_at(main, PLACE)
    main.attributes.pop(PLACE, None)
    return {pattern: location for pattern, location in requested.items() if isinstance(location, VDeviceAttr)}


def set_place_requests(main: func.FuncOp, places: Mapping[str, VDeviceAttr]) -> None:
    """Set the requested placements, by pattern of a name."""
    main.attributes[PLACE] = DictionaryAttr(dict(places))


def take_spill_requests(main: func.FuncOp) -> dict[str, str]:
    """Remove the spill scopes from @main and return them: the scope that takes what does not fit, by the scope it
    leaves."""
    requested = dictionary_at(main, SPILL)
    main.attributes.pop(SPILL, None)
    return {source: target.data for source, target in requested.items() if isinstance(target, StringAttr)}


def set_spill_requests(main: func.FuncOp, spill: Mapping[str, str]) -> None:
    """Set the scopes that take what does not fit."""
    main.attributes[SPILL] = DictionaryAttr({source: StringAttr(target) for source, target in spill.items()})


def open_requests(main: func.FuncOp) -> frozenset[str]:
    """Returns which of ``PLACE`` and ``SPILL`` are requested and not done yet."""
    return frozenset({PLACE, SPILL} & main.attributes.keys())
