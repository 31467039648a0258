"""RecurrentStates: outputs that are inputs of the next execution, in one memory or in two buffers that swap.

One memory may be a window that slides (``vm/sliding_windows.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from landbridge.errors import BindError, InputError, ZeroCopyError
from landbridge.executable.parts import StateGrowth, TensorSpec
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.vm.call_arguments import CallArguments
from landbridge.vm.run_arguments import RunArguments
from landbridge.vm.sliding_windows import SlidingWindow, bytes_of_elements, copy_window, written_by
from landbridge.vm.slot import Slot


class RecurrentStates:
    """The states of a program, as (output, input) pairs, which runs and calls share.

    ``slides``: how those that are windows slide, by the name of the input.
    """

    def __init__(self, runs: RunArguments, calls: CallArguments, slides: Mapping[str, StateGrowth]) -> None:
        self._runs, self._calls, self._slides = runs, calls, slides
        self.pairs: tuple[tuple[Slot, Slot], ...] = ()
        #: Those of two buffers.
        self._swapping: tuple[tuple[Slot, Slot], ...] = ()
        self._windows: tuple[SlidingWindow, ...] = ()
        #: The dimensions of executions, by name; None where all are numbers, and until they are known.
        self._sizes: Mapping[str, int] | None = None

    def bind(self, source: Slot, target: Slot) -> None:
        """Make output ``source`` of each execution the input ``target`` of the next.

        They are one memory where the program declares them an alias, else two buffers that swap. Raises InputError when
        they differ, one is a state already, or another input is bound to the memory of one.
        """
        _check_halves(source, target)
        runs, frame = self._runs, self._runs.frame
        for half in (source, target):
            if frame.staging is not None:
                frame.staging.unbind(half)
            if half.owned is not None:
                others = tuple(other for other in frame.inputs if other is not target)
                runs.check_no_overlap(half, half.location(half.owned), others)
        slide = self._slide(source, target)
        if slide is not None:
            window = self._window(target, target.spec, slide)
            if target.owner is not None:
                copy_tensor(window, target.tensor(), cause="bind_state")
            runs.take_over(target, window)
        elif target.owner is not None and target.owner is not target.owned:
            runs.copy_in(target, target.tensor(), "bind_state")
        self._bind_both(source, target)
        self._make_partners(source, target)

    def bind_all(self, pairs: Sequence[tuple[Slot, Slot]], memory: Sequence[tuple[Tensor, Tensor]] | None) -> None:
        """Make states of all ``pairs``, as ``bind`` does, in ``memory``, what is written and read of each.

        None: in new memory, zeroed. A pair that is one memory takes what is read, where it was two in the program
        before; BindError for one that slides. Nothing has changed where it raises.
        """
        for pair in pairs:
            _check_halves(*pair)
        if memory is None:
            memory = [self._allocated(source, target, target.spec) for source, target in pairs]
        taken = [self._as_one(*pair, halves) for pair, halves in zip(pairs, memory, strict=True)]
        for pair, halves in zip(pairs, taken, strict=True):
            for half, owned in zip(pair, halves, strict=True):
                if self._runs.frame.staging is not None:
                    self._runs.frame.staging.unbind(half)
                owned.storage.is_state = True
                self._runs.take_over(half, owned)
            self._make_partners(*pair)

    def _as_one(self, source: Slot, target: Slot, halves: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        if not is_in_place(source, target) or halves[0] is halves[1]:
            return halves
        if self._slide(source, target) is not None:
            raise BindError(f"state {target.spec.name!r} slides in one of the two programs alone; runs go on")
        return halves[1], halves[1]

    def check_used_in_place(self) -> None:
        """Raises ZeroCopyError where the program copies its arguments to the host and back."""
        if self._runs.frame.staging is not None:
            raise ZeroCopyError(
                'the program was compiled with on_mismatch="copy" and copies its arguments, and memory= of a state is '
                "used in place; make a State without it, and copy with state.assign(values, length)"
            )

    def _make_partners(self, source: Slot, target: Slot) -> None:
        swapping = self._swapping if is_in_place(source, target) else (*self._swapping, (source, target))
        source.partner, target.partner = target, source
        target.use.writes = True
        self.pairs, self._swapping = (*self.pairs, (source, target)), swapping  # no call, so no interrupt, in between
        try:
            self._continue_calls(source, target)
        except BaseException:  # an interrupt: they are a state already
            self._continue_calls(source, target)
            raise

    def _continue_calls(self, source: Slot, target: Slot) -> None:
        self._note_window(source, target)
        self._take_from_calls(source, target)

    def _note_window(self, source: Slot, target: Slot) -> None:
        """Let the state slide after each execution, if it does and is not known yet."""
        slide = self._slide(source, target)
        if slide is None or any(window.slots[0] is target for window in self._windows):
            return
        of_calls = self._calls.frame.slots
        slots = (target, source, of_calls[target.register], of_calls[source.register])

        def copied(tensor: Tensor, written: int) -> Tensor:
            further = self._window(target, target.spec, slide)
            copy_window(tensor, slide, written, further)
            self._runs.take_over(target, further)
            return further

        self._windows = (*self._windows, SlidingWindow(slots, slide, copied, self._sizes))

    def slide_at(self, sizes: Mapping[str, int]) -> None:
        """Slide windows, from now on, by what an execution with ``sizes`` writes, dimensions by name."""
        self._sizes = dict(sizes)
        for window in self._windows:
            window.take(sizes)

    def _slide(self, source: Slot, target: Slot) -> StateGrowth | None:
        """Returns how the state slides; None for one that does not."""
        return self._slides.get(target.spec.name) if is_in_place(source, target) else None

    def _bind_both(self, source: Slot, target: Slot) -> None:
        slide = self._slide(source, target)
        if target.owned is None and slide is not None:
            self._runs.take_over(target, self._window(target, target.spec, slide))
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
        for half, owned in zip(pair, self._as_one(*pair, memory), strict=True):
            owned.storage.is_state = True
            self._runs.take_over(half, owned)
        self._calls.follow(*pair)

    def allocate(self, number: int, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Returns new memory of ``shape``, zeroed, for what is written and read of pair ``number``."""
        source, target = self.pairs[number]
        return self._allocated(source, target, replace(target.spec, shape=tuple(shape)))

    def _allocated(self, source: Slot, target: Slot, spec: TensorSpec) -> tuple[Tensor, Tensor]:
        slide = self._slide(source, target)
        if slide is not None:
            window = self._window(target, spec, slide)
            return window, window
        read = self._runs.allocate(target, spec)
        return (read if is_in_place(source, target) else self._runs.allocate(source, spec)), read

    def _window(self, target: Slot, spec: TensorSpec, slide: StateGrowth) -> Tensor:
        """Returns new memory of ``spec``, zeroed, through which it slides as ``slide`` says."""
        return self._runs.allocate_window(target, spec, bytes_of_elements(spec, slide.axis, written_by(slide, None)))

    def may_take(self, number: int, memory: tuple[Tensor, Tensor]) -> bool:
        """Returns whether pair ``number`` may use ``memory`` of another program of the model: the host's, in place, or
        that of the device where the pair is.
        """
        pair = self.pairs[number]
        return (
            all(_is_there(half, owned) for half, owned in zip(pair, memory, strict=True))
            and is_in_place(*pair) == (memory[0] is memory[1])
            and self._runs.frame.staging is None
        )

    def adopt(self, other: RecurrentStates, number: int) -> bool:
        """Move pair ``number`` to its memory in ``other``, of another program of the model; returns whether it could.

        It can where both use memory of the host in place, or that of one device.
        """
        mine, theirs = self.pairs[number], other.pairs[number]
        memory = [half.owned for half in theirs]
        for half, of, owned in zip(mine, theirs, memory, strict=True):
            if owned is None or half.binding != of.binding or half.shape != of.shape:
                return False
        if is_in_place(*mine) != is_in_place(*theirs) or self._runs.frame.staging is not None:
            return False
        for half in theirs:  # else both programs would wait for each other at each run from now on
            other._runs.let_tenancy_go(half)
        for half, owned in zip(mine, memory, strict=True):
            if owned is not None:
                self._runs.take_over(half, owned)
        self._calls.follow(*mine)
        return True

    def resize_runs(self, resize: Callable[[], object]) -> None:
        """Call ``resize``, which unbinds slots of runs, and bind states again to what they had."""
        owned = [(half, half.owned) for pair in self.pairs for half in pair]
        resize()
        for half, memory in owned:
            if half.owned is not memory or memory is None:
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
        """Swap the buffers after an execution, and slide the windows: what it wrote is what the next reads."""
        if not self._swapping and not self._windows:
            return
        swapped = [(source, target, target.owned, source.owned) for source, target in self._swapping]
        slid = [(window, window.next(window.slots[0].owned)) for window in self._windows]
        try:
            self._bind_all(swapped, slid)
        except BaseException:  # an interrupt: all have swapped, or none
            self._bind_all(swapped, slid)
            raise

    def _bind_all(
        self,
        swapped: Sequence[tuple[Slot, Slot, Tensor | None, Tensor | None]],
        slid: Sequence[tuple[SlidingWindow, Tensor]],
    ) -> None:
        for source, target, written, read in swapped:
            source.owned, target.owned = written, read
            self._runs.bind_owned(source)
            self._runs.bind_owned(target)
            self._calls.follow(source, target)
        for window, further in slid:
            window.bind(further)


def _check_halves(source: Slot, target: Slot) -> None:
    for half in (source, target):
        if half.partner is not None:
            raise InputError(f"{half} is a recurrent state already, with {half.partner}")
    if (source.shape, source.dtype) != (target.shape, target.dtype):
        raise InputError(
            f"{source} is {source.spec.dtype}{source.shape}, {target} is {target.spec.dtype}{target.shape}; "
            "the two halves of a state must be equal; if the one may be kept in the memory of the other, compile "
            f"with alias={{{source.spec.name!r}: {target.spec.name!r}}}"
        )


def _is_there(half: Slot, owned: Tensor) -> bool:
    """Returns whether ``owned``, memory of another program, is where ``half`` has its own."""
    binding = half.binding
    if binding is None:
        return owned.storage.kind.host_access == "read_write" and owned.storage.kind.coherent
    return owned.device == binding.device and owned.storage.kind.scope == binding.kind.scope


def is_in_place(source: Slot, target: Slot) -> bool:
    """Returns whether output ``source`` and input ``target`` are one memory as a state."""
    return source.alias is target
