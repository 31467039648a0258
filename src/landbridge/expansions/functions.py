"""The expansion of each function of f32, by the name C gives it."""

from __future__ import annotations

from collections.abc import Callable

from landbridge.expansions import angles, exponentials, inverse, power, remainder
from landbridge.expansions.terms import Term

#: The common ones, which every generator prints but that of C, whose library has them.
COMMON: dict[str, Callable[..., Term]] = {
    "exp": exponentials.exp,
    "exp2": exponentials.exp2,
    "expm1": exponentials.expm1,
    "log": exponentials.log_,
    "log2": exponentials.log2_,
    "log10": exponentials.log10_,
    "log1p": exponentials.log1p,
    "tanh": exponentials.tanh,
    "erf": exponentials.erf,
    "sin": angles.sin,
    "cos": angles.cos,
    "pow": power.pow_,
}
#: Those for vectors of a CPU, which the C library's functions take lane by lane.
FOR_LANES: dict[str, Callable[..., Term]] = {**COMMON, **inverse.EXPANSIONS, "tan": angles.tan}
#: All of them: for targets whose libraries promise less than they must.
EVERY: dict[str, Callable[..., Term]] = {
    **FOR_LANES,
    "fmod": remainder.small_fmod,
    "pow": power.pow_single,
}
#: Functions whose expansion holds only for magnitudes up to the limit.
LIMITED: dict[str, float] = dict.fromkeys(angles.LARGE, angles.TRIGONOMETRIC_LIMIT)


def _beyond(name: str) -> Callable[..., Term]:
    return lambda x: x.abs().not_less(LIMITED[name])


#: Of functions whose expansion does not hold everywhere: the lanes where it does not, and what continues it there.
LARGE: dict[str, tuple[Callable[..., Term], Callable[..., Term]]] = {
    "fmod": (remainder.is_large, remainder.large_fmod),
    **{name: (_beyond(name), continuation) for name, continuation in angles.LARGE.items()},
}
