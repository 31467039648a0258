"""The expansion of each function of f32, by the name C gives it."""

from __future__ import annotations

from collections.abc import Callable

from landbridge.codegen import math_angles, math_expand, math_inverse, math_power, math_remainder
from landbridge.codegen.math_builder import Term

#: The common ones, which every generator prints but that of C, whose library has them.
COMMON: dict[str, Callable[..., Term]] = {
    "exp": math_expand.exp,
    "exp2": math_expand.exp2,
    "expm1": math_expand.expm1,
    "log": math_expand.log_,
    "log2": math_expand.log2_,
    "log10": math_expand.log10_,
    "log1p": math_expand.log1p,
    "tanh": math_expand.tanh,
    "erf": math_expand.erf,
    "sin": math_angles.sin,
    "cos": math_angles.cos,
    "pow": math_power.pow_,
}
#: All of them: for targets whose libraries promise less than they must.
EVERY: dict[str, Callable[..., Term]] = {
    **COMMON,
    **math_inverse.EXPANSIONS,
    "tan": math_angles.tan,
    "fmod": math_remainder.near_fmod,
    "pow": math_power.pow_single,
}
#: Functions whose expansion holds only for magnitudes up to the limit.
LIMITED: dict[str, float] = dict.fromkeys(math_angles.FAR, math_angles.TRIGONOMETRIC_LIMIT)


def _beyond(name: str) -> Callable[..., Term]:
    return lambda x: x.abs().not_less(LIMITED[name])


#: Of functions whose expansion does not hold everywhere: the lanes where it does not, and what continues it there.
FAR: dict[str, tuple[Callable[..., Term], Callable[..., Term]]] = {
    "fmod": (math_remainder.is_far, math_remainder.far_fmod),
    **{name: (_beyond(name), continuation) for name, continuation in math_angles.FAR.items()},
}
