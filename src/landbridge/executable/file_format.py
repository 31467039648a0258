"""The file ``.lbx``: linked machine code, instructions and constants, loaded by mapping.

Sections in this order, zero bytes between them::

    header        128 bytes (see ``header``)
    manifest      JSON (see ``manifest``)
    instructions  JSON: a list of instructions per function, in the manifest's order
    code          from a page boundary; each image from a page boundary
    constants     from a page boundary; each tensor from a multiple of 256 bytes

The header's SHA-256 covers every byte before the constants and is always checked. The constants are mapped, and loading
touches none. Of their two digests in the manifest one is as fast as memory (see ``file_watch``) and checked when a
program first uses them, the other, their SHA-256, on demand. An ``.lbx`` executes code: load only what you trust.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from landbridge.dtypes import dtype, dtype_name, numpy_dtype
from landbridge.errors import ExecutableError, InputError
from landbridge.executable.abi import CONSTANT_ALIGNMENT
from landbridge.executable.device_image import DeviceImage, check_device_image
from landbridge.executable.executable import CodeImage, Executable, Function, ModuleImage
from landbridge.executable.file_watch import FileWatch, quick_checksum
from landbridge.executable.header import HEADER_BYTES, PAGE, Header, Section, unpack_header
from landbridge.executable.json_form import from_json, instruction_list, to_json
from landbridge.executable.manifest import (
    ConstantEntry,
    DeviceImageEntry,
    FunctionEntry,
    ImageEntry,
    Manifest,
    check_code_image,
)
from landbridge.output_file import check_outputs, open_output

Array = np.ndarray[Any, Any]
Buffer = bytes | memoryview

#: What ``load`` verifies of the constants: at the first bind, at once with SHA-256 (True too), or nothing.
Verify = bool | Literal["bind", "all"]


def write_executable(executable: Executable, path: Path) -> None:
    """Write ``executable`` to ``path``, whole or not at all; raises OutputFileError (see ``open_output``)."""
    check_outputs([path], executable.sources)
    executable.check_files()
    constants = {name: _plain_array(array) for name, array in executable.constants.items()}
    images = [module.image.code for module in executable.modules]
    constant_offsets = _offsets([array.nbytes for array in constants.values()], CONSTANT_ALIGNMENT)
    image_offsets = _offsets([len(code) for code in images], PAGE)
    manifest = Manifest(
        functions=tuple(
            FunctionEntry(name, f.inputs, f.outputs, f.parameters) for name, f in executable.functions.items()
        ),
        vdevices=tuple(executable.vdevices),
        images=tuple(
            _code_entry(number, module, module.image, offset)
            for number, (module, offset) in enumerate(zip(executable.modules, image_offsets, strict=False))
            if isinstance(module.image, CodeImage)
        ),
        device_images=tuple(
            _device_entry(number, module, module.image, offset)
            for number, (module, offset) in enumerate(zip(executable.modules, image_offsets, strict=False))
            if isinstance(module.image, DeviceImage)
        ),
        constants=tuple(
            ConstantEntry(name, array.shape, dtype_name(array.dtype), offset)
            for (name, array), offset in zip(constants.items(), constant_offsets, strict=False)
        ),
        constants_sha256=_sha256(_padded(constants.values(), constant_offsets)),
        constants_checksum=quick_checksum(zip(constant_offsets, map(_bytes_of, constants.values()), strict=False)),
        memory=tuple(executable.memory),
        scratch_bytes=executable.scratch_bytes,
        metadata=executable.metadata,
    )
    front = _json_bytes(to_json(manifest))
    instructions = _json_bytes([to_json(f.instructions) for f in executable.functions.values()])
    manifest_section = Section(HEADER_BYTES, len(front))
    instructions_section = Section(manifest_section.end, len(instructions))
    code_section = Section(_round_up(instructions_section.end, PAGE), image_offsets[-1])
    constants_section = Section(_round_up(code_section.end, PAGE), constant_offsets[-1])
    body: list[Buffer] = [
        front,
        instructions,
        bytes(code_section.offset - instructions_section.end),
        *_padded([np.frombuffer(code, np.uint8) for code in images], image_offsets),
        bytes(constants_section.offset - code_section.end),
    ]
    header = Header((manifest_section, instructions_section, code_section, constants_section))
    header = replace(header, sha256=header.digest(body))
    with open_output(path, executable.sources) as file:
        for piece in (header.pack(), *body, *_padded(constants.values(), constant_offsets)):
            file.write(piece)


def read_executable(path: Path, *, verify: Verify = "bind", mapped: bool = True) -> Executable:
    """The Executable in the file ``path``; its constants are read-only views of the file, or of a copy of it.

    ``verify`` and ``mapped`` are those of ``landbridge.load``. Raises ExecutableError when the file is no ``.lbx``, of
    another version, truncated or corrupt; OSError when it cannot be opened.
    """
    if verify not in ("bind", "all", True, False):
        raise InputError(f"verify={verify!r}; legal: 'bind', 'all', True (as 'all'), False")
    # Not blocking: a pipe would wait for a writer.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ExecutableError(f"{path}: no regular file, and no .lbx therefore; write it to a file first")
        try:
            return _read(file, path, verify, mapped)
        except ExecutableError as error:
            raise ExecutableError(f"{path}: {error}") from None
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise ExecutableError(f"{path}: corrupt ({error}); save it again") from error


def _read(file: IO[bytes], path: Path, verify: Verify, mapped: bool) -> Executable:
    header = unpack_header(file.read(HEADER_BYTES), os.fstat(file.fileno()).st_size)
    manifest_section, instructions_section, code_section, constants_section = header.sections
    body = memoryview(file.read(constants_section.offset - HEADER_BYTES))
    if len(body) != constants_section.offset - HEADER_BYTES or header.digest([body]) != header.sha256:
        raise ExecutableError("corrupt: its SHA-256 does not match its contents; save it again")
    manifest = from_json(Manifest, json.loads(bytes(_cut(body, manifest_section))))
    programs = json.loads(bytes(_cut(body, instructions_section)))
    if type(programs) is not list or len(programs) != len(manifest.functions):
        raise ExecutableError("corrupt: functions and instructions differ in number; save it again")
    pool = _map_constants(file, constants_section) if mapped else _read_constants(file, constants_section)
    watch = FileWatch(
        file.fileno(),
        constants_section.end,
        str(path),
        pool,
        manifest.constants_checksum,
        trusted=verify != "bind",
    )
    if verify in ("all", True) and _sha256([pool.data]) != manifest.constants_sha256:
        raise ExecutableError("corrupt constants: their SHA-256 does not match; save it again")
    if not mapped:
        watch.check()
    functions = {
        entry.name: Function(entry.name, entry.inputs, entry.outputs, instruction_list(program), entry.parameters)
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
    """The modules in their order, whichever kind of image each has."""
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
    image = CodeImage(entry.isa, content, entry.symbols, entry.imports, entry.relocations, entry.features)
    check_code_image(image)
    return image


def _map_constants(file: IO[bytes], section: Section) -> Array:
    """The constants section as read-only bytes; the mapping lives as long as a view of it."""
    if not section.size:
        return np.frombuffer(b"", np.uint8)
    lead = section.offset % mmap.ALLOCATIONGRANULARITY  # pages may be larger than the format's 4 KiB
    start = section.offset - lead
    mapped = mmap.mmap(file.fileno(), section.size + lead, access=mmap.ACCESS_READ, offset=start)
    return np.frombuffer(mapped, np.uint8, section.size, lead)


def _read_constants(file: IO[bytes], section: Section) -> Array:
    """The constants section as read-only bytes of this process's own, from a page boundary as in the file."""
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
    return np.ndarray(entry.shape, numpy_dtype(entry.dtype), buffer=pool, offset=entry.offset)


def _code_entry(number: int, module: ModuleImage, image: CodeImage, offset: int) -> ImageEntry:
    return ImageEntry(
        number,
        module.target,
        image.isa,
        offset,
        len(image.code),
        image.symbols,
        image.imports,
        tuple(image.relocations),
        tuple(image.features),
    )


def _device_entry(number: int, module: ModuleImage, image: DeviceImage, offset: int) -> DeviceImageEntry:
    return DeviceImageEntry(
        number, module.target, image.format, offset, len(image.code), image.functions, image.options, image.requires
    )


def _plain_array(array: Array) -> Array:
    """``array`` C-contiguous in native byte order; itself where it is already."""
    return np.asarray(array, dtype=numpy_dtype(dtype_name(array.dtype)), order="C")


def _offsets(sizes: list[int], alignment: int) -> list[int]:
    """The aligned offset of each of consecutive pieces, then the aligned end."""
    offsets = [0]
    for size in sizes:
        offsets.append(_round_up(offsets[-1] + size, alignment))
    return offsets


def _padded(arrays: Iterable[Array], offsets: list[int]) -> Iterator[Buffer]:
    """The bytes of ``arrays`` at ``offsets``, zeros between them."""
    for array, start, end in zip(arrays, offsets, offsets[1:], strict=False):
        yield _bytes_of(array).data
        yield bytes(end - start - array.nbytes)


def _bytes_of(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _sha256(pieces: Iterable[Buffer]) -> str:
    hasher = hashlib.sha256()
    for piece in pieces:
        hasher.update(piece)
    return hasher.hexdigest()


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
