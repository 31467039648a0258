"""Finds instruction sets by name: those of this package, and those that other packages bring.

A package adds one through the entry point group ``landbridge.instruction_sets``, whose entry names an InstructionSet.
"""

from __future__ import annotations

from collections.abc import Iterator

from landbridge.errors import LandbridgeError, TargetError
from landbridge.instruction_sets.description import InstructionSet
from landbridge.plugins import Plugins

_BUILT_IN = {
    "x86_64": "landbridge.instruction_sets.x86_64.description:X86_64",
    "aarch64": "landbridge.instruction_sets.aarch64.description:AARCH64",
    "armv7": "landbridge.instruction_sets.armv7.description:ARMV7",
    "riscv64": "landbridge.instruction_sets.riscv64.description:RISCV64",
}
#: Slots and images begin at multiples of this, so that the low bits of offsets are those of addresses.
_SMALLEST_PAGE = 4096


def _checked(name: str, found: object, origin: str) -> InstructionSet:
    """Returns ``found``, the instruction set ``name`` of ``origin``; raises TargetError for what cannot be used."""
    if not isinstance(found, InstructionSet):
        raise TargetError(f"instruction set {name!r} of {origin} is {type(found).__name__}, and no InstructionSet")
    try:
        wrong = list(_faults(name, found))
    except (AttributeError, TypeError) as error:  # it then ends no search among others
        raise TargetError(
            f"instruction set {name!r} of {origin}: {error}; its facts have other types than InstructionSet says"
        ) from error
    if wrong:
        raise TargetError(f"instruction set {name!r} of {origin}: {'; '.join(wrong)}")
    return found


def _faults(name: str, found: InstructionSet) -> Iterator[str]:
    elf = found.elf
    if found.name != name:
        yield f"its entry point is called {name!r} and it {found.name!r}; call both what triples begin with"
    if elf.page < _SMALLEST_PAGE or elf.page & (elf.page - 1):
        yield f"elf.page is {elf.page}; legal: a power of 2 from {_SMALLEST_PAGE} on"
    known = elf.relocations
    used = [kind for _, kind, _ in elf.stub_references]
    if found.code is not None:
        used += [elf.absolute, *(kind for _, kind, _ in found.code.data_relocations)]
    for kind in used:
        if kind not in known:
            yield f"relocation type {kind} is used, and elf.relocations has none of that number"
    for kind, relocation in known.items():
        if relocation.direct and relocation.direct not in known:
            yield f"relocation type {kind} reaches its slot by type {relocation.direct}, which elf.relocations lacks"
    if found.cpus.oldest not in found.cpus.features_of:
        yield f"cpus.oldest is {found.cpus.oldest!r}, and cpus.features_of has no CPU of that name"


#: The instruction sets by name.
INSTRUCTION_SETS: Plugins[InstructionSet] = Plugins(
    "landbridge.instruction_sets", "instruction set", _BUILT_IN, _checked, TargetError
)


def names() -> tuple[str, ...]:
    """Returns the names of all instruction sets that code is made for, this package's own first; imports none."""
    return (*_BUILT_IN, *(name for name in INSTRUCTION_SETS.names() if name not in _BUILT_IN))


def is_known(name: str) -> bool:
    """Returns whether code is made for the instruction set ``name``."""
    return name in _BUILT_IN or name in INSTRUCTION_SETS.names()


def instruction_set(name: str) -> InstructionSet:
    """Returns the instruction set ``name``; raises TargetError for one that no package describes, or describes
    wrongly.
    """
    return INSTRUCTION_SETS.get(name)


def canonical_name(name: str) -> str:
    """Returns the name of the instruction set that ``name`` is an alias of, such as ``amd64``; else ``name`` itself."""
    if name in _BUILT_IN:
        return name
    return next((each.name for each in usable() if name in each.aliases), name)


def running_name(machine: str, address_bits: int) -> str:
    """Returns the instruction set of a process with addresses of ``address_bits`` under a kernel that calls its machine
    ``machine``, as ``uname -m`` does: a system of 32 bits may run under a kernel of 64.
    """
    name = canonical_name(machine)
    if not is_known(name) or instruction_set(name).elf.bits == address_bits:
        return name
    narrow = (each.name for each in usable() if each.elf.bits == address_bits and machine in each.wide_kernels)
    return next(narrow, f"{name} with addresses of {address_bits} bits")


def usable() -> Iterator[InstructionSet]:
    """Yields all instruction sets, without those of other packages that do not load."""
    for name in names():
        try:
            yield instruction_set(name)
        except LandbridgeError:
            if name in _BUILT_IN:
                raise
