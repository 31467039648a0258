"""A file and a folder in place of a node of u-dma-buf."""

from __future__ import annotations

from pathlib import Path

from landbridge.devices.cma.u_dma_buf import UDmaBuf

BYTES = 1 << 20


class FreshAddresses:
    """Bus addresses at which nothing was before: memory at the same address is the same memory.

    They are dense, as some tests ask for addresses of 32 bits after any number of others.
    """

    def __init__(self) -> None:
        self._next = 0x1F300000

    def take(self, nbytes: int) -> int:
        """Returns the first of ``nbytes`` addresses."""
        address = self._next
        self._next += (-(-nbytes // BYTES) + 1) * BYTES
        return address


fresh_addresses = FreshAddresses()


class Node(UDmaBuf):
    """``udmabuf0`` in ``folder``; ``address`` is its bus address."""

    def __init__(self, folder: Path, *, uncached: bool = False, nbytes: int = BYTES, **files: object) -> None:
        self.address = fresh_addresses.take(nbytes)
        declared = {"phys_addr": f"0x{self.address:016x}", "size": nbytes, "sync_mode": 1, "dma_coherent": 0, **files}
        sysfs = folder / "sys" / "udmabuf0"
        sysfs.mkdir(parents=True)
        for name, value in declared.items():
            (sysfs / name).write_text(f"{value}\n")
        (folder / "dev").mkdir()
        with (folder / "dev" / "udmabuf0").open("wb") as memory:
            memory.truncate(nbytes)
        super().__init__("udmabuf0", uncached=uncached, folder=folder / "sys", nodes=folder / "dev")
        self.sysfs, self.node = sysfs, folder / "dev" / "udmabuf0"

    def missing(self) -> None:
        """What is no device file will do."""

    def last_sync(self) -> tuple[str, int, int, int] | None:
        """The barrier that was asked for last, as (command, offset, size, direction); forgotten by asking."""
        for command in ("sync_for_cpu", "sync_for_device"):
            if (self.sysfs / command).exists():
                (self.sysfs / command).unlink()
                offset, size, way = (int((self.sysfs / f"sync_{name}").read_text()) for name in _REGISTERS)
                return command, offset, size, way
        return None


_REGISTERS = ("offset", "size", "direction")
