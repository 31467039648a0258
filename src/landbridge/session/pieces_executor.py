"""PiecesExecutor: the Executor of a program that is cut into segments where data decide sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from landbridge.errors import InputError, UnsupportedError
from landbridge.executable.bound_sizes import BoundSizes
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec
from landbridge.executable.segments import segments_of
from landbridge.memory import ledger
from landbridge.process.available_memory import limited_to
from landbridge.session.given_parameters import GivenParameters, all_of, copies_of_parameters, current_parameters
from landbridge.session.open_arguments import array_of, memory_for
from landbridge.session.segment_steps import ProgramPiece, SegmentSteps
from landbridge.session.session_options import BindOptions, check_devices
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.vm.argument import as_memory
from landbridge.vm.entry import Entry
from landbridge.vm.named import in_order
from landbridge.vm.planned_memory import PlannedMemory
from landbridge.vm.slot_names import find_slot, specs_by_name_and_index

if TYPE_CHECKING:
    from landbridge.device.api import Device
    from landbridge.session.state import State
    from landbridge.session.state_request import StateRequest


class PiecesExecutor:
    """The Executor of ``executable``, which is cut where data decide sizes, used by who holds the lock of ``entry``.

    Each piece has an executor of its own. A piece reads the results of the one before in place, or from a copy where
    its device cannot, as with results of host operators. Outputs are new Tensors. ``params`` are the weights that were
    replaced so far; whoever replaces others notes them there.
    """

    #: Of several pieces, and host operators between them.
    kernel_device: Device | None = None
    has_states = False

    def __init__(self, executable: Executable, entry: Entry, options: BindOptions, params: GivenParameters) -> None:
        check_devices(executable, options)
        main = executable.main
        self._executable, self._params, self._memory_limit = executable, params, options.memory_limit
        self._inputs, self._outputs = specs_by_name_and_index(main.inputs), specs_by_name_and_index(main.outputs)
        self._steps = SegmentSteps(
            segments_of(executable),
            main.inputs,
            main.guards,
            lambda name: ProgramPiece(executable, name, entry, options, params),
        )
        self._held: dict[str, Any] = {}
        #: Inputs that are the application's memory, used in place.
        self._borrowed: frozenset[str] = frozenset()
        self._results: dict[str, Any] | None = None

    # What is bound ----------------------------------------------------------------------------------------------

    def set_input(self, name: str | int, value: Any) -> None:
        spec = find_slot("input", name, self._inputs)
        self._hold(spec, np.array(array_of(memory_for(spec, value))))
        self._borrowed -= {spec.name}

    def set_input_zero_copy(self, name: str | int, value: Any) -> None:
        spec = find_slot("input", name, self._inputs)
        self._hold(spec, memory_for(spec, value))
        self._borrowed |= {spec.name}

    def _hold(self, spec: TensorSpec, value: Any) -> None:
        BoundSizes().add(spec, np.shape(value))
        self._held[spec.name] = value

    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        spec = find_slot("output", index, self._outputs)
        raise UnsupportedError(
            f"output {spec.name!r} is made new by each run, as the data decide sizes of this program; read it with "
            "get_output, or give out= to it or to a call, which copies"
        )

    def get_input(self, name: str | int) -> Tensor:
        spec = find_slot("input", name, self._inputs)
        if spec.name not in self._held:
            raise InputError(f"nothing is bound to input {spec.name!r}; its memory is the caller's in this program")
        return _tensor(self._held[spec.name])

    def get_output(self, index: int | str, out: Any = None) -> Any:
        name = find_slot("output", index, self._outputs).name
        if self._results is None:
            raise InputError(
                f"output {name!r} has no memory yet; call run(); session.outputs has shapes and dtypes before that"
            )
        result = self._results[name]
        return _tensor(result) if out is None else _copied(result, out, name)

    def register_buffers(self, name: str | int, values: Sequence[Any]) -> None:
        self._refuse(
            "register_buffers", "give set_input_zero_copy the next buffer before each run, which copies nothing"
        )

    def bind_pair(self, output: str | int, input: str | int) -> None:
        self._refuse("bind_state", "give set_input_zero_copy what get_output gave, before the next run")

    def bind_states(self, request: StateRequest) -> State:
        self._refuse("bind_state", "give set_input_zero_copy what get_output gave, before the next run")

    def hold_scopes(self) -> AbstractContextManager[object]:
        self._refuse("hold_scopes", "take memory from lb.empty(scope=), whose owner is the caller")

    def _refuse(self, subject: str, way_out: str) -> NoReturn:
        raise UnsupportedError(
            f"{subject} is for programs of one segment; this one is cut into {len(self._steps)} where data decide "
            f"sizes; {way_out}"
        )

    def prepare(self, sizes: Mapping[str, int | Sequence[int]]) -> None:
        for piece in self._steps.pieces():
            piece.prepare(sizes)

    def set_params(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        copies = copies_of_parameters(self._executable.main.parameters, values)
        for piece in self._steps.pieces():
            piece.set_params(copies)
        return copies

    def borrow_params(self, values: Mapping[str, Tensor]) -> Callable[[], object]:
        return all_of([piece.borrow_params(values) for piece in self._steps.pieces()])

    def get_params(self) -> dict[str, Tensor]:
        return current_parameters(self._executable, self._params)

    def continue_from(self, before: PiecesExecutor) -> None:
        self._held, self._borrowed, self._results = dict(before._held), before._borrowed, before._results

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        return tuple(each for piece in self._steps.pieces() for each in piece.executor.planned_memory)

    # Runs -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        self.make_ready()
        self._run_held()

    def make_ready(self) -> None:
        missing = [spec.name for spec in self._executable.main.inputs if spec.name not in self._held]
        if missing:
            raise InputError(f"nothing is bound to input {', '.join(map(repr, missing))}; bind it before run()")

    def execute(self, begun: Callable[[], object]) -> None:
        begun()
        self._run_held()

    def _run_held(self) -> None:
        with limited_to(self._memory_limit):
            self._results = self._steps.run(self._held, self._borrowed)

    def call(self, arrays: Sequence[Any], out: Any) -> Any:
        main = self._executable.main
        specs, names = main.inputs, [spec.name for spec in main.outputs]
        by_name = len(arrays) == 1 and isinstance(arrays[0], Mapping)
        if by_name:
            arrays = in_order("input", arrays[0], [spec.name for spec in specs])
            out = in_order("output", out, names) if isinstance(out, Mapping) else out
        if len(arrays) != len(specs):
            listed = ", ".join(spec.name for spec in specs)
            raise InputError(f"{len(arrays)} arrays are given; the program takes {len(specs)}: {listed}")
        given = {spec.name: memory_for(spec, array) for spec, array in zip(specs, arrays, strict=True)}
        with limited_to(self._memory_limit):
            found = self._steps.run(given, given.keys())
        results: list[Any] = [_tensor(found[name]) for name in names]
        if out is not None:
            if len(out) != len(results):
                raise InputError(f"out= lists {len(out)} arrays; the program has {len(results)} outputs")
            results = [_copied(r, o, name) for r, o, name in zip(results, out, names, strict=True)]
        return dict(zip(names, results, strict=True)) if by_name else results


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor.from_numpy_view(array_of(value))


def _copied(result: Any, out: Any, name: str) -> Any:
    if isinstance(out, Tensor) and not out.storage.kind.host_writable:
        copy_tensor(out, _tensor(result), cause="get_output")
        out.storage.wait(*out.byte_range, writes=True)
        return out
    source = array_of(result)
    memory = as_memory(f"output {name!r}", out, source.shape, source.dtype)
    if not isinstance(memory, np.ndarray | Tensor) and not hasattr(memory, "__dlpack__"):
        raise InputError(f"output {name!r}: a {type(out).__name__} cannot be written; pass an array or a Tensor")
    destination = array_of(memory)
    if (source.shape, source.dtype) != (destination.shape, destination.dtype):
        raise InputError(
            f"output {name!r} is {source.dtype} of shape {source.shape} in this run; out= is {destination.dtype} of "
            f"shape {destination.shape}"
        )
    ledger.copy_array(destination, source, cause="get_output", tensor=name, source="cpu:0", destination="cpu:0")
    return out
