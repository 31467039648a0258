"""The file format ``.lbx``: linked machine code, instructions and constants, which are mapped to load it.

Sections in this order, zero bytes between them::

    header        128 bytes (see ``header``)
    manifest      JSON (see ``manifest``); from format 13 on with "sizes", a table (see ``size_table``)
    instructions  JSON: a list of instructions per function, in the manifest's order
    code          from a page boundary; each image from a page boundary
    constants     from a page boundary; each tensor from a multiple of 256 bytes

The header's SHA-256 covers every byte before the constants and is always checked. The constants are mapped, and loading
touches none. Of their two digests in the manifest one is as fast as memory (see ``file_watch``) and checked when a
program first uses them, the other, their SHA-256, on demand. An ``.lbx`` executes code: load only what you trust.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import IO, Any

import numpy as np

from landbridge.array_type import Array
from landbridge.dtypes import dtype_name, stored_dtype
from landbridge.executable.abi import CONSTANT_ALIGNMENT
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.digest import sha256
from landbridge.executable.file_watch import quick_checksum
from landbridge.executable.header import (
    HEADER_BYTES,
    LOOPS_VERSION,
    OPEN_LAUNCHES_VERSION,
    PAGE,
    ROWS_VERSION,
    SIZES_VERSION,
    Header,
    Section,
)
from landbridge.executable.instructions import Loop, flattened
from landbridge.executable.json_form import to_json
from landbridge.executable.manifest import SIZES, ConstantEntry, DeviceImageEntry, FunctionEntry, ImageEntry, Manifest
from landbridge.executable.parts import CodeImage, Function, ModuleImage, StorageReport, VDevice
from landbridge.executable.size_table import SizeTable
from landbridge.process.background_threads import begin

Buffer = bytes | memoryview


#: Bytes of constants from which on they are written before their digests are known.
_MUCH = 4 << 20
#: In the place of a digest that is not known yet.
_UNKNOWN = bytes(32).hex()


class FileParts:
    """The file of an Executable with these fields, which is written piece by piece.

    ``version``: its format.
    """

    def __init__(
        self,
        functions: Mapping[str, Function],
        vdevices: tuple[VDevice, ...],
        modules: tuple[ModuleImage, ...],
        constants: Mapping[str, Array],
        *,
        memory: tuple[StorageReport, ...],
        scratch_bytes: int,
        metadata: Mapping[str, str],
    ) -> None:
        plain = {name: _plain_array(array) for name, array in constants.items()}
        self._constants, self._code = list(plain.values()), [module.image.code for module in modules]
        self._offsets = _offsets([array.nbytes for array in self._constants], CONSTANT_ALIGNMENT)
        self._code_offsets = _offsets(list(map(len, self._code)), PAGE)
        entries = [
            _image_entry(number, module, offset)
            for number, (module, offset) in enumerate(zip(modules, self._code_offsets, strict=False))
        ]
        manifest = Manifest(
            functions=tuple(
                FunctionEntry(name, f.inputs, f.outputs, f.parameters, f.guards, f.aliases)
                for name, f in functions.items()
            ),
            vdevices=tuple(vdevices),
            images=tuple(entry for entry in entries if isinstance(entry, ImageEntry)),
            device_images=tuple(entry for entry in entries if isinstance(entry, DeviceImageEntry)),
            constants=tuple(
                ConstantEntry(name, array.shape, dtype_name(array.dtype), offset)
                for (name, array), offset in zip(plain.items(), self._offsets, strict=False)
            ),
            constants_sha256=_UNKNOWN,
            constants_checksum=_UNKNOWN,
            memory=tuple(memory),
            scratch_bytes=scratch_bytes,
            metadata=metadata,
        )
        sizes = SizeTable()
        self._manifest: dict[str, Any] = to_json(manifest, sizes.number)
        self._instructions = _json_bytes([to_json(f.instructions, sizes.number) for f in functions.values()])
        loops = any(isinstance(each, Loop) for f in functions.values() for each in flattened(f.instructions))
        self.version = LOOPS_VERSION if loops else LOOPS_VERSION - 1
        if any(map(_has_open_launches, modules)):
            self.version = OPEN_LAUNCHES_VERSION
        if any(spec.axis_separators for f in functions.values() for spec in (*f.inputs, *f.outputs)):
            self.version = ROWS_VERSION
        if sizes:
            self.version = SIZES_VERSION
            self._manifest[SIZES] = sizes.to_json()

    def front(self) -> bytes:
        """Returns the bytes before the constants, whose SHA-256 is among them."""
        return b"".join(self._front(self._digests()))

    @property
    def constants_bytes(self) -> int:
        """Returns how many bytes the constants are, with those between them."""
        return self._offsets[-1]

    def pieces(self) -> Iterator[Buffer]:
        """Yields all bytes, in order."""
        return chain(self._front(self._digests()), _padded(self._constants, self._offsets))

    def write(self, file: IO[bytes], *, lasting: bool) -> None:
        """Writes all bytes into ``file``, which is empty; ``lasting``: they must reach the disk.

        Digests of large constants are computed while other bytes are written and synced.
        """
        if self._offsets[-1] < _MUCH:
            file.writelines(self.pieces())
            return
        digests = begin(self._digests, "digests")
        file.seek(sum(map(len, self._front((_UNKNOWN, _UNKNOWN)))))
        file.writelines(_padded(self._constants, self._offsets))
        if lasting:
            file.flush()
            os.fsync(file.fileno())
        front = self._front(digests())
        file.seek(0)
        file.writelines(front)

    def _digests(self) -> tuple[str, str]:
        """Returns SHA-256 and checksum of the constants."""
        pieces = zip(self._offsets, map(_bytes_of, self._constants), strict=False)
        return sha256(_padded(self._constants, self._offsets)).hex(), quick_checksum(pieces)

    def _front(self, digests: tuple[str, str]) -> list[Buffer]:
        """Returns the bytes before the constants; their number does not depend on ``digests``."""
        known = dict(zip(("constants_sha256", "constants_checksum"), digests, strict=True))
        front = _json_bytes(self._manifest | known)
        manifest_section = Section(HEADER_BYTES, len(front))
        instructions_section = Section(manifest_section.end, len(self._instructions))
        code_section = Section(_round_up(instructions_section.end, PAGE), self._code_offsets[-1])
        constants_section = Section(_round_up(code_section.end, PAGE), self._offsets[-1])
        body: list[Buffer] = [
            front,
            self._instructions,
            bytes(code_section.offset - instructions_section.end),
            *_padded([np.frombuffer(code, np.uint8) for code in self._code], self._code_offsets),
            bytes(constants_section.offset - code_section.end),
        ]
        sections = manifest_section, instructions_section, code_section, constants_section
        header = Header(sections, version=self.version)
        return [replace(header, sha256=header.digest(body)).pack(), *body]


def _image_entry(number: int, module: ModuleImage, offset: int) -> ImageEntry | DeviceImageEntry:
    image, size = module.image, len(module.image.code)
    if isinstance(image, CodeImage):
        facts = image.symbols, image.imports, image.relocations, image.features, image.flushes_denormals
        slots = image.slots_start, image.slot_references
        return ImageEntry(number, module.target, image.isa, offset, size, *facts, *slots)
    sequences = image.functions, image.options, image.requires
    return DeviceImageEntry(number, module.target, image.format, offset, size, *sequences)


def _has_open_launches(module: ModuleImage) -> bool:
    image = module.image
    return isinstance(image, DeviceImage) and any(each.is_open for each in image.functions.values())


def _plain_array(array: Array) -> Array:
    """Returns ``array`` C-contiguous in native byte order; itself where it is that already."""
    return np.asarray(array, dtype=stored_dtype(dtype_name(array.dtype)), order="C")


def _offsets(sizes: list[int], alignment: int) -> list[int]:
    """Returns the aligned offset of each of consecutive pieces, then the aligned end."""
    offsets = [0]
    for size in sizes:
        offsets.append(_round_up(offsets[-1] + size, alignment))
    return offsets


def _padded(arrays: Iterable[Array], offsets: list[int]) -> Iterator[Buffer]:
    """Yields the bytes of ``arrays`` at ``offsets``, with zeros between them."""
    for array, start, end in zip(arrays, offsets, offsets[1:], strict=False):
        yield _bytes_of(array).data
        yield bytes(end - start - array.nbytes)


def _bytes_of(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
