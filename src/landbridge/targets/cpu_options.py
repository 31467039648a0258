"""The options that all kinds of CPU targets share."""

from __future__ import annotations

from landbridge.targets.kind import Option, Options

#: Options of all kinds of CPU targets.
CPU_OPTIONS = (
    Option("num-cores", "int", "Cores that kernels are split for.", minimum=1),
    Option(
        "vector-bits",
        "int",
        "Bits of a vector register; derived from the CPU when absent.",
        minimum=32,
        power_of_two=True,
    ),
    Option("vector-registers", "int", "Vector registers; derived from the CPU when absent.", minimum=4),
    Option("l1-bytes", "int", "Data cache nearest to a core, in bytes.", minimum=1),
    Option("l2-bytes", "int", "Second cache of a core, in bytes.", minimum=1),
    Option(
        "denormals",
        "str",
        "Denormal floats in kernels: taken for zeros, which is fast, or computed with.",
        default="flush",
        choices=("flush", "keep"),
    ),
)


def flushes_denormals(options: Options) -> bool:
    """Returns whether kernels of a CPU target with ``options`` flush denormal floats to zero; the default is no."""
    return options.get("denormals") == "flush"


def declared_features(mattr: object) -> tuple[str, ...]:
    """Returns the signed features of ``mattr``, which is one string or several."""
    return mattr if isinstance(mattr, tuple) else (str(mattr),)


def switched_on(mattr: object) -> tuple[str, ...]:
    """Returns the features that ``mattr`` switches on, sorted."""
    return tuple(sorted(name[1:] for name in declared_features(mattr) if name.startswith("+")))
