"""``landbridge doctor``: prints what this machine has, what is missing, and what that is for."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from landbridge.cli import arguments as args
from landbridge.cli.output import emit, line, progress, table

#: The exit code where something that is here does not work.
EXIT_BROKEN = 3
OK, MISSING, BROKEN = "ok", "missing", "broken"
#: Packages, what they are for, and what installs them. The first ones make the compiler together.
_COMPILER = ("numpy", "ml-dtypes", "xdsl", "onnx", "onnx-ir", "llvmlite")
_PACKAGES = {
    "onnxruntime": ("landbridge compare and bench", "pip install onnxruntime"),
    "torch": ("models of torch, torch.compile", "pip install 'landbridge[torch]'"),
    "pyopencl": ("devices of OpenCL", "pip install 'landbridge[opencl]'"),
    "numba": ("plans of buffers that are given seconds", "pip install 'landbridge[plan]'"),
    "argcomplete": ("completion in shells", "pip install 'landbridge[completion]'"),
}


@dataclass(frozen=True)
class Symptom:
    """The result of one check: ``state`` is ``ok``, ``missing`` or ``broken``; ``advice`` says what to do."""

    part: str
    subject: str
    state: str
    found: str
    advice: str = ""


def doctor(json: args.Json = False) -> None:
    """Say what this machine has and what is missing, and try what is there: the page to attach to a report."""
    with progress("looking at this machine"):
        findings = [*_python(), *_compiler(), *_packages(), *_processor(), *_cache(), *_code(), *_devices()]
    if json:
        emit({"findings": [asdict(finding) for finding in findings]})
    else:
        for part in dict.fromkeys(finding.part for finding in findings):
            rows = [(f.subject, f.state, f.found, f.advice) for f in findings if f.part == part]
            columns: tuple[str, ...] = ("", "state", "found", "what helps")
            if not any(row[3] for row in rows):
                columns, rows = columns[:3], [row[:3] for row in rows]  # type: ignore[misc]
            table(part, columns, rows)
        counts = {state: sum(f.state == state for f in findings) for state in (MISSING, BROKEN)}
        line(f"{counts[BROKEN]} broken, {counts[MISSING]} missing; what is missing is needed for what it names alone")
    if any(finding.state == BROKEN for finding in findings):
        raise SystemExit(EXIT_BROKEN)


def _python() -> Iterator[Symptom]:
    import landbridge

    yield Symptom("system", "landbridge", OK, landbridge.__version__)
    yield Symptom("system", "python", OK, f"{platform.python_implementation()} {platform.python_version()}")
    name = " ".join((platform.system(), platform.release(), platform.machine(), *platform.libc_ver()))
    from landbridge.instruction_sets.registry import is_known

    works = sys.platform == "linux" and is_known(platform.machine())
    advice = "" if works else "Linux with glibc on x86-64 or AArch64 (docs/supported-systems.md)"
    yield Symptom("system", "system", OK if works else BROKEN, name.strip(), advice)


def _compiler() -> Iterator[Symptom]:
    for package in _COMPILER:
        yield _package("compiler", package, "compiling models", "pip install 'landbridge[compile]'")
    from landbridge.targets import c_compiler

    try:
        path = c_compiler.find("")
    except Exception as error:
        yield Symptom("compiler", "C compiler", BROKEN, _text(error), "install gcc or clang")
        return
    if path is None:
        yield Symptom("compiler", "C compiler", MISSING, "for kind c alone", "apt install gcc libc6-dev")
    else:
        yield Symptom("compiler", "C compiler", OK, str(path))


def _packages() -> Iterator[Symptom]:
    for package, (purpose, how) in _PACKAGES.items():
        yield _package("packages", package, purpose, how)


def _package(part: str, name: str, purpose: str, how: str) -> Symptom:
    from landbridge.package_version import package_version

    version = package_version(name)
    return Symptom(part, name, MISSING, f"for {purpose}", how) if version == "0" else Symptom(part, name, OK, version)


def _processor() -> Iterator[Symptom]:
    from landbridge.device.attr import DeviceAttr
    from landbridge.device.registry import device
    from landbridge.process.usable_cores import usable_cores

    cpu = device("cpu")
    yield Symptom("processor", "CPU", OK, str(cpu.attr(DeviceAttr.PRODUCT_NAME)))
    yield Symptom("processor", "cores", OK, f"{usable_cores()} of {cpu.attr(DeviceAttr.COMPUTE_UNITS)} may be used")
    total, available = (cpu.attr(each) for each in (DeviceAttr.TOTAL_MEMORY, DeviceAttr.AVAILABLE_MEMORY))
    if isinstance(total, int) and isinstance(available, int):
        yield Symptom("processor", "memory", OK, f"{available:,} of {total:,} bytes are available")
    else:
        yield Symptom("processor", "memory", MISSING, "the system does not say", "mount /proc")


def _cache() -> Iterator[Symptom]:
    from landbridge.files.cache_folder import PROGRAM, SWITCH, open_folder

    folder = open_folder()
    if folder is None:
        is_off = os.environ.get(SWITCH) == "0"
        advice = f"{SWITCH}=0 turns it off; unset it" if is_off else f"{SWITCH}=FOLDER names one that takes files"
        yield Symptom("files", "compile cache", MISSING, "each compile is done anew", advice)
        return
    entries = folder.entries()
    nbytes = sum(entry.nbytes for entry in entries)
    programs = sum(entry.path.suffix == PROGRAM for entry in entries)
    found = f"{folder.path}: {programs} programs, {len(entries) - programs} binaries of drivers, {nbytes:,} bytes"
    yield Symptom("files", "compile cache", OK, found)


def _code() -> Iterator[Symptom]:
    """Yields whether the system lets a process run code that it compiled."""
    from landbridge.errors import LandbridgeError
    from landbridge.process.executable_pages import CodePages

    try:
        CodePages(1).fill(b"\0")
    except LandbridgeError as error:
        yield Symptom("files", "code that was compiled", BROKEN, str(error))
        return
    yield Symptom("files", "code that was compiled", OK, "may be run")


def _devices() -> Iterator[Symptom]:
    from landbridge.cli.devices import described_devices

    found, broken, tried = described_devices()
    for each in found:
        reason, product = each["self_test"], each["attrs"].get("product_name", "")
        state, says = (OK, str(product)) if reason is None else (BROKEN, str(reason))
        yield Symptom("devices", each["name"], state, says)
    for name, reason in broken.items():
        yield Symptom("devices", name, BROKEN, reason)
    for each in tried:
        if not each["instances"] and each["name"] not in broken:
            looked = each["looked_for"]
            yield Symptom("devices", each["name"], MISSING, looked[0] if looked else "no instance")


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
