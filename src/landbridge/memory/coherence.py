"""Coherence: the state of each granule of memory where host and device do not see each other's writes.

A granule is clean, host-dirty (the host wrote, the device does not see it yet) or device-dirty (the reverse). Both at
once would lose one side's writes and is an error. Barriers are rounded outwards to whole granules. A host-dirty granule
is flushed before any access of the device, so that what a device will write is in no cache of the host when it starts;
what it wrote is invalidated before the host reads. All Storages over the same memory share this state, as does a Tensor
of the host over an array that a device has imported. Coherent memory has no such state, and its barriers are no-ops.
"""

from __future__ import annotations

from landbridge.device.protocols import AccessMode, HostBarriers
from landbridge.errors import HostAccessError
from landbridge.memory.accesses import UsingProgram, changing
from landbridge.memory.byte_ranges import Range
from landbridge.memory.coherence_domain import CoherenceDomain
from landbridge.memory.device_barriers import begin, end
from landbridge.memory.row_space import region_at
from landbridge.memory.storage import Storage


def begin_host_access(
    storage: Storage,
    start: int,
    stop: int,
    mode: AccessMode,
    program: UsingProgram | None = None,
    *,
    in_run: bool = False,
) -> None:
    """Make ``start <= b < stop`` ready for the host to read or write them, as ``mode`` says.

    ``in_run``: a run does, which has waited for its own work on them. Barriers of devices that can then do not wait;
    others, and those of host views, wait also for work that an application submitted past the runtime.

    Waits for what is queued on their granules, and for runs other than those of ``program``, whose lock this thread
    holds. "w" discards the content of the range, but not of the rest of its granules.
    """
    storage.wait(*_widest(storage, start, stop), writes=mode != "r", program=program)
    domains, origin = storage.domains()
    if storage.domain is None and not _has_own_barriers(domains):
        _begin(storage, start, stop, mode, is_over=in_run)
    first, last = origin + start, origin + stop
    for domain in domains:
        low, high = domain.granules(first, last)
        if _is_for(storage, domain):
            shares_granules = low < first or last < min(high, domain.origin + domain.nbytes)
            if mode == "w" and shares_granules:
                domain.flush(low, high)
                domain.bring(low, high, "rw", is_over=in_run)
            else:
                if mode != "w":
                    # another view has these granules: the barrier must not bring back old bytes
                    domain.flush(low, high)
                domain.bring(low, high, mode, is_over=in_run)
            domain.by_device.remove(low, high)
        elif domain.by_device.within(low, high):
            domain.flush(low, high)
            domain.write_to_host(low, high)
        if mode != "r":
            domain.by_host.add(low, high)


def end_host_access(storage: Storage, start: int, stop: int, mode: AccessMode) -> None:
    """Make what the host wrote to ``start <= b < stop`` visible to the device, when ``mode`` writes.

    Raises HostAccessError when the device wrote to the same granules in between; no barrier is called then.
    """
    domains, origin = storage.domains()
    if mode != "r":
        for domain in domains:
            low, high = domain.granules(origin + start, origin + stop)
            if lost := domain.by_device.within(low, high):
                domain.by_host.remove(low, high)
                granule = domain.provider.granule or f"all of its {domain.nbytes}"
                raise HostAccessError(
                    f"host and device both wrote bytes {lost[0][0] - origin} to {lost[0][1] - origin} of a storage on "
                    f"{storage.device}, whose granules are {granule} bytes: what the host wrote there is not flushed; "
                    "call invalidate() before writing, and leave the view before the device writes"
                )
    if storage.domain is None and not _has_own_barriers(domains):
        _end(storage, start, stop, mode)
    for domain in domains:  # of other views: before their device's next access
        if _is_for(storage, domain):
            low, high = domain.granules(origin + start, origin + stop)
            domain.sync(low, high, mode, "device")
            if mode != "r":
                domain.by_host.remove(low, high)


def mark_new(storage: Storage) -> None:
    """Mark all of ``storage``, which is fresh memory, as written by the host.

    Cache lines that its zeros or its last owner left could otherwise be written back over what a device writes.
    """
    domains, origin = storage.domains()
    for domain in domains:
        domain.by_host.add(*domain.granules(origin, origin + storage.nbytes))


def mark_imported(storage: Storage) -> None:
    """Mark ``storage``, host memory that a device begins to use, as written by the host.

    The device's barriers did not cover yet what its owner wrote. What the device wrote through another import stays as
    it is.
    """
    if (domain := storage.domain) is None:
        return
    with changing:  # the first of several threads that import the same
        domains, origin = storage.domains()
        for part in domain.entered.outside(origin, origin + storage.nbytes):
            _host_wrote(domain, domains, *part)
        domain.entered.add(origin, origin + storage.nbytes)


def before_device_access(storage: Storage, start: int, stop: int, *, writes: bool) -> None:
    """Flush what the host wrote to ``start <= b < stop``; callers do this before they queue work of the device
    on them.
    """
    domains, origin = storage.domains()
    if not domains:
        return
    first, last = origin + start, origin + stop
    for domain in domains:
        low, high = domain.granules(first, last)
        if not _is_for(storage, domain) and domain.device != storage.device and domain.by_device.within(low, high):
            domain.write_to_host(low, high)
            for other in domains:
                if other is not domain:
                    other.by_host.add(low, high)
    for domain in domains:
        low, high = domain.granules(first, last)
        if _is_for(storage, domain):
            domain.flush(low, high)
            if writes:
                domain.by_device.add(low, high)
        elif writes and domain.device == storage.device:
            # another import of the same bytes: now, as later it would overwrite what is written next
            domain.flush(low, high)
        elif writes:
            domain.by_host.add(low, high)  # as that device sees it, which needs a barrier of its own


def is_borrowed(storage: Storage) -> bool:
    """Returns whether ``storage`` is memory whose owner accesses it without barriers other than the device's."""
    return storage.owner is not None and storage.domain is not None and not _has_own_barriers(storage.domains()[0])


def lend(storage: Storage, start: int, stop: int, *, writes: bool) -> None:
    """Prepare memory that its owner writes without barriers, before a device uses it.

    All of ``start <= b < stop`` counts as written by the host, except what devices wrote and the host has not seen yet.
    """
    domains, origin = storage.domains()
    if not domains:
        return
    for domain in domains:
        _host_wrote(domain, domains, origin + start, origin + stop)
    before_device_access(storage, start, stop, writes=writes)


def take_back(storage: Storage, start: int, stop: int) -> None:
    """Make what a device wrote to borrowed memory ``start <= b < stop`` visible to the host, after the device's use."""
    domains, origin = storage.domains()
    for domain in domains:
        if _is_for(storage, domain):
            low, high = domain.granules(origin + start, origin + stop)
            domain.bring(low, high, "r", is_over=True)
            domain.by_device.remove(low, high)


def share_granules(storage: Storage, start: int, stop: int, other: Storage, first: int, last: int) -> bool:
    """Returns whether a barrier for ``start <= b < stop`` of ``storage`` is one for bytes of ``first <= b < last`` of
    ``other``.
    """
    domains, origin = storage.domains()
    others, other_origin = other.domains()
    return any(
        low < other_high and other_low < high
        for domain in domains
        if domain in others
        for low, high in (domain.granules(origin + start, origin + stop),)
        for other_low, other_high in (domain.granules(other_origin + first, other_origin + last),)
    )


def _host_wrote(domain: CoherenceDomain, domains: tuple[CoherenceDomain, ...], start: int, stop: int) -> None:
    """Mark these bytes as written by the host, except those that the device of ``domain`` wrote last, by any import."""
    domain.by_host.add(*domain.granules(start, stop))
    for other in domains:
        if other.device == domain.device:
            for written in other.by_device.within(*other.granules(start, stop)):
                domain.by_host.remove(*written)


def _is_for(storage: Storage, domain: CoherenceDomain) -> bool:
    """Returns whether accesses through ``storage`` need the barriers of ``domain``, whoever wrote last."""
    return domain is storage.domain or domain.device is None


def _has_own_barriers(domains: tuple[CoherenceDomain, ...]) -> bool:
    return any(domain.device is None for domain in domains)


def _widest(storage: Storage, start: int, stop: int) -> Range:
    """Returns the range, rounded outwards to whole granules of every domain."""
    domains, origin = storage.domains()
    ranges = [domain.granules(origin + start, origin + stop) for domain in domains]
    low = min((low - origin for low, _ in ranges), default=start)
    return min(low, start), max((high - origin for _, high in ranges), default=stop)


def _begin(storage: Storage, start: int, stop: int, mode: AccessMode, *, is_over: bool) -> None:
    if (api := storage.device.capability(HostBarriers)) is not None:
        begin(api, region_at(storage.live_region, start), stop - start, mode, is_over=is_over)


def _end(storage: Storage, start: int, stop: int, mode: AccessMode) -> None:
    if (api := storage.device.capability(HostBarriers)) is not None:
        end(api, region_at(storage.live_region, start), stop - start, mode)
