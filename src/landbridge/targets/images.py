"""Image limits of a Target: the scope of images that kernels read and write, and their legal shapes.

An image is rows of pixels, and a pixel is 1, 2 or 4 elements, its *lanes*. Kernels read and write whole pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from landbridge.records import record
from landbridge.sizes.size import Extent, Size, at_least

if TYPE_CHECKING:
    from landbridge.targets.target import Target

#: The scope of images. Its three dimensions are rows, pixels, and the lanes of a pixel.
TEXTURE_SCOPE = "global.texture"
LANES = (1, 2, 4)
#: The dtypes in images. Kernels that move integers ignore their sign, which an image has: none are unsigned.
DTYPES = ("float32", "float16", "int32", "int8")


def image_format(dtype: str, lanes: int) -> str:
    """Returns the name of pixels of ``lanes`` elements of ``dtype`` in the option ``image-formats``."""
    return f"{dtype}x{lanes}"


@record(frozen=True)
class ImageLimits:
    """The largest image: ``height`` rows of ``width`` pixels (options ``image-height`` and ``image-width``).

    ``formats``: the device's dtypes with their lanes, as ``"float32x4"`` (option ``image-formats``); None if they are
    unknown.
    """

    height: int
    width: int
    formats: tuple[str, ...] | None = None

    def refusal(self, extents: Sequence[Extent], dtype: str) -> str | None:
        """Returns why there is no image of ``extents`` (rows, pixels, lanes) of ``dtype``, and what is legal; None if
        there is, for some sizes of an open program at least."""
        rows, pixels, lanes = extents
        if dtype not in DTYPES:
            return f"elements of {dtype}; legal: {', '.join(DTYPES)}"
        if isinstance(lanes, Size) or lanes not in LANES:
            return f"{lanes} elements in a pixel (the axes after the last separator); legal: 1, 2 or 4"
        if not (_may_be(rows, self.height) and _may_be(pixels, self.width)):
            return f"{rows} rows of {pixels} pixels; legal: 1 to {self.height} rows of 1 to {self.width}"
        if self.formats is not None and image_format(dtype, lanes) not in self.formats:
            legal = ", ".join(str(n) for n in LANES if image_format(dtype, n) in self.formats) or "none"
            return f"{lanes} elements of {dtype} in a pixel, which this device has no format for; legal: {legal}"
        return None


def _may_be(extent: Extent, most: int) -> bool:
    """Returns whether ``extent`` is from 1 to ``most``, for some values of the dimensions at least."""
    return at_least(extent, 1) is not False and at_least(most, extent) is not False


def image_limits(target: Target, scope: str) -> ImageLimits | None:
    """Returns the limits of images in ``scope``; None if kernels of ``target`` use no images there."""
    height, width = (target.options.get(f"image-{side}") for side in ("height", "width"))
    if scope != TEXTURE_SCOPE or target.options.get("images") is not True:
        return None
    if not (isinstance(height, int) and isinstance(width, int)):
        return None
    formats = target.options.get("image-formats")
    return ImageLimits(height, width, formats if isinstance(formats, tuple) else None)
