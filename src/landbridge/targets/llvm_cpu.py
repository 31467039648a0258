"""LLVM's facts about CPUs: this host's, and any other by name. llvmlite is imported on first use."""

from __future__ import annotations

import pickle
import platform
import sys
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from landbridge.errors import TargetError
from landbridge.instruction_sets.cpus import Vectors
from landbridge.instruction_sets.registry import canonical_name, instruction_set, is_known, names, usable
from landbridge.process import llvm_process
from landbridge.process.helper_process import has_interpreter
from landbridge.process.usable_cores import usable_cores
from landbridge.records import record
from landbridge.targets.elsewhere import SOURCE, instead_of_triple
from landbridge.targets.host_caches import cache_bytes
from landbridge.targets.known_processor import ProcessorFacts, known_processor
from landbridge.text.did_you_mean import did_you_mean

if TYPE_CHECKING:
    import subprocess

#: Instruction sets without a description that have 16 vector registers; the others have 32.
_FEW_REGISTERS = ("i386", "i686", "arm")
#: Parts of a triple that name no system.
_NO_SYSTEM = ("", "unknown", "none", "pc", "elf", "gnu")

# Prints the widest vector register that LLVM uses for a CPU of x86-64 as "bits registers" on standard output, or that
# the CPU is big-endian. Standard error has LLVM's messages: unknown names, or every name if called with "help".
_PROBE = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets(); llvm.initialize_all_asmprinters()
triple, cpu, features = sys.argv[1:]
machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=2)
if cpu != "help" and str(machine.target_data).startswith("E"):
    print("big-endian")
elif cpu != "help":
    module = llvm.parse_assembly(
        'define void @f(ptr %p) #0 { %a = load <16 x float>, ptr %p, align 64 '
        '%b = fadd <16 x float> %a, %a store <16 x float> %b, ptr %p, align 64 ret void } '
        'attributes #0 = { "prefer-vector-width"="512" "min-legal-vector-width"="512" }')
    module.triple = triple
    text = machine.emit_assembly(module)
    print("512 32" if "%zmm" in text else "256 16" if "%ymm" in text else "128 16" if "%xmm" in text else "")
"""


@record(frozen=True)
class Host:
    """This machine: LLVM's triple and CPU name, features as ``+name`` / ``-name``, cores, caches in bytes."""

    triple: str
    cpu: str
    features: tuple[str, ...]
    cores: int
    l1_bytes: int
    l2_bytes: int


@cache
def host() -> Host:
    """Returns the CPU that this process runs on; cores are those the process may use."""
    if isinstance(answer := llvm_process.answer(), Host):
        return answer
    triple, cpu, features = known_processor(_ask_llvm)
    return Host(
        triple=triple,
        cpu=cpu,
        features=features,
        cores=usable_cores(),
        l1_bytes=cache_bytes(level=1) or 32 << 10,
        l2_bytes=cache_bytes(level=2) or 256 << 10,
    )


def _ask_llvm() -> ProcessorFacts:
    llvm = _llvmlite()
    features = sorted(llvm.get_host_cpu_features().items())
    return ProcessorFacts(
        str(llvm.get_default_triple()),
        str(llvm.get_host_cpu_name()),
        tuple(f"{'+' if on else '-'}{name}" for name, on in features),
    )


def tell_host() -> None:
    """Write the facts of this host to standard output, for ``llvm_process.answer`` in another process; None if
    unknown."""
    try:
        known: Host | None = host()
    except TargetError:
        known = None
    pickle.dump(known, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def architecture(triple: str) -> str:
    """Returns the instruction set of a triple in one spelling: ``x86_64``, ``aarch64``, ``riscv64`` ..."""
    return canonical_name(triple.partition("-")[0])


def system(triple: str) -> list[str]:
    """Returns the system and environment of a triple: ``["linux", "gnu"]``; empty if it names none."""
    return [part for part in triple.split("-")[1:] if part not in _NO_SYSTEM]


def has_glibc(triple: str) -> bool:
    """Returns whether a triple names Linux with glibc, or no system."""
    parts = system(triple)
    linux = next((at for at, part in enumerate(parts) if part.startswith("linux")), None)
    if linux is None:
        return not parts
    return all(part.startswith("gnu") for part in parts[linux + 1 :])


def check_code_is_generated(triple: str) -> None:
    """Raises TargetError for a triple without code generation, before its CPU is looked up."""
    isa = architecture(triple)
    if not is_known(isa):
        raise TargetError(
            f"target 'llvm': no code is made for {isa}, as -mtriple={triple} has it, only for "
            f"{', '.join(names())}: {instead_of_triple(triple.split('-'))}"
        )
    if not has_glibc(triple):
        raise TargetError(f"target 'llvm': {other_system(triple)}")


def _way(parts: list[str]) -> str:
    found = instead_of_triple(parts)
    return "" if found == SOURCE else f". {found[:1].upper()}{found[1:]}"


def other_system(triple: str) -> str:
    """Returns the message for a triple of another system than Linux with glibc."""
    return (
        f"code is made for Linux with glibc alone, and -mtriple={triple} names another system; legal: "
        f"-mtriple={_linux(architecture(triple))} with -mcpu, or the tag of a board: `landbridge targets` lists "
        f"them{_way(system(triple))}"
    )


def vectors(triple: str, cpu: str, features: tuple[str, ...]) -> Vectors:
    """Returns the vector registers of ``cpu`` with ``features``; raises TargetError for names LLVM does not know."""
    here = host()
    isa = architecture(triple)
    known = (cpu, features) == (here.cpu, here.features) or (cpu, features) == ("generic", ())
    if not known or isa != architecture(here.triple):
        return _probed(triple, cpu, features)
    return _from_features(isa, features)


def _from_features(isa: str, features: Iterable[str], cpu: str = "") -> Vectors:
    """Returns the vector registers of ``cpu`` with ``features``, as its description has them: those of the oldest where
    it lacks the CPU. Without a name, of a CPU with those features alone.
    """
    if not is_known(isa):
        return _unknown(isa)
    cpus = instruction_set(isa).cpus
    on = set(cpus.features_of.get(cpu, cpus.features_of[cpus.oldest])) if cpu else set()
    for name in features:
        if name.startswith("+"):
            on.add(name[1:])
        else:
            on.discard(name[1:])
    return cpus.vectors(on)


def _unknown(isa: str) -> Vectors:
    """Returns the vector registers of an instruction set without a description, for targets that print kernels."""
    return Vectors(128, 16 if isa in _FEW_REGISTERS else 32)


@cache
def _probed(triple: str, cpu: str, features: tuple[str, ...]) -> Vectors:
    # A separate process: LLVM reports unknown names only on file descriptor 2, and may abort.
    for name in features:
        if name[:1] not in ("+", "-"):
            raise TargetError(f"target 'llvm': -mattr={name}: a feature starts with + (on) or - (off)")
    done = _run_probe(triple, cpu, ",".join(features))
    for line in done.stderr.splitlines():
        if "is not a recognized" in line:
            _raise_unknown(triple, line.split("'")[1], is_cpu="processor" in line)
    if "compatible with triple" in done.stderr:
        name = triple.partition("-")[0]
        raise TargetError(
            f"target 'llvm': LLVM knows no instruction set {name!r}, as -mtriple={triple} has it"
            f"{did_you_mean(name.lower(), names())}; legal: as in "
            f"{' or '.join(_linux(each.name) for each in usable())}{_way(triple.split('-'))}"
        )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise TargetError(f"target 'llvm': LLVM has no code generator for -mtriple={triple} -mcpu={cpu}: {reason}")
    if done.stdout.startswith("big-endian"):
        raise TargetError(
            f"target 'llvm': CPUs of -mtriple={triple} are big-endian, and kernels are written for little-endian ones "
            f"alone; legal: as in {' or '.join(_linux(each.name) for each in usable())}"
        )
    if found := done.stdout.split():
        return Vectors(int(found[0]), int(found[1]))
    return _from_features(architecture(triple), features, cpu)


def cpu_names(triple: str) -> list[str]:
    """Returns LLVM's names of the CPUs of ``triple``."""
    return _names(triple, is_cpu=True)


def _raise_unknown(triple: str, name: str, is_cpu: bool) -> None:
    check_code_is_generated(triple)
    known = _names(triple, is_cpu)
    subject, option = ("CPU", "-mcpu") if is_cpu else ("feature", "-mattr")
    raise TargetError(
        f"target 'llvm': LLVM knows no {subject} {name!r} for {triple}{_close_names(triple, name, known, is_cpu)}; "
        f"{option} takes one of {len(known)} names, "
        + ("native (this host) or generic (every CPU of the triple)" if is_cpu else "each after + or -")
    )


def _close_names(triple: str, name: str, known: list[str], is_cpu: bool) -> str:
    """Returns the other triple that has ``name``, else the closest names: of another triple if those are closer."""
    plain = name.lstrip("+-")
    triples: dict[str, str] = {}
    for isa in (each.name for each in usable()):
        if isa != architecture(triple):
            for other in _names(_linux(isa), is_cpu):
                if other not in known:
                    triples.setdefault(other, _linux(isa))
    if plain in triples:
        return f", but for {triples[plain]}"
    if did_you_mean(plain, [*known, *triples], most=1) == did_you_mean(plain, triples, most=1):
        return did_you_mean(plain, triples, of=triples)
    return did_you_mean(plain, known)


def _linux(isa: str) -> str:
    """Returns the triple of Linux on an instruction set, as users write it."""
    return f"{isa}-linux-{instruction_set(isa).environment if is_known(isa) else 'gnu'}"


def _names(triple: str, is_cpu: bool) -> list[str]:
    """Returns LLVM's names of the CPUs of a triple, or of their features."""
    cpus, _, rest = _run_probe(triple, "help", "").stderr.partition("Available features")
    lines = (cpus if is_cpu else rest).splitlines()
    return [line.split()[0] for line in lines if line.startswith("  ") and " - " in line]


def _run_probe(triple: str, cpu: str, features: str) -> subprocess.CompletedProcess[str]:
    if not has_interpreter():
        raise TargetError(
            f"target 'llvm': LLVM must be asked about -mtriple={triple} -mcpu={cpu} by a Python of its own, and "
            f"sys.executable is {sys.executable!r}; leave both out, or compile where it is Python"
        )
    from landbridge.process.start_helper import run_helper  # for other CPUs than this machine's

    return run_helper(_PROBE, [triple, cpu, features])


def _llvmlite() -> ModuleType:
    try:
        import llvmlite.binding
    except ImportError as error:
        raise TargetError(
            f"target 'llvm' asks LLVM about {platform.machine()} CPUs, and llvmlite does not import "
            f"({error}); install it with: pip install llvmlite"
        ) from error
    module: ModuleType = llvmlite.binding
    return module
