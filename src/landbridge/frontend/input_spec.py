"""InputSpec: the format of an application's frames, where it differs from the model's input."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, cast, get_args

from landbridge.dtypes import dtype_name
from landbridge.errors import InputError
from landbridge.records import record
from landbridge.shapes.strides import check_shape, check_strides, row_major
from landbridge.sizes.size import Extent

Resize = Literal["nearest", "linear"]

#: The axes of a model's input where an InputSpec does not name them.
_BY_RANK = {1: "C", 2: "NC", 3: "CHW", 4: "NCHW", 5: "NCDHW"}
_RESIZED = "DHW"


@record(frozen=True)
class InputSpec:
    """The format of the frames that an application has for one input of a model; ``lb.compile(model, inputs={"x":
    InputSpec(...)})``.

    The compiled program reads such a frame where it lies: its first kernel converts, normalizes and reorders, and
    nothing is copied. What is left out is as the model has it.

    - ``dtype``: of the frame's elements, ``"uint8"`` for most cameras.
    - ``layout``: the frame's axes, a permutation of ``model_layout``, such as ``"NHWC"``.
    - ``shape``: extents in the order of ``layout``. They are the model's, but for D, H and W where ``resize`` is given.
      Text is an open dimension, or an expression of some, as in ``shapes=`` of ``lb.compile``.
    - ``strides``: elements between neighbours of each axis, in the order of ``layout``; left out they are dense. The
      pitch of a row, divided by the bytes of an element, is the stride of H.
    - ``mean``, ``scale``: the model sees ``(frame - mean) * scale``; each is a number, or one for each channel (C).
      They are applied in float32, or in the model's dtype where that is wider.
    - ``resize``: how a frame of another size becomes the model's: ``"nearest"`` or ``"linear"``, with the half-pixel
      centers of ONNX Resize (https://onnx.ai/onnx/operators/onnx__Resize.html) and no filter against aliasing.
    - ``model_layout``: the letters of the model's own axes; left out, ``"NCHW"`` for four of them, ``"CHW"`` for three.

    Raises InputError for what contradicts itself; what does not fit the model is reported by ``compile``.
    """

    dtype: str = ""
    layout: str = ""
    shape: tuple[int | str, ...] | None = None
    strides: tuple[int, ...] | None = None
    mean: float | tuple[float, ...] = 0.0
    scale: float | tuple[float, ...] = 1.0
    resize: Resize | None = None
    model_layout: str = ""

    def __post_init__(self) -> None:
        _set(self, "dtype", dtype_name(self.dtype) if self.dtype else "")
        for field in ("layout", "model_layout"):
            letters = getattr(self, field)
            if not isinstance(letters, str) or len(set(letters)) != len(letters):
                raise InputError(f"{field} {letters!r} is not legal; give one letter for each axis, such as 'NHWC'")
        if self.layout and self.model_layout and sorted(self.layout) != sorted(self.model_layout):
            raise InputError(f"layout {self.layout!r} is not a permutation of the model's axes {self.model_layout!r}")
        if self.resize is not None and self.resize not in get_args(Resize):
            raise InputError(f"resize {self.resize!r} is not legal; give 'nearest', 'linear' or None")
        for field in ("mean", "scale"):
            _set(self, field, _values(field, getattr(self, field)))
        if self.shape is not None:
            _set(self, "shape", _checked(self.shape, self.dtype or "uint8"))
        if self.strides is not None:
            _set(self, "strides", _integers(self.strides))
        ranks = {len(v) for v in (self.layout or None, self.model_layout or None, self.shape, self.strides) if v}
        if len(ranks) > 1:
            raise InputError(
                f"layout {self.layout!r}, model_layout {self.model_layout!r}, shape {self.shape} and strides "
                f"{self.strides} have different numbers of axes; give each one entry for each axis of the frame"
            )

    def model_axes(self, rank: int) -> str:
        """Returns the letters of the axes of the model's input of ``rank``; raises InputError for an ambiguous
        ``rank``.
        """
        letters = self.model_layout or _BY_RANK.get(rank, "")
        if len(letters) != rank:
            raise InputError(
                f"the model's input has {rank} axes and model_layout is {letters!r}; give one letter for each"
            )
        return letters

    def axes(self, rank: int) -> str:
        """Returns the letters of the frame's axes: those of the model unless ``layout`` differs."""
        model = self.model_axes(rank)
        layout = self.layout or model
        if sorted(layout) != sorted(model):
            raise InputError(
                f"layout {layout!r} is not a permutation of the model's axes {model!r}; name the model's own axes with "
                "model_layout= when they are others"
            )
        return layout

    def model_shape(self) -> tuple[int | str, ...] | None:
        """Returns the shape of the model's input, where it follows from that of the frame."""
        if self.shape is None or self.resize is not None:
            return None
        at = dict(zip(self.axes(len(self.shape)), self.shape, strict=True))
        return tuple(at[letter] for letter in self.model_axes(len(self.shape)))

    def frame_shape(self, model: Sequence[Extent], shape: Sequence[Extent] | None) -> tuple[Extent, ...]:
        """Returns the shape of a frame for a model's input of shape ``model``; raises InputError when they do not fit.

        ``shape``: the extents of this spec's ``shape``, with text parsed.
        """
        layout = self.axes(len(model))
        wanted = dict(zip(self.model_axes(len(model)), model, strict=True))
        if shape is None:
            return tuple(wanted[letter] for letter in layout)
        if len(shape) != len(layout):
            raise InputError(f"shape {self.shape} has {len(shape)} axes, the layout {layout!r} {len(layout)}")
        for letter, extent in zip(layout, shape, strict=True):
            if extent != wanted[letter] and (self.resize is None or letter not in _RESIZED or not extent):
                way_out = "resize= changes D, H and W alone" if self.resize else "give resize= to change D, H and W"
                raise InputError(
                    f"axis {letter} of the frame has extent {extent} and the model's {wanted[letter]}; {way_out}"
                )
        return tuple(shape)

    def frame_strides(self, shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
        """Returns the strides, in elements, of a frame of ``shape``; raises InputError where two elements would share
        memory.
        """
        values = cast(tuple[int, ...], shape)
        if self.strides is None:
            return row_major(values)
        strides = check_strides(self.strides, values)
        reach: Extent = 0  # the elements of the inner axes
        further = [(step, extent) for step, extent in zip(strides, shape, strict=True) if extent not in (0, 1)]
        for step, extent in sorted(further, key=operator.itemgetter(0)):
            if step <= reach:
                raise InputError(
                    f"strides {strides} of shape {shape} are not legal: with a stride of {step}, elements of a frame "
                    "would share memory; give strides in elements, none negative, that reach over the axes inside"
                )
            reach += (extent - 1) * step
        return strides

    def per_channel(self, model: Sequence[Extent]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Returns ``mean`` and ``scale``, each as one number or one for each channel of a model's input of shape
        ``model``.
        """
        letters = self.model_axes(len(model))
        channels = model[letters.index("C")] if "C" in letters else 0
        given = tuple(v if isinstance(v, tuple) else (v,) for v in (self.mean, self.scale))
        for field, values in zip(("mean", "scale"), given, strict=True):
            if len(values) not in (1, channels):
                raise InputError(f"{field} has {len(values)} values and the model's input {channels} channels")
        mean, scale = (values[:1] if len(set(values)) == 1 else values for values in given)
        return mean, scale


def _set(spec: InputSpec, field: str, value: object) -> None:
    object.__setattr__(spec, field, value)


def _checked(shape: Sequence[int | str], dtype: str) -> tuple[int | str, ...]:
    """Returns ``shape`` with its numbers as ints; raises InputError for a shape that no tensor has."""
    if any(isinstance(extent, str) for extent in shape):
        check_shape([extent for extent in shape if not isinstance(extent, str)], dtype)
        return tuple(extent if isinstance(extent, str) else operator.index(extent) for extent in shape)
    return check_shape(cast(Sequence[int], shape), dtype)


def _integers(values: Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple(map(operator.index, values))
    except TypeError:
        raise InputError(f"strides {values!r} are not legal; give an integer for each axis, in elements") from None


def _values(field: str, value: Any) -> float | tuple[float, ...]:
    try:
        one = not hasattr(value, "__len__")
        values = (float(value),) if one else tuple(map(float, value))
    except (TypeError, ValueError):
        values, one = (), False
    if not values or not all(map(math.isfinite, values)):
        raise InputError(f"{field} {value!r} is not legal; give a finite number, or one for each channel")
    return values[0] if one else values
