"""The shared parts of one C file, and the points where dialects of C differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from landbridge.codegen.c.types import CType, kind_of, literal, make
from landbridge.codegen.printing import by_identity
from landbridge.executable.abi import STACK_TEMPORARY_BYTES, STORAGE_ALIGNMENT


class CUnit:
    """The vector types and helpers that the functions of one C file share, each defined on first use; and the forms
    that differ between dialects of C.
    """

    #: The dialect's name in errors.
    form = "C"
    #: Whether its prelude has ``LB_SHUFFLE``.
    shuffles = True
    #: The files that its text begins with, each with its package.
    prelude = (("landbridge.codegen.c", "prelude.h"), ("landbridge.codegen.c", "common.h"))
    #: The bytes of a kernel's temporaries above which they are in a workspace.
    stack_bytes = STACK_TEMPORARY_BYTES
    #: The bytes that temporaries on the stack are aligned to, at most.
    stack_alignment = STORAGE_ALIGNMENT

    def __init__(self, *, holds_words: bool = False) -> None:
        """``holds_words``: arguments and row tables are words of 64 bits, of which an address may be the first half."""
        self.holds_words = holds_words
        self.definitions: dict[str, str] = {}
        #: The C name of the body of each function, by its own name.
        self.bodies: dict[str, str] = {}
        #: The CType of a type; its vector type is defined.
        self.kind = by_identity(lambda attr: self.use(kind_of(attr)))

    def use(self, kind: CType) -> CType:
        """Returns ``kind``, and defines it if it is a vector type."""
        if kind.lanes and kind.text not in self.definitions:
            macro = "LB_VECTOR" if kind.is_native else "LB_ARRAY"
            self.definitions[kind.text] = f"{macro}({kind.text}, {kind.scalar}, {kind.lanes})"
        return kind

    def define(self, name: str, text: Callable[[], str]) -> str:
        """Returns ``name``, defined by ``text()`` on first use."""
        if name not in self.definitions:
            definition = text()  # it may define other helpers, which must come first
            self.definitions[name] = definition
        return name

    def in_memory(self, kind: CType) -> str:
        """Returns the C type of an element that a pointer reaches."""
        return kind.scalar

    def literal(self, value: float | int, element: str) -> str:
        """Returns a constant of a scalar element."""
        return literal(value, element)

    def vector(self, kind: CType, values: Sequence[str]) -> str:
        """Returns a vector of these lanes, or with one name or literal in all of them."""
        if len(values) > 1:
            return make(kind, values)
        name = f"lb_splat_{kind.text}"
        self.define(name, lambda: f"#define {name}(x) {make(kind, ['x'] * kind.lanes)}")
        return f"{name}({values[0]})"
