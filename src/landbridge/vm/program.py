"""Program: native records, the arguments of its calls, and the few steps that the host runs itself.

All of it is one array of 64-bit words, so that binding another input writes its address to the words that hold it.
Programs of compiled code alone are a single NativeStep. All classes are named tuples, which are made in a fifth of a
dataclass's time, as everything that runs programs imports them.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from landbridge.device.protocols import AccessMode
from landbridge.executable.open_number import OpenNumber
from landbridge.tensor import Tensor
from landbridge.vm.kernel_step import KernelStep

if TYPE_CHECKING:
    from landbridge.vm.builtins import Builtin


class HostTensor(NamedTuple):
    """A tensor that the host uses in place; word ``word`` holds its address."""

    word: int
    shape: tuple[int, ...]
    dtype: str


class BoundTensor(NamedTuple):
    """A tensor at byte ``offset`` of what is bound to register ``register``, in memory of a device."""

    register: int
    offset: int
    shape: tuple[int, ...]
    dtype: str


class NativeStep(NamedTuple):
    """``records`` native records from word ``first`` on; its branches count from there."""

    first: int
    records: int


class HostStep(NamedTuple):
    """A call of a host builtin."""

    function: Builtin
    args: tuple[HostTensor, ...]
    attributes: Mapping[str, object]


class OwnedPart(NamedTuple):
    """A tensor at byte ``offset`` of the program's own bytes ``whole``, whose shape or offset depends on sizes."""

    whole: Tensor
    offset: int
    shape: tuple[int, ...]
    dtype: str

    def tensor(self) -> Tensor:
        """Returns the tensor for the present sizes."""
        return Tensor(self.whole.storage, self.dtype, self.shape, None, self.whole.byte_offset + self.offset)


#: One end of a copy between vdevices. A Tensor is memory of the program's own.
CopyEnd = HostTensor | BoundTensor | OwnedPart | Tensor


class CopyStep(NamedTuple):
    """A copy of ``src`` to ``dst``, on the vdevices named; it ends with the step, unless it stays in flight as
    ``number``.
    """

    src: CopyEnd
    dst: CopyEnd
    name: str
    source: str
    destination: str
    number: int | None = None


class WaitStep(NamedTuple):
    """A wait for the steps ``ordinals``; those that are not in flight are skipped."""

    ordinals: tuple[int, ...]


class BranchStep(NamedTuple):
    """A branch: ``then`` runs when the byte at the address in word ``condition`` is not 0, else ``orelse``."""

    condition: int
    then: tuple[Step, ...]
    orelse: tuple[Step, ...]


class LoopStep(NamedTuple):
    """A loop: ``body`` runs ``trips`` times, or as often as the int64 at the address in word ``counter`` says, if
    fewer.

    Before each iteration the byte at the address in word ``condition`` ends the loop where it is 0. After each, the
    words of ``moving`` grow by the bytes given with them; after the loop they have their first values.
    """

    trips: int
    body: tuple[Step, ...]
    moving: tuple[tuple[int, int], ...]
    counter: int | None = None
    condition: int | None = None


class MoveStep(NamedTuple):
    """Tells the ledger that the kernel of the next record only moves ``nbytes`` bytes on ``device``.

    ``operands``: the words with the addresses of its one source and of its destination. It moves nothing where these
    are equal. ``io``: the registers of inputs and outputs that it reads or writes. ``io_unless_same``: these are its
    source and its destination, and it moves nothing where one memory is bound to both.
    """

    name: str
    nbytes: int
    device: str
    operands: tuple[int, int] | None = None
    io: tuple[int, ...] = ()
    io_unless_same: bool = False


class BorrowedBytes(NamedTuple):
    """The bytes ``start <= b < stop`` of a device's memory: of the program's own, or of what is bound to a register.

    ``mode``: the host's access.
    """

    memory: Tensor | int
    start: int
    stop: int
    mode: AccessMode


class AccessStep(NamedTuple):
    """``steps`` between barriers, as those of the host use ``borrowed`` in place; no two of these share a granule.

    Launches among them were moved behind the barriers, which they need not precede: a barrier may wait for all that a
    device was given before.
    """

    borrowed: tuple[BorrowedBytes, ...]
    steps: tuple[Step, ...]


Step = NativeStep | HostStep | CopyStep | BranchStep | LoopStep | MoveStep | KernelStep | WaitStep | AccessStep


class Program(NamedTuple):
    """The result of ``bind_function``: words and steps, ready for any number of Frames.

    ``words`` holds the records, then the arguments, with every address but those of inputs, outputs and parameters;
    ``pointers`` are (word, other word): the first is to hold the address of the second. ``places[i]`` are the (word,
    byte offset) that depend on the address of register ``i``: inputs, then outputs, then parameters. ``listed_steps``
    do what ``steps`` do, cut where a ledger must be told of moves: empty when there are none. ``preparation`` runs once
    before them, and whenever parameters change. ``open_words`` are those of ``words``, by number, that depend on sizes;
    ``prepares_open`` says whether ``preparation`` has such. ``owned`` keeps alive what the addresses in ``words`` refer
    to. ``needs_threads`` says whether several threads are faster for any call. ``call_order`` has, for each record of a
    call, the number of its Call among those of native code; empty where records are in the order of the Calls.
    ``row_tables``: for each register of ``places`` the word where the addresses of its rows begin, None where code of
    the host takes none.
    """

    words: array[int]
    pointers: tuple[tuple[int, int], ...]
    places: tuple[tuple[tuple[int, int], ...], ...]
    steps: tuple[Step, ...]
    open_words: tuple[tuple[int, OpenNumber], ...] = ()
    listed_steps: tuple[Step, ...] = ()
    owned: tuple[object, ...] = ()
    needs_threads: bool = True
    preparation: tuple[Step, ...] = ()
    prepares_open: bool = False
    call_order: tuple[int, ...] = ()
    row_tables: tuple[int | None, ...] = ()

    def instantiate(self) -> array[int]:
        """Returns a copy of the program's words, ready to have inputs and outputs bound."""
        words = self.words[:]
        base = words.buffer_info()[0]
        for word, target in self.pointers:
            words[word] = base + target * words.itemsize
        return words
