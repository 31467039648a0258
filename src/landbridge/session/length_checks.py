"""Checks lengths that are values of a run against the capacity of caches, where no State does, before a run begins.

Kernels of a device read such lengths. They write no step beyond the capacity, so it would be lost without a word. On a
CPU lengths are sizes, which each run checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from landbridge.errors import StateCapacityError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.executable import Executable
from landbridge.executable.state_growth import growths_of
from landbridge.session.host_values import host_values
from landbridge.tensor import Tensor


class LengthChecks:
    """The caches of a program with known capacities: by input of positions, how many steps follow the largest of them,
    and how many there may be.
    """

    def __init__(self, program: str, executable: Executable) -> None:
        shapes = {spec.name: spec.shape for spec in executable.main.inputs}
        self._limits: dict[tuple[str, int], tuple[int, str]] = {}
        if not any(isinstance(module.image, DeviceImage) for module in executable.modules):
            return
        for growth in growths_of(executable).get(program, ()):
            capacity = shapes[growth.name][growth.axis]
            if growth.positions and isinstance(capacity, int) and isinstance(growth.after, int):
                key = growth.positions, growth.after
                self._limits[key] = min((capacity, growth.name), self._limits.get(key, (capacity, growth.name)))

    def __bool__(self) -> bool:
        return bool(self._limits)

    def check(self, read: Callable[[str], Any]) -> None:
        """Raises StateCapacityError where a run needs more steps than there is capacity; ``read`` returns what is bound
        to an input.

        Lengths in memory that the host does not read are not checked, as that would be a copy.
        """
        for (positions, after), (capacity, cache) in self._limits.items():
            value = read(positions)
            if isinstance(value, Tensor) and not value.storage.kind.host_readable:
                continue
            steps = int(np.max(host_values(value), initial=0)) + after
            if steps > capacity:
                raise StateCapacityError(
                    f"the run needs {steps} steps of {cache!r}, as {positions!r} says; its capacity is {capacity}: "
                    "give it a smaller number, or compile for a larger cache"
                )
