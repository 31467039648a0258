"""SegmentedSession: the Session of a program that is cut into segments where data decide sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from landbridge.errors import InputError, UnsupportedError
from landbridge.executable.bound_sizes import BoundSizes
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec
from landbridge.executable.segments import segments_of
from landbridge.memory import ledger
from landbridge.process.available_memory import limited_to
from landbridge.process.exhaustion import raise_exhaustion
from landbridge.session.given_parameters import GivenParameters, copies_of_parameters, current_parameters
from landbridge.session.open_arguments import array_of, memory_for
from landbridge.session.open_session import OpenSession
from landbridge.session.segment_steps import ProgramPiece, SegmentSteps
from landbridge.session.session import Session, memory_of_parameters, spares_of
from landbridge.session.session_options import checked_options
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.text.did_you_mean import did_you_mean
from landbridge.vm.argument import as_memory
from landbridge.vm.background import AsyncRun
from landbridge.vm.background_runs import BackgroundRuns
from landbridge.vm.entry import Entry, takes_lock
from landbridge.vm.named import in_order
from landbridge.vm.planned_memory import PlannedMemory
from landbridge.vm.slot_names import unknown_keyword
from landbridge.vm.token_lock import NOBODY

if TYPE_CHECKING:
    from landbridge.session.state import State
    from landbridge.session.state_request import StateRequest

__all__ = ["OpenSession", "SegmentedSession", "Session"]

#: The ledger's cause of a copy from one piece to the next.
_CAUSE = "pieces"


class SegmentedSession(Session):
    """A Session of a program that is cut where data decide sizes; made by ``landbridge.Session``.

    Each piece has a Session of its own. A piece reads the results of the one before in place, or from a copy where its
    device cannot, as with results of host operators. Outputs are new Tensors.
    """

    def __init__(self, executable: Executable, *args: Any, **kwargs: Any) -> None:
        main = executable.main
        sides = (", ".join(spec.name for spec in specs) for specs in (main.inputs, main.outputs))
        self._entry = Entry(f"Session({' -> '.join(sides)})")
        self._background = BackgroundRuns(self._entry)
        self._executable = executable
        options = checked_options(executable, *args, **kwargs)
        self._has_states = False
        self._steps = SegmentSteps(
            segments_of(executable), main.inputs, main.guards, lambda name: ProgramPiece(executable, name, options)
        )
        self._memory_limit = options["memory_limit"]
        self._given_params = GivenParameters()
        self._spares = spares_of(executable, self._entry, self._given_params, **options)
        self._held: dict[str, Any] = {}
        #: Inputs that are the application's memory, used in place.
        self._borrowed: frozenset[str] = frozenset()
        self._held_outputs: dict[str, Any] = {}
        self._results: dict[str, Any] | None = None

    # What is bound ----------------------------------------------------------------------------------------------

    def _name(self, subject: str, name: str | int, specs: Sequence[TensorSpec]) -> str:
        if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(specs):
            return specs[name].name
        for spec in specs:
            if spec.name == name:
                return spec.name
        raise _unknown(subject, name, specs)

    @takes_lock
    def set_input(self, name: str | int, value: Any) -> None:
        found = self._name("input", name, self.inputs)
        self._hold(found, np.array(array_of(memory_for(self._input(found), value))))
        self._borrowed -= {found}

    @takes_lock
    def set_input_zero_copy(self, name: str | int, value: Any) -> None:
        found = self._name("input", name, self.inputs)
        self._hold(found, memory_for(self._input(found), value))
        self._borrowed |= {found}

    def _input(self, name: str) -> TensorSpec:
        return next(spec for spec in self.inputs if spec.name == name)

    def _hold(self, name: str, value: Any) -> None:
        BoundSizes().add(self._input(name), np.shape(value))
        self._held[name] = value

    @takes_lock
    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        spec = next(s for s in self.outputs if s.name == self._name("output", index, self.outputs))
        raise UnsupportedError(
            f"output {spec.name!r} is made new by each run, as the data decide sizes of this program; read it with "
            "get_output, or give out= to it or to a call, which copies"
        )

    @takes_lock
    def get_input(self, name: str | int) -> Tensor:
        found = self._name("input", name, self.inputs)
        if found not in self._held:
            raise InputError(f"nothing is bound to input {found!r}; its memory is the caller's in this program")
        held = self._held[found]
        return held if isinstance(held, Tensor) else Tensor.from_numpy_view(array_of(held))

    @takes_lock
    def get_output(self, index: int | str, out: Any = None) -> Any:
        name = self._name("output", index, self.outputs)
        if self._results is None:
            raise InputError(
                f"output {name!r} has no memory yet; call run(); session.outputs has shapes and dtypes before that"
            )
        result = self._results[name]
        if out is None:
            return _tensor(result)
        return _copied(result, out, name)

    @takes_lock
    def register_buffers(self, name: str | int, values: Sequence[Any]) -> None:
        self._refuse(
            "register_buffers", "give set_input_zero_copy the next buffer before each run, which copies nothing"
        )

    @takes_lock
    def _bind_pair(self, output: str | int, input: str | int) -> None:
        self._refuse("bind_state", "give set_input_zero_copy what get_output gave, before the next run")

    @takes_lock
    def _bind_states(self, request: StateRequest) -> State:
        self._refuse("bind_state", "give set_input_zero_copy what get_output gave, before the next run")

    @contextmanager
    def hold_scopes(self) -> Iterator[None]:
        self._refuse("hold_scopes", "take memory from lb.empty(scope=), whose owner is the caller")
        yield

    def _refuse(self, subject: str, way_out: str) -> NoReturn:
        raise UnsupportedError(
            f"{subject} is for programs of one segment; this one is cut into {len(self._steps)} where data decide "
            f"sizes; {way_out}"
        )

    @takes_lock
    def prepare(self, **sizes: int | Sequence[int]) -> None:
        for piece in self._steps.pieces():
            piece.prepare(sizes)

    @takes_lock
    def set_params(self, values: Mapping[str, Any], *, copy: bool = True) -> None:
        if copy:
            copies = copies_of_parameters(self.params, values)
            for piece in self._steps.pieces():
                piece.set_params(copies)
            self._given_params.note_copies(copies)
            self._forget_spares()
        else:
            self._borrow_params(memory_of_parameters(self.params, values))()

    def _borrow_params(self, values: Mapping[str, Tensor]) -> Callable[[], object]:
        return partial(self._change_params, [piece.borrow_params(values) for piece in self._steps.pieces()], values)

    @takes_lock
    def get_params(self) -> dict[str, Tensor]:
        return current_parameters(self._executable, self._given_params)

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        return tuple(each for piece in self._steps.pieces() for each in piece.session.planned_memory)

    # Runs -------------------------------------------------------------------------------------------------------

    @takes_lock
    def run(self) -> None:
        self._run()

    def _run(self) -> None:
        self._make_ready()
        with limited_to(self._memory_limit):
            self._results = self._steps.run(self._held, self._borrowed)

    def _make_ready(self) -> None:
        missing = [spec.name for spec in self.inputs if spec.name not in self._held]
        if missing:
            raise InputError(f"nothing is bound to input {', '.join(map(repr, missing))}; bind it before run()")

    def run_async(self) -> AsyncRun:
        def execute(begun: Callable[[], object]) -> None:
            begun()
            with limited_to(self._memory_limit):
                self._results = self._steps.run(self._held, self._borrowed)

        return self._background.start(self._make_ready, execute)

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
            specs, names = self.inputs, [spec.name for spec in self.outputs]
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
        except Exception as error:
            raise_exhaustion(error, "a run was under way")
            raise
        finally:
            entry.owner = NOBODY
            entry.give_back(token)
            del token


def _unknown(subject: str, name: object, specs: Sequence[TensorSpec]) -> InputError:
    names = [spec.name for spec in specs]
    return InputError(f"no {subject} {name!r}{did_you_mean(str(name), names)}; legal: {', '.join(names) or 'none'}")


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
