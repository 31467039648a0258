"""DeviceBarriers: the barriers that a device provides for its own memory and for what it imports."""

from __future__ import annotations

from landbridge.device.api import Region, Space
from landbridge.device.memory_provider import Side
from landbridge.device.protocols import AccessMode, EventBarriers, HostBarriers
from landbridge.memory.accesses import changing
from landbridge.memory.backing import Backing
from landbridge.memory.coherence_domain import CoherenceDomain
from landbridge.memory.row_space import region_at
from landbridge.memory_kind import MemoryKind
from landbridge.records import record


@record(frozen=True)
class DeviceBarriers:
    """The barriers of ``api`` for the bytes of ``space``, which is memory of ``kind``."""

    space: Space
    kind: MemoryKind
    api: HostBarriers

    @property
    def granule(self) -> int | None:
        """Returns the coherence granule of the memory kind, in bytes."""
        return self.kind.coherence_granule

    def sync(self, offset: int, nbytes: int, mode: AccessMode, side: Side) -> None:
        """Call the device's barrier for these bytes."""
        region = region_at(Region(self.space), offset)
        if side == "host":
            begin(self.api, region, nbytes, mode, is_over=False)
        else:
            end(self.api, region, nbytes, mode)

    def sync_after_work(self, offset: int, nbytes: int, mode: AccessMode) -> None:
        """Call the device's barrier before the host uses these bytes, on which all work of the device is over."""
        begin(self.api, region_at(Region(self.space), offset), nbytes, mode, is_over=True)


def begin(api: HostBarriers, region: Region, nbytes: int, mode: AccessMode, *, is_over: bool) -> None:
    """Call the barrier of ``api`` before the host's access.

    ``is_over``: all work on these bytes is known to be over. Then a device that can does not wait for other work.
    """
    device = region.space.device
    by_events = device.capability(EventBarriers) if is_over else None
    if by_events is None:
        with device.state.watching(method="begin_host_access"):
            api.begin_host_access(region, nbytes, mode)
    else:
        with device.state.watching(method="begin_host_access_after"):
            by_events.begin_host_access_after(region, nbytes, mode, ())


def end(api: HostBarriers, region: Region, nbytes: int, mode: AccessMode) -> None:
    """Call the barrier of ``api`` after the host's access."""
    with region.space.device.state.watching(method="end_host_access"):
        api.end_host_access(region, nbytes, mode)


def enter_domain(
    region: Region, kind: MemoryKind, backing: Backing, origin: int, nbytes: int, *, is_import: bool
) -> CoherenceDomain | None:
    """Returns the domain of ``backing`` for a device's barriers on ``region``, which begins at byte ``origin``.

    There is one for each space of each device, as each device may see the memory past caches of its own, until
    ``leave_domain``. None where the device has no barriers.
    """
    device = region.space.device
    api = device.capability(HostBarriers)
    if api is None:
        return None
    provider, begin, end = DeviceBarriers(region.space, kind, api), origin - region.byte_offset, origin + nbytes
    with changing:
        domain = next((known for known in backing.domains if (known.provider, known.origin) == (provider, begin)), None)
        if domain is None:
            domain = CoherenceDomain(provider, begin, 0, device, is_import=is_import)
            backing.add_domain(domain)
        domain.nbytes = max(domain.nbytes, end - begin)
        domain.users += 1
    return domain


def leave_domain(domain: CoherenceDomain, backing: Backing) -> None:
    """Release ``domain``; its last user writes back what the device wrote, as no record of it remains."""
    with changing:
        domain.users -= 1
        is_last = not domain.users
        if is_last:
            backing.domains = tuple(known for known in backing.domains if known is not domain)
    if is_last and (device := domain.device) is not None and not device.is_lost:
        domain.write_to_host(domain.origin, domain.origin + domain.nbytes)
