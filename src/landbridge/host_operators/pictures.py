"""ImageDecoder: the pixels of a file of JPEG, PNG, WebP and others, which Pillow decodes where it is installed."""

from __future__ import annotations

import io
from importlib.util import find_spec

import numpy as np

from landbridge.errors import InputError, UnsupportedOperatorError
from landbridge.operators import Array, HostValue, Results, host_operator

#: What Pillow calls the formats of pixels, and how many channels these have.
_FORMATS = {"RGB": ("RGB", 3), "BGR": ("RGB", 3), "Grayscale": ("L", 1)}


def _results(_: HostValue, *, pixel_format: str = "RGB") -> Results:
    if pixel_format not in _FORMATS:
        raise UnsupportedOperatorError(f"pixel_format is {pixel_format!r}; legal: {', '.join(_FORMATS)}")
    if find_spec("PIL") is None:
        raise UnsupportedOperatorError("ImageDecoder needs Pillow: pip install pillow")
    return [((None, None, _FORMATS[pixel_format][1]), "uint8")]


@host_operator("", "ImageDecoder", since=20, results=_results)
def image_decoder(encoded: Array, *, pixel_format: str = "RGB") -> Array:
    """Returns the pixels of the file whose bytes are ``encoded``: (rows, columns, channels) of uint8.

    Raises InputError if it is not an image, or if Pillow is not installed in this process.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise InputError("the program has an ImageDecoder, which needs Pillow: pip install pillow") from error
    mode, channels = _FORMATS[pixel_format]
    try:
        with Image.open(io.BytesIO(encoded.tobytes())) as picture:
            pixels = np.asarray(picture.convert(mode)).reshape(picture.height, picture.width, channels)
    except UnidentifiedImageError as error:
        raise InputError(f"{encoded.size} bytes are not a picture of a format that Pillow knows") from error
    except (OSError, Image.DecompressionBombError) as error:
        raise InputError(f"a picture of {encoded.size} bytes cannot be decoded: {error}") from error
    return np.ascontiguousarray(pixels[:, :, ::-1]) if pixel_format == "BGR" else pixels
