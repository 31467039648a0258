"""The target kind ``llvm``: CPUs that LLVM generates code for. ``Target("llvm")`` means this host."""

from __future__ import annotations

from landbridge.errors import TargetError
from landbridge.targets import llvm_cpu
from landbridge.targets.cpu_options import CPU_OPTIONS, declared_features, switched_on
from landbridge.targets.host_memory import host_memory
from landbridge.targets.kind import Option, Options, OptionValue, TargetKind

#: Cores and cache sizes in bytes, assumed if they are not declared and the target is not this host.
_ASSUMED = {"num-cores": 4, "l1-bytes": 32 << 10, "l2-bytes": 256 << 10}


def _parse(given: dict[str, OptionValue]) -> dict[str, OptionValue]:
    """Complete ``given``: this host's facts for ``native``, LLVM's own for a CPU it knows."""
    options = dict(given)
    options.setdefault("mtriple", llvm_cpu.host().triple)
    triple, cpu = str(options["mtriple"]), str(options.setdefault("mcpu", "native"))
    if cpu == "native":
        facts = _native(triple, declared="mcpu" in given)
        options.setdefault("mattr", facts.features)
        options.setdefault("num-cores", facts.cores)
        options.setdefault("l1-bytes", facts.l1_bytes)
        options.setdefault("l2-bytes", facts.l2_bytes)
        cpu = options["mcpu"] = facts.cpu
    mattr = options.setdefault("mattr", ())
    vectors = llvm_cpu.vectors(triple, cpu, declared_features(mattr))
    options.setdefault("vector-bits", vectors.bits)
    options.setdefault("vector-registers", vectors.registers)
    for name, value in _ASSUMED.items():
        options.setdefault(name, value)
    return options


def _native(triple: str, declared: bool) -> llvm_cpu.Host:
    """Returns this host, which ``triple`` must name; ``declared``: it was requested, not the default without a CPU."""
    host, isa = llvm_cpu.host(), llvm_cpu.architecture(triple)
    if isa == llvm_cpu.architecture(host.triple):
        return host
    llvm_cpu.vectors(triple, "generic", ())  # raises an error that says so, if there is no such triple
    llvm_cpu.check_code_is_generated(triple)
    wrong = f"-mcpu=native means this host, {host.triple}, and not" if declared else "-mcpu is missing beside"
    raise TargetError(
        f"target 'llvm': {wrong} -mtriple={triple}; name the CPU, which may be generic (every CPU of {isa}), or take "
        "the tag of a board: `landbridge targets` lists them"
    )


def _derive(options: Options) -> dict[str, object]:
    return {
        "isa": llvm_cpu.architecture(str(options.get("mtriple", ""))),
        "features": switched_on(options.get("mattr", ())),
    }


LLVM = TargetKind(
    name="llvm",
    doc="CPUs that LLVM generates code for; without options, this host",
    options=(
        Option("mcpu", "str", "LLVM's name of the CPU; native: this host, generic: every CPU of the triple."),
        Option("mattr", "list", "Features to switch on or off, as in -mattr=+avx2,-fma."),
        Option("mtriple", "str", "LLVM triple; this host's when absent."),
        *CPU_OPTIONS,
    ),
    device_types=("cpu",),
    keys=("cpu",),
    default_for=("cpu",),
    on_host=True,
    parser=_parse,
    derive=_derive,
    memory=host_memory,
)
