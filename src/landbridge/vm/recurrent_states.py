"""RecurrentStates: outputs that are inputs of the next execution, in one memory or in two buffers that swap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from landbridge.errors import InputError
from landbridge.executable.parts import TensorSpec
from landbridge.tensor import Tensor
from landbridge.vm.call_arguments import CallArguments
from landbridge.vm.run_arguments import RunArguments
from landbridge.vm.slot import Slot


class RecurrentStates:
    """The states of a program, as (output, input) pairs, which runs and calls share."""

    def __init__(self, runs: RunArguments, calls: CallArguments) -> None:
        self._runs, self._calls = runs, calls
        self.pairs: tuple[tuple[Slot, Slot], ...] = ()

    def bind(self, source: Slot, target: Slot) -> None:
        """Make output ``source`` of each execution the input ``target`` of the next.

        They are one memory where the program declares them an alias, else two buffers that swap. Raises InputError when
        they differ, one is a state already, or another input is bound to the memory of one.
        """
        for half in (source, target):
            if half.partner is not None:
                raise InputError(f"{half} is a recurrent state already, with {half.partner}")
        if (source.shape, source.dtype) != (target.shape, target.dtype):
            raise InputError(
                f"{source} is {source.spec.dtype}{source.shape}, {target} is {target.spec.dtype}{target.shape}; "
                "the two halves of a state must be equal; if the one may be kept in the memory of the other, compile "
                f"with alias={{{source.spec.name!r}: {target.spec.name!r}}}"
            )
        runs, frame = self._runs, self._runs.frame
        for half in (source, target):
            if frame.staging is not None:
                frame.staging.unbind(half)
            if half.owned is not None:
                others = tuple(other for other in frame.inputs if other is not target)
                runs.check_no_overlap(half, half.location(half.owned), others)
        if target.owner is not None and target.owner is not target.owned:
            runs.copy_in(target, target.tensor(), "bind_state")
        self._bind_both(source, target)
        source.partner, target.partner = target, source
        target.use.writes = True
        self.pairs = (*self.pairs, (source, target))
        try:
            self._take_from_calls(source, target)
        except BaseException:  # an interrupt: they are a state already
            self._take_from_calls(source, target)
            raise

    def _bind_both(self, source: Slot, target: Slot) -> None:
        self._runs.bind_owned(target)
        if is_in_place(source, target):
            source.owned = target.owned
        self._runs.bind_owned(source)
        for half in (source, target):
            half.tensor().storage.is_state = True

    def _take_from_calls(self, *halves: Slot) -> None:
        self._calls.follow(*halves)
        self._calls.leave_out(*halves)

    def take(self, specs: Sequence[TensorSpec], memory: Sequence[tuple[Tensor, Tensor]] | None = None) -> None:
        """Resize to ``specs``, one for each pair: a state of another shape gets new memory, zeroed.

        With ``memory``, of these shapes, what is written and read of each pair, all are bound to that.
        """
        for number, (pair, spec) in enumerate(zip(self.pairs, specs, strict=True)):
            if pair[0].shape != spec.shape:
                for half in pair:
                    half.take(replace(spec, name=half.spec.name), spec.nbytes, half.places)
                if memory is None:
                    self._bind_both(*pair)
                    self._calls.follow(*pair)
            if memory is not None:
                self.put(number, memory[number])

    def memory(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """Returns what executions write and read of each pair: one Tensor twice where that is in place."""
        for pair in self.pairs:
            self._bind_both(*pair)
        return tuple((source.tensor(), target.tensor()) for source, target in self.pairs)

    def put(self, number: int, memory: tuple[Tensor, Tensor]) -> None:
        """Bind pair ``number`` to ``memory``, of its shape: what is written, and what is read."""
        pair = self.pairs[number]
        for half, owned in zip(pair, memory, strict=True):
            owned.storage.is_state = True
            self._runs.take_over(half, owned)
        self._calls.follow(*pair)

    def allocate(self, number: int, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Returns new memory of ``shape``, zeroed, for what is written and read of pair ``number``."""
        source, target = self.pairs[number]
        spec = replace(target.spec, shape=tuple(shape))
        read = self._runs.allocate(target, spec)
        return (read if is_in_place(source, target) else self._runs.allocate(source, spec)), read

    def may_take(self, number: int, memory: tuple[Tensor, Tensor]) -> bool:
        """Returns whether pair ``number`` may use ``memory`` of another program of the model: the host's, in place."""
        pair = self.pairs[number]
        return (
            all(half.binding is None for half in pair)
            and is_in_place(*pair) == (memory[0] is memory[1])
            and self._runs.frame.staging is None
        )

    def adopt(self, other: RecurrentStates, number: int) -> bool:
        """Move pair ``number`` to its memory in ``other``, of another program of the model; returns whether it could.

        It can where both use memory of the host in place.
        """
        mine, theirs = self.pairs[number], other.pairs[number]
        memory = [half.owned for half in theirs]
        for half, of, owned in zip(mine, theirs, memory, strict=True):
            if owned is None or half.binding is not None or of.binding is not None or half.shape != of.shape:
                return False
        if is_in_place(*mine) != is_in_place(*theirs) or self._runs.frame.staging is not None:
            return False
        for half, owned in zip(mine, memory, strict=True):
            if owned is not None:
                self._runs.take_over(half, owned)
        self._calls.follow(*mine)
        return True

    def resize_runs(self, resize: Callable[[], object]) -> None:
        """Call ``resize``, which unbinds the slots of runs, and bind states again to what they had."""
        owned = [(half, half.owned) for pair in self.pairs for half in pair]
        resize()
        for half, memory in owned:
            half.owned = memory
            self._runs.bind_owned(half)

    def resize_calls(self, resize: Callable[[], object]) -> None:
        """Call ``resize``, which unbinds the slots of calls, and bind states to what they have in runs."""
        resize()
        for pair in self.pairs:
            self._calls.follow(*pair)

    def check_call(self) -> None:
        """Raises InputError when a call's input lies in the memory that a state is about to write."""
        for source, _ in self.pairs:
            self._calls.check_state(source)

    def swap(self) -> None:
        """Swap the buffers after an execution: what it wrote is what the next reads."""
        swapped = [
            (source, target, target.owned, source.owned)
            for source, target in self.pairs
            if not is_in_place(source, target)
        ]
        try:
            self._bind_all(swapped)
        except BaseException:  # an interrupt: all have swapped, or none
            self._bind_all(swapped)
            raise

    def _bind_all(self, swapped: Sequence[tuple[Slot, Slot, Tensor | None, Tensor | None]]) -> None:
        for source, target, written, read in swapped:
            source.owned, target.owned = written, read
            self._runs.bind_owned(source)
            self._runs.bind_owned(target)
            self._calls.follow(source, target)


def is_in_place(source: Slot, target: Slot) -> bool:
    """Returns whether output ``source`` and input ``target`` are one memory as a state."""
    return source.alias is target
