"""The state of printing one function: names, the current block, and the lines so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import Operation, SSAValue

from landbridge.codegen.llvm.advancing import Advancing
from landbridge.codegen.llvm.terms import LlvmBody
from landbridge.codegen.llvm.types import suffix, type_text, view_of
from landbridge.codegen.printing import Dispatcher, by_identity
from landbridge.expansions.terms import Term
from landbridge.instruction_sets.isa import Isa
from landbridge.records import record

#: Bits of an index. Loops count in the bits of an address, which arithmetic of addresses has too: no tensor has more
#: elements than those can count.
INDEX_BITS = 64
#: The metadata of ``!invariant.load``.
UNCHANGING = "!1"
#: Instructions of a helper without branches that is inlined wherever it is called: about as many as LLVM would inline.
_INLINED = 64


class LlvmModule:
    """The type spellings, declarations and helper functions that the functions of one LLVM module share."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.declarations: dict[str, str] = {}
        self.helpers: dict[str, str] = {}
        #: How many bases one loop adds to addresses at most.
        self.bases = 0
        self.metadata: list[str] = ['!0 = !{!"llvm.loop.unroll.full"}', f"{UNCHANGING} = !{{}}"]
        #: The LLVM spelling of a type; raises CodegenError when it has none.
        self.type = by_identity(type_text)
        #: How a memref type is addressed.
        self.view = by_identity(view_of)

    def unrolled_loop(self) -> str:
        """Returns the text that makes LLVM unroll a loop fully, to append to the branch that closes it."""
        number = len(self.metadata)
        self.metadata.append(f"!{number} = distinct !{{!{number}, !0}}")
        return f", !llvm.loop !{number}"

    def declare(self, symbol: str, result: str, params: Sequence[str]) -> None:
        """Declares an external function or intrinsic once."""
        if symbol not in self.declarations:
            self.declarations[symbol] = f"declare {result} @{symbol}({', '.join(params)})"

    def define_helper(
        self, symbol: str, params: Sequence[str], result: str, build: Callable[[LlvmBody, list[Term]], str]
    ) -> str:
        """Defines the internal function ``symbol`` unless it is defined already; returns ``symbol``.

        ``params`` are the types of its arguments, ``result`` the type of its result. ``build`` emits the body and
        returns the name of the result.
        """
        if symbol not in self.helpers:
            self.helpers[symbol] = ""  # reserved first: building may define other helpers
            body = LlvmBody(params[0], self.isa.fma, self.isa.extrema, self.isa.scale_bits)
            arguments = [Term(body, f"%x{i}", kind) for i, kind in enumerate(params)]
            name = build(body, arguments)
            self.declarations.update(body.declarations)
            is_short = len(body.lines) <= _INLINED and not any(line.startswith("  br ") for line in body.lines)
            given = ", ".join(f"{t.kind} {t.name}" for t in arguments)
            head = f"define internal {result} {symbol}({given}) {'alwaysinline ' if is_short else ''}#0 {{"
            self.helpers[symbol] = "\n".join([head, "entry:", *body.lines, f"  ret {result} {name}", "}", ""])
        return symbol


@record(frozen=True)
class _OpenLoop:
    """A loop that is being emitted. ``location``: the line before it in the output, where the instructions ``before``
    are written when it ends. ``scope``: the scope of names around it. ``bases``: the sums of addresses counted in it.
    ``advancing``: the pointers that it carries; None for a loop that carries none.
    """

    location: int
    scope: int
    before: list[str]
    bases: set[str]
    advancing: Advancing | None


class LlvmEmitter(Dispatcher):
    """Prints one function body."""

    form = "LLVM"

    def __init__(self, module: LlvmModule, printers: dict[type[Operation], Printer]) -> None:
        super().__init__(printers)
        self.module = module
        self.lines: list[str] = []
        self.entry_lines: list[str] = []
        self.block = "entry"
        self.type, self.view = module.type, module.view
        self.names: dict[SSAValue, str] = {}
        #: The temporaries that the function gets as pointers.
        self.given: frozenset[Operation] = frozenset()
        #: Index names that are another name plus a constant: ``name -> (base, constant)``.
        self.offsets: dict[str, tuple[str, int]] = {}
        #: By pointer the negative offsets, in bytes, of the bases that accesses before it share.
        self.moved_back: dict[str, list[int]] = {}
        #: Index names that are a sum of others times constants, and a constant: ``name -> (terms, constant)``.
        self.sums: dict[str, tuple[tuple[tuple[str, int], ...], int]] = {}
        #: Index names that are a product of two others.
        self.products: dict[str, tuple[str, str]] = {}
        #: Index names whose values have the bits of an address, where those are fewer than an index has.
        self.short: set[str] = set()
        #: How many loops enclose the definition of an index name; absent means 0.
        self.depths: dict[str, int] = {}
        self.depth = 0
        #: Whether the innermost loop carries values from iteration to iteration, as a sum does.
        self.accumulates = False
        #: The names that are a counter and a base.
        self._based: set[str] = set()
        #: How many loops enclose the definition of a name; absent means 0.
        self._defined: dict[str, int] = {}
        #: Instructions that ``once`` emitted, one scope per open region.
        self.scopes: list[dict[str, str]] = [{}]
        #: The open loops, outermost first.
        self._loops: list[_OpenLoop] = []
        self._count = 0

    # names ---------------------------------------------------------------------------------------------
    def fresh(self) -> str:
        """Returns a new local name."""
        self._count += 1
        return f"%v{self._count}"

    def label(self, kind: str) -> str:
        """Returns a new block label that begins with ``kind``."""
        self._count += 1
        return f"{kind}{self._count}"

    def define(self, value: SSAValue) -> str:
        """Returns a new local name for ``value``."""
        self._count += 1
        name = self.names[value] = f"%v{self._count}"
        self._defined[name] = self.depth
        return name

    # lines ---------------------------------------------------------------------------------------------
    def emit(self, text: str) -> str:
        """Emits ``text`` as the definition of a new name, and returns the name."""
        self._count += 1
        name = f"%v{self._count}"
        self._defined[name] = self.depth
        self.lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        """Emits an instruction without a result."""
        self.lines.append(f"  {text}")

    def set(self, value: SSAValue, text: str) -> None:
        """Emits ``text`` as the definition of ``value``."""
        self._count += 1
        name = self.names[value] = f"%v{self._count}"
        self._defined[name] = self.depth
        self.lines.append(f"  {name} = {text}")

    def start_block(self, label: str) -> None:
        """Begins the basic block ``label``."""
        self.lines.append(f"{label}:")
        self.block = label

    def begin_loop(self, advancing: Advancing | None = None) -> None:
        """Begins a loop: later instructions are in it, and ``once`` may place some on the line reserved here, before
        it. ``advancing``: where it collects the pointers that it carries; None if it is to carry none.
        """
        self._loops.append(_OpenLoop(len(self.lines), len(self.scopes) - 1, [], set(), advancing))
        self.lines.append("")
        self.depth += 1

    def enter(self, name: str) -> None:
        """Says that ``name`` is defined where the innermost loop begins, and changes in it."""
        self._defined[name] = self.depths[name] = self.depth

    def end_loop(self) -> None:
        """Ends the innermost loop, and writes the instructions that ``once`` has placed before it."""
        loop = self._loops.pop()
        self.lines[loop.location] = "\n".join(loop.before)
        self.depth -= 1

    def once(self, text: str, *operands: str) -> str:
        """Returns the name of the result of ``text``, an instruction without side effects.

        It is emitted unless this region or one around it has emitted the same text. With ``operands``, the names that
        it reads, it is emitted before the outermost open loop inside which none of them is defined.
        """
        for scope in reversed(self.scopes):
            known = scope.get(text)
            if known is not None:
                return known
        depth = max([self._defined.get(name, 0) for name in operands], default=self.depth)
        if depth >= self.depth:
            name = self.scopes[-1][text] = self.emit(text)
            return name
        loop = self._loops[depth]
        name = self.scopes[loop.scope][text] = self.fresh()
        loop.before.append(f"  {name} = {text}")
        self._defined[name] = depth
        return name

    @property
    def advancing(self) -> Advancing | None:
        """The pointers that the innermost loop carries; None where it carries none."""
        return self._loops[-1].advancing if self._loops else None

    @property
    def is_in_body(self) -> bool:
        """Whether what is printed next runs in each iteration of the innermost loop: it is in no branch inside it."""
        return bool(self._loops) and len(self.scopes) == self._loops[-1].scope + 2

    def is_invariant(self, name: str) -> bool:
        """Returns whether ``name`` is defined outside of the innermost loop."""
        return self._defined.get(name, 0) < self.depth

    def hidden(self, name: str) -> str:
        """Returns a name with the value of the index ``name`` whose definition LLVM cannot see; it costs no
        instruction.
        """
        kind = self.word if name in self.short else "i64"
        value = self.narrow(name) if name in self.short else name
        found = self.once(f'call {kind} asm "", "=r,0"({kind} {value}) nounwind memory(none)', value)
        if name in self.short:
            found = self.widened(found)
        self.depths[found] = self.depths.get(name, 0)
        return found

    @property
    def word(self) -> str:
        """The integer type of the bits of an address."""
        return f"i{self.module.isa.address_bits}"

    def is_short(self, name: str) -> bool:
        """Returns whether index ``name``, or the number that it is, is known to have the bits of an address, where
        those are fewer than an index has.
        """
        bits = self.module.isa.address_bits
        if bits == INDEX_BITS or name[0] == "%":
            return name in self.short
        return abs(int(name)) < 1 << bits - 1

    def narrow(self, name: str) -> str:
        """Returns short index ``name`` as a value of the bits of an address."""
        return self.once(f"trunc i64 {name} to {self.word}", name) if name[0] == "%" else name

    def cut(self, name: str) -> str:
        """Returns index ``name``, or the number that it is, as a value of the bits of an address; the nearest one that
        it has.
        """
        most = (1 << self.module.isa.address_bits - 1) - 1
        if name[0] != "%":
            return str(min(max(int(name), -most), most))
        if name in self.short:
            return self.narrow(name)
        wide = f"i{INDEX_BITS}"
        least = self.emit(self.intrinsic("smax", wide, [name, str(-most)]))
        within = self.emit(self.intrinsic("smin", wide, [least, str(most)]))
        return self.emit(f"trunc {wide} {within} to {self.word}")

    def widened(self, name: str) -> str:
        """Returns ``name``, a value of the bits of an address, as a short index."""
        found = self.once(f"sext {self.word} {name} to i64", name)
        self.short.add(found)
        return found

    def add_base(self, name: str, operands: Iterable[str]) -> None:
        """Counts ``name``, the sum of ``operands``, as a base of addresses in the innermost loop, if one of these is
        such a sum already.

        The module records the most bases of a loop.
        """
        if not self._based.isdisjoint(operands):
            bases = self._loops[-1].bases
            bases.add(name)
            self.module.bases = max(self.module.bases, len(bases))
        self._based.add(name)

    def at_entry(self, text: str) -> str:
        """Returns the name of the result of ``text``, an instruction without operands and side effects, emitted once at
        the beginning of the function.
        """
        known = self.scopes[0].get(text)
        if known is None:
            known = self.scopes[0][text] = self.fresh()
            self.entry_lines.append(f"  {known} = {text}")
        return known

    def intrinsic(self, stem: str, text: str, operands: Sequence[str], flags: str = "") -> str:
        """Declares the intrinsic ``llvm.<stem>`` for type ``text`` and returns the text of a call, which the caller
        emits.

        The result and all ``operands`` have type ``text``. ``flags`` are fast-math flags, each followed by a space.
        """
        symbol = f"llvm.{stem}.{suffix(text)}"
        self.module.declare(symbol, text, [text] * len(operands))
        return f"call {flags}{text} @{symbol}({', '.join(f'{text} {o}' for o in operands)})"

    # operations ----------------------------------------------------------------------------------------
    def region(self, ops: Iterable[Operation]) -> None:
        """Prints the operations of a nested block. Instructions emitted ``once`` in it are not reused after it."""
        self.scopes.append({})
        super().region(ops)
        self.scopes.pop()


Printer = Callable[[LlvmEmitter, Operation], None]
