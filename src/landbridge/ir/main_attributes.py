"""The attributes of a module and of its ``@main``: every key, and how it is read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr

from landbridge.errors import CompileError
from landbridge.executable.parts import SizeGuard
from landbridge.ir.plain_attributes import dictionary_at, int_array, ints, string_array, strings_at
from landbridge.ir.types import VDeviceAttr
from landbridge.sizes.size import Extent

#: ``[name, number of its target]`` of each vdevice.
VDEVICES = "lb.vdevices"
#: What each open dimension may be.
DIMENSIONS = "lb.dimensions"
#: The names of its inputs and outputs.
INPUT_NAMES = "lb.input_names"
OUTPUT_NAMES = "lb.output_names"
#: The names of its inputs, the last ones, that are parameters.
PARAMETER_NAMES = "lb.parameter_names"
#: ``{name: [shape, strides]}`` of inputs that are frames, whose argument is all that they span.
FRAMES = "lb.frames"
#: ``{name: [element]}`` of inputs that say what open dimensions are, each an integer or a Size.
ELEMENTS = "lb.elements"
#: ``{name of an output: name of an input}``: outputs that may be the memory of an input. They are asked for
#: until the pass ``alias`` has run, and proved from then on.
ALIAS = "lb.alias"
GUARDS = "lb.guards"
#: Dimensions that data decide and of which 0 was not reckoned with.
SUPPOSED = "lb.supposed"
#: ``{pattern: #lb.vdevice}``: what the pass ``location`` is to put elsewhere.
PLACE = "lb.place"
#: ``{scope: scope}``: where the pass ``spill`` is to put what does not fit.
SPILL = "lb.spill"

#: Shape and strides, in elements, of a frame; a dense one has no strides.
FrameLayout: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


def io_names(main: func.FuncOp) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the inputs and outputs of @main: those it carries, else made up from its tensor-level type."""
    inputs, outputs = strings_at(main, INPUT_NAMES), strings_at(main, OUTPUT_NAMES)
    if inputs is None:
        inputs = tuple(f"input_{i}" for i in range(len(main.function_type.inputs)))
    if outputs is None:
        outputs = tuple(f"output_{i}" for i in range(len(main.function_type.outputs)))
    return inputs, outputs


def set_io_names(main: func.FuncOp, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """State the names of the inputs and outputs of @main."""
    main.attributes[INPUT_NAMES] = string_array(inputs)
    main.attributes[OUTPUT_NAMES] = string_array(outputs)


def parameter_names(main: func.FuncOp) -> tuple[str, ...]:
    """The names of the inputs of @main, the last ones, that are parameters."""
    return strings_at(main, PARAMETER_NAMES) or ()


def set_parameter_names(main: func.FuncOp, names: Sequence[str]) -> None:
    """State which inputs of @main, its last ones, are parameters."""
    main.attributes[PARAMETER_NAMES] = string_array(names)


def supposed_dimensions(main: func.FuncOp) -> tuple[str, ...]:
    """The dimensions that data decide and that @main supposes to be at least 1."""
    return strings_at(main, SUPPOSED) or ()


def set_supposed_dimensions(main: func.FuncOp, names: Sequence[str]) -> None:
    """State them."""
    main.attributes[SUPPOSED] = string_array(names)


def frame_layouts(main: func.FuncOp) -> dict[str, FrameLayout]:
    """The layout of each input that is a frame, by name."""
    layouts = {}
    for name, layout in dictionary_at(main, FRAMES).items():
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
    return {name: ints(cast(ArrayAttr[Any], found)) for name, found in dictionary_at(main, ELEMENTS).items()}


def set_input_elements(main: func.FuncOp, elements: Mapping[str, Sequence[Extent]]) -> None:
    """State the elements of inputs that say what open dimensions are, by name."""
    main.attributes[ELEMENTS] = DictionaryAttr({name: int_array(each) for name, each in elements.items()})


def aliases(main: func.FuncOp) -> dict[str, str]:
    """The input whose memory an output may be, by the name of the output."""
    found = {}
    for output, input in dictionary_at(main, ALIAS).items():
        if not isinstance(input, StringAttr):
            raise CompileError(f"{ALIAS} of {output!r} is {input}; legal: the name of an input")
        found[output] = input.data
    return found


def set_aliases(main: func.FuncOp, found: Mapping[str, str]) -> None:
    """State which outputs may be the memory of which inputs."""
    if found:
        main.attributes[ALIAS] = DictionaryAttr({output: StringAttr(input) for output, input in found.items()})
    else:
        main.attributes.pop(ALIAS, None)


def guards(main: func.FuncOp) -> tuple[SizeGuard, ...]:
    """What must hold for the dimensions of a run."""
    found = []
    for each in cast(ArrayAttr[Any], main.attributes.get(GUARDS, ArrayAttr(()))):
        match each:
            case ArrayAttr(data=(StringAttr(data=subject), ArrayAttr() as values)):
                found.append(SizeGuard(subject, *ints(values)))
            case _:
                raise CompileError(f"{GUARDS} has {each}; legal: [what, [found, legal]]")
    return tuple(found)


def set_guards(main: func.FuncOp, declared: Sequence[SizeGuard]) -> None:
    """State what must hold for the dimensions of a run."""
    main.attributes[GUARDS] = ArrayAttr(
        [ArrayAttr([StringAttr(guard.subject), int_array([guard.found, guard.legal])]) for guard in declared]
    )


def take_place_requests(main: func.FuncOp) -> dict[str, VDeviceAttr]:
    """The places that were asked for, by pattern of a name, taken off @main."""
    requested = dictionary_at(main, PLACE)
    main.attributes.pop(PLACE, None)
    return {pattern: location for pattern, location in requested.items() if isinstance(location, VDeviceAttr)}


def set_place_requests(main: func.FuncOp, places: Mapping[str, VDeviceAttr]) -> None:
    """Ask for places, by pattern of a name."""
    main.attributes[PLACE] = DictionaryAttr(dict(places))


def take_spill_requests(main: func.FuncOp) -> dict[str, str]:
    """The scopes that take what does not fit, by the scope that it leaves, taken off @main."""
    requested = dictionary_at(main, SPILL)
    main.attributes.pop(SPILL, None)
    return {source: target.data for source, target in requested.items() if isinstance(target, StringAttr)}


def set_spill_requests(main: func.FuncOp, spill: Mapping[str, str]) -> None:
    """Name the scopes that take what does not fit."""
    main.attributes[SPILL] = DictionaryAttr({source: StringAttr(target) for source, target in spill.items()})


def open_requests(main: func.FuncOp) -> frozenset[str]:
    """Which of ``PLACE`` and ``SPILL`` are asked for, and not done yet."""
    return frozenset({PLACE, SPILL} & main.attributes.keys())
