"""RecordedWork: a recording of the inner device, and the regions that it uses now, by position."""

from __future__ import annotations

from landbridge.device.api import Region
from landbridge.records import record


@record(slots=True)
class RecordedWork:
    """Work recorded on instance ``index``; replays change ``regions``, while ``rows`` of tables stay."""

    inner: object
    index: int
    regions: list[Region]
    rows: list[Region]
