"""The fixed header of an ``.lbx``: 128 little-endian bytes that say where the sections are."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import chain

from landbridge.errors import ExecutableError
from landbridge.executable.digest import sha256 as sha256_of
from landbridge.records import record

#: The newest version; files from ``OLDEST_VERSION`` on are read, which is promised (docs/lbx-format.md): a field that a
#: version adds has a default. One that a version takes away would be refused as corrupt, so the reader has to pass it
#: over for the versions before. What a file is written as is the oldest version that has all that is in it:
#: ``SIZES_VERSION`` with open dimensions, ``ROWS_VERSION`` with inputs or outputs in rows, ``OPEN_LAUNCHES_VERSION``
#: with launches whose sizes a run decides, ``LOOPS_VERSION`` with a loop, else the one before that.
FORMAT_VERSION = 13
SIZES_VERSION = 13
ROWS_VERSION = 12
OPEN_LAUNCHES_VERSION = 11
LOOPS_VERSION = 10
OLDEST_VERSION = 8
MAGIC = b"\x89LBX\r\n\x1a\n"
HEADER_BYTES = 128
PAGE = 4096

#: magic, version, zero, file size, (offset, size) of four sections, SHA-256, zero
_LAYOUT = struct.Struct("<8sIIQ8Q32sQ")


@record(frozen=True)
class Section:
    """A range of the file: ``offset`` and ``size`` in bytes."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """Returns the offset of the first byte after the section."""
        return self.offset + self.size


@record(frozen=True)
class Header:
    """The sections of a file, in file order: manifest, instructions, code and constants; its SHA-256 and format
    version.

    The digest covers every byte before the constants, computed with zeros in place of the digest itself.
    """

    sections: tuple[Section, Section, Section, Section]
    sha256: bytes = bytes(32)
    version: int = LOOPS_VERSION - 1

    def pack(self) -> bytes:
        """Returns the header as it is in the file: ``HEADER_BYTES`` bytes."""
        places = [n for section in self.sections for n in (section.offset, section.size)]
        return _LAYOUT.pack(MAGIC, self.version, 0, self.sections[-1].end, *places, self.sha256, 0)

    def digest(self, body: Iterable[bytes | memoryview]) -> bytes:
        """Returns the SHA-256 of this header, with zeros for its digest, and ``body``, the rest of the file up to the
        constants.
        """
        return sha256_of(chain([Header(self.sections, version=self.version).pack()], body))


def unpack_header(content: bytes, file_size: int) -> Header:
    """Returns the Header in ``content``, the first bytes of a file of ``file_size`` bytes.

    Raises ExecutableError for another format or version, another size than the header says, and sections outside the
    file or not in order.
    """
    if content[: len(MAGIC)] != MAGIC:
        raise ExecutableError("not an .lbx file; make one with landbridge.compile(...).save(path)")
    if len(content) < HEADER_BYTES:
        raise ExecutableError(f"truncated: {file_size} bytes, the header alone has {HEADER_BYTES}; save it again")
    _, version, reserved, size, *places, sha256, tail = _LAYOUT.unpack(content[:HEADER_BYTES])
    if not OLDEST_VERSION <= version <= FORMAT_VERSION:
        way = "install a newer Landbridge" if version > FORMAT_VERSION else "compile the model again"
        raise ExecutableError(
            f"format version {version}, and this Landbridge reads {OLDEST_VERSION} to {FORMAT_VERSION}; {way}"
        )
    if size != file_size:
        state = "truncated" if file_size < size else "followed by foreign bytes"
        raise ExecutableError(f"{state}: {file_size} bytes, its header says {size}; save it again")
    manifest, instructions, code, constants = map(Section, places[::2], places[1::2])
    sections = (manifest, instructions, code, constants)
    start = HEADER_BYTES
    for section in sections:
        if section.offset < start or section.end > size:
            raise ExecutableError("corrupt header: a section lies outside the file; save it again")
        start = section.end
    if reserved or tail or code.offset % PAGE or constants.offset % PAGE:
        raise ExecutableError("corrupt header: a section is misplaced; save it again")
    return Header(sections, sha256, version)
