"""The commands of a recording: launches and copies, with the positions of the regions that they use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyopencl as cl

from landbridge.devices.opencl import modules
from landbridge.devices.opencl.driver_errors import driver_call
from landbridge.devices.opencl.instance import Queue
from landbridge.records import record


@record
class RecordedLaunch:
    """A launch of kernel ``name`` of ``module``; ``values`` are its arguments as the driver takes them, ``positions``
    those of its arguments that are regions, by argument.

    ``own``: a kernel object that has these arguments; None until the launch is repeated, as it takes longer to create
    than to set the arguments of the module's once.
    """

    module: modules.OpenCLModule
    name: str
    grid: modules.Grid
    block: modules.Grid
    positions: Mapping[int, int]
    values: list[Any]
    own: cl.Kernel | None = None

    @property
    def kernel(self) -> cl.Kernel:
        """Returns the launch's own kernel object."""
        if self.own is None:
            created = self.module.new_kernel(self.name)
            with driver_call(f"the arguments of {self.name!r}"):
                modules.set_arguments(created, self.values)
            self.own = created
        return self.own

    def rebind(self, argument: int, value: Any) -> None:
        """Set an argument for this and later launches."""
        self.values[argument] = value
        if self.own is not None:
            self.own.set_arg(argument, value)

    def enqueue(self, queue: Queue, *, is_first: bool) -> cl.Event:
        """Queue the launch; the first time with the module's kernel object."""
        if not is_first:
            return modules.enqueue(queue, self.kernel, self.name, self.grid, self.block)
        function = self.module.function(self.name)
        with function.lock, driver_call(f"a launch of {self.name!r}"):
            modules.set_arguments(function.kernel, self.values)
            return modules.enqueue(queue, function.kernel, self.name, self.grid, self.block)


@record
class RecordedCopy:
    """A copy between the regions of two positions."""

    source: int
    target: int
    nbytes: int
