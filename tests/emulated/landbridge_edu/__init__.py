"""QEMU's ``edu`` device for Landbridge: a PCI card with registers, an interrupt and a DMA engine of 28 bits.

Its registers are in QEMU's docs/specs/edu.rst. Register with ``landbridge_edu.register()`` on a machine that has one.
"""

from landbridge_edu.device import EduDeviceAPI
from landbridge_edu.device import register as register

__all__ = ["EduDeviceAPI", "register"]
