"""IterationProgram: a bound program that takes iterations of a loop, each on what the one before gave, whose sizes may
change.

All that sizes decide in its words is computed for many iterations at once. An iteration then is one addition, of the
addresses of what it takes and gives to the words that its sizes make, and a run of the program.
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
from landbridge.vm.resizing import FitsAhead, Resizing

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Iterations whose sizes are computed at once, and at most so many numbers.
_AHEAD, _VALUES = 64, 1 << 15


@record(frozen=True, slots=True)
class IterationArguments:
    """Which input or output of a body is what, by number, inputs first; None for what it has not.

    ``number``: the number of the iteration. ``goes_on``: true in each. ``dimensions``: what they are. ``carried``: as
    an iteration takes and as it gives it. ``captured``: inputs that are the same in all, and the number of each of what
    is around. ``rows``: outputs that are collected.
    ``again``: the output that says whether another iteration follows. ``appended``: of what is carried, by number, what
    an iteration gives as it takes it, with more behind.
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
    """``count`` trips were taken, and ``goes_on`` is what the last one said."""

    count: int
    goes_on: bool


class IterationProgram:
    """Iterations of ``bound``, a program of ``function``, of which ``arguments`` says what is what; ``resizing``
    rebinds it where its sizes are open."""

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
        #: Of each word the input or output whose address it has, or -1.
        self._of = np.array([register for register, _, _ in entries], np.intp)
        self._number, self._goes_on = np.zeros(1, np.int64), np.ones(1, np.bool_)
        self._again = ctypes.c_bool()
        reported = () if arguments.dimensions is None else specs[arguments.dimensions].elements
        self._dimensions = np.zeros(len(reported), np.int64)
        #: What they are, where the program reads it.
        is_read = arguments.dimensions is not None and bool(program.places[arguments.dimensions])
        self._reported = SizeFormulas(reported) if is_read else None
        self._is_native = len(program.steps) == 1 and isinstance(program.steps[0], NativeStep)
        #: The words of the records that copy what is only appended to, by number of what is carried.
        self._appending = {
            number: record
            for number in arguments.appended
            if (record := _record_of(function, program, arguments.carried[number])) is not None
        }
        self._retained: dict[IterationsAhead, tuple[FitsAhead, NDArray[np.uint64]]] = {}
        #: The iterations of which it is told at most at once.
        width = len(entries) + (1 if resizing is None else resizing.width)
        self.most_ahead = max(1, min(_AHEAD, _VALUES // width))

    @staticmethod
    def are_possible(bound: BoundProgram) -> bool:
        """Whether ``bound`` has its arguments where they are, in memory of the host, and the host alone runs it."""
        frame, program = bound.calls.frame, bound.program
        offsets = [offset for places in program.places for _, offset in places]
        return (
            frame.staging is None
            and all(slot.array_type is np.ndarray for slot in (*frame.inputs, *frame.outputs))
            and all(min(offset.slots, default=0) >= 0 for offset in offsets if isinstance(offset, OpenNumber))
            and all(map(_is_of_host, program.steps))
        )

    def borrow(self, register: int, value: Any, shape: tuple[int, ...]) -> MemoryPiece:
        """The memory of ``value`` as input ``register`` of iterations in which that has ``shape``.

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
        """Take the iterations ``ahead``, the first of which has number ``first``, until one says that none follows.

        ``are_last``: none follow these. None where the program has not enough memory for the first.
        """
        fit, table = self._fit(ahead)
        if not fit.count:
            return None
        table = table.copy() if rows else table
        are_last = are_last and fit.count == ahead.count
        extends = bool(self._appending) and not ledger.is_active()  # which shows what kernels move
        bases = self._bases(table, ahead, carried, rows, captured, are_last=are_last, extends=extends)
        reported = None if self._reported is None else self._reported.at_each(ahead.values, ahead.count)
        resizes = self._resizing is not None and (ledger.is_active() or not self._is_native)
        frame, number, dimensions = self.bound.calls.frame, self._number, self._dimensions
        words, index, again = frame.number_words, self._words.words, self._again
        execute, taken = self._execution(fit, 0), 0
        with _left_out(words, self._appending.values() if extends else ()):
            for values, base in zip(table, bases, strict=False):
                number[0] = first + taken
                if reported is not None:
                    dimensions[:] = reported[taken]
                if resizes and taken:
                    execute = self._execution(fit, taken)
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

    def _fit(self, ahead: IterationsAhead) -> tuple[FitsAhead, NDArray[np.uint64]]:
        """Those of the iterations that there is memory for, and what the words are in each, without addresses."""
        known = self._retained.get(ahead)
        if known is None:
            if self._resizing is None:
                fit = FitsAhead(np.zeros((ahead.count, 1), np.int64), ahead.count, 0)
            else:
                fit = self._resizing.fit_ahead(ahead.values, ahead.count)
            known = fit, self._words.values(fit.extent_values)[:, self._words.value_of]
            keep(self._retained, ahead, known)
        return known

    def _execution(self, fit: FitsAhead, iteration: int) -> Execute:
        """What executes one of the iterations that ``fit``."""
        frame = self.bound.calls.frame
        if self._resizing is not None:
            self._resizing.take_steps(frame, fit, iteration)
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
        """The addresses that words have beside what is in ``table``, iteration after iteration; rows move on in
        ``table``."""
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


#: The words of a record, and its number among those that are run with it.
_Record: TypeAlias = tuple[slice, int]


def _record_of(function: Function, program: Program, carried: tuple[int | None, int]) -> _Record | None:
    taken, given = carried
    number = None if taken is None else appending_call(function, program, taken, given)
    return None if number is None else (record_words(program, number), number)


@contextmanager
def _left_out(words: NDArray[np.uint64], records: Iterable[_Record]) -> Iterator[None]:
    """Have runs leave out ``records`` in the block."""
    before = [(location, words[location].copy()) for location, _ in records]
    try:
        for location, number in records:
            words[location] = RECORD_JUMP, 0, number + 1, 0
        yield
    finally:
        for location, record in before:
            words[location] = record


def _is_of_host(step: Step) -> bool:
    """Whether the host takes ``step``, and no more than addresses in words say where its operands are."""
    match step:
        case NativeStep() | HostStep():
            return True
        case BranchStep(then=then, orelse=orelse):
            return all(map(_is_of_host, (*then, *orelse)))
        case LoopStep(body=body):
            return all(map(_is_of_host, body))
        case _:
            return False
