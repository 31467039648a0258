"""The target kind ``freestanding``: C for processors without an operating system, such as Cortex-M."""

from __future__ import annotations

from landbridge.errors import TargetError
from landbridge.records import record
from landbridge.targets.host_memory import host_memory
from landbridge.targets.kind import Option, OptionValue, TargetKind
from landbridge.text.did_you_mean import did_you_mean

#: Bytes that are assumed of memory near to the core where it has no cache: blocks of products are kept small for it.
_UNCACHED_BYTES = 16 << 10


@record(frozen=True)
class Controller:
    """What kernels are shaped for: rows of four 32-bit floats that a tile may have in registers, and bytes of data
    cache, 0 where the core has none.
    """

    rows: int
    cache_bytes: int


#: By the name that compilers take in ``-mcpu=``. Cores with s0 to s31 have six rows in them: a tile of eight is no
#: faster there, and a tenth longer. Caches: the largest of each core's Technical Reference Manual.
CONTROLLERS = {
    "cortex-m4": Controller(6, 0),
    "cortex-m7": Controller(6, 64 << 10),
    "cortex-m33": Controller(6, 0),
    "cortex-m55": Controller(6, 64 << 10),
    "cortex-m85": Controller(6, 64 << 10),
    "generic": Controller(4, 0),
}


def _parse(given: dict[str, OptionValue]) -> dict[str, OptionValue]:
    """Completes ``given`` by what is known of the processor; raises TargetError for one that is not known."""
    options = dict(given)
    cpu = str(options.setdefault("mcpu", "generic"))
    found = CONTROLLERS.get(cpu)
    if found is None:
        raise TargetError(
            f"target 'freestanding' knows no processor {cpu!r}{did_you_mean(cpu, CONTROLLERS)}; legal: "
            f"{', '.join(CONTROLLERS)}; 'generic' is C for every processor of 32 bits"
        )
    options.setdefault("vector-registers", found.rows)
    options.setdefault("l1-bytes", found.cache_bytes or _UNCACHED_BYTES)
    options.setdefault("l2-bytes", found.cache_bytes or _UNCACHED_BYTES)
    return options


FREESTANDING = TargetKind(
    name="freestanding",
    doc="C11 without a C library for processors of 32 bits without an operating system; `landbridge export` writes it",
    options=(
        Option("mcpu", "str", f"The processor, as compilers name it: {', '.join(CONTROLLERS)}."),
        Option(
            "vector-bits",
            "int",
            "Bits of the rows of tiles, whose lanes are variables of their own; 32 is the least code, without tiles.",
            default=128,
            minimum=32,
            power_of_two=True,
        ),
        Option("vector-registers", "int", "Such rows that a core has in its registers.", minimum=4),
        Option("num-cores", "int", "Cores; a program runs on one.", default=1, minimum=1),
        Option("l1-bytes", "int", "Data cache, or the bytes of memory that products are blocked for.", minimum=1),
        Option("l2-bytes", "int", "As l1-bytes where there is no second cache.", minimum=1),
        Option(
            "denormals",
            "str",
            "Denormal floats in kernels: as the processor's control register says, or computed with.",
            default="keep",
            choices=("flush", "keep"),
        ),
    ),
    device_types=(),
    keys=("cpu",),
    on_host=True,
    formats=("freestanding-c",),
    parser=_parse,
    memory=host_memory,
)
