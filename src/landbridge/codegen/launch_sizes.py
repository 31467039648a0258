"""Sizes of launches as numbers, or as words of the Calls that launch."""

from __future__ import annotations

from xdsl.dialects import func

from landbridge.errors import CodegenError
from landbridge.executable.device_image import word_name
from landbridge.ir.kernel_attributes import sizes_of
from landbridge.sizes.size import Extent, Size, dimension

#: The largest word, of 64 bits with a sign.
_LARGEST = (1 << 63) - 1


def over_words(function: func.FuncOp, extent: Extent) -> int:
    """Returns ``extent``, a number or one of the Sizes that ``function`` takes, as a LaunchSequence has it.

    Raises CodegenError for any other Size.
    """
    if not isinstance(extent, Size):
        return extent
    sizes = sizes_of(function)
    if extent not in sizes:
        raise CodegenError(
            f"function {function.sym_name.data!r}: {extent} is known when the input comes, and the function takes no "
            f"such word; it takes {', '.join(map(str, sizes)) or 'none'}"
        )
    return as_word(sizes.index(extent))


def as_word(number: int) -> int:
    """Returns word ``number`` of a Call as a LaunchSequence has it: a Size."""
    return dimension(word_name(number), low=0, high=_LARGEST)  # type: ignore[return-value]
