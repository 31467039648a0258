"""Finds the system's C compiler and queries it for facts about a CPU."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from landbridge.instruction_sets.description import InstructionSet
from landbridge.instruction_sets.registry import usable
from landbridge.process.helper_process import environment, find_program

#: Compiler names in the order of the search.
NAMES = ("cc", "gcc", "clang")

#: The macros of instruction sets that code can be made for and not linked.
_OTHERS = {"__powerpc64__": "powerpc64le", "__loongarch64": "loongarch64"}


def find(name: str = "") -> str | None:
    """Returns the path of compiler ``name``, or of the first one of ``NAMES`` that exists; None if there is none."""
    return next((path for known in ((name,) if name else NAMES) if (path := find_program(known))), None)


def machine_flags(path: str, cpu: str, features: Sequence[str]) -> tuple[str, ...]:
    """Returns the options of the compiler at ``path`` for ``cpu`` with ``features`` (``+name`` / ``-name``);
    ``generic`` is every CPU of its kind. Raises ValueError as ``macros``.
    """
    found = described(macros(path, ()))
    if cpu == "generic":
        march = () if found is None else found.c_language.generic
    else:
        march = (f"-march={cpu}" if found is None else found.c_language.cpu_option(cpu),)
    return (*march, *(f"-m{'' if f.startswith('+') else 'no-'}{f.lstrip('+-')}" for f in features))


@cache
def macros(path: str, flags: tuple[str, ...]) -> Mapping[str, str]:
    """Returns the macros that the compiler predefines under ``flags``; raises ValueError with its message if it refuses
    them."""
    command = [path, *flags, "-dM", "-E", "-x", "c", "/dev/null"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    except OSError as error:
        raise ValueError(f"{path} does not run: {error}") from error
    if done.returncode != 0:
        raise ValueError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[0])
    words = (line.split(maxsplit=2) for line in done.stdout.splitlines())
    return {word[1]: word[2] if len(word) > 2 else "" for word in words if len(word) > 1}


def described(defined: Mapping[str, str]) -> InstructionSet | None:
    """Returns the instruction set of the compiled code; None for one that has no description, and for code that cannot
    be linked with that of Landbridge.
    """
    return next((each for each in _defining(defined) if not each.c_language.refusal(defined)), None)


def refusal(defined: Mapping[str, str]) -> str:
    """Returns why the compiled code cannot be linked though its instruction set has a description, as the end of a
    sentence about the compiler; empty where that is not so.
    """
    if described(defined) is not None:
        return ""
    return next((each.c_language.refusal(defined) for each in _defining(defined)), "")


def _defining(defined: Mapping[str, str]) -> Iterator[InstructionSet]:
    return (each for each in usable() if each.c_language.macro in defined)


def isa(defined: Mapping[str, str]) -> str:
    """Returns the instruction set of the compiled code: ``x86_64``, ``aarch64``, ``powerpc64le``, or ``unknown``."""
    found = described(defined)
    if found is not None:
        return found.name
    return next((name for macro, name in _OTHERS.items() if macro in defined), "unknown")


def features(defined: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the features that code may use, as LLVM spells them, sorted."""
    found = described(defined)
    return () if found is None else tuple(sorted(found.c_language.features(defined)))
