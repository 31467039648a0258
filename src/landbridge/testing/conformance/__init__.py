"""The conformance suite: what every device must do, as tests that a plugin author runs on his own.

::

    from landbridge.testing.conformance import DeviceConformance

    class TestMyNpu(DeviceConformance):
        device_name = "mynpu"

pytest collects the class; each docstring is the sentence of the contract that the test checks. A test of an ability
that the device does not have is skipped and says which. ``landbridge conformance DEVICE`` runs the same without pytest.
"""

from __future__ import annotations

from landbridge.testing.conformance.copies import CopyConformance
from landbridge.testing.conformance.facts import FactConformance
from landbridge.testing.conformance.host_access import HostAccessConformance
from landbridge.testing.conformance.nd import NdSpaceConformance
from landbridge.testing.conformance.spaces import SpaceConformance
from landbridge.testing.conformance.streams import StreamConformance
from landbridge.testing.conformance.tensors import TensorConformance


class DeviceConformance(
    FactConformance,
    SpaceConformance,
    NdSpaceConformance,
    CopyConformance,
    StreamConformance,
    HostAccessConformance,
    TensorConformance,
):
    """All of it. Set ``device_name`` in a subclass."""


__all__ = ["DeviceConformance"]
