"""A ramdisk for kernels that have no driver for a disk: an archive of a folder, in cpio's format ``newc``."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.emulated.image import make_root

_MAGIC = b"070701"
_ALIGNMENT = 4
#: The first process has files 0 to 2 where this device is there before it runs.
_CONSOLE = ("dev/console", 0o20600, (5, 1))


def make_ramdisk(
    path: Path, board: Path, files: Iterable[Path] = (), modules: Iterable[tuple[str, bytes]] = ()
) -> None:
    """Write to ``path`` what ``image.make_disk`` would put on a disk, with the Python of the folder ``board``."""
    root = path.with_suffix(".root")
    make_root(root, modules, files, None, board)
    with path.open("wb") as file:
        for number, entry in enumerate(_entries(root)):
            file.write(_packed(number + 1, *entry))
    shutil.rmtree(root)


def _entries(root: Path) -> Iterator[tuple[str, int, tuple[int, int], bytes]]:
    """The name, mode, device number and content of each file below ``root``, folders before what is in them."""
    for folder, folders, names in os.walk(root):
        for name in sorted(folders + names):
            found = Path(folder, name)
            mode = found.lstat().st_mode
            content = b""
            if stat.S_ISLNK(mode):
                content = os.fsencode(found.readlink())
            elif stat.S_ISREG(mode):
                content = found.read_bytes()
            yield str(found.relative_to(root)), mode, (0, 0), content
    yield (*_CONSOLE, b"")
    yield "TRAILER!!!", 0, (0, 0), b""


def _packed(inode: int, name: str, mode: int, device: tuple[int, int], content: bytes) -> bytes:
    """One entry of the archive; its user, group, time and checksum are 0."""
    words = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name) + 1, 0)
    header = _MAGIC + b"".join(b"%08X" % word for word in words) + os.fsencode(name) + b"\0"
    return _padded(header) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
