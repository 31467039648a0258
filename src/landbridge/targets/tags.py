"""Tags: short names of whole target descriptions, such as ``raspberry-pi-5``."""

from __future__ import annotations

from collections.abc import Mapping

from landbridge.errors import TargetError

_TAGS: dict[str, dict[str, object]] = {
    "x86-64-v2": {"kind": "llvm", "mcpu": "x86-64-v2"},
    "x86-64-v3": {"kind": "llvm", "mcpu": "x86-64-v3"},
    "x86-64-v4": {"kind": "llvm", "mcpu": "x86-64-v4"},
    "raspberry-pi-4": {
        "kind": "llvm",
        "mtriple": "aarch64-unknown-linux-gnu",
        "mcpu": "cortex-a72",
        "num-cores": 4,
        "l1-bytes": 32 << 10,
        "l2-bytes": 1 << 20,
    },
    "raspberry-pi-5": {
        "kind": "llvm",
        "mtriple": "aarch64-unknown-linux-gnu",
        "mcpu": "cortex-a76",
        "num-cores": 4,
        "l1-bytes": 64 << 10,
        "l2-bytes": 512 << 10,
    },
}


def register_tag(tag: str, form: Mapping[str, object]) -> None:
    """Let ``tag`` stand for the dict form ``form``; raises TargetError when it stands for another one."""
    if not tag or tag.split() != [tag] or tag.startswith(("-", "{")):
        raise TargetError(f"{tag!r} cannot be a tag; legal: one word that starts with neither '-' nor '{{'")
    if _TAGS.setdefault(tag, dict(form)) != dict(form):
        raise TargetError(f"tag {tag!r} already stands for {_TAGS[tag]}; choose another name")


def known_tags() -> dict[str, dict[str, object]]:
    """Every tag and the dict form it stands for; a copy."""
    return {tag: dict(form) for tag, form in _TAGS.items()}


def expand(form: dict[str, object]) -> dict[str, object]:
    """``form`` with a tag in the place of its kind replaced by what it stands for; given options win."""
    tagged = _TAGS.get(str(form.get("kind")))
    if tagged is None:
        return form
    return {**tagged, **{name.replace("_", "-"): v for name, v in form.items() if name != "kind"}}
