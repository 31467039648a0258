"""RunArguments: binds the arguments of runs, to memory of the caller or of the program, until others are bound."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from landbridge.dtypes import stored_dtype
from landbridge.errors import InputError
from landbridge.executable.parts import TensorSpec
from landbridge.memory import ledger
from landbridge.memory.accesses import open_views
from landbridge.memory.borrowed import host_device
from landbridge.memory.storage import Storage
from landbridge.tensor import Tensor, empty
from landbridge.tensor.copy import copy_tensor
from landbridge.tensor.tensor import exported_array
from landbridge.vm.argument import as_array, as_memory, as_tensor, is_of_elements, needs_barriers
from landbridge.vm.frame import Frame
from landbridge.vm.lease import Lease, Tenancy
from landbridge.vm.program_memory import ProgramMemory
from landbridge.vm.registered_buffers import RegisteredBuffers
from landbridge.vm.repeated_copy import RepeatedCopy, repeated_copy
from landbridge.vm.sliding_windows import whole_memory
from landbridge.vm.slot import Slot
from landbridge.vm.staging import Staging


class RunArguments:
    """Binds the arguments of runs on ``frame``; inputs by value, and unbound arguments, are in ``memory``."""

    def __init__(self, frame: Frame, memory: ProgramMemory, buffers: RegisteredBuffers) -> None:
        self.frame, self.buffers = frame, buffers
        self._memory = memory
        self._device = str(memory.binding(0).device)
        self._tenancies: dict[Slot, Tenancy] = {}
        #: How the last value was copied to the memory of each input, or from that of each output.
        self._copies: dict[Slot, RepeatedCopy] = {}
        #: Memory of outputs of earlier sizes, which later ones may use.
        self._retained: dict[Slot, Storage] = {}

    def bind(self, slot: Slot, address: int, owner: object) -> None:
        """Bind ``slot`` for runs to the memory at ``address``, which ``owner`` keeps alive. Waits as ``Slot.lend``
        does.
        """
        slot.bind(address, owner, None if owner is slot.owned else slot.lend(owner))

    def bind_shared(self, slot: Slot, address: int, owner: object, lease: Lease | None) -> None:
        """Bind parameter ``slot`` to memory of the caller, and release the program's own memory for it."""
        slot.bind(address, owner, lease)
        slot.owned = None
        self._tenancies.pop(slot, None)

    def bind_owned(self, slot: Slot) -> Tensor:
        """Bind ``slot`` to memory of the program's own, zeroed when new."""
        owned = slot.owned
        if owned is None:
            owned = self._owned_tensor(slot)
            _fill_zeros(owned)
        slot.bind_owned(owned)
        return owned

    def allocate(self, slot: Slot, spec: TensorSpec) -> Tensor:
        """Returns new memory of ``spec``, zeroed, of the kind that ``slot`` has; nothing is bound to it."""
        tensor = self._memory.io.allocate(spec)
        _fill_zeros(tensor)
        return tensor

    def allocate_window(self, slot: Slot, spec: TensorSpec, step: int) -> Tensor:
        """Returns new memory of ``spec``, zeroed, through which it slides where the program uses it in place: by
        ``step`` bytes a run.
        """
        if self.frame.staging is not None:
            return self.allocate(slot, spec)
        tensor = self._memory.io.allocate_window(spec, step)
        if not tensor.storage.repeats:
            _fill_zeros(whole_memory(tensor))
        return tensor

    def take_over(self, slot: Slot, owned: Tensor) -> None:
        """Bind ``slot`` to ``owned``, memory of another program of the same Session, as the program's own."""
        self._tenancies[slot] = slot.tenancy(whole_memory(owned), owned=True)
        slot.bind_owned(owned)

    def let_tenancy_go(self, slot: Slot) -> None:
        """Use what is owned for ``slot`` no more, because another program of the same Session takes it over."""
        self._tenancies.pop(slot, None)

    def borrow(self, slot: Slot, value: Any) -> tuple[int, object]:
        """Returns what ``argument.borrow`` does, staged through the program's own memory where that is allowed."""
        staging = self.frame.staging
        if staging is not None:
            if Staging.needs(value):
                as_tensor(slot, value)
                memory = self.bind_owned(slot)
                staging.bind(slot, value, memory, slot.lend(value))
                return memory.data_address, memory
            staging.unbind(slot)
        return self.buffers.borrow(slot, value)

    def check_no_overlap(self, slot: Slot, address: int, others: tuple[Slot, ...]) -> None:
        """Raises InputError when ``slot`` at ``address`` would share bytes with what is bound to one of ``others``."""
        for other in others:
            if other is not slot and other.owner is not None:
                slot.check_no_overlap(address, other, other.address)

    def copy_in(self, slot: Slot, value: Any, cause: str) -> None:
        """Copy ``value``, which ``as_array`` or ``as_tensor`` accepts, to memory of the program's own and bind that."""
        before, slot.use.writes = slot.use.writes, True
        try:
            repeated = self._copies.get(slot)
            is_bound = slot.owner is slot.owned and not self.frame.entry.shares
            if repeated is not None and is_bound and repeated.take(value, slot.owned, cause):
                return
            order = slot.owned.storage.order if slot.owned is not None and self.frame.entry.shares else None
            if order is None:
                self._copy_in(slot, value, cause)
            else:
                self.frame.entry.in_order([order], partial(self._copy_in, slot, value, cause))
        finally:
            slot.use.writes = before

    def _copy_in(self, slot: Slot, value: Any, cause: str) -> None:
        # a parameter's own memory is the host's, whoever reads it
        on_device = slot.binding is not None and slot.role != "parameter"
        by_device = on_device or Staging.needs(value) or needs_barriers(value)
        source = as_tensor(slot, value) if by_device else as_array(slot, value)
        owned = self._owned_tensor(slot) if slot.owned is None else slot.owned
        self.check_no_overlap(slot, slot.location(owned), self.frame.outputs)  # it may have been borrowed meanwhile
        if isinstance(source, Tensor):
            copy_tensor(owned, source, cause=cause)
        else:
            slot.wait(owned)
            if open_views:
                owned.storage.check_access(*owned.byte_range, writes=True, subject=cause)
            ledger.copy_array(
                exported_array(owned, waits=False),
                source,
                cause=cause,
                tensor=slot.spec.name,
                source=self._device,
                destination=self._device,
                casting="no" if source.dtype.isnative else "unsafe",  # the dtype is right, only the byte order differs
            )
        if self.frame.staging is not None:
            self.frame.staging.unbind(slot)
        slot.bind_owned(owned)  # only now, as it has values
        if on_device and isinstance(source, Tensor):
            self._note_copy(slot, owned, source, writes=True)

    def _note_copy(self, slot: Slot, tensor: Tensor, array: Tensor, *, writes: bool) -> None:
        """Let the next copy between ``tensor`` of a device, for ``slot``, and an array be like the last."""
        repeated = None if self.frame.staging is not None else repeated_copy(tensor, array, slot.dtype, writes=writes)
        if repeated is None:
            self._copies.pop(slot, None)
        else:
            self._copies[slot] = repeated

    def copy_out(self, slot: Slot, result: Tensor, out: Any) -> None:
        """Copy ``result``, a value of ``slot``, to the array, Tensor or DLPack producer ``out``."""
        repeated = self._copies.get(slot)
        if repeated is not None and not self.frame.entry.shares and repeated.take(out, result, "get_output"):
            return
        out = as_memory(slot, out, slot.shape, slot.dtype)
        if not isinstance(out, np.ndarray | Tensor) and not hasattr(out, "__dlpack__"):
            raise InputError(f"{slot}: a {type(out).__name__} cannot be written; pass an array or a Tensor")
        if slot.binding is not None or Staging.needs(out) or needs_barriers(out):
            if isinstance(out, np.ndarray) and not is_of_elements(out):
                self._copy_out_staged(slot, result, out)
                return
            target = as_tensor(slot, out)
            copy_tensor(target, result, cause="get_output")
            target.storage.wait(*target.byte_range, writes=True)
            if slot.binding is not None:
                self._note_copy(slot, result, target, writes=False)
            return
        ledger.copy_array(
            as_array(slot, out),
            np.asarray(result),
            cause="get_output",
            tensor=slot.spec.name,
            source=self._device,
            destination=self._device,
        )

    def _copy_out_staged(self, slot: Slot, result: Tensor, out: np.ndarray[Any, Any]) -> None:
        """Copy ``result`` of a device to ``out``, whose elements no device can write: not at multiples of their size.

        Raises InputError for elements of the other byte order, as for any other dtype.
        """
        staged = np.empty(slot.shape, slot.dtype)
        copy_tensor(Tensor.from_numpy_view(staged), result, cause="get_output:staged")
        ledger.copy_array(
            as_array(slot, out),
            staged,
            cause="get_output",
            tensor=slot.spec.name,
            source=self._device,
            destination=str(host_device()),
        )

    def complete(self) -> None:
        """Allocate every output without memory, all or none; raises InputError that names inputs without memory."""
        missing = [repr(slot.spec.name) for slot in self.frame.inputs if slot.owner is None]
        if missing:
            raise InputError(f"nothing is bound to input {', '.join(missing)}; call set_input or set_input_zero_copy")
        absent = [slot for slot in self.frame.outputs if slot.owner is None]
        new = [slot for slot in absent if slot.owned is None]
        try:
            for slot in new:
                slot.owned = self._retained_tensor(slot)
                if slot.owned is None:
                    slot.owned = self._owned_tensor(slot)
                    _fill_zeros(slot.owned)
        except BaseException:
            for slot in new:
                slot.owned = None
                self._tenancies.pop(slot, None)
            raise
        for slot in absent:
            self.bind_owned(slot)

    def let_outputs_go(self) -> None:
        """Release the program's own memory of outputs that are not states; ``complete`` allocates new memory."""
        for slot in self.frame.outputs:
            owned = slot.owned
            if owned is None or slot.partner is not None:
                continue
            self._tenancies.pop(slot, None)
            self._retained.pop(slot, None)
            slot.owned = None
            if slot.owner is owned:
                slot.owner, slot.lease = None, None

    def release_for_resize(self, slots: Iterable[Slot]) -> None:
        """Prepare ``slots``, inputs and outputs, for being resized, which unbinds them; the memory of outputs is
        retained.

        States keep theirs.
        """
        for slot in slots:
            if (
                slot.partner is None
                and self._tenancies.pop(slot, None) is not None
                and slot.owned is not None
                and not slot.is_input
            ):
                self._retained[slot] = slot.owned.storage

    def check_views(self) -> None:
        """Raises HostAccessError when an open host view conflicts with a run on what is bound."""
        self.frame.entry.let_watchers_go()
        for slot in self.frame.slots:
            slot.check_views(slot.owner)

    def _retained_tensor(self, slot: Slot) -> Tensor | None:
        """Returns the retained memory of an output of another size, where it is large enough."""
        storage = self._retained.pop(slot, None)
        if storage is None or storage.nbytes < slot.nbytes:
            return None
        tensor = Tensor(storage, slot.spec.dtype, slot.shape, slot.strides)
        self._tenancies[slot] = slot.tenancy(tensor, owned=True)
        return tensor

    def _owned_tensor(self, slot: Slot) -> Tensor:
        """Returns memory of the program's own, which nobody may free while the program lives."""
        if slot.role == "parameter":  # code reads it, wherever inputs are
            tensor = empty(slot.shape, dtype=slot.spec.dtype, device=host_device())
        else:
            tensor = self._memory.io.allocate(slot.spec)
        self._tenancies[slot] = slot.tenancy(tensor, owned=True)
        return tensor


def _fill_zeros(tensor: Tensor) -> None:
    if tensor.storage.kind.host_access == "read_write" and not tensor.axis_separators:
        with tensor.host_view("w" if tensor.is_contiguous else "rw") as array:
            array.fill(0)
    elif Staging.needs(tensor) or tensor.axis_separators:
        zeros = np.zeros(tensor.shape, stored_dtype(tensor.dtype))
        copy_tensor(tensor, Tensor.from_numpy_view(zeros), cause="zeros")
    else:
        np.asarray(tensor).fill(0)
