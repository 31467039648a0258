"""OpenSession: the Session of a program with open dimensions, with an instance for each choice of sizes it has met."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from operator import attrgetter
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from landbridge.errors import InputError, ShapeError
from landbridge.executable.bound_sizes import (
    BoundSizes,
    ProgramsByShapes,
    first_that_fits,
    programs_of,
    sizes_of_inputs,
)
from landbridge.executable.executable import Executable
from landbridge.executable.instance import check_guards, check_values
from landbridge.executable.parts import TensorSpec
from landbridge.process.exhaustion import raise_exhaustion
from landbridge.session.open_arguments import array_of, check_borrowed, copy_for, memory_for
from landbridge.session.open_instance import Instance
from landbridge.session.open_program import OpenProgram
from landbridge.session.open_states import OpenStates
from landbridge.session.progression import Lengths, Progression
from landbridge.session.session import (
    Session,
    bound_program_of,
    let_calls_go,
    let_results_go,
    set_owned_input,
    spares_of,
)
from landbridge.session.session_options import checked_options
from landbridge.tensor import Tensor
from landbridge.vm.arena import ProgramArena
from landbridge.vm.background import AsyncRun
from landbridge.vm.background_runs import BackgroundRuns
from landbridge.vm.bound_program import BoundProgram
from landbridge.vm.entry import Entry, takes_lock
from landbridge.vm.named import in_order
from landbridge.vm.planned_memory import PlannedMemory
from landbridge.vm.resizing import Resizing
from landbridge.vm.slot_names import unknown_keyword
from landbridge.vm.token_lock import NOBODY

if TYPE_CHECKING:
    from landbridge.session.state import State
    from landbridge.session.state_group import StateGroup

__all__ = ["OpenSession", "Session"]

#: The number of choices of sizes whose instances a Session retains.
_RETAINED = 64
#: The number of keys (shapes, and elements that give sizes) retained; several may lead to the same instance.
_MOST_SHAPES = 1024
#: faster than numpy's function
_shape_of = attrgetter("shape")


class OpenSession(Session):
    """A Session whose sizes are those of what is bound; made by ``landbridge.Session``.

    It has weights and code once; instances for different sizes share the memory of intermediate values.
    """

    def __init__(self, executable: Executable, *args: Any, **kwargs: Any) -> None:
        main = executable.main
        sides = (", ".join(spec.name for spec in specs) for specs in (main.inputs, main.outputs))
        self._entry = Entry(f"Session({' -> '.join(sides)})")
        self._background = BackgroundRuns(self._entry)
        self._executable = executable
        options = checked_options(executable, *args, **kwargs)
        self._given_params: dict[str, Any] = {}
        self._spares = spares_of(executable, self._entry, self._given_params, **options)
        self._has_states = False
        self._group: StateGroup | None = None
        self._programs: dict[str, OpenProgram] = {}
        self._program_names = tuple(executable.programs)
        self._programs_for = ProgramsByShapes(executable.programs).of
        self._bind = partial(self._bound, options)
        self._instances: OrderedDict[tuple[Any, ...], Instance] = OrderedDict()
        #: Instances by their keys: shapes of inputs and states, and elements that are read.
        self._by_shapes: dict[tuple[Any, ...], tuple[tuple[Any, ...], Instance]] = {}
        #: The keys of ``_by_shapes`` for each key of ``_instances``.
        self._shapes_of: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        self._progression = Progression()
        self._specs = _table(main.inputs)
        self._output_specs = _table(main.outputs)
        self._states = OpenStates()
        #: Inputs whose elements give dimensions: read at each run, as they may be the application's memory.
        self._read_at_runs = [spec.name for spec in main.inputs if spec.elements]
        #: Where those are among the inputs that callers give.
        self._places_of_read = [at for at, spec in enumerate(main.inputs) if spec.elements]
        #: True where the shapes of the arguments alone give all sizes.
        self._by_shapes_alone = not self._read_at_runs
        #: What is bound to inputs and outputs, by name, for now and for other sizes later.
        self._held: dict[str, Any] = {}
        #: Inputs whose arrays belong to this Session.
        self._by_value: set[str] = set()
        self._held_outputs: dict[str, Any] = {}
        #: Shapes that were bound to an input before, by index.
        self._accepted: set[tuple[int, tuple[int, ...]]] = set()
        self._given_names = [spec.name for spec in main.inputs]
        self._now: Instance | None = None
        self._settled = False

    # Instances --------------------------------------------------------------------------------------------------

    def _program_of(self, name: str) -> OpenProgram:
        found = self._programs.get(name)
        if found is None:
            found = self._programs[name] = OpenProgram(
                self._executable.program(name), self._bind, self._let_instances_go
            )
        return found

    def _bound(self, options: Mapping[str, Any], executable: Executable, arena: ProgramArena) -> Session:
        created = Session(executable, **options, arena=arena)
        if self._given_params:
            created.set_params(self._given_params)
        return created

    def _of(self, given: Sequence[Any]) -> Instance:
        """Returns the instance for the arguments ``given``, one for each input except states."""
        key: tuple[Any, ...] | None = tuple(map(np.shape, given))
        if self._read_at_runs:
            key = key, *(tuple(elements_of(given[at])) for at in self._places_of_read)
        if self._states.pairs:
            carried = self._states.carried_shapes
            key = None if carried is None else (key, carried)
        known = self._by_shapes.get(key) if key is not None else None
        if known is not None:
            self._instances.move_to_end(known[0])
            if self._group is not None:
                name, *sizes = known[0]
                by_name = {spec.name: array for spec, array in zip(self._given_inputs(), given, strict=True)}
                self._group.begin(
                    name, dict(zip(self._program_of(name).dimensions, sizes, strict=True)), by_name.__getitem__
                )
            self._rebind_states_to(known[1])
            return known[1]
        by_name = {spec.name: array for spec, array in zip(self._given_inputs(), given, strict=True)}
        name, values = self._sizes(by_name)
        found = self._instance(name, values)
        self._rebind_states_to(found)
        if key is not None:
            self._note(key, self._key(name, values), found)
            if len(self._programs_for(map(np.shape, given))) == 1:  # no elements decide which program runs
                self._look_ahead(name, values, found, given)
        return found

    def _note(self, key: tuple[Any, ...], of_instance: tuple[Any, ...], instance: Instance) -> None:
        """Let the next run whose arguments have ``key`` be one of ``instance``, whose own key is ``of_instance``."""
        if len(self._by_shapes) >= _MOST_SHAPES:
            self._forget_shapes()
        self._by_shapes[key] = of_instance, instance
        self._shapes_of.setdefault(of_instance, []).append(key)

    def _look_ahead(self, name: str, values: Mapping[str, int], instance: Instance, given: Sequence[Any]) -> None:
        """Make the instances of the next runs, where sizes advance evenly from run to run."""
        program, (_, *numbers) = self._program_of(name), self._key(name, values)
        elements = tuple(tuple(elements_of(given[at])) for at in self._places_of_read)
        now = Lengths(tuple(map(np.shape, given)), elements, tuple(numbers))
        carried = self._states.carried_shapes
        for lengths, later in self._progression.instances(now, instance, program, self._given_inputs):
            key: tuple[Any, ...] = lengths.shapes
            if self._read_at_runs:
                key = key, *lengths.elements
            if self._states.pairs:
                key = key, carried
            of_instance = (name, *lengths.values)
            self._retain(of_instance, later)
            self._note(key, of_instance, later)

    def _rebind_states_to(self, instance: Instance) -> None:
        if self._states.pairs:
            self._states.rebind_to(instance)

    def _key(self, name: str, values: Mapping[str, int]) -> tuple[Any, ...]:
        return (name, *(values[each] for each in self._program_of(name).dimensions))

    def _instance(self, name: str, values: Mapping[str, int]) -> Instance:
        program, key = self._program_of(name), self._key(name, values)
        found = self._instances.get(key)
        if found is None:
            before = program.arena.generation
            found = program.instance(values)
            if program.arena.generation != before:  # nobody else uses the memory of the others any more
                self._let_instances_go()
            self._retain(key, found)
        else:
            self._instances.move_to_end(key)
        return found

    def _retain(self, key: tuple[Any, ...], instance: Instance) -> None:
        self._instances[key] = instance
        self._instances.move_to_end(key)
        if len(self._instances) > _RETAINED:
            gone, _ = self._instances.popitem(last=False)
            for shapes in self._shapes_of.pop(gone, ()):
                self._by_shapes.pop(shapes, None)

    def _let_instances_go(self) -> None:
        self._instances.clear()
        self._forget_shapes()

    def _forget_shapes(self) -> None:
        self._by_shapes.clear()
        self._shapes_of.clear()

    @takes_lock
    def prepare(self, **sizes: int | Sequence[int]) -> None:
        choices = {name: [value] if isinstance(value, int) else list(value) for name, value in sizes.items()}
        requested = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
        fitting = [self._programs_at(values) for values in requested]
        requested_with = sorted(
            zip(requested, fitting, strict=True), key=lambda each: tuple(each[0].values()), reverse=True
        )
        for values, names in requested_with:  # the largest memory first
            for name in names:
                self._instance(name, values)

    def _programs_at(self, values: Mapping[str, int]) -> list[str]:
        """Returns the programs that accept dimensions with ``values``; raises ShapeError where none does."""
        names = list(self._programs_for(()))
        found = []

        def look(name: str) -> None:
            program = self._program_of(name)
            check_values(program.dimensions, values, program.executable.main.inputs)

        for name in names:
            with suppress(ShapeError):
                look(name)
                found.append(name)
        if not found:
            first_that_fits(names, look)
        return found

    @contextmanager
    def hold_scopes(self) -> Iterator[None]:
        instance = next(iter(self._instances.values()), None)
        if instance is None:
            raise InputError("no size is known yet; bind inputs and run, or call prepare, before hold_scopes")
        with instance.session.hold_scopes():  # holds the scopes of all instances
            yield

    # What is bound ----------------------------------------------------------------------------------------------

    def _check(self, spec: TensorSpec, shape: Sequence[int]) -> None:
        """Raises ShapeError where no program accepts an input ``spec`` of ``shape``."""
        index = self._executable.main.inputs.index(spec)
        key = index, tuple(shape)
        if key in self._accepted:
            return
        programs = self._programs_for([shape])
        first_that_fits(list(programs), lambda name: BoundSizes().add(programs[name].inputs[index], shape))
        if len(self._accepted) >= _RETAINED * len(self._executable.main.inputs):
            self._accepted.clear()
        self._accepted.add(key)

    def _hold(self, spec: TensorSpec, value: Any) -> None:
        self._check(spec, np.shape(value))
        self._held[spec.name] = value
        self._settled = False

    def _spec(self, name: str | int) -> TensorSpec:
        return _find("input", name, self._specs)

    @takes_lock
    def set_input(self, name: str | int, value: Any) -> None:
        spec = self._spec(name)
        if self._group is not None:
            self._group.check_settable(spec.name)
        copied = copy_for(spec, value)
        if self._states.has(spec):
            self._check(spec, copied.shape)
            self._states.give(spec.name, copied)
        else:
            self._hold(spec, copied)
            self._by_value.add(spec.name)

    @takes_lock
    def set_input_zero_copy(self, name: str | int, value: Any) -> None:
        spec = self._spec(name)
        if self._states.has(spec):
            raise InputError(f"input {spec.name!r} is a recurrent state, whose memory swaps at each run; use set_input")
        if self._group is not None:
            self._group.check_settable(spec.name)
        value = memory_for(spec, value)
        check_borrowed(spec, value)
        self._hold(spec, value)
        self._by_value.discard(spec.name)

    @takes_lock
    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        spec = _find("output", index, self._output_specs)
        if self._states.has(spec):
            raise InputError(f"{spec.name!r} is a recurrent state, whose memory swaps at each run; use get_output")
        self._held_outputs[spec.name] = memory_for(spec, out, is_input=False)
        self._settled = False

    def _sizes(self, given: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
        """Returns the program's name and its dimensions by name, for inputs with the shapes ``given`` (no states)."""
        shapes: Mapping[str, Sequence[int]] = {name: np.shape(value) for name, value in given.items()}
        elements = {name: elements_of(given[name]) for name in self._read_at_runs}
        programs = self._programs_for(shapes.values())

        def look(name: str) -> tuple[str, dict[str, int]]:
            inputs = self._program_of(name).executable.main.inputs
            found = self._states.add_shapes(inputs, shapes, elements) if self._states.pairs else shapes
            values = sizes_of_inputs(inputs, found, elements)
            if self._group is not None:  # before what the program checks, with the way out
                self._group.begin(name, values, given.__getitem__)
            if len(programs) > 1 and self._key(name, values) not in self._instances:
                check_guards(self._executable.programs[name], values)
            return name, values

        return first_that_fits(programs_of(programs, elements) if self._read_at_runs else list(programs), look)

    def _given_inputs(self) -> list[TensorSpec]:
        """Returns the inputs that callers give: all except states."""
        return [spec for spec in self.inputs if not self._states.has(spec)]

    def _settle(self) -> Session:
        """Returns the Session of the instance for what is bound, with that bound to it."""
        if self._settled and self._now is not None and self._by_shapes_alone:
            return self._now.session
        names, held = self._given_names, self._held
        if self._group is not None:
            self._give_lengths(self._group)
        try:
            given = [held[name] for name in names]
        except KeyError:
            missing = ", ".join(repr(name) for name in names if name not in held)
            raise InputError(f"nothing is bound to input {missing}; bind it before run()") from None
        found = self._of(given)
        if self._settled and found is self._now:
            return found.session
        if self._settled and self._now is not None and found.session is self._now.session and found.keeps_bindings():
            self._settled = False  # until that is done
            session = found.for_runs()
            self._now, self._settled = found, True
            return session
        if self._now is not None and self._now.session is not found.session:
            let_results_go(self._now.session)
        session = found.for_runs()
        for name, value in self._held.items():
            if name in self._by_value:
                set_owned_input(session, name, value)
            else:
                session.set_input_zero_copy(name, value)
        for index, out in self._held_outputs.items():
            session.set_output_zero_copy(index, out)
        self._now, self._settled = found, True
        return session

    def _give_lengths(self, group: StateGroup) -> None:
        """Give runs the inputs that say how many steps the state has."""
        for name, value in group.lengths().items():
            self._held[name] = value
            self._by_value.add(name)
            self._settled = False

    # Runs -------------------------------------------------------------------------------------------------------

    @takes_lock
    def run(self) -> None:
        self._settle().run()
        if self._group is not None:
            self._group.commit()

    def run_async(self) -> AsyncRun:
        # of an instance: this Session holds its own lock for as long, because others share memory
        started: list[AsyncRun] = []

        def wait(begun: Callable[[], object]) -> None:
            begun()
            started[0].wait()
            if self._group is not None:
                self._group.commit()

        return self._background.start(lambda: started.append(self._settle().run_async()), wait)

    def __call__(self, *arrays: Any, out: Any = None, **unknown: NoReturn) -> Any:
        if unknown:
            raise unknown_keyword(next(iter(unknown)), [spec.name for spec in self.inputs])
        entry = self._entry
        try:
            token = entry.take()
        except IndexError:
            return self._call_a_spare(arrays, out)
        try:
            entry.owner = get_ident()
            if self._group is not None:
                return self._call_with_state(self._group, arrays, out)
            try:
                known = self._by_shapes.get(tuple(map(_shape_of, arrays)))
            except (AttributeError, TypeError):  # lists, mappings; shapes of foreign arrays that are no tuples
                known = None
            if known is not None:  # the same as below, inlined, as each 100 ns counts
                key, instance = known
                self._instances.move_to_end(key)
                session = instance.for_calls()
                results = session(*arrays, out=out)
                if instance is not self._now:
                    let_calls_go(session)
                return results
            specs = self._given_inputs()
            if len(arrays) == 1 and isinstance(arrays[0], Mapping):
                given = dict(arrays[0])
                given |= {spec.name: memory_for(spec, given[spec.name]) for spec in specs if spec.name in given}
                by_name = in_order("input", given, [spec.name for spec in specs])
                return self._called(self._of(by_name), given, out=out)
            if len(arrays) != len(specs):
                names = ", ".join(spec.name for spec in specs)
                raise InputError(f"{len(arrays)} arrays are given; the program takes {len(specs)}: {names}")
            arrays = tuple(map(memory_for, specs, arrays))
            return self._called(self._of(arrays), *arrays, out=out)
        except Exception as error:
            raise_exhaustion(error, "a run was under way")
            raise
        finally:
            entry.owner = NOBODY
            entry.give_back(token)
            del token

    def _call_with_state(self, group: StateGroup, arrays: Sequence[Any], out: Any) -> Any:
        """Returns the results of a call that continues the state, which gives its lengths itself."""
        lengths, specs = group.lengths(), self._given_inputs()
        names = [spec.name for spec in specs if spec.name not in lengths]
        by_name = len(arrays) == 1 and isinstance(arrays[0], Mapping)
        values = in_order("input", arrays[0], names) if by_name else arrays
        if len(values) != len(names):
            raise InputError(f"{len(values)} arrays are given; the program takes {len(names)}: {', '.join(names)}")
        given = dict(zip(names, values, strict=True)) | lengths
        given = {spec.name: memory_for(spec, given[spec.name]) for spec in specs}
        instance = self._of([given[spec.name] for spec in specs])
        if by_name:
            results = self._called(instance, given, out=out)
        else:
            results = self._called(instance, *(given[spec.name] for spec in specs), out=out)
        group.commit()
        return results

    def call_at(self, sizes: Mapping[str, int], *arrays: Any) -> list[Tensor]:
        """Returns the results of a call on ``arrays``; the caller knows all ``sizes``, by name, and checked the
        shapes.
        """
        entry = self._entry
        try:
            token = entry.take()
        except IndexError:
            return cast(list[Tensor], self._call_a_spare(arrays, None))
        try:
            entry.owner = get_ident()
            name, *others = self._program_names
            dimensions = self._program_of(name).dimensions
            known = {each: sizes[each] for each in dimensions if each in sizes}
            if others or self._states.pairs or len(known) < len(dimensions):
                instance = self._of(arrays)
            else:
                instance = self._instance(name, known)
            return cast(list[Tensor], self._called(instance, *arrays, out=None))
        finally:
            entry.owner = NOBODY
            entry.give_back(token)
            del token

    def with_shared(
        self, sizes: Mapping[str, int], run: Callable[[BoundProgram, Resizing], object], *, enough: bool
    ) -> None:
        """Call ``run`` with the program that all sizes share, which it resizes itself.

        Nothing is called unless there is a single shared program that nobody else uses. With ``enough`` it has memory
        for ``sizes``, by name.
        """
        entry = self._entry
        try:
            token = entry.take()
        except IndexError:
            return
        try:
            entry.owner = get_ident()
            names = list(self._executable.programs)
            if len(names) > 1 or self._states.pairs:
                return
            program = self._program_of(names[0])
            if not program.may_share:
                return
            if enough or program.shared is None:
                self._instance(names[0], {name: sizes[name] for name in program.dimensions})
            shared = program.shared
            if shared is not None:
                shared.of_calls = None
                run(bound_program_of(shared.session), shared.resizing)
        finally:
            entry.owner = NOBODY
            entry.give_back(token)
            del token

    def _called(self, instance: Instance, *arrays: Any, out: Any) -> Any:
        results = instance.for_calls()(*arrays, out=out)
        if instance is not self._now:
            let_calls_go(instance.session)
        return results

    def _last(self) -> Instance:
        if self._now is None:
            raise InputError(
                "no sizes are known yet: bind every input and call run(); session.outputs has shapes and dtypes before "
                "that"
            )
        return self._now

    @takes_lock
    def get_input(self, name: str | int) -> Tensor:
        return self._settle().get_input(name)

    @takes_lock
    def get_output(self, index: int | str, out: Any = None) -> Any:
        holder = self._states.holder
        if self._group is not None and holder is None:
            self._group.check_readable(_find("output", index, self._output_specs).name)
        if holder is not None and self._states.has(_find("output", index, self._output_specs)):
            return holder.get_output(index, out)
        return self._last().session.get_output(index, out)

    @takes_lock
    def register_buffers(self, name: str | int, values: Sequence[Any]) -> None:
        self._settle().register_buffers(name, values)

    @takes_lock
    def set_params(self, values: Mapping[str, Any]) -> None:
        shared = [program.session for program in self._programs.values() if program.session is not None]
        for session in {*shared, *(each.session for each in self._instances.values())}:
            session.set_params(values)
        self._given_params.update(values)
        if self._spares is not None:
            self._spares.forget()

    @takes_lock
    def get_params(self) -> dict[str, Tensor]:
        return self._last().session.get_params()

    @takes_lock
    def _bind_pair(self, output: str | int, input: str | int) -> None:
        if self._group is not None:
            self._group.refuse_pairs()
        self._bind_specs(_find("output", output, self._output_specs), self._spec(input))

    def _bind_specs(self, source: TensorSpec, target: TensorSpec) -> None:
        self._states.bind(source, target)
        self._by_shapes_alone, self._has_states = False, True
        given = self._given_inputs()
        self._given_names = [spec.name for spec in given]
        self._places_of_read = [at for at, spec in enumerate(given) if spec.elements]
        self._settled = False
        self._forget_shapes()
        self._held_outputs.pop(source.name, None)
        if target.name in self._held:
            self._states.give(target.name, np.array(array_of(self._held.pop(target.name)), order="C"))

    @takes_lock
    def _bind_states(self, pairs: Mapping[str, str] | None, capacity: int | None) -> State:
        from landbridge.session.state import first_state, further_state, group_of

        if self._group is not None:
            return further_state(self._group, pairs, capacity)

        def bind(output: TensorSpec, input: TensorSpec) -> None:
            self._held.pop(input.name, None)
            self._bind_specs(output, input)

        known = self._states.pairs
        state = first_state(self._executable, self._entry, self._states, pairs, capacity, known, bind)
        self._group = group_of(state)
        return state

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        if self._now is None and self._instances:  # nothing was bound: those of the sizes prepared or called last
            return next(reversed(self._instances.values())).planned_memory
        return self._last().planned_memory


def elements_of(value: Any) -> list[int]:
    """Returns the elements of an input of integers, in order."""
    array = array_of(value)
    if array.dtype.kind not in "iub":
        raise InputError(f"an input of {array.dtype} says what dimensions are; integers are legal")
    return cast(list[int], array.reshape(-1).tolist())


def _find(subject: str, name: str | int, specs: Mapping[str | int, TensorSpec]) -> TensorSpec:
    try:
        return specs[name]
    except (KeyError, TypeError):
        names = ", ".join(known for known in specs if isinstance(known, str))
        raise InputError(f"there is no {subject} {name!r}; legal: {names}") from None


def _table(specs: Sequence[TensorSpec]) -> dict[str | int, TensorSpec]:
    """Returns ``specs`` by index and by name."""
    by_index: dict[str | int, TensorSpec] = dict(enumerate(specs))
    return by_index | {spec.name: spec for spec in specs}
