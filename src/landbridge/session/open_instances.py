"""OpenInstances: the instances of a program with open dimensions, one for each choice of sizes that runs have had."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from landbridge.errors import InputError, OutOfMemoryError, ShapeError
from landbridge.executable.bound_sizes import ProgramsByShapes, first_that_fits, programs_of
from landbridge.executable.executable import Executable
from landbridge.executable.instance import check_guards, check_values
from landbridge.executable.parts import TensorSpec
from landbridge.executable.state_growth import program_of, slides_of
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.session.open_arguments import array_of
from landbridge.session.open_instance import Instance
from landbridge.session.open_program import OpenProgram
from landbridge.session.open_states import OpenStates
from landbridge.session.progression import Lengths, Progressions, Rows
from landbridge.vm.arena import ProgramArena

if TYPE_CHECKING:
    from landbridge.session.state_group import StateGroup

#: The number of choices of sizes whose instances are retained.
_RETAINED = 64
#: The number of keys (shapes, and elements that give sizes) retained; several may lead to the same instance.
_MOST_SHAPES = 1024
#: faster than numpy's function
_shape_of = attrgetter("shape")


class OpenInstances:
    """The instances of ``executable``, found by the arguments of a run; ``bind`` binds the program of fixed sizes that
    one is. They share code, weights and memory.

    ``states`` are those that its runs continue, of which ``group`` is where they are States.
    """

    def __init__(self, executable: Executable, bind: Callable[[Executable, ProgramArena], FixedExecutor]) -> None:
        self._executable, self._bind = executable, bind
        self.states = OpenStates()
        self.group: StateGroup | None = None
        self._programs: dict[str, OpenProgram] = {}
        #: Returns the programs that fit shapes, by name, in order; those that need least first.
        self.programs_for = ProgramsByShapes(executable.programs).of
        self._instances: OrderedDict[tuple[Any, ...], Instance] = OrderedDict()
        #: Instances by their keys: shapes of inputs and states, and elements that are read.
        self._by_shapes: dict[tuple[Any, ...], tuple[tuple[Any, ...], Instance]] = {}
        #: The keys of ``_by_shapes`` for each key of ``_instances``.
        self._shapes_of: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        #: Runs whose sizes advance evenly, which are prepared together.
        self._progressions = Progressions()
        #: The instance that was prepared, called or run last.
        self.latest: Instance | None = None
        #: States slide by a number of samples that follows from the sizes of each run.
        self._has_windows = bool(slides_of(executable))
        inputs = executable.main.inputs
        #: The inputs that callers give: all except states.
        self.given = list(inputs)
        #: Inputs whose elements give dimensions: read at each run, as they may be the application's memory.
        self._read_at_runs = [spec.name for spec in inputs if spec.elements]
        #: Where those are among the inputs that callers give.
        self._places_of_read = [at for at, spec in enumerate(inputs) if spec.elements]
        #: True where the shapes of the arguments alone give all sizes.
        self.by_shapes_alone = not self._read_at_runs

    def program_of(self, name: str) -> OpenProgram:
        """Returns the open program ``name``."""
        found = self._programs.get(name)
        if found is None:
            program = program_of(self._executable, name)
            found = self._programs[name] = OpenProgram(program, self._bind, self._let_instances_go)
        return found

    def executors(self) -> set[FixedExecutor]:
        """Returns the executors of all instances."""
        shared = [program.executor for program in self._programs.values() if program.executor is not None]
        return {*shared, *(each.executor for each in self._instances.values())}

    def bind_pair(self, output: TensorSpec, input: TensorSpec) -> None:
        """Make ``output`` of each run the ``input`` of the next, which callers give no more."""
        self.states.bind(output, input)
        self.by_shapes_alone = False
        self.given = [spec for spec in self._executable.main.inputs if not self.states.has(spec)]
        self._places_of_read = [at for at, spec in enumerate(self.given) if spec.elements]
        self._forget_shapes()

    def continue_from(self, before: OpenInstances) -> None:
        """Let the next run continue the states of ``before``, of a program with the same inputs and outputs."""
        main = self._executable.main
        specs = {spec.name: spec for spec in (*main.inputs, *main.outputs)}
        for output, input in before.states.pairs:
            self.bind_pair(specs[output.name], specs[input.name])
        self.states.continue_from(before.states)
        if before.group is not None:
            self.group = before.group
            self.group.memory = self.states

    def known(self, arrays: Sequence[Any]) -> Instance | None:
        """Returns the instance for a call on ``arrays``, which nobody checked, where their shapes alone say that there
        is one; else None.
        """
        try:
            shapes = tuple(map(_shape_of, arrays))
            known = self._by_shapes.get(shapes)
        except (AttributeError, TypeError):  # lists, mappings; shapes of foreign arrays that are no tuples
            return None
        if known is not None:
            key, instance = known
            self._instances.move_to_end(key)
            self.latest = instance
            return instance
        return self._expected(shapes, (), (), arrays) if self.by_shapes_alone else None

    def of(self, given: Sequence[Any], shapes: Rows | None = None) -> Instance:
        """Returns the instance for the arguments ``given``, one for each input except states, and their ``shapes``."""
        if shapes is None:
            shapes = tuple(map(np.shape, given))
        elements = tuple([tuple(elements_of(given[at])) for at in self._places_of_read])
        carried = self.states.carried_shapes if self.states.pairs else ()
        if carried is None:
            name, values = self._sizes(given)
            found = self.at(name, values)
            self.states.rebind_to(found)
            return found
        expected = self._expected(shapes, elements, carried, given)
        if expected is None:
            return self._of_shapes(shapes, elements, carried, given)
        self._rebind_states_to(expected)
        return expected

    def _expected(self, shapes: Rows, elements: Rows, carried: Rows, given: Sequence[Any]) -> Instance | None:
        """Returns the instance of a run that was prepared with others; None where it was not."""
        known = self._progressions.find(shapes, elements, carried)
        if known is None:
            return None
        progression, number = known
        if self.group is not None:
            self._begin(self.group, progression.name, progression.values(number), given)
        self._progressions.go_on(progression, number, self.program_of(progression.name), self.given)
        found = self.latest = progression.instance(number)
        return found

    def _of_shapes(self, shapes: Rows, elements: Rows, carried: Rows, given: Sequence[Any]) -> Instance:
        """Returns the instance for ``given`` where states have the shapes ``carried``; runs that are expected next are
        prepared where its sizes are new.
        """
        key = shapes if self.by_shapes_alone else (shapes, elements, carried)
        known = self._by_shapes.get(key)
        if known is not None:
            (name, *numbers), found = known
            if self.group is not None:
                self._begin(self.group, name, numbers, given)
            self._instances.move_to_end(known[0])
            self._rebind_states_to(found)
            self.latest = found
            return found
        name, values = self._sizes(given)
        found = self.at(name, values)
        if self.states.pairs:
            self.states.rebind_to(found)
        self._note(key, self._key(name, values), found)
        if next(iter(self.programs_for(shapes))) == name:  # the first that fits is the one that runs
            program = self.program_of(name)
            now = Lengths(shapes, elements, tuple(values[each] for each in program.dimensions))
            self._progressions.prepare_after(now, found, name, program, self.given, carried)
        return found

    def _begin(self, group: StateGroup, name: str, values: Sequence[int], given: Sequence[Any]) -> None:
        """Let ``group`` check a run of program ``name``, with ``values`` of its dimensions, before it writes."""

        def read(input: str) -> Any:
            return next(value for spec, value in zip(self.given, given, strict=True) if spec.name == input)

        group.begin(name, dict(zip(self.program_of(name).dimensions, values, strict=True)), read)

    def _note(self, key: tuple[Any, ...], of_instance: tuple[Any, ...], instance: Instance) -> None:
        """Let the next run whose arguments have ``key`` be one of ``instance``, whose own key is ``of_instance``."""
        if len(self._by_shapes) >= _MOST_SHAPES:
            self._forget_shapes()
        # first what forgets the key: an interrupt may come between any two
        self._shapes_of.setdefault(of_instance, []).append(key)
        self._by_shapes[key] = of_instance, instance

    def _rebind_states_to(self, instance: Instance) -> None:
        """Prepare the next run to be one of ``instance``, whose states have the shapes that they have now."""
        if self.states.pairs and (self._has_windows or instance.executor is not self.states.holder):
            self.states.rebind_to(instance)

    def _key(self, name: str, values: Mapping[str, int]) -> tuple[Any, ...]:
        return (name, *(values[each] for each in self.program_of(name).dimensions))

    def at(self, name: str, values: Mapping[str, int]) -> Instance:
        """Returns the instance of program ``name`` where its dimensions have ``values``, by name."""
        program, key = self.program_of(name), self._key(name, values)
        found = self._instances.get(key)
        if found is None:
            before = program.arena.generation
            try:
                found = program.instance(values)
            except OutOfMemoryError:
                self.free()  # rows and images of other sizes are memory of their own
                found = program.instance(values)
            if program.arena.generation != before:  # nobody else uses the memory of the others any more
                self._let_instances_go()
            self._retain(key, found)
        else:
            self._instances.move_to_end(key)
        self.latest = found
        return found

    def _retain(self, key: tuple[Any, ...], instance: Instance) -> None:
        self._instances[key] = instance
        self._instances.move_to_end(key)
        while len(self._instances) > _RETAINED:
            gone = next(iter(self._instances))
            for shapes in self._shapes_of.get(gone, ()):  # before the instance, as no key may lead to one that is gone
                self._by_shapes.pop(shapes, None)
            self._shapes_of.pop(gone, None)
            self._instances.pop(gone, None)

    def _let_instances_go(self) -> None:
        self._forget_shapes()  # first, as no key may lead to an instance that is gone
        self._instances.clear()
        self.latest = None

    def free(self) -> None:
        """Release the memory of all instances that are not in use."""
        self._let_instances_go()
        gc.collect()  # executors refer to what refers to them

    def _forget_shapes(self) -> None:
        self._by_shapes.clear()
        self._shapes_of.clear()
        self._progressions.forget()

    def prepare(self, sizes: Mapping[str, int | Sequence[int]]) -> None:
        """Make the instances for these values of the dimensions, by name."""
        choices = {name: [value] if isinstance(value, int) else list(value) for name, value in sizes.items()}
        requested = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
        fitting = [self._programs_at(values) for values in requested]
        requested_with = sorted(
            zip(requested, fitting, strict=True), key=lambda each: tuple(each[0].values()), reverse=True
        )
        for values, names in requested_with:  # the largest memory first
            for name in names:
                self.at(name, values)

    def _programs_at(self, values: Mapping[str, int]) -> list[str]:
        """Returns the programs that accept dimensions with ``values``; raises ShapeError where none does."""
        names = list(self.programs_for(()))
        found = []

        def look(name: str) -> None:
            program = self.program_of(name)
            check_values(program.dimensions, values, program.executable.main.inputs)

        for name in names:
            with suppress(ShapeError):
                look(name)
                found.append(name)
        if not found:
            first_that_fits(names, look)
        return found

    def _sizes(self, arguments: Sequence[Any]) -> tuple[str, dict[str, int]]:
        """Returns the program's name, and its dimensions by name, for ``arguments``, one for each input but states."""
        given = {spec.name: value for spec, value in zip(self.given, arguments, strict=True)}
        shapes: Mapping[str, Sequence[int]] = {name: np.shape(value) for name, value in given.items()}
        elements = {name: elements_of(given[name]) for name in self._read_at_runs}
        programs = self.programs_for(shapes.values())

        def look(name: str) -> tuple[str, dict[str, int]]:
            program = self.program_of(name)
            inputs = program.executable.main.inputs
            found = self.states.add_shapes(inputs, shapes, elements) if self.states.pairs else shapes
            values = program.input_sizes.of(found, elements)
            if self.group is not None:  # before what the program checks, with the way out
                self.group.begin(name, values, given.__getitem__)
            if len(programs) > 1 and self._key(name, values) not in self._instances:
                check_guards(self._executable.programs[name], values)
            return name, values

        return first_that_fits(programs_of(programs, elements) if self._read_at_runs else list(programs), look)


def elements_of(value: Any) -> list[int]:
    """Returns the elements of an input of integers, in order."""
    array = value if type(value) is np.ndarray else array_of(value)
    if array.dtype.kind not in "iub":
        raise InputError(f"an input of {array.dtype} says what dimensions are; integers are legal")
    return cast(list[int], array.reshape(-1).tolist())
