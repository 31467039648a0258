"""Windows of streams: a state whose next run begins further on in memory, behind the samples that it needs no more.

``StateGrowth.slides`` describes them: a run writes ``after - before`` elements along an axis behind the first
``before``. With rows of ``after`` elements, what a row gets at its end is where the next one has what it drops. Where
a run decides how many it writes, rows have the most, and the window slides by what was written.

Memory of the host lies at two addresses, and has no end (``memory/repeated_pages.py``). Memory of a device has one. It
has two parts: a window slides through one, then is copied to the begin of the other. A device could import memory of
the host that has no end, but drivers record the commands of a run for each address, and retain few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING

from landbridge.dtypes import dtype
from landbridge.errors import InputError
from landbridge.executable.parts import StateGrowth, TensorSpec
from landbridge.memory.allocation import allocate
from landbridge.memory.allocators.base import round_up
from landbridge.memory.repeated_pages import repeated_pages
from landbridge.memory_kind import MemoryKind
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.tensor.tensor import moved
from landbridge.vm.device_binding import DeviceBinding
from landbridge.vm.slot import Slot

if TYPE_CHECKING:
    from landbridge.sizes.size import Extent

#: Where a window begins in each of the two parts of its memory. Devices record what runs do once for each address, and
#: retain some 16 of them (Vulkan); to record takes longer than to move a window in every eighth run.
_LOCATIONS = 8
#: Of each part of the memory of a state without elements.
_FEWEST_BYTES = 16


def new_window(spec: TensorSpec) -> Tensor:
    """Returns zeroed host memory for a window of ``spec``, through which it slides; raises OutOfMemoryError."""
    return Tensor(repeated_pages(spec.nbytes), spec.dtype, spec.shape)


def new_device_window(spec: TensorSpec, step: int, binding: DeviceBinding) -> Tensor:
    """Returns memory of the device of ``binding`` for a window of ``spec``, which slides on by ``step`` bytes a run.

    It has two parts. The window slides through one to its end, then it is moved to the begin of the other. Where
    kernels of the device take the memory of ``binding`` only at multiples of many bytes, and other memory of the device
    from any element on, it is in that. Nothing slides where two parts are more than one allocation may have. Raises
    OutOfMemoryError.
    """
    is_free = binding.allocator is None and not binding.is_other_device
    kind = _sliding_kind(binding, dtype(spec.dtype).itemsize) if is_free else binding.kind
    both = bytes_of_parts(kind, spec.nbytes, step)
    storage = allocate(binding.device, both or spec.nbytes, scope=kind.scope, allocator=binding.allocator)
    storage.is_window = both > 0
    return Tensor(storage, spec.dtype, spec.shape)


def bytes_of_parts(kind: MemoryKind, nbytes: int, step: int) -> int:
    """Returns the bytes of two parts of memory of ``kind``, through each of which a window of ``nbytes`` slides by
    ``step`` bytes a run; 0 where they are more than one allocation of it has.
    """
    both = 2 * round_up(max(nbytes + (_LOCATIONS - 1) * step, _FEWEST_BYTES), kind.offset_alignment)
    return both if kind.max_bytes is None or both <= kind.max_bytes else 0


def _sliding_kind(binding: DeviceBinding, itemsize: int) -> MemoryKind:
    """Returns the kind of memory for windows of elements of ``itemsize`` bytes: one that kernels take from any element
    on, where the device has one that is otherwise like that of ``binding``.
    """
    kind = binding.kind
    if itemsize % kind.offset_alignment == 0:
        return kind
    for other in binding.device.memory_kinds.values():
        is_like_it = other.ndim == 1 and (other.host_access, other.capacity) == (kind.host_access, kind.capacity)
        if is_like_it and itemsize % other.offset_alignment == 0:
            return other
    return kind


def whole_memory(tensor: Tensor) -> Tensor:
    """Returns all memory through which ``tensor`` slides, or ``tensor`` itself where it does not."""
    storage = tensor.storage
    return Tensor(storage, "uint8", (storage.nbytes,)) if storage.is_window else tensor


def written_by(slide: StateGrowth, sizes: Mapping[str, int] | None) -> int:
    """Returns how many elements along its axis a run with ``sizes``, dimensions by name, writes of a state that
    slides; None: the most.

    Raises InputError where there is no most.
    """
    written: Extent = slide.after - slide.before
    if isinstance(written, int):
        return written
    if sizes is not None:
        return written.at(sizes)
    if written.high is None:
        raise InputError(f"state {slide.name!r} slides by {written} elements, any number; compile the model again")
    return written.high


def bytes_of_elements(window: TensorSpec | Tensor, axis: int, elements: int) -> int:
    """Returns from one element along ``axis`` of the dense ``window`` to the one ``elements`` further on, in bytes."""
    return elements * prod(window.shape[axis + 1 :]) * dtype(window.dtype).itemsize


def filled_part(tensor: Tensor, axis: int, elements: int) -> Tensor:
    """Returns the first ``elements`` of ``tensor`` along ``axis``; nothing is copied."""
    return _part(tensor, axis, 0, elements)


def copy_window(window: Tensor, slide: StateGrowth, written: int, further: Tensor) -> None:
    """Copy to ``further``, which is no memory that a window slides through, what the run after one on ``window`` reads.

    That run wrote ``written`` elements. The cause is ``slide``.
    """
    source = _part(window, slide.axis, written, slide.before)
    copy_tensor(filled_part(further, slide.axis, slide.before), source, cause="slide")


class SlidingWindow:
    """A state that slides after each execution, bound to ``slots``: those of runs, input and output, then of calls.

    ``copied`` returns what the next execution reads, after one that wrote so many elements, in other memory: where it
    was in memory that nothing slides through.
    """

    __slots__ = ("_base", "_copied", "_last", "_locations", "_slide", "_slides", "_step", "_written", "slots")

    def __init__(
        self,
        slots: tuple[Slot, ...],
        slide: StateGrowth,
        copied: Callable[[Tensor, int], Tensor],
        sizes: Mapping[str, int] | None,
    ) -> None:
        self.slots, self._slide, self._copied = slots, slide, copied
        #: What it was bound to last, the address of its memory, and the bytes from one execution to the next.
        self._last: Tensor | None = None
        self._base = self._step = 0
        #: The addresses of all of that memory.
        self._slides = (0, 0)
        #: At how many locations of a part of its memory, which has an end, it has been.
        self._locations = 1
        self._written = 0
        self.take(sizes)

    def take(self, sizes: Mapping[str, int] | None) -> None:
        """Slide by what an execution with ``sizes`` writes, dimensions by name, from now on; None: the most."""
        self._written = written_by(self._slide, sizes)
        if self._last is not None:
            self._step = bytes_of_elements(self._last, self._slide.axis, self._written)

    def next(self, now: Tensor | None) -> Tensor:
        """Returns what the execution after one on ``now`` reads, which has memory."""
        assert now is not None
        storage = now.storage
        if not storage.is_window:
            further = self._copied(now, self._written)
            self._begin(further)
            return further
        if now is not self._last:
            self._begin(now)
        offset, repeats = now.byte_offset + self._step, storage.repeats
        if repeats:
            return moved(now, offset if offset < repeats else offset - repeats)
        return self._next_location(now, offset)

    def _begin(self, window: Tensor) -> None:
        """Note where the memory of ``window`` is."""
        self._base = self.slots[0].location(window) - window.byte_offset
        self._slides = self._base, self._base + window.storage.nbytes
        self._step = bytes_of_elements(window, self._slide.axis, self._written)
        self._locations = 1

    def _next_location(self, now: Tensor, offset: int) -> Tensor:
        """Returns the window after ``now``, in memory that has an end, with what is at byte ``offset``."""
        storage = now.storage
        part = storage.nbytes // 2
        begin = now.byte_offset // part * part
        is_within = offset + now.nbytes <= begin + part and offset % storage.kind.offset_alignment == 0
        if is_within and self._locations < _LOCATIONS:
            return moved(now, offset)
        return _in_other_part(now, offset, part - begin)

    def bind(self, further: Tensor) -> None:
        """Bind ``further``, which ``next`` returned, for runs and calls."""
        input, output, *_ = self.slots
        storage = further.storage
        if not storage.is_window:
            address, slides = input.location(further), None
        else:
            address, slides = self._base + further.byte_offset, self._slides
            is_at_begin = further.byte_offset % (storage.nbytes // 2) == 0
            self._locations = 1 if is_at_begin else self._locations + 1
        for slot in self.slots:
            slot.bind(address, further, None, slides)
        input.owned = output.owned = self._last = further


def _in_other_part(window: Tensor, offset: int, begin: int) -> Tensor:
    """Returns ``window`` at byte ``begin`` of its memory, with what the next execution reads, which was at ``offset``.

    It is copied, rows and what is between them together: one command of the device. The cause is ``slide``.
    """
    nbytes = window.byte_offset + window.nbytes - offset
    target = Tensor(window.storage, "uint8", (nbytes,), None, begin)
    copy_tensor(target, moved(target, offset), cause="slide")
    return moved(window, begin)


def _part(tensor: Tensor, axis: int, first: int, elements: int) -> Tensor:
    shape = (*tensor.shape[:axis], elements, *tensor.shape[axis + 1 :])
    offset = tensor.byte_offset + first * tensor.strides[axis] * tensor.itemsize
    return Tensor(tensor.storage, tensor.dtype, shape, tensor.strides, offset, readonly=tensor.readonly)
