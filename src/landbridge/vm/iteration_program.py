"""IterationProgram: runs iterations of a loop in place, each on the results of the one before, whose sizes may change.

All words that depend on sizes are computed for many iterations at once. An iteration then adds the addresses of its
operands to its words, and runs the program.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, cycle
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from landbridge.executable.abi import RECORD_JUMP
from landbridge.executable.iteration_sizes import IterationsAhead, keep
from landbridge.executable.open_number import OpenNumber
from landbridge.executable.parts import Function
from landbridge.memory import ledger
from landbridge.memory.host_array import address_of_known
from landbridge.records import record
from landbridge.sizes.formulas import SizeFormulas
from landbridge.vm.appending_calls import appending_call, record_words
from landbridge.vm.bound_program import BoundProgram
from landbridge.vm.frame import Execute
from landbridge.vm.iteration_memory import CarriedMemory, CollectedRows, MemoryPiece
from landbridge.vm.open_words import OpenWords
from landbridge.vm.program import BranchStep, HostStep, LoopStep, NativeStep, Program, Step
from landbridge.vm.resizing import Resizing
from landbridge.vm.size_fit import FitsAhead

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The iterations whose sizes are computed at once, and the most numbers for them.
_AHEAD, _VALUES = 64, 1 << 15


@record(frozen=True, slots=True)
class IterationArguments:
    """The roles of the inputs and outputs of a loop body, by number, inputs first; None for a role that it lacks.

    ``number``: the number of the iteration. ``goes_on``: the condition, true in each. ``dimensions``: the values of
    dimensions. ``carried``: input and output of each carried value. ``captured``: inputs that are the same in all
    iterations, each with the number of the surrounding value. ``rows``: outputs that are collected. ``again``: the
    output that says whether another iteration follows. ``appended``: the numbers of carried values that an iteration
    returns as it got them, with more appended.
    """

    number: int | None
    goes_on: int | None
    dimensions: int | None
    carried: tuple[tuple[int | None, int], ...]
    captured: tuple[tuple[int, int], ...]
    rows: tuple[int, ...]
    again: int
    appended: tuple[int, ...] = ()


@record(frozen=True, slots=True)
class Taken:
    """The result: ``count`` iterations ran, and ``goes_on`` is the last one's condition."""

    count: int
    goes_on: bool


class IterationProgram:
    """Iterations of ``bound``, a program of ``function``; ``arguments`` gives the roles of its inputs and outputs.

    ``resizing`` rebinds the program where its sizes are open.
    """

    def __init__(
        self, bound: BoundProgram, function: Function, resizing: Resizing | None, arguments: IterationArguments
    ) -> None:
        self.bound = bound
        self._resizing, self._arguments = resizing, arguments
        self._specs = specs = (*function.inputs, *function.outputs)
        program = bound.program
        entries: list[tuple[int, int, int]] = [(-1, *word) for word in (() if resizing is None else program.open_words)]
        entries += [(register, *location) for register in range(len(specs)) for location in program.places[register]]
        self._words = OpenWords((word, number) for _, word, number in entries)
        #: For each word the input or output whose address it holds, or -1.
        self._of = np.array([register for register, _, _ in entries], np.intp)
        self._number, self._goes_on = np.zeros(1, np.int64), np.ones(1, np.bool_)
        self._again = ctypes.c_bool()
        reported = () if arguments.dimensions is None else specs[arguments.dimensions].elements
        self._dimensions = np.zeros(len(reported), np.int64)
        #: The values of dimensions, where the program reads them.
        is_read = arguments.dimensions is not None and bool(program.places[arguments.dimensions])
        self._reported = SizeFormulas(reported) if is_read else None
        self._is_native = len(program.steps) == 1 and isinstance(program.steps[0], NativeStep)
        #: The words of the records that copy carried values which are only appended to, by number of the value.
        self._appending = {
            number: record
            for number in arguments.appended
            if (record := _record_of(function, program, arguments.carried[number])) is not None
        }
        self._retained: dict[IterationsAhead, tuple[FitsAhead | None, NDArray[np.uint64]]] = {}
        #: The most iterations that are computed ahead.
        width = len(entries) + (1 if resizing is None else resizing.width)
        self.most_ahead = max(1, min(_AHEAD, _VALUES // width))

    @staticmethod
    def are_possible(bound: BoundProgram) -> bool:
        """Returns whether ``bound`` has its arguments in host memory in place, and only the host runs it."""
        frame, program = bound.calls.frame, bound.program
        offsets = [offset for places in program.places for _, offset in places]
        return (
            frame.staging is None
            and all(slot.array_type is np.ndarray for slot in (*frame.inputs, *frame.outputs))
            and all(min(offset.slots, default=0) >= 0 for offset in offsets if isinstance(offset, OpenNumber))
            and all(map(_is_of_host, program.steps))
        )

    def borrow(self, register: int, value: Any, shape: tuple[int, ...]) -> MemoryPiece:
        """Returns the memory of ``value`` as input ``register`` of iterations in which that has ``shape``.

        Raises InputError where it does not fit.
        """
        slot = self.bound.calls.frame.slots[register]
        if type(value) is np.ndarray and value.dtype is slot.dtype and value.shape == shape and value.flags.carray:
            return MemoryPiece(address_of_known(value), value.nbytes, value)
        spec = replace(self._specs[register], shape=shape, elements=())
        slot.take(spec, spec.nbytes, slot.places)
        address, owner = self.bound.calls.borrow(slot, value)
        return MemoryPiece(address, spec.nbytes, owner)

    def take(
        self,
        ahead: IterationsAhead,
        first: int,
        carried: Sequence[CarriedMemory],
        rows: Sequence[CollectedRows],
        captured: Sequence[MemoryPiece],
        *,
        are_last: bool,
    ) -> Taken | None:
        """Run the iterations ``ahead``, the first of which has number ``first``, until one ends the loop.

        ``are_last``: none follow these. Returns None where the program has not enough memory for the first.
        """
        fits, table = self._fits(ahead)
        if not len(table):
            return None
        table = table.copy() if rows else table
        are_last = are_last and len(table) == ahead.count
        extends = bool(self._appending) and not ledger.is_active()  # the step that tells the ledger what kernels move
        bases = self._bases(table, ahead, carried, rows, captured, are_last=are_last, extends=extends)
        reported = None if self._reported is None else self._reported.at_each(ahead.values, ahead.count)
        resizes = self._resizing is not None and (ledger.is_active() or not self._is_native)
        frame, number, dimensions = self.bound.calls.frame, self._number, self._dimensions
        words, index, again = frame.number_words, self._words.words, self._again
        execute, taken = self._execution(fits, 0 if resizes else len(table) - 1), 0
        with _left_out(words, self._appending.values() if extends else ()):
            for values, base in zip(table, bases, strict=False):
                number[0] = first + taken
                if reported is not None:
                    dimensions[:] = reported[taken]
                if resizes and taken:
                    execute = self._execution(fits, taken)
                words[index] = values + base
                execute()
                taken += 1
                if not again.value:
                    break
        for each in carried:
            each.took(taken)
        for collected in rows:
            collected.count += taken
        return Taken(taken, again.value)

    def _fits(self, ahead: IterationsAhead) -> tuple[FitsAhead | None, NDArray[np.uint64]]:
        """Returns the iterations that fit the program's memory (None: all do), and the words of each, without
        addresses.
        """
        known = self._retained.get(ahead)
        if known is None:
            fits, values = None, np.zeros((ahead.count, 1), np.int64)
            if self._resizing is not None:
                fits = self._resizing.fits(ahead.values, ahead.count)
                values = values[:0] if fits is None else fits.extent_values
            table = self._words.values(values)[:, self._words.value_of] if len(values) else values.view(np.uint64)
            known = fits, table
            keep(self._retained, ahead, known)
        return known

    def _execution(self, fits: FitsAhead | None, iteration: int) -> Execute:
        """Returns the function that executes iteration ``iteration`` of those that ``fits`` has."""
        frame = self.bound.calls.frame
        if self._resizing is not None and fits is not None:
            self._resizing.take_steps(frame, fits, iteration)
        return frame.listed if frame.listed is not None and ledger.is_active() else frame.execute

    def _bases(
        self,
        table: NDArray[np.uint64],
        ahead: IterationsAhead,
        carried: Sequence[CarriedMemory],
        rows: Sequence[CollectedRows],
        captured: Sequence[MemoryPiece],
        *,
        are_last: bool,
        extends: bool,
    ) -> Iterator[NDArray[np.uint64]]:
        """Yields the addresses to add to ``table``, one iteration after the other; rows advance in ``table``."""
        known, count = self._arguments, len(table)
        given = (known.number, self._number), (known.goes_on, self._goes_on), (known.dimensions, self._dimensions)
        fixed = {register: address_of_known(array) for register, array in given if register is not None}
        fixed[known.again] = ctypes.addressof(self._again)
        fixed |= {register: piece.address for (register, _), piece in zip(known.captured, captured, strict=True)}
        for register, collected in zip(known.rows, rows, strict=True):
            fixed[register] = collected.address(count)
            moves = np.arange(count, dtype=np.uint64)[:, None] * np.uint64(collected.nbytes)
            table[:, self._of == register] += moves
        first, second, third = dict(fixed), dict(fixed), fixed
        for number, ((taken, created), each) in enumerate(zip(known.carried, carried, strict=True)):
            nbytes = ahead.nbytes[number]
            if extends and number in self._appending:
                one = other = each.extended(nbytes, ahead.nbytes_now[number], is_last=are_last)
            else:
                one, other = each.next_two(nbytes, count, is_last=are_last)
            first[created] = third[created] = one.address
            second[created] = other.address
            if taken is not None:
                first[taken], second[taken], third[taken] = each.now.address, one.address, other.address
        return chain([self._base(first)], cycle([self._base(second), self._base(third)]))

    def _base(self, addresses: Mapping[int, int]) -> NDArray[np.uint64]:
        every = [addresses.get(register, 0) for register in range(len(self._specs))]
        return np.array([*every, 0], np.uint64)[self._of]


#: The words of a record, and its number among the records that run with it.
_Record: TypeAlias = tuple[slice, int]


def _record_of(function: Function, program: Program, carried: tuple[int | None, int]) -> _Record | None:
    taken, given = carried
    number = None if taken is None else appending_call(function, program, taken, given)
    return None if number is None else (record_words(program, number), number)


@contextmanager
def _left_out(words: NDArray[np.uint64], records: Iterable[_Record]) -> Iterator[None]:
    """Make runs skip ``records`` until the end of the block."""
    before = [(location, words[location].copy()) for location, _ in records]
    try:
        for location, number in records:
            words[location] = RECORD_JUMP, 0, number + 1, 0
        yield
    finally:
        for location, record in before:
            words[location] = record


def _is_of_host(step: Step) -> bool:
    """Returns whether the host runs ``step``, and its operands are given by addresses in words alone."""
    match step:
        case NativeStep() | HostStep():
            return True
        case BranchStep(then=then, orelse=orelse):
            return all(map(_is_of_host, (*then, *orelse)))
        case LoopStep(body=body):
            return all(map(_is_of_host, body))
        case _:
            return False
