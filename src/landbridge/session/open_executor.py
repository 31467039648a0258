"""OpenExecutor: the Executor of a program with open dimensions: it runs at the sizes of what is bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from landbridge.errors import InputError
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.session.given_parameters import GivenParameters, all_of, copies_of_parameters, current_parameters
from landbridge.session.held_arguments import HeldArguments
from landbridge.session.open_arguments import array_of, memory_for
from landbridge.session.open_instance import Instance
from landbridge.session.open_instances import OpenInstances
from landbridge.session.session_options import BindOptions, check_devices
from landbridge.session.state_request import StateRequest
from landbridge.tensor import Tensor, asarray
from landbridge.vm.arena import ProgramArena
from landbridge.vm.bound_program import BoundProgram
from landbridge.vm.entry import Entry
from landbridge.vm.named import in_order
from landbridge.vm.parameter_memory import refuse_copies, uses_of
from landbridge.vm.planned_memory import PlannedMemory
from landbridge.vm.resizing import Resizing

if TYPE_CHECKING:
    from landbridge.device.api import Device
    from landbridge.session.state import State
    from landbridge.session.state_group import Halves, StateGroup
    from landbridge.vm.device_binding import DeviceBinding


class OpenExecutor:
    """The Executor of ``executable``, whose sizes are those of what is bound, used by who holds the lock of ``entry``.

    It has weights and code once; instances for different sizes share the memory of intermediate values. ``params``
    are the weights that were replaced so far; whoever replaces others notes them there.
    """

    #: Several may do: the sizes decide which program runs.
    kernel_device: Device | None = None

    def __init__(self, executable: Executable, entry: Entry, options: BindOptions, params: GivenParameters) -> None:
        check_devices(executable, options)
        main = executable.main
        self._executable, self._entry, self._options, self._params = executable, entry, options, params
        self.instances = OpenInstances(executable, self._bound)
        self._states = self.instances.states
        self._arguments = HeldArguments(self.instances, main.inputs, main.outputs)
        #: What ran before, and has the results until the next run.
        self._before: OpenExecutor | None = None

    def _bound(self, executable: Executable, arena: ProgramArena) -> FixedExecutor:
        return FixedExecutor(executable, self._entry, self._options, self._params, arena)

    @property
    def has_states(self) -> bool:
        return bool(self._states.pairs)

    def prepare(self, sizes: Mapping[str, int | Sequence[int]]) -> None:
        self.instances.prepare(sizes)

    def hold_scopes(self) -> AbstractContextManager[object]:
        instance = self.instances.latest
        if instance is None:
            raise InputError("no size is known yet; bind inputs and run, or call prepare, before hold_scopes")
        return instance.executor.hold_scopes()  # holds the scopes of all instances

    # What is bound ----------------------------------------------------------------------------------------------

    def set_input(self, name: str | int, value: Any) -> None:
        self._arguments.set_input(name, value)

    def set_input_zero_copy(self, name: str | int, value: Any) -> None:
        self._arguments.set_input_zero_copy(name, value)

    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        self._arguments.set_output_zero_copy(index, out)

    # Runs -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        self._arguments.settle().run()
        self._before = None
        if self.instances.group is not None:
            self.instances.group.commit()

    def make_ready(self) -> None:
        self._arguments.settle().make_ready()

    def execute(self, begun: Callable[[], object]) -> None:
        self._arguments.last().executor.execute(begun)
        self._before = None
        if self.instances.group is not None:
            self.instances.group.commit()

    def call(self, arrays: Sequence[Any], out: Any) -> Any:
        if self.instances.group is not None:
            return self._call_with_state(self.instances.group, arrays, out)
        instance = self.instances.known(arrays)
        if instance is not None:
            return self._called(instance, arrays, out)
        specs = self.instances.given
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            given = dict(arrays[0])
            given |= {spec.name: memory_for(spec, given[spec.name]) for spec in specs if spec.name in given}
            by_name = in_order("input", given, [spec.name for spec in specs])
            return self._called(self.instances.of(by_name), (given,), out)
        if len(arrays) != len(specs):
            names = ", ".join(spec.name for spec in specs)
            raise InputError(f"{len(arrays)} arrays are given; the program takes {len(specs)}: {names}")
        arrays = tuple(map(memory_for, specs, arrays))
        return self._called(self.instances.of(arrays), arrays, out)

    def _call_with_state(self, group: StateGroup, arrays: Sequence[Any], out: Any) -> Any:
        """Returns the results of a call that continues the state, which gives its lengths itself."""
        lengths, specs = group.lengths(), self.instances.given
        names = [spec.name for spec in specs if spec.name not in lengths]
        by_name = len(arrays) == 1 and isinstance(arrays[0], Mapping)
        values = in_order("input", arrays[0], names) if by_name else arrays
        if len(values) != len(names):
            raise InputError(f"{len(values)} arrays are given; the program takes {len(names)}: {', '.join(names)}")
        given = dict(zip(names, values, strict=True)) | lengths
        given = {spec.name: memory_for(spec, given[spec.name]) for spec in specs}
        instance = self.instances.of([given[spec.name] for spec in specs])
        results = self._called(instance, (given,) if by_name else [given[spec.name] for spec in specs], out)
        group.commit()
        return results

    def call_at(self, sizes: Mapping[str, int], arrays: Sequence[Any]) -> list[Tensor]:
        """Returns the results of a call on ``arrays``; the caller knows all ``sizes``, by name, and checked the
        shapes.
        """
        name, *others = self._executable.programs
        dimensions = self.instances.program_of(name).dimensions
        known = {each: sizes[each] for each in dimensions if each in sizes}
        if others or self._states.pairs or len(known) < len(dimensions):
            instance = self.instances.of(arrays)
        else:
            instance = self.instances.at(name, known)
        return cast(list[Tensor], self._called(instance, arrays, None))

    def with_shared(
        self, sizes: Mapping[str, int], run: Callable[[BoundProgram, Resizing], object], *, enough: bool
    ) -> None:
        """Call ``run`` with the program that all sizes share, which it resizes itself.

        Nothing is called unless there is a single shared program. With ``enough`` it has memory for ``sizes``, by name.
        """
        name, *others = self._executable.programs
        if others or self._states.pairs:
            return
        program = self.instances.program_of(name)
        if not program.may_share:
            return
        if enough or program.shared is None:
            self.instances.at(name, {each: sizes[each] for each in program.dimensions})
        shared = program.shared
        if shared is not None:
            shared.of_calls = None
            run(shared.executor.program, shared.resizing)

    def _called(self, instance: Instance, arrays: Sequence[Any], out: Any) -> Any:
        executor = instance.for_calls()
        results = executor.call(arrays, out)
        if instance is not self._arguments.now:
            executor.program.calls.release()
        return results

    def get_input(self, name: str | int) -> Tensor:
        return self._arguments.settle().get_input(name)

    def get_output(self, index: int | str, out: Any = None) -> Any:
        holder, before = self._states.holder, self._before
        if holder is None and before is not None:
            return before.get_output(index, out)
        spec = self._arguments.output(index)
        if self.instances.group is not None and holder is None:
            self.instances.group.check_readable(spec.name)
        if holder is not None and self._states.has(spec):
            return holder.get_output(index, out)
        return (self._arguments.last().executor if before is None else before).get_output(index, out)

    def register_buffers(self, name: str | int, values: Sequence[Any]) -> None:
        self._arguments.settle().register_buffers(name, values)

    def set_params(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        copies = copies_of_parameters(self._executable.main.parameters, values)
        for executor in self.instances.executors():
            executor.set_params(copies)
        return copies

    def borrow_params(self, values: Mapping[str, Tensor]) -> Callable[[], object]:
        for function in self._executable.programs.values():
            uses = uses_of(self._executable, function)
            for spec in function.parameters:
                if spec.name in values:
                    refuse_copies(spec, uses[spec.name])
        return all_of([executor.borrow_params(values) for executor in self.instances.executors()])

    def get_params(self) -> dict[str, Tensor]:
        return current_parameters(self._executable, self._params)

    def bind_pair(self, output: str | int, input: str | int) -> None:
        if self.instances.group is not None:
            self.instances.group.refuse_pairs()
        self._arguments.bind_pair(self._arguments.output(output), self._arguments.input(input))

    def bind_states(self, request: StateRequest) -> State:
        from landbridge.session.state_binding import first_state, further_state
        from landbridge.session.state_places import argument_places

        held = self._arguments.by_name()
        bound: dict[str, Tensor] = {}
        places: dict[str, DeviceBinding] = {}
        if request.memory is not None:
            bound = {n: v if isinstance(v, Tensor) else asarray(array_of(v)) for n, v in held.items()}
            places = argument_places(self._executable, self._options)
        if self.instances.group is not None:
            return further_state(self.instances.group, self._executable, request, bound, places)

        def bind(
            specs: Sequence[tuple[TensorSpec, TensorSpec]], memory: Sequence[Halves] | None, sizes: Mapping[str, int]
        ) -> None:
            for output, input in specs:
                self._arguments.drop(input)
                self._arguments.bind_pair(output, input)
            self._states.put(memory, sizes, is_given=memory is not None)

        state, self.instances.group = first_state(
            self._executable, self._entry, self._states, request, self._states.pairs, bound, places, bind
        )
        return state

    def continue_from(self, before: OpenExecutor) -> None:
        self._arguments.continue_from(before._arguments)
        self.instances.continue_from(before.instances)
        self._before = before

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        latest = self.instances.latest
        if self._arguments.now is None and latest is not None:  # of the sizes that were prepared or called last
            return latest.planned_memory
        return self._arguments.last().planned_memory
