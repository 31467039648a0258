"""Executable: what a compile produces and a Session runs; pure data, no driver and no compiler."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from landbridge.errors import ExecutableError, PlacementError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.file_watch import FileWatch
from landbridge.executable.instructions import Instruction
from landbridge.executable.listing import Listing, Table, cut, freeze, shown
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.shape import check_shape, check_strides, dense_bytes, span


@dataclass(frozen=True)
class TensorSpec:
    """Name, static shape and dtype name of an input or output; ``strides`` count elements, empty ones are dense."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the end of the last, gaps included.

        Raises InputError for strides, a shape or a dtype that no tensor has.
        """
        if not self.strides:
            return dense_bytes(self.shape, self.dtype)
        strides = check_strides(self.strides, check_shape(self.shape, self.dtype))
        return dense_bytes((span(self.shape, strides),), self.dtype)

    @property
    def memory(self) -> TensorSpec:
        """What code is given: the tensor itself, or all elements of its span in a row where it has gaps."""
        if not self.strides:
            return self
        return TensorSpec(self.name, (span(self.shape, self.strides),), self.dtype)


@dataclass(frozen=True)
class VDevice:
    """A place of the program: its name for binding, the number of the target that compiles for it, and the scope.

    ``axis_separators``: in a request for an n-D scope, the axis of a tensor that begins each dimension of the space but
    the first. A program states them with each tensor, so its own vdevices have none.
    """

    name: str
    target: int = 0
    scope: str = GLOBAL_SCOPE
    axis_separators: tuple[int, ...] = ()

    @staticmethod
    def parse(text: str) -> VDevice:
        """The VDevice that ``text`` writes: ``npu``, ``npu@global.vtcm`` or ``npu@global.vtcm[2]`` (axis separators).

        Raises PlacementError for any other form.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise PlacementError(f"{text!r} is no place; legal: 'name', 'name@scope' or 'name@scope[2, 3]'")
        axes = match["axes"]
        separators = tuple(int(axis) for axis in axes.split(",")) if axes else ()
        return VDevice(match["name"], scope=match["scope"] or GLOBAL_SCOPE, axis_separators=separators)

    def __str__(self) -> str:
        """Text that ``parse`` reads back, the target's number apart."""
        scope = f"@{self.scope}" if self.scope != GLOBAL_SCOPE or self.axis_separators else ""
        return self.name + scope + (str(list(self.axis_separators)) if self.axis_separators else "")


_TEXT = re.compile(r"(?P<name>[^@\[\]]+)(?:@(?P<scope>[^@\[\]]+)(?:\[(?P<axes>\d{1,4}(?:, *\d{1,4})*)\])?)?")


@dataclass(frozen=True, repr=False)
class CodeImage:
    """Position-independent machine code of one target.

    ``code`` is the flat image (linked text, read-only data); ``symbols`` are byte offsets of functions;
    ``imports`` are byte offsets of 8-byte slots, by symbol, that the loader fills with the addresses of
    functions of the C library; ``relocations`` are offsets of 8-byte slots to which the load address is added.
    ``features`` are the CPU features (``/proc/cpuinfo`` flag names) the code needs.
    """

    isa: str
    code: bytes
    symbols: Mapping[str, int]
    imports: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    relocations: tuple[int, ...] = ()
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, symbols=Table(self.symbols), imports=Table(self.imports), relocations=Listing(self.relocations))

    def __repr__(self) -> str:
        return f"CodeImage({self.isa}, {len(self.code):,} bytes, {len(self.symbols)} functions)"


@dataclass(frozen=True, repr=False)
class ModuleImage:
    """The functions of one target, by name. ``target`` is the Target's JSON form.

    ``image`` is machine code for the host's CPU, or kernels for a device with a grid of workgroups.
    """

    target: str
    image: CodeImage | DeviceImage

    def __repr__(self) -> str:
        return f"ModuleImage({cut(self.target, 60)!r}, {self.image!r})"


@dataclass(frozen=True)
class StorageReport:
    """What the planner reached for one (vdevice device, scope)."""

    device: str
    scope: str
    planned_bytes: int
    lower_bound_bytes: int
    proved_optimal: bool


@dataclass(frozen=True, repr=False)
class Function:
    """One entry point: its inputs, outputs and instructions.

    ``parameters`` are weights that a Session may replace; the first value of each is the constant
    ``parameter_constant(name)`` of the Executable.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    instructions: tuple[Instruction, ...]
    parameters: tuple[TensorSpec, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, instructions=Listing(self.instructions), parameters=Listing(self.parameters))

    def __repr__(self) -> str:
        sides = (shown(map(_described, specs), len(specs)) for specs in (self.inputs, self.outputs))
        return f"Function({self.name!r}, ({') -> ('.join(sides)}), {len(self.instructions)} instructions)"


def _described(spec: TensorSpec) -> str:
    return f"{cut(spec.name, 30)}: {spec.dtype}{list(spec.shape)}"


def parameter_constant(name: str) -> str:
    """The constant that holds the first value of parameter ``name``; no other constant is called so."""
    return f"parameter:{name}"


@dataclass(frozen=True, repr=False)
class Executable:
    """A compiled program. ``constants`` are C-contiguous read-only arrays (mapped from the file after ``load``).

    ``scratch_bytes``: of its stack, that each thread's kernels take for temporaries. ``sources``: the files that it was
    compiled from, which ``save`` does not replace. ``files``: those that constants are mapped from.
    """

    functions: Mapping[str, Function]
    vdevices: tuple[VDevice, ...]
    modules: tuple[ModuleImage, ...]
    constants: Mapping[str, np.ndarray[Any, Any]]
    memory: tuple[StorageReport, ...] = ()
    scratch_bytes: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = field(default=(), compare=False, repr=False)
    files: tuple[FileWatch, ...] = field(default=(), compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"files": ()}  # a copy has constants of its own

    def check_files(self) -> None:
        """Raise ExecutableError where a file that constants are mapped from was cut or changed since.

        Sessions ask when they are made; see ``landbridge.load`` for what is read.
        """
        for file in self.files:
            file.check()

    def __post_init__(self) -> None:
        freeze(self, functions=Table(self.functions), constants=Table(self.constants), metadata=Table(self.metadata))

    def __repr__(self) -> str:
        weights = sum(array.nbytes for array in self.constants.values())
        name = cut(self.metadata.get("model", ""), 60)
        function = repr(self.functions["main"]) if "main" in self.functions else f"{len(self.functions)} functions"
        images = ", ".join(repr(module.image) for module in self.modules[:4])
        return f"Executable({name!r}, {function}, {cut(images, 200) or 'no code'}, {weights:,} bytes of constants)"

    @property
    def main(self) -> Function:
        """The entry point a Session runs; raises ExecutableError when there is none."""
        try:
            return self.functions["main"]
        except KeyError:
            names = ", ".join(self.functions) or "none"
            raise ExecutableError(
                f"no function is called 'main'; there are: {names}; compile the model again"
            ) from None

    def save(self, path: str | Path) -> None:
        """Write the ``.lbx`` file; an existing file is replaced, by a rename, when the new one is complete.

        A symbolic link is followed and stays; mode and owner of a file that is replaced are kept. Raises
        OutputFileError for what is no regular file or one that this was compiled from, for a folder that takes no
        files, and when the system cannot write it: what was there is then unchanged. Raises ExecutableError as
        ``check_files`` does.
        """
        from landbridge.executable.file_format import write_executable

        write_executable(self, Path(path))
