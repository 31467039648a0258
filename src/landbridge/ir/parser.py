"""IrParser: xdsl's parser, which reads what xdsl prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import AnyFloat
from xdsl.parser import AttrParser, Parser


class IrParser(Parser):
    """In dense constants of floats a number in hexadecimal is the bits of one, as infinities and NaN are printed.

    xdsl 0.74 reads such an element as an integer, ``dense<0xff800000>`` as 4286578688 and not as minus infinity.
    """

    def _parse_tensor_literal(self) -> tuple[list[AttrParser._TensorLiteralElement], list[int]]:
        elements, shape = super()._parse_tensor_literal()
        return [_Bits(e.is_negative, e.value, e.span) if _is_hexadecimal(e) else e for e in elements], shape


@dataclass
class _Bits(AttrParser._TensorLiteralElement):
    """An element in hexadecimal."""

    def to_type(self, parser: AttrParser, type: Any) -> Any:
        if not isinstance(type, AnyFloat):
            return super().to_type(parser, type)
        (value,) = type.iter_unpack(self.to_int(parser).to_bytes(type.compile_time_size, "little"))
        return value


def _is_hexadecimal(element: AttrParser._TensorLiteralElement) -> bool:
    return element.span.text[:2] in ("0x", "0X")
