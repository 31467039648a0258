"""OpenProgram: one of the programs of an open Executable, and what its instances share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from landbridge.executable.executable import Executable
from landbridge.executable.input_sizes import InputSizes
from landbridge.executable.instance import ExtentValues, dimensions, instance
from landbridge.executable.instructions import storages
from landbridge.process.garbage import collector_paused
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.session.open_instance import (
    Instance,
    InstancesAhead,
    OwnedInstance,
    SharedExecutor,
    SharedInstance,
)
from landbridge.sizes.size import LARGEST_EXTENT, Extent
from landbridge.vm.arena import ProgramArena
from landbridge.vm.resizing import Resizing, may_be_resized

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class OpenProgram:
    """A program of ``executable``, which is its ``main``, with open ``dimensions`` by name.

    ``bind`` binds a program with fixed sizes, whose storages come from an arena. ``outgrown`` is called
    before larger storages are made, to release what uses the smaller ones.
    """

    def __init__(
        self,
        executable: Executable,
        bind: Callable[[Executable, ProgramArena], FixedExecutor],
        outgrown: Callable[[], object] = lambda: None,
    ) -> None:
        main = executable.main
        self.executable = executable
        self.dimensions = dimensions(main)
        self.input_sizes = InputSizes(main.inputs)
        self.arena = ProgramArena(
            [_most(storage.nbytes) for storage in storages(main.instructions) if not storage.shape]
        )
        self._bind, self._outgrown = bind, outgrown
        self._extent_values = ExtentValues()
        #: False once it is known that instances cannot share one executor.
        self.may_share = may_be_resized(executable)
        #: The executor that instances share, once there is one.
        self.shared: SharedExecutor | None = None

    @property
    def executor(self) -> FixedExecutor | None:
        """Returns the executor that instances share, None while there is none."""
        return None if self.shared is None else self.shared.executor

    def at(self, values: Mapping[str, int]) -> Executable:
        """Returns the program with fixed sizes, where dimensions have ``values``, by name; raises ShapeError as
        ``instance``.
        """
        return instance(self.executable, values, self._extent_values)

    def _at(self, values: Sequence[int]) -> Executable:
        return self.at(dict(zip(self.dimensions, values, strict=True)))

    def instance(self, values: Mapping[str, int], *, shares: bool = True) -> Instance:
        """Returns an instance where dimensions have ``values``, by name; it has an executor of its own unless it
        ``shares``.

        A shared executor was made for an arena as it is now. Raises as ``at``, and as an executor does.
        """
        if shares and self.may_share:
            shared = self.shared
            fit = None if shared is None else shared.resizing.fit(values)
            if fit is None:
                if shared is not None:
                    shared = self.shared = None
                    self._outgrown()
                shared = self._share(values)
                fit = None if shared is None else shared.resizing.fit(values)
            if shared is not None and fit is not None:
                return SharedInstance(shared, fit, self._at, tuple(map(values.__getitem__, self.dimensions)))
        return OwnedInstance(self._bind(self.at(values), self.arena), dict(values))

    @property
    def width(self) -> int:
        """Returns how many numbers one choice of sizes takes to compute."""
        return 1 if self.shared is None else self.shared.resizing.width

    def instances_along(self, values: NDArray[np.int64], inputs: NDArray[np.int64]) -> InstancesAhead | None:
        """Returns instances for the first rows of ``values``, the values of the dimensions in order, as long as they
        are legal, memory is large enough, and each input has the shape that ``inputs`` has for it, as
        ``Resizing.fits`` takes them.

        None where that is none of them, or where instances do not share an executor.
        """
        shared = self.shared
        if shared is None:
            return None
        fits = shared.resizing.fits(dict(zip(self.dimensions, values.T, strict=True)), len(values), inputs)
        return None if fits is None else InstancesAhead(shared, fits, self._at, values)

    def _share(self, values: Mapping[str, int]) -> SharedExecutor | None:
        """Returns an executor that can be rebound to other sizes, now at ``values``; None where that is impossible."""
        extent_values = ExtentValues()
        with collector_paused():
            executor = self._bind(instance(self.executable, values, extent_values, remembers=True), self.arena)
            program = executor.program
            self.may_share = Resizing.takes(program)
            if self.may_share:
                resizing = Resizing(program, self.executable, extent_values, self.arena.pieces)
                self.shared = SharedExecutor(executor, resizing)
        return self.shared


def _most(nbytes: Extent) -> int | None:
    """Returns the most bytes that a storage has at any size; None where no bound is known, or a dimension has none."""
    if isinstance(nbytes, int):
        return nbytes
    for symbol in nbytes.symbols.values():
        if symbol.high is None or (symbol.high + 1) * symbol.unit > LARGEST_EXTENT:
            return None  # to prove that it is bounded all the same takes milliseconds
    return nbytes.high
