"""Who holds memory, for the message when there is no more. Nothing is kept for it: every object is looked at."""

from __future__ import annotations

import gc

from landbridge.device.device import Device
from landbridge.memory.storage import Storage


def largest_holders(device: Device, scope: str, most: int = 5) -> str:
    """The ``most`` largest Storages of a scope and the Tensors over them; takes as long as a garbage collection."""
    from landbridge.tensor.tensor import Tensor

    held = [
        known
        for known in gc.get_objects()
        if type(known) is Storage
        and known.region is not None
        and known.owner is None
        and (known.region.space.device, known.kind.scope) == (device, scope)
    ]
    held.sort(key=lambda storage: -storage.nbytes)
    largest = []
    for storage in held[:most]:
        tensors = [repr(known) for known in gc.get_referrers(storage) if type(known) is Tensor]
        largest.append(f"{storage.nbytes} bytes by {' and '.join(sorted(set(tensors))) or 'no tensor'}")
    total = sum(storage.nbytes for storage in held)
    return f"{total} bytes are held by {len(held)} storages{', the largest: ' if largest else ''}{'; '.join(largest)}"
