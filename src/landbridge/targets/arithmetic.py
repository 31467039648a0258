"""Arithmetic: how the kernels of a target compute floats, where it differs from IEEE 754.

A kind that has options of these names declares them; ``ARITHMETIC_OPTIONS`` are such options, for plugins.
"""

from __future__ import annotations

from landbridge.records import record
from landbridge.targets.kind import Option
from landbridge.targets.target import Target

ARITHMETIC_OPTIONS = (
    Option(
        "denormals",
        "str",
        "Denormal floats in kernels: computed with, or taken for zeros of their sign.",
        default="keep",
        choices=("flush", "keep"),
    ),
    Option("infinities", "bool", "Whether kernels compute with infinities and NaNs as IEEE 754 says.", default=True),
    Option(
        "contraction",
        "str",
        "A product and the sum that reads it: rounded once where the kernel allows it, or wherever the device likes.",
        default="allowed",
        choices=("allowed", "free"),
    ),
)


@record(frozen=True)
class Arithmetic:
    """The arithmetic of a target.

    ``flushes_denormals``: denormal operands and results may be zeros of their sign; None where the target says neither.
    ``infinities``: infinities and NaNs are computed with; None where the target says neither, and it is assumed. A
    kernel's infinities become the largest finite numbers where there are none. ``free_contraction``: the device rounds
    a product and a sum together also where the kernel needs both rounded; such kernels run elsewhere.
    """

    flushes_denormals: bool | None = None
    infinities: bool | None = None
    free_contraction: bool = False


def arithmetic_of(target: Target) -> Arithmetic:
    """Returns the arithmetic that the options of ``target`` declare."""
    denormals, infinities = target.options.get("denormals"), target.options.get("infinities")
    return Arithmetic(
        flushes_denormals=None if denormals is None else denormals == "flush",
        infinities=infinities if isinstance(infinities, bool) else None,
        free_contraction=target.options.get("contraction") == "free",
    )
