"""LLVM's facts of this machine's processor, kept on disk: a process that finds them there need not load LLVM.

Loading LLVM takes 0.03 s and 40 MB, and a process that only looks up a compiled program needs nothing else of it.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from landbridge.executable.digest import sha256
from landbridge.files.cache_folder import PROCESSOR, open_folder
from landbridge.package_version import package_version

_CPUINFO = Path("/proc/cpuinfo")
#: Lines of Linux's description that say which processor it is; others differ from core to core and in time.
_IDENTIFYING = frozenset(
    {
        "vendor_id", "cpu family", "model", "model name", "stepping", "flags", "CPU implementer", "CPU architecture",
        "CPU variant", "CPU part", "CPU revision", "Features", "Hardware", "isa", "mmu", "uarch",
    }
)  # fmt: skip
#: Bytes of it that are read: an entry takes at most 2 KiB on x86-64, where all cores are of one kind to LLVM, and the
#: entries of a board's cores fit.
_MOST_BYTES = 1 << 14


class ProcessorFacts(NamedTuple):
    """LLVM's triple of this machine, its name of the CPU, and the CPU's features as ``+name`` or ``-name``."""

    triple: str
    cpu: str
    features: tuple[str, ...]


def known_processor(ask: Callable[[], ProcessorFacts]) -> ProcessorFacts:
    """Returns the facts of this machine that an earlier process kept; else what ``ask`` returns, which is kept.

    Facts are kept for the processor as Linux describes it, the machine's architecture and the version of llvmlite. A
    damaged file is replaced. Nothing is kept without a cache folder, and elsewhere than on Linux.
    """
    folder, name = open_folder(), _name()
    if folder is None or name is None:
        return ask()
    file = folder.path / name
    with suppress(OSError, ValueError):
        found = _read(file)
        folder.note_use(file)
        return found
    answer = ask()
    with suppress(OSError), folder.new_file(name) as written:
        written.write(json.dumps(answer).encode())
    return answer


def _read(file: Path) -> ProcessorFacts:
    """Returns the facts in ``file``; raises OSError, or ValueError for anything but facts."""
    triple, cpu, features = json.loads(file.read_bytes())
    if not (isinstance(features, list) and all(isinstance(text, str) for text in (triple, cpu, *features))):
        raise ValueError(f"{file} has no facts of a processor")
    return ProcessorFacts(triple, cpu, tuple(features))


def _name() -> str | None:
    """Returns the name of the file for this machine; None where Linux does not describe it."""
    try:
        with _CPUINFO.open("rb", buffering=0) as opened:
            content = opened.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return None
    lines = (line.partition(":") for line in content.splitlines())
    described = {f"{key.strip()}:{value.strip()}" for key, _, value in lines if key.strip() in _IDENTIFYING}
    if not described:
        return None
    facts = [platform.machine(), package_version("llvmlite"), *sorted(described)]
    return f"{sha256([json.dumps(facts).encode()]).hex()}{PROCESSOR}"
