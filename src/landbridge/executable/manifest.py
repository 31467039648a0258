"""The manifest of an ``.lbx``: the entries of the file and where they are; offsets are relative to their own
section.
"""

from __future__ import annotations

from collections.abc import Mapping

from landbridge.executable.device_image import LaunchSequence
from landbridge.executable.parts import SizeGuard, StorageReport, TensorSpec, VDevice
from landbridge.records import record

#: The key in a manifest of the table of the program's Sizes, which its other fields and the instructions refer to.
SIZES = "sizes"


@record(frozen=True)
class FunctionEntry:
    """All fields of a Function except its instructions, which are in the instructions section."""

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    parameters: tuple[TensorSpec, ...]
    guards: tuple[SizeGuard, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()


@record(frozen=True)
class ImageEntry:
    """The CodeImage of module ``module``: ``size`` bytes at ``offset`` of the code section, and the data its loader
    needs.
    """

    module: int
    target: str
    isa: str
    offset: int
    size: int
    symbols: Mapping[str, int]
    imports: Mapping[str, tuple[int, ...]]
    relocations: tuple[int, ...]
    features: tuple[str, ...]
    flushes_denormals: bool
    slots_start: int = 0
    slot_references: tuple[tuple[int, int, int], ...] = ()


@record(frozen=True)
class DeviceImageEntry:
    """The DeviceImage of module ``module``: ``size`` bytes at ``offset`` of the code section, and its launches."""

    module: int
    target: str
    format: str
    offset: int
    size: int
    functions: Mapping[str, LaunchSequence]
    options: str
    requires: tuple[str, ...]


@record(frozen=True)
class ConstantEntry:
    """A C-contiguous constant at ``offset`` of the constants section."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    offset: int


@record(frozen=True)
class Manifest:
    """All parts of an Executable except its instructions, code bytes and constant bytes.

    Each module has one entry, in ``images`` or in ``device_images``.
    """

    functions: tuple[FunctionEntry, ...]
    vdevices: tuple[VDevice, ...]
    images: tuple[ImageEntry, ...]
    device_images: tuple[DeviceImageEntry, ...]
    constants: tuple[ConstantEntry, ...]
    constants_sha256: str
    constants_checksum: str
    memory: tuple[StorageReport, ...]
    scratch_bytes: int
    metadata: Mapping[str, str]
