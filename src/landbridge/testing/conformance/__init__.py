"""The conformance suite: the requirements on every device, as tests that the author of a plugin runs.

::

    from landbridge.testing.conformance import DeviceConformance

    class TestMyNpu(DeviceConformance):
        device_name = "mynpu"

pytest collects the class; each docstring is the sentence of the contract that the test checks. A test of an ability
that the device does not have is skipped and says which. ``landbridge conformance DEVICE`` runs the same without pytest.
"""

from __future__ import annotations

from landbridge.testing.conformance.acquisitions import AcquisitionConformance
from landbridge.testing.conformance.arithmetic import ArithmeticConformance
from landbridge.testing.conformance.barriers import BarrierConformance
from landbridge.testing.conformance.copies import CopyConformance
from landbridge.testing.conformance.event_barriers import EventBarrierConformance
from landbridge.testing.conformance.facts import FactConformance
from landbridge.testing.conformance.fences import FenceConformance
from landbridge.testing.conformance.host_access import HostAccessConformance
from landbridge.testing.conformance.launches import LaunchConformance
from landbridge.testing.conformance.leaks import LeakConformance
from landbridge.testing.conformance.lifecycles import LifecycleConformance
from landbridge.testing.conformance.nd import NdSpaceConformance
from landbridge.testing.conformance.next_lives import NextLifeConformance
from landbridge.testing.conformance.ordering import OrderConformance
from landbridge.testing.conformance.pressure import PressureConformance
from landbridge.testing.conformance.reach import ReachConformance
from landbridge.testing.conformance.recordings import RecordingConformance
from landbridge.testing.conformance.row_launches import RowLaunchConformance
from landbridge.testing.conformance.sharing import SharingConformance
from landbridge.testing.conformance.spaces import SpaceConformance
from landbridge.testing.conformance.streams import StreamConformance
from landbridge.testing.conformance.suspensions import SuspensionConformance
from landbridge.testing.conformance.tensors import TensorConformance
from landbridge.testing.conformance.timing import TimingConformance
from landbridge.testing.conformance.transfers import TransferConformance
from landbridge.testing.conformance.workspaces import WorkspaceConformance


class DeviceConformance(
    FactConformance,
    SpaceConformance,
    PressureConformance,
    LeakConformance,
    NdSpaceConformance,
    CopyConformance,
    TransferConformance,
    StreamConformance,
    OrderConformance,
    TimingConformance,
    FenceConformance,
    HostAccessConformance,
    BarrierConformance,
    EventBarrierConformance,
    ReachConformance,
    LaunchConformance,
    RowLaunchConformance,
    ArithmeticConformance,
    LifecycleConformance,
    NextLifeConformance,
    SuspensionConformance,
    WorkspaceConformance,
    AcquisitionConformance,
    SharingConformance,
    RecordingConformance,
    TensorConformance,
):
    """All tests of the suite. Set ``device_name`` in a subclass."""


__all__ = ["DeviceConformance"]
