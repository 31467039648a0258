"""Translation of Resize and Upsample: each axis is resized by itself, from positions that are constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from landbridge.array_type import Array
from landbridge.first_tier.call_builder import ShapedValue
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.operators.request import Request, translates

#: Elements of an axis whose positions are made as constants.
_LONGEST = 1 << 24

_ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@translates("Resize", "Upsample")
def resize(r: Request) -> Sequence[ShapedValue]:
    """Translates nearest and linear interpolation."""
    x, rank = r.input(0), len(r.input(0).shape)
    scales, sizes = _requested(r)
    form = r.attribute("coordinate_transformation_mode", "half_pixel" if r.opset >= 11 else "asymmetric")
    nearest_mode = r.attribute("nearest_mode", "round_prefer_floor" if r.opset >= 11 else "floor")
    mode = r.attribute("mode", "nearest")
    if (
        mode not in ("nearest", "linear")
        or nearest_mode not in _ROUNDINGS
        or r.attribute("antialias", 0)
        or r.attribute("exclude_outside", 0)
        or r.attribute("keep_aspect_ratio_policy", "stretch") != "stretch"
        or len(scales or sizes or ()) != rank
        or 0 in x.shape
    ):
        raise NotTakenError("Resize of other forms")
    r.floats(x)
    for axis in range(rank):
        old = x.shape[axis]
        if scales is not None:
            if not 0 < scales[axis] < math.inf:
                raise NotTakenError(f"Resize by {scales[axis]}")
            scale, new = scales[axis], math.floor(old * scales[axis])
            if form in ("align_corners", "pytorch_half_pixel") and new != old * scales[axis]:
                raise NotTakenError("Resize whose corners depend on a fraction of an element")
        else:
            assert sizes is not None
            scale, new = sizes[axis] / old, sizes[axis]
        if new == old and scale == 1:
            continue
        if not 1 <= new <= _LONGEST:
            raise NotTakenError(f"Resize to {new} elements")
        x = _resized(r, x, axis, _positions(form, old, new, scale), mode, nearest_mode)
    return (x,)


def _requested(r: Request) -> tuple[list[float] | None, list[int] | None]:
    """Returns the scales, or the sizes, that the node states for all axes."""
    number = 2 if r.opset >= 11 and r.node.op_type == "Resize" else 1
    r.ignore(1, "extrapolation_value", "cubic_coeff_a")
    given = r.given("scales")
    if given is not None:
        if not isinstance(given, list):
            raise NotTakenError("scales that are no list")
        return [float(each) for each in given], None
    scales = r.optional(number)
    if scales is not None and scales.shape != (0,):
        return [float(each) for each in r.known(number).reshape(-1)], None
    return None, [int(each) for each in r.known(3).reshape(-1)]


def _positions(form: str, old: int, new: int, scale: float) -> Array:
    """Returns the coordinate in the old axis of each new element, as float64."""
    at = np.arange(new, dtype=np.float64)
    match form:
        case "half_pixel":
            return (at + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (at + 0.5) / scale - 0.5 if new > 1 else at * 0
        case "asymmetric":
            return at / scale
        case "align_corners":
            return at * (old - 1) / (new - 1) if new > 1 else at * 0
        case _:
            raise NotTakenError(f"Resize by {form!r}")


def _resized(r: Request, x: ShapedValue, axis: int, at: Array, mode: str, nearest_mode: str) -> ShapedValue:
    """Returns ``x`` with ``axis`` at the coordinates ``at``."""
    last = x.shape[axis] - 1
    shape = (*x.shape[:axis], len(at), *x.shape[axis + 1 :])
    if mode == "nearest":
        chosen = np.clip(_ROUNDINGS[nearest_mode](at), 0, last).astype(np.int64)
        (found,) = r.call("Gather", [x, r.builder.constant(chosen)], [(shape, x.dtype)], {"axis": axis})
        return found
    limited = np.clip(at, 0, last)
    low = np.floor(limited).astype(np.int64)
    high = np.minimum(low + 1, last)
    share = (limited - low).astype(x.dtype)
    operands = [x, *map(r.builder.constant, (low, high, share))]
    (found,) = r.call("Interpolate", operands, [(shape, x.dtype)], {"axis": axis})
    return found
