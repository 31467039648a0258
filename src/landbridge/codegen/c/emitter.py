"""The state of printing one function in a dialect of C: its lines, and the names of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from landbridge.codegen.c.types import CType
from landbridge.codegen.c.unit import CUnit
from landbridge.codegen.printing import Dispatcher


class CEmitter(Dispatcher):
    """Prints one function body."""

    def __init__(self, unit: CUnit, printers: Mapping[type[Operation], Printer]) -> None:
        super().__init__(printers)
        self.unit, self.form = unit, unit.form
        self.lines: list[str] = []
        self.entry_lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        #: The temporaries that the function gets as pointers.
        self.given: frozenset[Operation] = frozenset()
        #: Masks known to keep a first part of their lanes: value -> how many, as C text.
        self.retained: dict[SSAValue, str] = {}
        self._indent = "  "
        self._count = 0

    def kind(self, value: SSAValue) -> CType:
        """Returns the CType of ``value``."""
        return self.unit.kind(value.type)

    def fresh(self) -> str:
        """Returns a new local name."""
        self._count += 1
        return f"v{self._count}"

    def line(self, text: str) -> None:
        """Emits one statement or the head of a block."""
        self.lines.append(self._indent + text)

    def set(self, value: SSAValue, text: str) -> None:
        """Emits the definition of a new constant with the expression ``text``, and names ``value`` after it."""
        name = self.names[value] = self.fresh()
        self.line(f"const {self.kind(value).text} {name} = {text};")

    def variable(self, value: SSAValue, initial: str = "") -> str:
        """Emits the declaration of a variable for ``value``, which may be assigned more than once; returns its name."""
        name = self.names[value] = self.fresh()
        self.line(f"{self.kind(value).text} {name}{f' = {initial}' if initial else ''};")
        return name

    def parts(self, value: SSAValue) -> list[tuple[str, CType]]:
        """Returns the C texts of ``value`` with their types: one, unless its lanes are variables of their own."""
        return [(self.names[value], self.kind(value))]

    def rename(self, values: Sequence[SSAValue], names: Sequence[str]) -> None:
        """Names ``values`` after variables, one for each of their parts."""
        self.names.update(zip(values, names, strict=True))

    def variables(self, values: Sequence[SSAValue], initial: Sequence[SSAValue] = ()) -> list[str]:
        """Emits the declarations of variables for the parts of ``values``, which may begin as ``initial``; returns
        their names.
        """
        starts = [self.names[start] for start in initial] or [""] * len(values)
        return [self.variable(value, start) for value, start in zip(values, starts, strict=True)]

    def assign(self, targets: Sequence[str], values: Sequence[SSAValue]) -> None:
        """Emits assignments of the parts of ``values`` to the variables ``targets``, as if all happened at once."""
        sources = [part for value in values for part in self.parts(value)]
        moved = [(t, s, kind) for t, (s, kind) in zip(targets, sources, strict=True) if t != s]
        # A target that a later assignment reads must be read before it changes.
        if any(s in {t for t, _, _ in moved[:i]} for i, (_, s, _) in enumerate(moved)):
            moved = [(t, self._saved(s, kind), kind) for t, s, kind in moved]
        for target, source, _ in moved:
            self.line(f"{target} = {source};")

    def _saved(self, source: str, kind: CType) -> str:
        name = self.fresh()
        self.line(f"const {kind.text} {name} = {source};")
        return name

    def open(self, head: str) -> None:
        """Emits ``head`` and an opening brace; later lines are indented until ``close``."""
        self.line(f"{head} {{")
        self._indent += "  "

    def otherwise(self) -> None:
        """Ends the block of an ``if`` and begins its ``else`` block."""
        self._indent = self._indent[:-2]
        self.open("} else")

    def close(self) -> None:
        """Ends the innermost block."""
        self._indent = self._indent[:-2]
        self.line("}")


Printer = Callable[[CEmitter, Operation], None]
