"""A bound program: native records, the arguments of its calls, and the few steps that the host takes itself.

All of it is one array of 64-bit words, so that binding another input is writing its address to the words that
hold it. Programs of compiled code alone are a single NativeStep.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass

from landbridge.vm.builtins import Builtin


@dataclass(frozen=True)
class HostTensor:
    """A tensor a host step works on; its address is in word ``word``."""

    word: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class NativeStep:
    """``count`` records from word ``first``; its branches count from there."""

    first: int
    count: int


@dataclass(frozen=True)
class HostStep:
    """A call of a host builtin."""

    function: Builtin
    args: tuple[HostTensor, ...]
    attributes: Mapping[str, object]


@dataclass(frozen=True)
class CopyStep:
    """A copy of ``src`` to ``dst``, on the vdevices named."""

    src: HostTensor
    dst: HostTensor
    name: str
    source: str
    destination: str


@dataclass(frozen=True)
class BranchStep:
    """``then`` when the byte at the address in word ``condition`` is not 0, else ``orelse``."""

    condition: int
    then: tuple[Step, ...]
    orelse: tuple[Step, ...]


Step = NativeStep | HostStep | CopyStep | BranchStep


@dataclass(frozen=True)
class KernelMove:
    """A kernel of the program that only moves ``nbytes`` bytes."""

    name: str
    nbytes: int


@dataclass(frozen=True)
class Program:
    """What ``bind_function`` makes.

    ``words`` holds the records, then the arguments, with every address but those of inputs, outputs and parameters;
    ``pointers`` are (word, other word): the first is to hold the address of the second. ``places[i]`` are the
    (word, byte offset) that depend on the address of register ``i``: inputs,
    then outputs, then parameters.
    """

    words: tuple[int, ...]
    pointers: tuple[tuple[int, int], ...]
    places: tuple[tuple[tuple[int, int], ...], ...]
    steps: tuple[Step, ...]
    moves: tuple[KernelMove, ...]

    def instantiate(self) -> array[int]:
        """The program's words in memory of their own, ready to have inputs and outputs bound."""
        words = array("Q", self.words)
        base = words.buffer_info()[0]
        for word, target in self.pointers:
            words[word] = base + target * words.itemsize
        return words
