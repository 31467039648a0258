"""OpenSession: the Session of a program with open dimensions, with an instance for each of the sizes that come."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np

from landbridge.errors import InputError, UnsupportedError
from landbridge.executable.bound_sizes import BoundSizes, sizes_of_inputs
from landbridge.executable.executable import Executable
from landbridge.executable.instance import Numbers, check_values, dimensions, instance
from landbridge.executable.instructions import storages
from landbridge.executable.parts import TensorSpec
from landbridge.session import Session
from landbridge.sizes.size import Extent
from landbridge.tensor import Tensor
from landbridge.vm.arena import ProgramArena
from landbridge.vm.background import AsyncRun
from landbridge.vm.entry import Entry, takes_turn
from landbridge.vm.planned_memory import PlannedMemory

__all__ = ["OpenSession", "Session"]

#: Sizes whose instances a Session keeps.
_KEPT = 64


class OpenSession(Session):
    """A Session whose sizes are those of what is bound; made by ``landbridge.Session``.

    Weights and code are there once; instances for different sizes share the memory of what is computed on the way.
    """

    def __init__(self, executable: Executable, *args: Any, **kwargs: Any) -> None:
        main = executable.main
        sides = (", ".join(spec.name for spec in specs) for specs in (main.inputs, main.outputs))
        self._entry = Entry(f"Session({' -> '.join(sides)})")
        self._executable = executable
        self._dimensions = dimensions(main)
        self._numbers = Numbers()
        self._arena = ProgramArena(
            [_most(storage.nbytes) for storage in storages(main.instructions) if not storage.shape]
        )
        self._bind = partial(self._bound, args, kwargs)
        self._instances: OrderedDict[tuple[int, ...], Session] = OrderedDict()
        self._by_shapes: dict[tuple[tuple[int, ...], ...], Session] = {}
        self._specs = _table(main.inputs)
        #: Inputs whose elements say what dimensions are: read at each run, as they may be the application's memory.
        self._read_at_runs = [(i, spec.name) for i, spec in enumerate(main.inputs) if spec.elements]
        #: What is bound to inputs and outputs, by name, until the sizes are known and for other sizes later.
        self._held: dict[str, Any] = {}
        self._held_outputs: dict[str | int, Any] = {}
        self._parameters_given: dict[str, Any] = {}
        self._now: Session | None = None
        self._settled = False

    # Instances --------------------------------------------------------------------------------------------------

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any], values: Mapping[str, int]) -> Session:
        made = Session(instance(self._executable, values, self._numbers), *args, **kwargs, arena=self._arena)
        if self._parameters_given:
            made.set_params(self._parameters_given)
        return made

    def _instance(self, values: Mapping[str, int]) -> Session:
        key = tuple(values[name] for name in self._dimensions)
        found = self._instances.get(key)
        if found is None:
            before = self._arena.generation
            found = self._bind(values)
            if self._arena.generation != before:  # the others have memory that nobody else uses any more
                self._instances.clear()
                self._by_shapes.clear()
            self._instances[key] = found
            if len(self._instances) > _KEPT:
                _, gone = self._instances.popitem(last=False)
                self._by_shapes = {shapes: s for shapes, s in self._by_shapes.items() if s is not gone}
        else:
            self._instances.move_to_end(key)
        return found

    def prepare(self, **sizes: int | Sequence[int]) -> None:
        choices = {name: [value] if isinstance(value, int) else list(value) for name, value in sizes.items()}
        asked = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
        for values in asked:
            check_values(self._dimensions, values)
        for values in sorted(asked, key=lambda each: tuple(each.values()), reverse=True):  # the largest memory first
            self._instance(values)

    # What is bound ----------------------------------------------------------------------------------------------

    def _hold(self, name: str | int, value: Any) -> None:
        spec = self._spec(name)
        BoundSizes().add(spec, np.shape(value))
        self._held[spec.name] = value
        self._settled = False

    def _spec(self, name: str | int) -> TensorSpec:
        try:
            return self._specs[name]
        except (KeyError, TypeError):
            names = ", ".join(spec.name for spec in self.inputs)
            raise InputError(f"there is no input {name!r}; legal: {names}") from None

    @takes_turn
    def set_input(self, name: str | int, value: Any) -> None:
        self._hold(name, np.array(np.from_dlpack(cast(Any, value)) if isinstance(value, Tensor) else value))

    @takes_turn
    def set_input_zero_copy(self, name: str | int, value: Any) -> None:
        self._hold(name, value)

    @takes_turn
    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        if index not in _table(self.outputs):
            names = ", ".join(spec.name for spec in self.outputs)
            raise InputError(f"there is no output {index!r}; legal: {names}")
        self._held_outputs[index] = out
        self._settled = False

    def _settle(self) -> Session:
        """The instance for what is bound, with that bound to it."""
        if self._settled and self._now is not None and not self._read_at_runs:
            return self._now
        missing = [spec.name for spec in self.inputs if spec.name not in self._held]
        if missing:
            raise InputError(f"nothing is bound to input {', '.join(map(repr, missing))}; bind it before run()")
        shapes = {name: np.shape(value) for name, value in self._held.items()}
        elements = {name: _elements(self._held[name]) for _, name in self._read_at_runs}
        found = self._instance(sizes_of_inputs(self.inputs, shapes, elements))
        if self._settled and found is self._now:
            return found
        for name, value in self._held.items():
            found.set_input_zero_copy(name, value)
        for index, out in self._held_outputs.items():
            found.set_output_zero_copy(index, out)
        self._now, self._settled = found, True
        return found

    # Runs -------------------------------------------------------------------------------------------------------

    @takes_turn
    def run(self) -> None:
        self._settle().run()

    @takes_turn
    def run_async(self) -> AsyncRun:
        return self._settle().run_async()

    def __call__(self, *arrays: Any, out: Sequence[Any] | None = None) -> list[Any]:
        entry = self._entry
        try:
            turn = entry.take()
        except IndexError:
            entry.refuse()
        try:
            shapes = tuple(map(np.shape, arrays))
            found = None if self._read_at_runs else self._by_shapes.get(shapes)
            if found is None:
                if len(arrays) != len(self.inputs):
                    names = ", ".join(spec.name for spec in self.inputs)
                    raise InputError(f"{len(arrays)} arrays are given; the program takes {len(self.inputs)}: {names}")
                named = {spec.name: shape for spec, shape in zip(self.inputs, shapes, strict=True)}
                elements = {name: _elements(arrays[i]) for i, name in self._read_at_runs}
                found = self._instance(sizes_of_inputs(self.inputs, named, elements))
                self._by_shapes[shapes] = found
            return found(*arrays, out=out)
        finally:
            entry.give_back(turn)

    def _last(self) -> Session:
        if self._now is None:
            raise InputError("no sizes are known yet: bind every input and call run(), or prepare()")
        return self._now

    @takes_turn
    def get_input(self, name: str | int) -> Tensor:
        return self._settle().get_input(name)

    @takes_turn
    def get_output(self, index: int | str, out: Any = None) -> Any:
        return self._last().get_output(index, out)

    @takes_turn
    def register_buffers(self, name: str | int, values: Sequence[Any]) -> None:
        self._settle().register_buffers(name, values)

    @takes_turn
    def set_params(self, values: Mapping[str, Any]) -> None:
        for each in self._instances.values():
            each.set_params(values)
        self._parameters_given.update(values)

    @takes_turn
    def get_params(self) -> dict[str, Tensor]:
        return self._last().get_params()

    @takes_turn
    def bind_state(self, output: str | int, input: str | int) -> None:
        raise UnsupportedError("a program with open dimensions binds no recurrent states; compile with shapes=")

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        return self._last().planned_memory


def _most(nbytes: Extent) -> int | None:
    """The most bytes that a storage has for any size; None where they have no bound."""
    return nbytes if isinstance(nbytes, int) else nbytes.high


def _elements(value: Any) -> list[int]:
    """The elements of an input of integers, in order."""
    array = np.from_dlpack(cast(Any, value)) if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind not in "iu":
        raise InputError(f"an input of {array.dtype} says what dimensions are; integers are legal")
    return cast(list[int], array.reshape(-1).tolist())


def _table(specs: Sequence[TensorSpec]) -> dict[str | int, TensorSpec]:
    """``specs`` by index and by name."""
    by_index: dict[str | int, TensorSpec] = dict(enumerate(specs))
    return by_index | {spec.name: spec for spec in specs}


Session._of_open_programs = OpenSession
