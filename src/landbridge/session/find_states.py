"""Finds the states of a program: which outputs are the next values of which inputs, and how those grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from landbridge.errors import InputError
from landbridge.executable.bound_sizes import solvable_form
from landbridge.executable.executable import Executable
from landbridge.executable.parts import StateGrowth, TensorSpec
from landbridge.executable.state_growth import growths_of, slides_of
from landbridge.executable.state_names import named_states
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, of_symbol
from landbridge.sizes.terms import Symbol
from landbridge.text.did_you_mean import did_you_mean

#: Names that an error lists of each side.
_SHOWN = 24


@record(frozen=True)
class StateFacts:
    """The states of a program.

    ``pairs``: (output, input) of each. ``growths``: by program, then by input, for states that grow. ``lengths``: the
    inputs of one element that say how many steps there are, which a state itself gives. ``counts``: the inputs that do
    so and are states too, as the program adds to them what it appends. ``slides``: by input, for states that are
    windows.
    """

    pairs: tuple[tuple[TensorSpec, TensorSpec], ...]
    growths: Mapping[str, Mapping[str, StateGrowth]]
    lengths: tuple[TensorSpec, ...]
    counts: frozenset[str]
    slides: Mapping[str, StateGrowth]

    def filled(self, name: str, length: int) -> tuple[int | None, int]:
        """Returns the axis of state ``name`` along which only the first elements are filled, None if there is none, and
        how many; ``length`` is that of the states that grow.
        """
        slide = self.slides.get(name)
        return (self.axes.get(name), length) if slide is None else (slide.axis, slide.before)

    @property
    def axes(self) -> dict[str, int]:
        """Returns the axis along which each state grows, by the name of its input."""
        return {name: growth.axis for each in self.growths.values() for name, growth in each.items()}

    def capacities(self) -> tuple[dict[str, int], tuple[Symbol, ...]]:
        """Returns the capacities that are numbers, by input, and the dimensions that are the others."""
        fixed: dict[str, int] = {}
        symbols: dict[Symbol, None] = {}
        axes = self.axes
        for _, spec in self.pairs:
            if spec.name in axes:
                extent: Extent = spec.shape[axes[spec.name]]
                form = solvable_form(extent)
                if isinstance(extent, int):
                    fixed[spec.name] = extent
                elif form is not None and of_symbol(form[0]) == extent:
                    symbols[form[0]] = None
        return fixed, tuple(symbols)


def find_states(executable: Executable, pairs: Mapping[str, str] | None) -> StateFacts:
    """Returns the states of ``executable``: ``pairs``, names of inputs by output, or those found.

    Found are outputs that the program declares an alias of an input, then outputs whose names say it. Raises InputError
    for names that do not exist, halves that differ, and where nothing is found; it lists inputs and outputs.
    """
    main = executable.main
    inputs, outputs = ({spec.name: spec for spec in specs} for specs in (main.inputs, main.outputs))
    if pairs is None:
        pairs = _found(inputs, outputs, dict(main.aliases))
        if not pairs:
            raise InputError(
                f"no output is named as the next value of an input: inputs {_listed(inputs)}; outputs "
                f"{_listed(outputs)}; say which are, as bind_state({{'present': 'past'}})"
            )
    if not isinstance(pairs, Mapping) or not pairs:
        raise InputError(f"bind_state takes names of inputs by output, as {{'present': 'past'}}, not {pairs!r}")
    found = []
    for output, input in pairs.items():
        for subject, name, specs in (("output", output, outputs), ("input", input, inputs)):
            if not isinstance(name, str) or name not in specs:
                raise InputError(
                    f"there is no {subject} {name!r}{did_you_mean(str(name), specs)}; legal: {_listed(specs)}"
                )
        check_halves(outputs[output], inputs[input])
        found.append((outputs[output], inputs[input]))
    twice = [name for name in set(pairs.values()) if list(pairs.values()).count(name) > 1]
    if twice:
        raise InputError(f"two outputs would be the next value of input {min(twice)!r}; legal: one")
    names = set(pairs.values())
    growths = {
        program: {growth.name: growth for growth in listed if growth.name in names and not growth.slides}
        for program, listed in growths_of(executable).items()
    }
    counts = {growth.positions for each in growths.values() for growth in each.values()} & names
    slides = {name: slide for name, slide in slides_of(executable).items() if name in names}
    return StateFacts(tuple(found), growths, _lengths(main.inputs, growths), frozenset(counts), slides)


def _found(
    inputs: Mapping[str, TensorSpec], outputs: Mapping[str, TensorSpec], found: dict[str, str]
) -> dict[str, str]:
    """Returns ``found``, aliases, and the pairs that names say of other outputs, of one rank and dtype."""
    others = [name for name in inputs if name not in found.values()]
    for output, input in named_states(others, [name for name in outputs if name not in found]).items():
        one, other = outputs[output], inputs[input]
        if (len(one.shape), one.dtype) == (len(other.shape), other.dtype) and not other.elements:
            found[output] = input
    return found


def check_halves(output: TensorSpec, input: TensorSpec) -> None:
    """Raises InputError where ``output`` and ``input`` cannot be one state.

    Their shapes or dtypes differ, or elements of the input are dimensions.
    """
    if (output.shape, output.dtype) != (input.shape, input.dtype):
        raise InputError(
            f"output {output.name!r} is {output.dtype}{_shape(output)}, input {input.name!r} is "
            f"{input.dtype}{_shape(input)}; the two halves of a state must be equal; if the one may be kept in the "
            "memory of the other, or grows by what a run adds, compile with "
            f"alias={{{output.name!r}: {input.name!r}}}"
        )
    if input.elements:
        raise InputError(f"elements of input {input.name!r} say what dimensions are; it cannot be a state")


def _lengths(inputs: Sequence[TensorSpec], growths: Mapping[str, Mapping[str, StateGrowth]]) -> tuple[TensorSpec, ...]:
    """Returns the inputs whose one element is what a state has before a run, and nothing else."""
    before = {growth.before for each in growths.values() for growth in each.values() if not growth.positions}
    return tuple(
        spec
        for spec in inputs
        if len(spec.elements) == 1 and isinstance(spec.elements[0], Size) and spec.elements[0] in before
    )


def _shape(spec: TensorSpec) -> str:
    return f"({', '.join(map(str, spec.shape))}{',' * (len(spec.shape) == 1)})"


def _listed(specs: Mapping[str, TensorSpec]) -> str:
    names = list(specs)
    return ", ".join(map(repr, names[:_SHOWN])) + f" and {len(names) - _SHOWN} more" * (len(names) > _SHOWN)
