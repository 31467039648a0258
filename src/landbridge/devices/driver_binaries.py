"""What a driver compiled from a program's kernels, in the folder of cached files, so that a later process need not let
it compile them again.

A file holds one program's kernels for one device and version of its driver. Its name is a digest of all of these. It
begins with a SHA-256 of the rest: a driver takes a binary for its own and need not check it, so one that is damaged
must not reach it. Nothing here fails: where no file can be read or written, the driver compiles.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from landbridge.errors import InputError
from landbridge.executable.digest import sha256
from landbridge.files.cache_folder import DRIVER_BINARY, CacheFolder, open_folder
from landbridge.records import record

#: Its last digits are the version of the layout: magic, digest of all after it, length of the JSON text, text, binary.
_MAGIC = b"LBDRIV01"
_DIGEST_BYTES = 32
_LENGTH = struct.Struct("<I")

_CPUINFO = Path("/proc/cpuinfo")
#: Enough for the first processor's entry: the kernel takes long to write the file for many cores.
_FIRST_ENTRY_BYTES = 16384
#: The lines of that entry which decide what code may run: those of x86 and of Arm.
_DECISIVE = ("vendor_id", "model name", "flags", "CPU implementer", "CPU part", "Features")


@record(frozen=True, repr=False)
class DriverBinary:
    """A driver's binary, with ``facts`` about it that it does not contain itself; both are as the device API wrote
    them.
    """

    facts: Mapping[str, Any]
    binary: bytes

    def __repr__(self) -> str:
        return f"DriverBinary({len(self.binary)} bytes, {self.facts})"


@record(frozen=True)
class BinaryFile:
    """A file in the cache folder for the driver's binary of one program's kernels on one device.

    Its name is the digest of ``_identity``, a JSON text of all that the binary depends on.
    """

    _folder: CacheFolder
    _identity: str

    @property
    def name(self) -> str:
        """Returns the file's name."""
        return sha256([self._identity.encode()]).hex() + DRIVER_BINARY

    def read(self) -> DriverBinary | None:
        """Returns the binary in the file; None where there is none that is intact; a damaged file is removed."""
        file = self._folder.path / self.name
        try:
            content = file.read_bytes()
        except OSError:
            return None
        found = _unpacked(content, self._identity)
        if found is None:
            self.remove()
        else:
            with suppress(OSError):
                self._folder.note_use(file)
        return found

    def write(self, found: DriverBinary) -> None:
        """Writes ``found`` for later processes; does nothing where that is impossible."""
        body = _packed(found, self._identity)
        with suppress(OSError), self._folder.new_file(self.name) as file:
            file.write(_MAGIC + sha256([body]))
            file.write(body)

    def remove(self) -> None:
        """Removes the file; called when the driver rejects its binary."""
        self._folder.remove(self.name)


def binary_file(driver: Mapping[str, object], code: bytes, options: str = "") -> BinaryFile | None:
    """Returns the cache file for ``code``, compiled with ``options`` by ``driver``; None where nothing is cached.

    ``driver`` has all that a binary depends on: names and versions of device, driver and platform. Where the
    environment names a cache folder that cannot be used, this returns None, and compiles and commands report it.
    """
    try:
        folder = open_folder()
    except InputError:
        return None
    if folder is None:
        return None
    identity = {"driver": dict(driver), "options": options, "code": sha256([code]).hex(), "bytes": len(code)}
    return BinaryFile(folder, json.dumps(identity, sort_keys=True))


def processor() -> str:
    """Returns a text that identifies the host's processor and its features, for drivers that compile for it.

    It is part of a binary's identity, as several machines may share a user's files.
    """
    try:
        with _CPUINFO.open() as file:
            entry = file.read(_FIRST_ENTRY_BYTES).split("\n\n")[0]
    except OSError:
        entry = ""
    lines = [line for line in entry.splitlines() if line.partition(":")[0].strip() in _DECISIVE]
    return "\n".join([os.uname().machine, *lines])


def _packed(found: DriverBinary, identity: str) -> bytes:
    text = json.dumps({"identity": identity, "facts": dict(found.facts)}).encode()
    return _LENGTH.pack(len(text)) + text + found.binary


def _unpacked(content: bytes, identity: str) -> DriverBinary | None:
    """Returns the binary in ``content``; None where that is damaged, of another layout or of another identity."""
    start = len(_MAGIC) + _DIGEST_BYTES
    body = memoryview(content)[start:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : start] != sha256([body]):
        return None
    (length,) = _LENGTH.unpack_from(body)
    text = json.loads(bytes(body[_LENGTH.size :][:length]))
    if text["identity"] != identity:
        return None
    return DriverBinary(text["facts"], bytes(body[_LENGTH.size + length :]))
