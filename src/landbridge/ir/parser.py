"""IrParser: xdsl's parser with fixes, so that it reads what xdsl prints, and with Sizes in brackets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, IntAttr, ModuleOp
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import AttrParser, BaseParser, Parser
from xdsl.parser.affine_parser import AffineParser
from xdsl.utils.mlir_lexer import MLIRTokenKind

from landbridge.ir.size_exprs import extent_expr
from landbridge.process.locks import new_lock
from landbridge.records import record
from landbridge.sizes.parsing import parse_size
from landbridge.sizes.size import Extent
from landbridge.sizes.terms import Symbol

#: xDSL makes the hidden regions of operations such as ``linalg.fill`` by ``implicit_region``, which replaces
#: ``Operation.__post_init__`` for all threads: of two that parse at once, each would insert its operations twice, and
#: one of the replacements would stay.
_alone = new_lock()

_DIMENSION = (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.QUESTION, MLIRTokenKind.L_SQUARE)


class IrParser(Parser):
    """Parses hexadecimal elements of dense float constants as bits, which is how infinities and NaN are printed.

    xdsl 0.74 reads such an element as an integer, ``dense<0xff800000>`` as 4286578688 and not as minus infinity.
    """

    def __init__(self, context: Context, text: str, dimensions: Mapping[str, Symbol] | None = None) -> None:
        super().__init__(context, text)
        self._dimensions = dimensions or {}

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Parse a module, while no other thread does."""
        with _alone:
            return super().parse_module(allow_implicit_module)

    def parse_shape_dimension(self, allow_dynamic: bool = True) -> int:
        """Parse a dimension of a type; one in brackets is a Size: ``[W/4]``."""
        if self._current_token.kind is not MLIRTokenKind.L_SQUARE:
            return super().parse_shape_dimension(allow_dynamic)
        return cast(int, _size_in_brackets(self, self._dimensions))

    def parse_dimension_list(self) -> list[int]:
        """Parse the dimensions of a type, as xdsl's or in brackets."""
        dims: list[int] = []
        while self._current_token.kind in _DIMENSION:
            dims.append(self.parse_shape_dimension())
            if self._parse_optional_shape_delimiter() is None:
                return dims
        if dims:
            self._resume_from(self._current_token.span.start - 1)  # the "x" belongs to whoever reads the element type
        return dims

    def parse_ranked_shape(self) -> tuple[list[Any], Attribute]:
        """Parse the dimensions and the element type."""
        dims, element = super().parse_ranked_shape()
        return [IntAttr(dim) for dim in dims], element

    def parse_affine_map(self) -> AffineMap:
        """Parse an affine map whose constants may be Sizes in brackets."""
        parser = _AffineParser(self._parser_state)
        parser.dimensions = self._dimensions
        return parser.parse_affine_map()

    def _parse_tensor_literal(self) -> tuple[list[AttrParser._TensorLiteralElement], list[int]]:
        elements, shape = super()._parse_tensor_literal()
        return [_Bits(e.is_negative, e.value, e.span) if _is_hexadecimal(e) else e for e in elements], shape


class _AffineParser(AffineParser):
    """Reads ``[W/4]`` where a constant may stand."""

    dimensions: Mapping[str, Symbol]

    def _parse_primary(self, parse_optional_bare_id: Callable[[], AffineExpr | None]) -> AffineExpr:
        if self._current_token.kind is MLIRTokenKind.L_SQUARE:
            return extent_expr(_size_in_brackets(self, self.dimensions))
        return super()._parse_primary(parse_optional_bare_id)


def _size_in_brackets(parser: BaseParser, dimensions: Mapping[str, Symbol]) -> Extent:
    """Parse the text up to the next bracket as a size; the parser continues behind the bracket."""
    text, begin = parser.lexer.input.content, parser._current_token.span.end
    end = text.find("]", begin)
    if end < 0:
        parser.raise_error("this bracket is not closed")
    size = parse_size(text[begin:end], dimensions)
    parser._resume_from(end + 1)
    return size


@record
class _Bits(AttrParser._TensorLiteralElement):
    """An element in hexadecimal, as its bits."""

    def to_type(self, parser: AttrParser, type: Any) -> Any:
        if not isinstance(type, AnyFloat):
            return super().to_type(parser, type)
        (value,) = type.iter_unpack(self.to_int(parser).to_bytes(type.compile_time_size, "little"))
        return value


def _is_hexadecimal(element: AttrParser._TensorLiteralElement) -> bool:
    return element.span.text[:2] in ("0x", "0X")
