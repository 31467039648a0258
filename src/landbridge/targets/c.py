"""The target kind ``c``: CPUs that the system's C compiler generates code for. ``Target("c")`` means this host."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.errors import TargetError
from landbridge.instruction_sets.cpus import Vectors
from landbridge.process.usable_cores import usable_cores
from landbridge.targets import c_compiler
from landbridge.targets.cpu_options import CPU_OPTIONS, declared_features, switched_on
from landbridge.targets.host_memory import host_memory
from landbridge.targets.kind import Option, Options, OptionValue, TargetKind

#: Cache sizes in bytes, assumed if they are not declared.
_ASSUMED = {"l1-bytes": 32 << 10, "l2-bytes": 256 << 10}
#: The vector registers that are assumed where no compiler says which instruction set it makes code for.
_UNKNOWN = Vectors(128, 32)


def _parse(given: dict[str, OptionValue]) -> dict[str, OptionValue]:
    """Complete ``given`` by what the compiler reports of the CPU; without a compiler the CPU is generic."""
    options = dict(given)
    cpu = str(options.setdefault("mcpu", "native"))
    mattr = declared_features(options.get("mattr", ()))
    for name in mattr:
        if name[:1] not in ("+", "-"):
            raise TargetError(f"target 'c': -mattr={name}: a feature starts with + (on) or - (off)")
    path = c_compiler.find(str(options.get("compiler", "")))
    if cpu == "native":
        # Recorded as features, so that the Target means the same CPU on every machine that reads it. Compilers for
        # other instruction sets do not take single features, so there the Target means every CPU.
        found = None if path is None else c_compiler.described(_macros(path, ()))
        if path is not None and found is not None and found.c_language.takes_features:
            here = c_compiler.features(_macros(path, ("-march=native", *_machine_flags(path, "generic", mattr))))
            mattr = (*(f"+{name}" for name in here), *(name for name in mattr if name[0] == "-"))
        options["mcpu"] = cpu = "generic"
    options["mattr"] = mattr
    defined = {} if path is None else _macros(path, _machine_flags(path, cpu, mattr))
    if defined.get("__BYTE_ORDER__", "").endswith(("__ORDER_BIG_ENDIAN__", "4321")):
        raise TargetError(
            f"target 'c': {path} makes code for a big-endian CPU, and kernels are written for little-endian ones "
            "alone; legal: a compiler for a little-endian CPU, in -compiler="
        )
    found = c_compiler.described(defined)
    vectors = _UNKNOWN if found is None else found.c_language.vectors(defined)
    options.setdefault("vector-bits", vectors.bits)
    options.setdefault("vector-registers", vectors.registers)
    options.setdefault("num-cores", usable_cores())
    for name, value in _ASSUMED.items():
        options.setdefault(name, value)
    return options


def _machine_flags(path: str, cpu: str, mattr: Sequence[str]) -> tuple[str, ...]:
    _macros(path, ())  # raises TargetError where the compiler does not run
    return c_compiler.machine_flags(path, cpu, mattr)


def _macros(path: str, flags: tuple[str, ...]) -> dict[str, str]:
    try:
        return dict(c_compiler.macros(path, flags))
    except ValueError as error:
        raise TargetError(
            f"target 'c': {path} refuses {' '.join(flags)}: {error}; -mcpu takes what its -march= or -mcpu= does, "
            "native (this host) or generic (every CPU of the instruction set)"
        ) from error


def _derive(options: Options) -> dict[str, object]:
    return {"features": switched_on(options.get("mattr", ()))}


C = TargetKind(
    name="c",
    doc="CPUs that the system's C compiler generates code for; without options, this host",
    options=(
        Option("mcpu", "str", "What the compiler's -march= takes; native: this host, generic: every CPU."),
        Option("mattr", "list", "Features to switch on or off, as in -mattr=+avx2,-fma."),
        Option("compiler", "str", f"The C compiler; when absent the first of {', '.join(c_compiler.NAMES)} found."),
        Option("cflags", "list", "Options for the compiler, after Landbridge's own."),
        *CPU_OPTIONS,
    ),
    device_types=("cpu",),
    keys=("cpu",),
    on_host=True,
    parser=_parse,
    derive=_derive,
    memory=host_memory,
)
