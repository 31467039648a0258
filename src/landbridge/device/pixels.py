"""Byte offsets in images, for devices whose drivers count pixels."""

from __future__ import annotations

from landbridge.errors import InputError


class PixelRows:
    """An image of ``height`` rows of ``width`` pixels of ``pixel_bytes``; its rows are dense in copies."""

    __slots__ = ()

    height: int
    width: int
    pixel_bytes: int

    @property
    def row_pitch(self) -> int:
        """Returns the bytes from one row to the next."""
        return self.width * self.pixel_bytes

    def check_pixels(self, byte_offset: int, nbytes: int) -> None:
        """Raises InputError unless the bytes exist, and are whole rows or pixels of one row."""
        pitch = self.row_pitch
        inside = nbytes >= 0 and 0 <= byte_offset <= self.height * pitch - nbytes
        rows = byte_offset % pitch == 0 and nbytes % pitch == 0
        pixels = byte_offset % self.pixel_bytes == nbytes % self.pixel_bytes == 0
        if not inside or not (rows or (pixels and byte_offset % pitch + nbytes <= pitch)):
            raise InputError(
                f"{nbytes} bytes from {byte_offset} on of an image of {self.height} rows of {pitch} bytes, pixels of "
                f"{self.pixel_bytes}; legal: whole rows, or whole pixels of one row"
            )

    def block(self, byte_offset: int, nbytes: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Returns the first pixel (x, y) and the extent (width, height) of bytes that ``check_pixels`` accepted."""
        row, rest = divmod(byte_offset, self.row_pitch)
        if nbytes < self.row_pitch:
            return (rest // self.pixel_bytes, row), (nbytes // self.pixel_bytes, 1)
        return (0, row), (self.width, nbytes // self.row_pitch)
