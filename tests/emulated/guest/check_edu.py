"""What runs in the emulated machine: the conformance suite on the card.

Arguments: a way to the card, and where one is given the name of a wrong device, which is checked in its place. A line
for each test; ends with 1 where one failed.
"""

import sys

from landbridge_edu.device import EduDeviceAPI
from landbridge_edu.dma_api import open_dma_api
from landbridge_edu.pci import cards
from landbridge_edu.uio import open_uio
from landbridge_edu.vfio import open_vfio

from landbridge.device.registry import register
from landbridge.testing.conformance.run import run_test, sentences

ARENA = 8 << 20
VARIANTS = {
    "uio": lambda card: open_uio(card, ARENA),
    "vfio": lambda card: open_vfio(card, ARENA),
    "dma_api": open_dma_api,
}


class NothingIsFlushed(EduDeviceAPI):
    """The engine does not see what the host wrote."""

    def end_host_access(self, region, nbytes, mode):
        pass


class NothingIsInvalidated(EduDeviceAPI):
    """The host does not see what the engine wrote."""

    def begin_host_access(self, region, nbytes, mode):
        self._wait()


class WrongBytesAreFlushed(EduDeviceAPI):
    """Barriers are for the first bytes of the space, whatever the region."""

    def _sync(self, region, nbytes, side):
        self._transport.sync(region.space.handle.offset, nbytes, side)


class NobodyWaits(EduDeviceAPI):
    """Host access begins while the engine works."""

    def _wait(self):
        pass


DEVICES = {
    api.__name__: api
    for api in (EduDeviceAPI, NothingIsFlushed, NothingIsInvalidated, WrongBytesAreFlushed, NobodyWaits)
}

way, device = [*sys.argv[1:], "EduDeviceAPI"][:2]
(card,) = cards()
register(DEVICES[device](VARIANTS[way](card)))
# What a wrong device breaks is where host and card meet; the rest would take as long again.
meeting = [name for name in sentences() if any(word in name for word in ("host", "sees", "rw", "barrier"))]
results = [run_test("edu", name) for name in (sentences() if device == "EduDeviceAPI" else meeting)]
for result in results:
    print(f"{result.outcome:5} {result.name} {result.detail}")
sys.exit(any(result.outcome == "fail" for result in results))
