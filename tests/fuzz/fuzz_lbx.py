"""``.lbx`` files: an Executable that a Session binds or refuses, or an ExecutableError. Nothing mutated is executed.

The first byte of an input says what the rest is: a whole file; or edits of the text of manifest and instructions, or
of their JSON, whose digests are then made right. The code stays as it was compiled.
"""

from __future__ import annotations

import json
import struct
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
from draw import EDGES, Draw

import landbridge as lb
from landbridge.errors import BindError, ExecutableError, OutOfMemoryError
from landbridge.executable.file_reader import read_executable
from landbridge.executable.header import HEADER_BYTES, PAGE, Header, Section, unpack_header

INSTRUMENT = ("landbridge",)

_MODEL = """<ir_version: 8, opset_import: ["" : 17]> g (float[4, 6] x) => (float[4, 3] y)
<float[6, 3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}>
{ m = MatMul(x, w) s = Softmax(m) y = Add(s, m) }"""

_folder = tempfile.TemporaryDirectory()
_path = Path(_folder.name) / "model.lbx"
lb.compile(onnx.parser.parse_model(_MODEL), target="llvm -mcpu=generic").save(_path)
_FILE = _path.read_bytes()
_HEADER = unpack_header(_FILE[:HEADER_BYTES], len(_FILE))
_MANIFEST, _INSTRUCTIONS, _CODE, _CONSTANTS = (_FILE[s.offset : s.end] for s in _HEADER.sections)
# The runtime of the first image bound serves the process: it must be one that was compiled.
_first = lb.Session(read_executable(_path), device="cpu", num_threads=1)

SEEDS = [
    b"\0" + _FILE[: HEADER_BYTES + 64],
    b"\1\0\x20\0\x01\x30",
    *(b"\2" + bytes([n, n + 1, n + 2, n + 3] * 6) for n in (0, 40, 90, 150, 200)),
]
_STRINGS = ["", "main", "float32", "float64", "bool", "x", "w", "call", "if", "view", "host_call", "to_vdevice",
            "alloc_storage", "load_constant", "x86_64", "aarch64", "global", "\ud800", "abort"]  # fmt: skip


def check(data: bytes) -> None:
    match data[:1]:
        case b"\0":
            content = data[1:]
            if data[1:9] != _FILE[:8] and len(data) < 64:
                content = _patched(data[1:])
        case b"\1":
            content = _edited(Draw(data[1:]))
        case _:
            content = _rewritten(Draw(data[1:]))
    _path.write_bytes(content)
    try:
        executable = read_executable(_path, verify=("bind", "all", False)[len(data) % 3], mapped=bool(len(data) & 1))
    except ExecutableError:
        return
    try:
        session = lb.Session(executable, device="cpu", num_threads=1)
    except (ExecutableError, BindError, OutOfMemoryError):
        return
    assert all(spec.name for spec in session.inputs) or repr(session)


def _patched(patch: bytes) -> bytes:
    """The file with 8 bytes of ``patch`` after each two that say where; its digest is not made right."""
    content = bytearray(_FILE)
    for at in range(0, len(patch) - 2, 10):
        where = struct.unpack_from("<H", patch, at)[0] % len(content)
        content[where : where + 8] = patch[at + 2 : at + 10]
    return bytes(content)


def _edited(draw: Draw) -> bytes:
    sections = [bytearray(_MANIFEST), bytearray(_INSTRUCTIONS)]
    for _ in range(1 + draw.below(6)):
        text = draw.choice(sections)
        at = draw.below(65536) % (len(text) + 1)
        match draw.below(4):
            case 0:
                text[at : at + 1] = bytes([draw.byte()])
            case 1:
                text[at:at] = bytes(draw.byte() for _ in range(draw.below(8)))
            case 2:
                del text[at : at + draw.below(16)]
            case _:
                text[at:at] = text[at : at + draw.byte()] * draw.below(8)
    return _assembled(*map(bytes, sections))


def _rewritten(draw: Draw) -> bytes:
    forms = [json.loads(_MANIFEST), json.loads(_INSTRUCTIONS)]
    for _ in range(1 + draw.below(4)):
        _rewrite(draw.choice(forms), draw)
    return _assembled(*(json.dumps(form).encode() for form in forms))


def _rewrite(node: Any, draw: Draw) -> None:
    """Change one value somewhere in ``node``."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = draw.choice(keys)
        if not isinstance(node[key], dict | list) or draw.below(8) == 0:
            break
        node = node[key]
    match draw.below(8):
        case 0:
            del node[key]
        case 1 if isinstance(node, list):
            node.insert(key, node[draw.below(len(node))])
        case 2 if isinstance(node, dict):
            node[draw.choice(_STRINGS)] = node[key]
        case 3:
            node[key] = draw.choice(_STRINGS)
        case 4:
            node[key] = draw.choice([None, True, 1.5, [], {}, [[]], "0", 10**30, [1 << 40, 1 << 40]])
        case 5:
            node[key] = draw.choice(EDGES)
        case 6 if isinstance(node[key], list) and node[key]:
            node[key] = node[key] * (1 + draw.below(4))
        case _:
            value = node[key]
            node[key] = value + draw.below(256) - 16 if type(value) is int else draw.int64()


def _assembled(manifest: bytes, instructions: bytes) -> bytes:
    """A file of these sections around the code and constants there are, its digest right."""
    first = Section(HEADER_BYTES, len(manifest))
    second = Section(first.end, len(instructions))
    code = Section(-(-second.end // PAGE) * PAGE, len(_CODE))
    constants = Section(-(-code.end // PAGE) * PAGE, len(_CONSTANTS))
    body = [manifest, instructions, bytes(code.offset - second.end), _CODE, bytes(constants.offset - code.end)]
    header = Header((first, second, code, constants))
    header = replace(header, sha256=header.digest(body))
    return b"".join([header.pack(), *body, _CONSTANTS])


if __name__ == "__main__":
    from harness import restart_under_atheris

    restart_under_atheris(__file__)
