"""Targets from text, JSON and dicts: every accepted form comes back from each written form, the rest is a TargetError.

LLVM is asked about CPUs in a process of its own, 100 ms a question: a stand-in here knows a few names.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from unittest import mock

from draw import EDGES, Draw

from landbridge.errors import TargetError
from landbridge.targets import Option, Target, TargetKind, llvm_cpu, names, register

INSTRUMENT = ("landbridge",)

_KIND = "fuzzed"
if _KIND not in names():  # a second import must not register a second kind
    register(
        TargetKind(
            _KIND,
            "a kind with an option of every type",
            (
                Option("text", "str", "any text"),
                Option("mode", "str", "one of two", default="a", choices=("a", "b c")),
                Option("count", "int", "a number", default=3, minimum=1),
                Option("on", "bool", "a switch", default=True),
                Option("words", "list", "words"),
            ),
            ("cpu",),
            keys=("cpu",),
        )
    )

_CPUS = {"generic", "x86-64-v3", "cortex-a76"}
_MEMORY = {"scope": "global", "host_access": "read_write", "coherent": True}
_FORMS: list[dict[str, object]] = [
    {"kind": _KIND, "text": "a b", "mode": "b c", "count": 4, "on": False, "words": ["x", "y"]},
    {"kind": _KIND, "memory": [{**_MEMORY, "capacity": 1 << 20, "dlpack_device": [1, 0]}], "shares": [["cpu", "l2"]]},
    {"kind": "llvm", "mcpu": "generic", "host": {"kind": _KIND, "keys": ["k"]}},
]
_TEXTS = [
    "llvm", "llvm -mcpu=generic -num-cores=2", "raspberry-pi-5 -num-cores=3", "fuzzed -on -count=7 '-text=a b'",
    "fuzzed --words=a,b -mode='b c' -on=off", "llvm -mcpu=skylake -mattr=+avx2,-fma", "c -num-cores=2",
]  # fmt: skip
SEEDS = [
    *(b"\0" + text.encode() for text in _TEXTS),
    *(b"\0" + json.dumps(form).encode() for form in _FORMS),
    *(b"\1" + Target(form).to_json().encode() for form in _FORMS),
    *(b"\2" + bytes([n] * 40) for n in (0, 3, 17, 90, 140)),
]
_FIELDS = [
    "kind", "text", "mode", "count", "on", "words", "keys", "memory", "shares", "host", "mcpu", "mattr", "mtriple",
    "num-cores", "num_cores", "vector-bits", "scope", "host_access", "coherent", "cached", "resident", "pinned",
    "alignment", "physically_contiguous", "size_multiple", "coherence_granule", "max_bytes", "capacity", "ndim",
    "allocators", "dlpack_device", "importable",
]  # fmt: skip
_WORDS = [_KIND, "llvm", "c", "global", "read_write", "cpu", "generic", "a", "b c", "", "1", "pooled", "naive", "\0",
          "x86_64-linux-gnu", "+avx", "native", "\ud800", "-", "="]  # fmt: skip


def _probe(triple: str, cpu: str, features: str) -> subprocess.CompletedProcess[str]:
    arguments = [os.fsencode(word) for word in (triple, cpu, features)]
    if any(b"\0" in word for word in arguments):
        raise ValueError("embedded null byte")  # what subprocess says
    unknown = "" if cpu in _CPUS | {"help"} else f"'{cpu}' is not a recognized processor for this target"
    return subprocess.CompletedProcess([], 0, "256 16\n", unknown)


def check(data: bytes) -> None:
    form, rest = data[:1], data[1:]
    spec: object = rest.decode("utf-8", "surrogateescape")
    if form == b"\2":
        draw = Draw(rest)
        spec = {draw.choice(_FIELDS[:16]): _value(draw, 4) for _ in range(draw.below(8))}
        spec |= {"kind": draw.choice([_KIND, "llvm", "c", "x86-64-v3"])} if draw.flag() else {}
    with mock.patch.object(llvm_cpu, "_run_probe", _probe):
        try:
            target = Target.from_json(str(spec)) if form == b"\1" else Target(spec)  # type: ignore[arg-type]
        except TargetError:
            return
        finally:
            llvm_cpu._probed.cache_clear()
        _check_forms(target, is_complete=form != b"\1")


def _check_forms(target: Target, is_complete: bool) -> None:
    described = target.to_dict()
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert json.loads(target.to_json()) == described
    written = [Target.from_json(target.to_json()), pickle.loads(pickle.dumps(target))]
    if is_complete:  # JSON that somebody wrote may leave out what resolving adds
        written += [Target(str(target)), Target(described), Target(target)]
    for again in written:
        assert again == target and hash(again) == hash(target)
        assert (again.options, again.attrs, again.memory) == (target.options, target.attrs, target.memory)
        assert (again.shares, again.keys, again.host) == (target.shares, target.keys, target.host)


def _value(draw: Draw, depth: int) -> object:
    match draw.below(10 if depth else 7):
        case 0:
            return draw.choice(EDGES)
        case 1:
            return draw.flag()
        case 2 | 3:
            return draw.choice(_WORDS)
        case 4:
            return draw.text()
        case 5:
            return draw.choice([None, 1.5, float("nan"), 1e999, 10**5000, b"x"])
        case 6:
            return dict(_MEMORY)
        case 7:
            return [_value(draw, depth - 1) for _ in range(draw.below(4))]
        case 8:
            facts = {draw.choice(_FIELDS[16:]): _value(draw, depth - 1) for _ in range(draw.below(4))}
            return [_MEMORY | facts]
        case _:
            return {draw.choice(_FIELDS): _value(draw, depth - 1) for _ in range(draw.below(5))}


if __name__ == "__main__":
    from harness import restart_under_atheris

    restart_under_atheris(__file__)
