"""Reads an ``.lbx`` file, whose form ``file_writer`` defines: everything is checked, constants are mapped."""

from __future__ import annotations

import json
import math
import mmap
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

import numpy as np

from landbridge.array_type import Array
from landbridge.dtypes import dtype, stored_dtype
from landbridge.errors import ExecutableError, InputError, MissingFileError, UnreadableFileError
from landbridge.executable.abi import CONSTANT_ALIGNMENT
from landbridge.executable.device_image import DeviceImage, check_device_image
from landbridge.executable.digest import sha256
from landbridge.executable.executable import Executable
from landbridge.executable.file_watch import FileWatch
from landbridge.executable.header import HEADER_BYTES, SIZES_VERSION, Header, Section, unpack_header
from landbridge.executable.json_form import ReadSize, from_json, instruction_list, size_of_text
from landbridge.executable.manifest import SIZES, ConstantEntry, DeviceImageEntry, ImageEntry, Manifest
from landbridge.executable.parts import CodeImage, Function, ModuleImage, check_code_image
from landbridge.process.available_memory import check_available
from landbridge.process.garbage import collector_paused
from landbridge.text.did_you_mean import file_like

#: What ``load`` verifies of the constants: what costs little, all at the first bind, all at once with SHA-256 (True
#: too), or nothing.
Verify = bool | Literal["auto", "bind", "all"]

#: Bytes of constants that are verified without being asked for: about 1.5 ms of reading.
_VERIFIED_BY_DEFAULT = 16 << 20


def read_executable(path: Path, *, verify: Verify = "auto", mapped: bool = True) -> Executable:
    """Returns the Executable in the file ``path``; its constants are read-only views of the file, or of a copy of it.

    ``verify`` and ``mapped`` are those of ``landbridge.load``. Raises ExecutableError when the file is no ``.lbx``, of
    another version, truncated or corrupt; UnreadableFileError, an OSError too, when it cannot be opened.
    """
    if sys.byteorder != "little":
        raise ExecutableError(
            f"{path}: programs are for little-endian CPUs, and this CPU is {sys.byteorder}-endian; run it on x86-64 or "
            "AArch64"
        )
    if verify not in ("auto", "bind", "all", True, False):
        raise InputError(f"verify={verify!r}; legal: 'auto', 'bind', 'all', True (as 'all'), False")
    with _open_file(path) as file, collector_paused():  # thousands of records, none of which is garbage
        return _read(file, path, verify, mapped)


def format_version(path: Path) -> int:
    """Returns the format version of the ``.lbx`` file ``path``; only its header is read and checked.

    Raises ExecutableError and UnreadableFileError as ``read_executable`` does.
    """
    with _open_file(path) as file:
        return _read_header(file).version


@contextmanager
def _open_file(path: Path) -> Iterator[IO[bytes]]:
    """Opens the regular file ``path`` for the block. Errors of the block about its content are raised as
    ExecutableError with the path.
    """
    if os.path.isdir(path):  # noqa: PTH112 - of any name: Path raises for one that is too long
        raise ExecutableError(f"{path} is a folder, and no .lbx; name a file")
    with os.fdopen(_opened(path), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ExecutableError(f"{path}: no regular file, and no .lbx therefore; write it to a file first")
        try:
            yield file
        except ExecutableError as error:
            raise ExecutableError(f"{path}: {error}") from None
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise ExecutableError(f"{path}: corrupt ({error}); save it again") from error


def _opened(path: Path) -> int:
    """Returns a descriptor of the file ``path``, which the caller closes."""
    try:
        # opening a pipe would block until there is a writer
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        found: UnreadableFileError = MissingFileError(
            f"there is no file {str(path)!r}{file_like(path)}; make it: landbridge.compile(...).save(path)"
        )
        found.errno = error.errno
        raise found from None
    except OSError as error:
        found = UnreadableFileError(f"{path} cannot be opened: {error.strerror or error}; allow reading it first")
        found.errno = error.errno
        raise found from error
    except ValueError as error:
        raise ExecutableError(f"{str(path)!r} is not a name of a file: {error}") from None


def _read_header(file: IO[bytes]) -> Header:
    return unpack_header(file.read(HEADER_BYTES), os.fstat(file.fileno()).st_size)


def _read(file: IO[bytes], path: Path, verify: Verify, mapped: bool) -> Executable:
    header = _read_header(file)
    manifest_section, instructions_section, code_section, constants_section = header.sections
    body = memoryview(file.read(constants_section.offset - HEADER_BYTES))
    if len(body) != constants_section.offset - HEADER_BYTES or header.digest([body]) != header.sha256:
        raise ExecutableError("corrupt: its SHA-256 does not match its contents; save it again")
    fields = json.loads(bytes(_cut(body, manifest_section)))
    read_size: ReadSize = size_of_text
    if header.version >= SIZES_VERSION and type(fields) is dict:
        from landbridge.executable.size_table import read_size_table  # only open programs have Sizes

        read_size = read_size_table(fields.pop(SIZES, None)).__getitem__
    manifest = from_json(Manifest, fields, read_size)
    programs = json.loads(bytes(_cut(body, instructions_section)))
    if type(programs) is not list or len(programs) != len(manifest.functions):
        raise ExecutableError("corrupt: functions and instructions differ in number; save it again")
    subject = f"loading {path} ({constants_section.size:,} bytes of weights)"
    check_available(constants_section.size, subject, "end other programs, or raise the limit", mapped=mapped)
    pool = _map_constants(file, constants_section) if mapped else _read_constants(file, constants_section)
    verified = verify == "bind" or (verify == "auto" and pool.nbytes <= _VERIFIED_BY_DEFAULT)
    watch = FileWatch(
        file.fileno(),
        constants_section.end,
        str(path),
        pool,
        manifest.constants_checksum,
        trusted=not verified,
    )
    if verify in ("all", True) and sha256([pool.data]).hex() != manifest.constants_sha256:
        raise ExecutableError("corrupt constants: their SHA-256 does not match; save it again")
    if not mapped:
        watch.check()
    functions = {
        entry.name: Function(
            entry.name,
            entry.inputs,
            entry.outputs,
            instruction_list(program, read_size),
            entry.parameters,
            entry.guards,
            entry.aliases,
        )
        for entry, program in zip(manifest.functions, programs, strict=True)
    }
    code = _cut(body, code_section)
    return Executable(
        functions=functions,
        vdevices=manifest.vdevices,
        modules=_read_modules(manifest, code),
        constants={entry.name: _view_constant(entry, pool) for entry in manifest.constants},
        memory=manifest.memory,
        scratch_bytes=manifest.scratch_bytes,
        metadata=manifest.metadata,
        files=(watch,) if mapped and pool.nbytes else (),
    )


def _cut(body: memoryview, section: Section) -> memoryview:
    return body[section.offset - HEADER_BYTES : section.end - HEADER_BYTES]


def _read_modules(manifest: Manifest, code: memoryview) -> tuple[ModuleImage, ...]:
    """Returns the modules by their numbers in the manifest, those with code images and those with device images."""
    modules: dict[int, ModuleImage] = {}
    entries: list[ImageEntry | DeviceImageEntry] = [*manifest.images, *manifest.device_images]
    for entry in entries:
        if entry.offset + entry.size > len(code):
            raise ExecutableError("corrupt: a code image lies outside the code section; save it again")
        content = bytes(code[entry.offset : entry.offset + entry.size])
        modules[entry.module] = ModuleImage(entry.target, _read_image(entry, content))
    if modules.keys() != set(range(len(entries))):
        raise ExecutableError(f"corrupt: {len(entries)} modules are numbered {sorted(modules)}; save it again")
    return tuple(modules[number] for number in range(len(entries)))


def _read_image(entry: ImageEntry | DeviceImageEntry, content: bytes) -> CodeImage | DeviceImage:
    if isinstance(entry, DeviceImageEntry):
        device_image = DeviceImage(entry.format, content, entry.functions, entry.options, entry.requires)
        check_device_image(device_image)
        return device_image
    facts = entry.symbols, entry.imports, entry.relocations, entry.features, entry.flushes_denormals
    image = CodeImage(entry.isa, content, *facts, entry.slots_start, entry.slot_references)
    check_code_image(image)
    return image


def _map_constants(file: IO[bytes], section: Section) -> Array:
    """Returns the constants section as read-only bytes; the mapping lives as long as a view of it."""
    if not section.size:
        return np.frombuffer(b"", np.uint8)
    lead = section.offset % mmap.ALLOCATIONGRANULARITY  # pages may be larger than the format's 4 KiB
    start = section.offset - lead
    mapped = mmap.mmap(file.fileno(), section.size + lead, access=mmap.ACCESS_READ, offset=start)
    return np.frombuffer(mapped, np.uint8, section.size, lead)


def _read_constants(file: IO[bytes], section: Section) -> Array:
    """Returns the constants section as read-only bytes in memory of this process, aligned to a page as in the file."""
    memory = mmap.mmap(-1, max(section.size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    pool = np.frombuffer(memory, np.uint8, section.size)
    file.seek(section.offset)
    if file.readinto(pool.data) != section.size:  # type: ignore[attr-defined]
        raise ExecutableError("cut while it was read; save it again")
    pool.flags.writeable = False
    return pool


def _view_constant(entry: ConstantEntry, pool: Array) -> Array:
    nbytes = math.prod(entry.shape) * dtype(entry.dtype).itemsize
    if entry.offset % CONSTANT_ALIGNMENT or entry.offset + nbytes > pool.nbytes:
        raise ExecutableError(f"corrupt: constant {entry.name!r} lies outside the file; save it again")
    return np.ndarray(entry.shape, stored_dtype(entry.dtype), buffer=pool, offset=entry.offset)
