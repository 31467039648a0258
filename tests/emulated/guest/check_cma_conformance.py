"""What runs in the emulated machine: the conformance suite on the device ``cma`` over one of the kernel's sources.

Argument: the name of the source. A line for each test; ends with 1 where one failed.
"""

import sys
from typing import ClassVar

from landbridge.device.registry import register
from landbridge.devices.cma import CmaDeviceAPI
from landbridge.devices.cma.api import sources_here
from landbridge.testing.conformance.run import run_test, sentences

(wanted,) = sys.argv[1:]


class OneSource(CmaDeviceAPI):
    """``global`` is what that source gives."""

    name: ClassVar[str] = "one_source"

    def __init__(self):
        super().__init__([source for source in sources_here() if source.name == wanted])


register(OneSource())
failed = False
for name in sentences():
    print(name, flush=True)  # which test it is that ends the process, if one does
    result = run_test("one_source", name)
    print(f"{result.outcome:5} {result.name} {result.detail}", flush=True)
    failed |= result.outcome == "fail"
sys.exit(failed)
