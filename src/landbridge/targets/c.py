"""The target kind ``c``: CPUs that the system's C compiler generates code for. ``Target("c")`` means this host."""

from __future__ import annotations

from landbridge.errors import TargetError
from landbridge.process.usable_cores import usable_cores
from landbridge.targets import c_compiler
from landbridge.targets.cpu_options import CPU_OPTIONS, declared_features, switched_on
from landbridge.targets.host_memory import host_memory
from landbridge.targets.kind import Option, Options, OptionValue, TargetKind

#: Cache sizes in bytes, assumed if they are not declared.
_ASSUMED = {"l1-bytes": 32 << 10, "l2-bytes": 256 << 10}


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
        if path is not None and c_compiler.isa(_macros(path, ())) == "x86_64":
            here = c_compiler.features(_macros(path, ("-march=native", *c_compiler.machine_flags("generic", mattr))))
            mattr = (*(f"+{name}" for name in here), *(name for name in mattr if name[0] == "-"))
        options["mcpu"] = cpu = "generic"
    options["mattr"] = mattr
    defined = {} if path is None else _macros(path, c_compiler.machine_flags(cpu, mattr))
    x86, wide = c_compiler.isa(defined) == "x86_64", "__AVX512F__" in defined
    options.setdefault("vector-bits", 512 if wide else 256 if "__AVX__" in defined else 128)
    options.setdefault("vector-registers", 16 if x86 and not wide else 32)
    options.setdefault("num-cores", usable_cores())
    for name, value in _ASSUMED.items():
        options.setdefault(name, value)
    return options


def _macros(path: str, flags: tuple[str, ...]) -> dict[str, str]:
    try:
        return dict(c_compiler.macros(path, flags))
    except ValueError as error:
        raise TargetError(
            f"target 'c': {path} refuses {' '.join(flags)}: {error}; -mcpu takes what its -march= does, native (this "
            "host) or generic (every CPU of the instruction set)"
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
