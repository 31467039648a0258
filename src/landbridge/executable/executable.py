"""Executable: the result of a compile, which a Session runs; pure data without driver or compiler."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from landbridge.errors import ExecutableError, InputError
from landbridge.executable.file_watch import FileWatch, begin_checks
from landbridge.executable.listing import Table, cut, freeze
from landbridge.executable.parts import Function, ModuleImage, StorageReport, VDevice
from landbridge.records import record

if TYPE_CHECKING:
    from landbridge.executable.crossing_report import CrossingReport
    from landbridge.executable.file_writer import FileParts
    from landbridge.sizes.dim import Dim

#: The key in ``Executable.metadata`` of the segments of a program that is cut (``landbridge.executable.segments``).
SEGMENTS = "segments"


class PendingProgram(Protocol):
    """A program in the making, of the same model, target and shapes as the program that has it."""

    def take(self) -> Executable | None:
        """Returns the program once it is there, at every call from then on; None while it is being made, and for good
        where it cannot be made, of which the first call then warns. Takes microseconds until it is there. Any thread
        may call it.
        """

    def decline(self, reason: str) -> None:
        """Warns, once, that the program cannot be used because of ``reason``; ``take`` returns None from then on."""


@record(frozen=True, eq=False, repr=False)
class Executable:
    """A compiled program. ``constants`` are C-contiguous read-only arrays (mapped from the file after ``load``).

    ``scratch_bytes``: the bytes that each thread's kernels take for temporaries, on its stack or, where these are more
    than ``abi.STACK_TEMPORARY_BYTES``, in a workspace. ``sources``: the files that it was compiled from, which ``save``
    does not replace. ``files``: those that constants are mapped from. ``replacement``: the program that Sessions take
    in its place, between two runs, once it is there; files do not have it.

    Two are equal only when they are one object: values of weights are not compared.
    """

    functions: Mapping[str, Function]
    vdevices: tuple[VDevice, ...]
    modules: tuple[ModuleImage, ...]
    constants: Mapping[str, np.ndarray[Any, Any]]
    memory: tuple[StorageReport, ...] = ()
    scratch_bytes: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = field(default=(), repr=False)
    files: tuple[FileWatch, ...] = field(default=(), repr=False)
    replacement: PendingProgram | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # a pickled copy contains its constants, and another process cannot wait for the replacement
        return self.__dict__ | {"files": (), "replacement": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for constant in self.constants.values():
            constant.flags.writeable = False

    def __copy__(self) -> Executable:
        """Returns the program itself, as it never changes."""
        return self

    def check_files(self) -> None:
        """Raises ExecutableError where a file that constants are mapped from was cut or changed since.

        Sessions ask when they are made; see ``landbridge.load`` for what is read.
        """
        begin_checks(self.files)()

    def __post_init__(self) -> None:
        freeze(self, functions=Table(self.functions), constants=Table(self.constants), metadata=Table(self.metadata))

    def __repr__(self) -> str:
        weights = sum(array.nbytes for array in self.constants.values())
        name = cut(self.metadata.get("model", ""), 60)
        function = repr(self.functions["main"]) if "main" in self.functions else f"{len(self.functions)} functions"
        images = ", ".join(repr(module.image) for module in self.modules[:4])
        return f"Executable({name!r}, {function}, {cut(images, 200) or 'no code'}, {weights:,} bytes of constants)"

    def _repr_html_(self) -> str:
        from landbridge.executable.notebook_view import notebook_view  # only notebooks need it

        title = self.metadata.get("model") or "a program without a name"
        images = [module.image for module in self.modules]
        main = self.functions.get("main")
        return notebook_view(title, main, images, self.constants, self.memory, self.dimensions)

    @property
    def main(self) -> Function:
        """Returns the entry point that a Session runs; raises ExecutableError when there is none."""
        try:
            return self.functions["main"]
        except KeyError:
            names = ", ".join(self.functions) or "none"
            raise ExecutableError(
                f"no function is called 'main'; there are: {names}; compile the model again"
            ) from None

    @property
    def programs(self) -> Mapping[str, Function]:
        """Returns the functions that a run chooses from by elements of its inputs and by sizes; ``main`` is the
        first.
        """
        return {name: function for name, function in self.functions.items() if name.partition("@")[0] == "main"}

    def program(self, name: str) -> Executable:
        """Returns an Executable whose ``main`` is the one of ``programs`` that is called ``name``."""
        if len(self.programs) == 1:
            return self
        function = self.functions[name]
        memory = tuple(replace(report, program="main") for report in self.memory if report.program == name)
        return replace(self, functions={"main": replace(function, name="main")}, memory=memory)

    @property
    def is_open(self) -> bool:
        """Returns whether a run derives extents, or which program runs, from its inputs, or checks guards on them."""
        if len(self.programs) > 1 or any(spec.elements for spec in self.main.inputs):
            return True
        specs = (*self.main.inputs, *self.main.outputs)
        return any(not isinstance(extent, int) for spec in specs for extent in spec.shape)

    @property
    def dimensions(self) -> dict[str, Dim]:
        """Returns the open dimensions of inputs and outputs, by name, in the ranges that the program runs for; of
        several programs from the least to the largest number.
        """
        from landbridge.sizes.dim import declaration_of, either
        from landbridge.sizes.size import dimensions_of

        found: dict[str, Dim] = {}
        for program in self.programs.values():
            specs = (*program.inputs, *program.outputs)
            symbols = dimensions_of(e for spec in specs for e in (*spec.shape, *spec.strides, *spec.elements))
            for name, symbol in symbols.items():
                declared = declaration_of(symbol)
                found[name] = either(found.get(name, declared), declared)
        return found

    @property
    def crossings(self) -> tuple[CrossingReport, ...]:
        """Returns which of the main function's tensors cross between vdevices: each as a view or a copy, and why."""
        from landbridge.executable.crossing_report import crossings_of

        return tuple(crossings_of(self.main, self.vdevices))

    def save(self, path: str | Path) -> None:
        """Writes the ``.lbx`` file; an existing file is replaced, by a rename, when the new one is complete.

        A symbolic link is followed and stays; mode and owner of a file that is replaced are kept. Raises
        OutputFileError for what is no regular file or one that this was compiled from, for a folder without write
        permission, and when the system cannot write it; the existing file is then unchanged. Raises ExecutableError as
        ``check_files`` does.
        """
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"save takes the path of a file, not {type(path).__name__}")
        # imported here, as a process that only runs programs does not need it
        from landbridge.files.output_file import check_outputs, open_output

        check_outputs([path], self.sources)
        self.check_files()
        parts = file_parts(self)
        with open_output(path, self.sources) as file:
            parts.write(file, lasting=True)


def is_cut(executable: Executable) -> bool:
    """Returns whether ``executable`` runs in segments, as data decide its sizes."""
    return SEGMENTS in executable.metadata


def pieces_of_file(executable: Executable) -> Iterator[bytes | memoryview]:
    """Yields the bytes of the ``.lbx`` file of ``executable``, piece by piece."""
    return file_parts(executable).pieces()


def file_parts(executable: Executable) -> FileParts:
    """Returns the ``.lbx`` file of ``executable``, in parts."""
    # imported here, as a process that only runs programs does not need it
    from landbridge.executable.file_writer import FileParts

    return FileParts(
        executable.functions,
        executable.vdevices,
        executable.modules,
        executable.constants,
        memory=executable.memory,
        scratch_bytes=executable.scratch_bytes,
        metadata=executable.metadata,
    )
