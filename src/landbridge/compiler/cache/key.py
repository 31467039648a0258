"""The name of a cache entry: a digest of everything that the result of a compile depends on.

That is the model's bytes, targets, options, this package's own code and the packages that it compiles with.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from pathlib import Path

import numpy as np

from landbridge.compiler.options import CompileOptions
from landbridge.dtypes import dtype_name
from landbridge.errors import LandbridgeError
from landbridge.executable.digest import sha256
from landbridge.executable.parts import VDevice
from landbridge.instruction_sets.registry import INSTRUCTION_SETS, is_known, names
from landbridge.operators import REGISTRY
from landbridge.package_version import package_versions
from landbridge.targets import Target, is_built_in

#: Packages whose code decides what a compile makes.
_PACKAGES = ("landbridge", "xdsl", "onnx", "llvmlite", "numpy", "ml_dtypes")


#: Of the files of this package that do: modules, and the text that images are made of.
_SUFFIXES = (".py", ".ll", ".h")
#: Folders of this package that do not: the run side, which nothing that compiles imports, and the commands. They are a
#: third of the files.
RUN_SIDE = frozenset(
    ("cli", "device", "devices", "dlpack", "memory", "sanitizer", "session", "tensor", "testing", "vm")
)


class NotCacheableError(LandbridgeError):
    """Raised when the result depends on a value without a digest, such as a function; it is compiled each time."""


def name_of_entry(
    model: object, targets: Sequence[Target], vdevices: Sequence[VDevice], options: CompileOptions
) -> str:
    """Returns the name of the entry of ``model``: a Path of a file, text, bytes or an ONNX model in memory.

    Raises NotCacheableError for any other model, for options that are functions, and for targets, instruction sets and
    operators of other packages, whose code may change without notice; OSError where the file cannot be read.
    """
    pieces = [code_text().encode()]
    feed = pieces.append
    for target in targets:
        if not is_built_in(target.kind):
            raise NotCacheableError(f"target {target.kind!r} is of another package")
        # Which instruction set a C compiler makes code for is not known here.
        isas = names() if target.kind == "c" else (str(target.attrs["isa"]),) if "isa" in target.attrs else ()
        for isa in isas:
            if is_known(isa) and not INSTRUCTION_SETS.is_built_in(isa):
                raise NotCacheableError(f"instruction set {isa!r} is of another package")
    _feed(feed, [target.to_json() for target in targets])
    _feed(feed, list(vdevices))
    _feed(feed, options)
    others = {each.op_type for each in REGISTRY.of_others()}
    content: bytes | None = None
    if isinstance(model, Path):
        _feed(feed, ["file", model.suffix, digest_of_file(model)])
        content = model.read_bytes() if others else None
    elif isinstance(model, str | bytes):
        _feed(feed, model)
        content = model.encode() if isinstance(model, str) else model
    else:
        content = _serialized(model)
        _feed(feed, ["message", content])
    for name in others:
        if content is not None and name.encode() in content:  # of a node, or by chance
            raise NotCacheableError(f"operator {name!r} is of another package")
    return sha256(pieces).hex()


def digest_of_file(file: Path) -> str:
    """Returns the SHA-256 of ``file``, in hexadecimal digits; raises OSError."""
    with file.open("rb") as opened:
        return sha256(iter(partial(opened.read, 1 << 20), b"")).hex()


def _serialized(model: object) -> bytes:
    """Returns the bytes of a protobuf message."""
    if type(model).__module__.partition(".")[0] == "onnx_ir":
        from onnx_ir import serde

        model = serde.serialize_model(model)  # type: ignore[arg-type]
    serialize = getattr(model, "SerializeToString", None)
    if serialize is None:
        raise NotCacheableError(f"{type(model).__name__} is neither a file nor a message")
    try:
        return bytes(serialize(deterministic=True))
    except Exception as error:  # over 2 GiB, or another type with such a method
        raise NotCacheableError(str(error)) from error


def _feed(update: Callable[[bytes], object], value: object) -> None:
    """Passes ``update`` bytes that no other value has; mappings keep their order, which matters in ``place``."""
    parts: list[object]
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise NotCacheableError("an array of objects")
        parts = [dtype_name(array.dtype), array.shape, array.tobytes()]
    elif isinstance(value, Mapping):
        parts = [part for item in value.items() for part in item]
    elif isinstance(value, Set):
        parts = sorted(value, key=repr)
    elif isinstance(value, list | tuple):
        parts = list(value)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [type(value).__qualname__, *(getattr(value, field.name) for field in fields(value))]
    else:
        _feed_plain(update, value)
        return
    update(f"{type(value).__name__}:{len(parts)};".encode())
    for part in parts:
        _feed(update, part)


def _feed_plain(update: Callable[[bytes], object], value: object) -> None:
    if isinstance(value, bytes):
        content = value
    elif value is None or isinstance(value, bool | int | float | str | Path | Enum):
        content = repr(value).encode()
    else:
        raise NotCacheableError(f"{type(value).__name__} has no digest")
    update(f"{type(value).__name__}:{len(content)};".encode())
    update(content)


@cache
def code_text() -> str:
    """Returns a text that identifies the compiler: versions, and its files by time and size, as they change in a
    checkout.
    """
    versions = package_versions(_PACKAGES)
    return json.dumps([sorted(_files(str(Path(__file__).parents[2]))), [(name, versions[name]) for name in _PACKAGES]])


def _files(package: str) -> list[tuple[str, int, int]]:
    """Returns the path in the folder ``package``, the size and the time of each file of it that decides what a compile
    makes.

    A walk by ``scandir`` takes a tenth of the time that one of paths takes.
    """
    found = []
    folders = [""]
    while folders:
        prefix = folders.pop()
        with os.scandir(f"{package}/{prefix}") as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(_SUFFIXES):
                    facts = entry.stat()
                    found.append((prefix + name, facts.st_size, facts.st_mtime_ns))
                elif name != "__pycache__" and (prefix or name not in RUN_SIDE) and entry.is_dir(follow_symlinks=False):
                    folders.append(f"{prefix}{name}/")
    return found
