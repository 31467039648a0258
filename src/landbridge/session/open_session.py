"""OpenSession: the Session of a program with open dimensions, with an instance for each choice of sizes it has met."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from operator import attrgetter
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from landbridge.errors import InputError, OutOfMemoryError, ShapeError
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
from landbridge.executable.state_growth import program_of, slides_of
from landbridge.process.exhaustion import raise_exhaustion
from landbridge.session.given_parameters import GivenParameters, copies_of_parameters, current_parameters
from landbridge.session.open_arguments import array_of, check_borrowed, copy_for, memory_for
from landbridge.session.open_instance import Instance
from landbridge.session.open_program import OpenProgram
from landbridge.session.open_states import OpenStates
from landbridge.session.progression import Lengths, Progressions, Rows
from landbridge.session.session import (
    Session,
    borrow_params,
    bound_program_of,
    has_binding,
    is_complete,
    is_read_in_place,
    let_calls_go,
    let_results_go,
    memory_of_parameters,
    set_owned_input,
    spares_of,
)
from landbridge.session.session_options import checked_options
from landbridge.session.state_request import StateRequest
from landbridge.tensor import Tensor, asarray
from landbridge.vm.arena import ProgramArena
from landbridge.vm.background import AsyncRun
from landbridge.vm.background_runs import BackgroundRuns
from landbridge.vm.bound_program import BoundProgram
from landbridge.vm.entry import Entry, takes_lock
from landbridge.vm.named import in_order
from landbridge.vm.parameter_memory import refuse_copies, uses_of
from landbridge.vm.planned_memory import PlannedMemory
from landbridge.vm.resizing import Resizing
from landbridge.vm.slot_names import unknown_keyword
from landbridge.vm.token_lock import NOBODY

if TYPE_CHECKING:
    from landbridge.session.state import State
    from landbridge.session.state_group import Halves, StateGroup
    from landbridge.vm.device_binding import DeviceBinding

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
        self._options = options = checked_options(executable, *args, **kwargs)
        self._given_params = GivenParameters()
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
        #: Runs whose sizes advance evenly, which are prepared together.
        self._progressions = Progressions()
        #: The instance that was prepared, called or run last.
        self._latest: Instance | None = None
        self._specs = _table(main.inputs)
        self._output_specs = _table(main.outputs)
        self._states = OpenStates()
        #: States slide by a number of samples that follows from the sizes of each run.
        self._has_windows = bool(slides_of(executable))
        #: Inputs whose elements give dimensions: read at each run, as they may be the application's memory.
        self._read_at_runs = [spec.name for spec in main.inputs if spec.elements]
        #: Where those are among the inputs that callers give.
        self._places_of_read = [at for at, spec in enumerate(main.inputs) if spec.elements]
        #: True where the shapes of the arguments alone give all sizes.
        self._by_shapes_alone = not self._read_at_runs
        #: What is bound to inputs and outputs, by name, for now and for other sizes later.
        self._held: dict[str, Any] = {}
        #: The arrays of the inputs that say how many steps the state has.
        self._length_arrays: dict[str, np.ndarray[Any, Any]] = {}
        #: Inputs whose arrays belong to this Session.
        self._by_value: set[str] = set()
        self._held_outputs: dict[str, Any] = {}
        #: Shapes that were bound to an input before, by index.
        self._accepted: set[tuple[int, tuple[int, ...]]] = set()
        #: The inputs that callers give: all except states.
        self._given = list(main.inputs)
        self._now: Instance | None = None
        #: Whether all that is held is bound to runs of ``_now``.
        self._settled = False
        #: The inputs and outputs whose values are new since they were bound to its Session; None: all.
        self._stale: set[str] | None = None
        #: What is held for the inputs that callers give, and the shapes; None where something else is held since.
        self._arguments: tuple[list[Any], Rows] | None = None

    # Instances --------------------------------------------------------------------------------------------------

    def _program_of(self, name: str) -> OpenProgram:
        found = self._programs.get(name)
        if found is None:
            found = self._programs[name] = OpenProgram(
                program_of(self._executable, name), self._bind, self._let_instances_go
            )
        return found

    def _bound(self, options: Mapping[str, Any], executable: Executable, arena: ProgramArena) -> Session:
        created = Session(executable, **options, arena=arena)
        self._given_params.give(created)
        return created

    def _of(self, given: Sequence[Any], shapes: Rows | None = None) -> Instance:
        """Returns the instance for the arguments ``given``, one for each input except states, and their ``shapes``."""
        if shapes is None:
            shapes = tuple(map(np.shape, given))
        elements = tuple([tuple(elements_of(given[at])) for at in self._places_of_read])
        carried = self._states.carried_shapes if self._states.pairs else ()
        if carried is None:
            name, values = self._sizes(given)
            found = self._instance(name, values)
            self._states.rebind_to(found)
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
        if self._group is not None:
            self._begin(self._group, progression.name, progression.values(number), given)
        self._progressions.go_on(progression, number, self._program_of(progression.name), self._given)
        found = self._latest = progression.instance(number)
        return found

    def _of_shapes(self, shapes: Rows, elements: Rows, carried: Rows, given: Sequence[Any]) -> Instance:
        """Returns the instance for ``given`` where states have the shapes ``carried``; runs that are expected next are
        prepared where its sizes are new.
        """
        key = shapes if self._by_shapes_alone else (shapes, elements, carried)
        known = self._by_shapes.get(key)
        if known is not None:
            (name, *numbers), found = known
            if self._group is not None:
                self._begin(self._group, name, numbers, given)
            self._instances.move_to_end(known[0])
            self._rebind_states_to(found)
            self._latest = found
            return found
        name, values = self._sizes(given)
        found = self._instance(name, values)
        if self._states.pairs:
            self._states.rebind_to(found)
        self._note(key, self._key(name, values), found)
        if next(iter(self._programs_for(shapes))) == name:  # the first that fits is the one that runs
            program = self._program_of(name)
            now = Lengths(shapes, elements, tuple(values[each] for each in program.dimensions))
            self._progressions.prepare_after(now, found, name, program, self._given, carried)
        return found

    def _begin(self, group: StateGroup, name: str, values: Sequence[int], given: Sequence[Any]) -> None:
        """Let ``group`` check a run of program ``name``, with ``values`` of its dimensions, before it writes."""

        def read(input: str) -> Any:
            return next(value for spec, value in zip(self._given, given, strict=True) if spec.name == input)

        group.begin(name, dict(zip(self._program_of(name).dimensions, values, strict=True)), read)

    def _note(self, key: tuple[Any, ...], of_instance: tuple[Any, ...], instance: Instance) -> None:
        """Let the next run whose arguments have ``key`` be one of ``instance``, whose own key is ``of_instance``."""
        if len(self._by_shapes) >= _MOST_SHAPES:
            self._forget_shapes()
        self._by_shapes[key] = of_instance, instance
        self._shapes_of.setdefault(of_instance, []).append(key)

    def _rebind_states_to(self, instance: Instance) -> None:
        """Prepare the next run to be one of ``instance``, whose states have the shapes that they have now."""
        if self._states.pairs and (self._has_windows or instance.session is not self._states.holder):
            self._states.rebind_to(instance)

    def _key(self, name: str, values: Mapping[str, int]) -> tuple[Any, ...]:
        return (name, *(values[each] for each in self._program_of(name).dimensions))

    def _instance(self, name: str, values: Mapping[str, int]) -> Instance:
        program, key = self._program_of(name), self._key(name, values)
        found = self._instances.get(key)
        if found is None:
            before = program.arena.generation
            try:
                found = program.instance(values)
            except OutOfMemoryError:
                self._free_instances()  # rows and images of other sizes are memory of their own
                found = program.instance(values)
            if program.arena.generation != before:  # nobody else uses the memory of the others any more
                self._let_instances_go()
            self._retain(key, found)
        else:
            self._instances.move_to_end(key)
        self._latest = found
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
        self._latest = None
        self._forget_shapes()

    def _free_instances(self) -> None:
        """Release the memory of all instances that are not in use."""
        self._let_instances_go()
        gc.collect()  # Sessions refer to what refers to them

    def _forget_shapes(self) -> None:
        self._by_shapes.clear()
        self._shapes_of.clear()
        self._progressions.forget()

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
        instance = self._latest
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
        self._is_set(spec.name)

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
        self._is_set(spec.name)

    def _sizes(self, arguments: Sequence[Any]) -> tuple[str, dict[str, int]]:
        """Returns the program's name, and its dimensions by name, for ``arguments``, one for each input but states."""
        given = {spec.name: value for spec, value in zip(self._given, arguments, strict=True)}
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

    def _settle(self) -> Session:
        """Returns the Session of the instance for what is bound, with that bound to it."""
        if self._settled and self._now is not None and self._by_shapes_alone:
            return self._now.session
        held = self._held
        if self._group is not None:
            self._give_lengths(self._group)
        if self._arguments is None:
            try:
                given = [held[spec.name] for spec in self._given]
            except KeyError:
                missing = ", ".join(repr(spec.name) for spec in self._given if spec.name not in held)
                raise InputError(f"nothing is bound to input {missing}; bind it before run()") from None
            self._arguments = given, tuple(map(np.shape, given))
        found = self._of(*self._arguments)
        now = self._now
        if self._settled and found is now:
            return found.session
        self._settled = False  # until that is done
        if now is None or now.session is not found.session:
            self._stale = None
            if now is not None:
                let_results_go(now.session)
        session = found.for_runs()
        try:
            self._bind_held(session)
        except OutOfMemoryError:
            self._now = now = self._stale = None  # inputs in rows are memory of their own, too
            self._free_instances()
            self._bind_held(session)
        self._now, self._settled = found, True
        return session

    def _bind_held(self, session: Session) -> None:
        """Bind to runs of ``session`` what is held, unless that is bound already."""
        stale = self._stale
        if stale is not None and not stale and is_complete(session):
            return
        for name, value in self._held.items():
            if stale is None or name in stale or not has_binding(session, name):
                if name in self._by_value:
                    set_owned_input(session, name, value)
                else:
                    session.set_input_zero_copy(name, value)
        for name, out in self._held_outputs.items():
            if stale is None or name in stale or not has_binding(session, name, of_output=True):
                session.set_output_zero_copy(name, out)
        self._stale = set()

    def _is_set(self, name: str) -> None:
        """Note that the value held for input or output ``name`` is new."""
        self._settled, self._arguments = False, None
        if self._stale is not None:
            self._stale.add(name)

    def _give_lengths(self, group: StateGroup) -> None:
        """Give runs the inputs that say how many steps the state has, in arrays of this Session: what reads them in
        place reads the new number.
        """
        owned = self._length_arrays
        is_new = not owned
        if is_new:
            owned.update(group.lengths())
            self._held.update(owned)
            self._by_value.update(owned)
        for name, array in owned.items():
            array.fill(group.length)
            if is_new or self._now is None or not is_read_in_place(self._now.session, name):
                self._is_set(name)

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
                shapes = tuple(map(_shape_of, arrays))
                known = self._by_shapes.get(shapes)
            except (AttributeError, TypeError):  # lists, mappings; shapes of foreign arrays that are no tuples
                shapes, known = None, None
            instance = None
            if known is not None:
                key, instance = known
                self._instances.move_to_end(key)
                self._latest = instance
            elif self._by_shapes_alone and shapes is not None:
                instance = self._expected(shapes, (), (), arrays)
            if instance is not None:  # the same as below, inlined, as each 100 ns counts
                session = instance.for_calls()
                results = session(*arrays, out=out)
                if instance is not self._now:
                    let_calls_go(session)
                return results
            specs = self._given
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
        lengths, specs = group.lengths(), self._given
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
    def set_params(self, values: Mapping[str, Any], *, copy: bool = True) -> None:
        if copy:
            copies = copies_of_parameters(self.params, values)
            for session in self._sessions():
                session.set_params(copies)
            self._given_params.note_copies(copies)
            self._forget_spares()
        else:
            self._borrow_params(memory_of_parameters(self.params, values))()

    def _borrow_params(self, values: Mapping[str, Tensor]) -> Callable[[], object]:
        for function in self._executable.programs.values():
            uses = uses_of(self._executable, function)
            for spec in function.parameters:
                if spec.name in values:
                    refuse_copies(spec, uses[spec.name])
        return partial(self._change_params, [borrow_params(each, values) for each in self._sessions()], values)

    def _sessions(self) -> set[Session]:
        """Returns the Sessions of all instances."""
        shared = [program.session for program in self._programs.values() if program.session is not None]
        return {*shared, *(each.session for each in self._instances.values())}

    @takes_lock
    def get_params(self) -> dict[str, Tensor]:
        return current_parameters(self._executable, self._given_params)

    @takes_lock
    def _bind_pair(self, output: str | int, input: str | int) -> None:
        if self._group is not None:
            self._group.refuse_pairs()
        self._bind_specs(_find("output", output, self._output_specs), self._spec(input))

    def _bind_specs(self, source: TensorSpec, target: TensorSpec) -> None:
        self._states.bind(source, target)
        self._by_shapes_alone, self._has_states = False, True
        self._given = [spec for spec in self.inputs if not self._states.has(spec)]
        self._places_of_read = [at for at, spec in enumerate(self._given) if spec.elements]
        self._settled, self._stale, self._arguments = False, None, None
        self._forget_shapes()
        self._held_outputs.pop(source.name, None)
        if target.name in self._held:
            self._states.give(target.name, np.array(array_of(self._held.pop(target.name)), order="C"))

    @takes_lock
    def _bind_states(self, request: StateRequest) -> State:
        from landbridge.session.state_binding import first_state, further_state
        from landbridge.session.state_places import argument_places

        held = {**self._held, **self._held_outputs}
        bound: dict[str, Tensor] = {}
        places: dict[str, DeviceBinding] = {}
        if request.memory is not None:
            bound = {n: v if isinstance(v, Tensor) else asarray(array_of(v)) for n, v in held.items()}
            places = argument_places(self._executable, self._options)
        if self._group is not None:
            return further_state(self._group, self._executable, request, bound, places)

        def bind(
            specs: Sequence[tuple[TensorSpec, TensorSpec]], memory: Sequence[Halves] | None, sizes: Mapping[str, int]
        ) -> None:
            for output, input in specs:
                self._held.pop(input.name, None)
                self._bind_specs(output, input)
            self._states.put(memory, sizes, is_given=memory is not None)

        state, self._group = first_state(
            self._executable, self._entry, self._states, request, self._states.pairs, bound, places, bind
        )
        return state

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        if (
            self._now is None and self._latest is not None
        ):  # nothing was bound: those of the sizes prepared or called last
            return self._latest.planned_memory
        return self._last().planned_memory


def elements_of(value: Any) -> list[int]:
    """Returns the elements of an input of integers, in order."""
    array = value if type(value) is np.ndarray else array_of(value)
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
