"""Tags: short names of whole target descriptions, such as ``raspberry-pi-5``."""

from __future__ import annotations

from collections.abc import Mapping

from landbridge.errors import TargetError
from landbridge.targets.freestanding import CONTROLLERS

_LINUX = "aarch64-unknown-linux-gnu"
_ARMV7 = "armv7-unknown-linux-gnueabihf"
_RISCV = "riscv64-unknown-linux-gnu"
_PC = "x86_64-unknown-linux-gnu"


def _board(cpu: str, cores: int, l1: int, l2: int, triple: str = _LINUX) -> dict[str, object]:
    """Returns the description of a board, with AArch64 cores by default; caches in KiB, those of one core."""
    form = {"kind": "llvm", "mtriple": triple, "mcpu": cpu, "num-cores": cores}
    return {**form, "l1-bytes": l1 << 10, "l2-bytes": l2 << 10}


#: If a board has two kinds of cores, core and caches are those of the larger kind; code runs on both.
_TAGS: dict[str, dict[str, object]] = {
    "x86-64-v2": {"kind": "llvm", "mtriple": _PC, "mcpu": "x86-64-v2"},
    "x86-64-v3": {"kind": "llvm", "mtriple": _PC, "mcpu": "x86-64-v3"},
    "x86-64-v4": {"kind": "llvm", "mtriple": _PC, "mcpu": "x86-64-v4"},
    "raspberry-pi-3": _board("cortex-a53", 4, 32, 512),
    "raspberry-pi-4": _board("cortex-a72", 4, 32, 1024),
    "raspberry-pi-5": _board("cortex-a76", 4, 64, 512),
    # Its Cortex-A53 in a system of 32 bits, for code that Cortex-A7 runs too.
    "raspberry-pi-zero-2-32": _board("cortex-a7", 4, 32, 512, _ARMV7),
    "pynq-z2": _board("cortex-a9", 2, 32, 512, _ARMV7),
    "de10-nano": _board("cortex-a9", 2, 32, 512, _ARMV7),
    "visionfive-2": _board("sifive-u74", 4, 32, 2048, _RISCV),
    "banana-pi-f3": _board("spacemit-x60", 8, 32, 512, _RISCV),
    **{cpu: {"kind": "freestanding", "mcpu": cpu} for cpu in CONTROLLERS if cpu != "generic"},
    "kv260": _board("cortex-a53", 4, 32, 1024),
    "rock-5b": _board("cortex-a76", 4, 64, 512),
    "jetson-orin": _board("cortex-a78ae", 6, 64, 256),
    "graviton2": _board("neoverse-n1", 4, 64, 1024),
    "graviton3": _board("neoverse-v1", 4, 64, 1024),
    "graviton4": _board("neoverse-v2", 4, 64, 2048),
    # Code for the first model on sale runs on all later ones.
    "graviton": _board("neoverse-n1", 4, 64, 1024),
}


def register_tag(tag: str, form: Mapping[str, object]) -> None:
    """Register ``tag`` as a name of the dict form ``form``; raises TargetError when it stands for another one."""
    if not tag or tag.split() != [tag] or tag.startswith(("-", "{")):
        raise TargetError(f"{tag!r} cannot be a tag; legal: one word that starts with neither '-' nor '{{'")
    if _TAGS.setdefault(tag, dict(form)) != dict(form):
        raise TargetError(f"tag {tag!r} already stands for {_TAGS[tag]}; choose another name")


def known_tags() -> dict[str, dict[str, object]]:
    """Returns a copy of all tags with their dict forms."""
    return {tag: dict(form) for tag, form in _TAGS.items()}


def expand(form: dict[str, object]) -> dict[str, object]:
    """Returns ``form`` with a tag in the place of its kind replaced by the tag's form; given options win."""
    tagged = _TAGS.get(str(form.get("kind")))
    if tagged is None:
        return form
    return {**tagged, **{name.replace("_", "-"): v for name, v in form.items() if name != "kind"}}
