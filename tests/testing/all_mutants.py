"""Every mutant: importing the files that have them is what makes them known."""

from __future__ import annotations

import tests.testing.arithmetic_mutants
import tests.testing.barrier_mutants
import tests.testing.event_barrier_mutants
import tests.testing.event_mutants
import tests.testing.fence_mutants
import tests.testing.importing_device
import tests.testing.launch_mutants
import tests.testing.life_mutants
import tests.testing.memory_mutants
import tests.testing.next_life_mutants
import tests.testing.reach_mutants
import tests.testing.record_mutants
import tests.testing.row_launch_mutants
import tests.testing.suspension_mutants
import tests.testing.time_mutants  # noqa: F401
from tests.testing.mutants import RUNTIME, Correct, RuntimeMutant, device_mutants

__all__ = ["RUNTIME", "Correct", "RuntimeMutant", "device_mutants"]
