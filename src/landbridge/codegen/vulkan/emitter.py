"""The state of writing one kernel: its instructions, the ids of its values, the memory it uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from landbridge.codegen.elements import FLOATS, NARROW, element_name
from landbridge.codegen.printing import Dispatcher
from landbridge.codegen.vulkan.module_builder import SpirvModule, encode
from landbridge.errors import CodegenError
from landbridge.executable.spirv import Decoration, Op, StorageClass
from landbridge.records import record

_INTEGERS = ("i1", "i8", "i16", "i32", "i64")

#: Arithmetic of floats, which drivers must not contract or reorder.
_EXACT = frozenset({Op.FAdd, Op.FSub, Op.FMul, Op.FDiv, Op.FNegate})


@record(frozen=True)
class MemoryVariable:
    """A variable of ``element``s: in the scope ``storage``, or a buffer, whose elements lie in a block.

    ``start`` is the id of the number of its first element, 0 where that is the first of the variable. ``is_words``: it
    holds Sizes, words of 64 bits, of which kernels with shorter indices read the lower half.
    """

    variable: int
    element: str
    storage: StorageClass
    start: int = 0
    is_words: bool = False


@record(frozen=True)
class ImageVariable:
    """A variable of the module that is an image of type ``kind``, whose pixels have ``lanes`` ``element``s."""

    variable: int
    kind: int
    element: str
    lanes: int


class SpirvEmitter(Dispatcher):
    """Writes one kernel into ``module``; ``index`` is the element that indices are, ``i32`` or ``i64``.

    ``doubles``: the target computes in f64 and i64. ``rounds_quotients``: OpFDiv of f32 gives the nearest float there.
    """

    form = "SPIR-V"

    def __init__(
        self,
        module: SpirvModule,
        printers: dict[type[Operation], Printer],
        index: str,
        *,
        doubles: bool = False,
        rounds_quotients: bool = True,
    ) -> None:
        super().__init__(printers)
        self.module = module
        self.index = index
        self.doubles = doubles
        self.rounds_quotients = rounds_quotients
        self.ids: dict[SSAValue, int] = {}
        #: Vectors, which are pixels, by the ids of their lanes.
        self.lanes: dict[SSAValue, tuple[int, ...]] = {}
        self.memory: dict[SSAValue, MemoryVariable] = {}
        self.images: dict[SSAValue, ImageVariable] = {}
        #: Variables of the module that the kernel uses, and its own.
        self.interface: dict[int, None] = {}
        self.variables: list[int] = []
        self.body: list[int] = []

    def element(self, value: SSAValue) -> str:
        """Returns the element of a scalar value, for ``index`` its stored element; raises CodegenError for other
        values.
        """
        return self.element_of(value.type)

    def element_of(self, attr: Attribute) -> str:
        """Returns the element of a scalar type."""
        name = element_name(attr)
        if name == "index":
            return self.index
        if name not in (*_INTEGERS, *FLOATS):
            raise CodegenError(
                f"type {attr} has no SPIR-V form; legal: scalars {' '.join(_INTEGERS)} index f16 bf16 f32 f64"
            )
        return name

    def emit(self, op: Op, element: str, *operands: int) -> int:
        """Returns the id of the result, of type ``element``, of an instruction."""
        result = self.module.fresh()
        self.body += encode(op, self.module.type_of(retained(element)), result, *operands)
        if op in _EXACT:
            self.module.decorate(result, Decoration.NoContraction)
        return result

    def library(self, number: int, element: str, *operands: int) -> int:
        """Returns the result of instruction ``number`` of GLSL.std.450."""
        return self.emit(Op.ExtInst, element, self.module.library(), number, *operands)

    def statement(self, op: Op, *operands: int) -> None:
        """Emits an instruction without a result."""
        self.body += encode(op, *operands)

    def constant(self, value: float | int, element: str) -> int:
        """Returns the id of a constant."""
        return self.module.constant(value, retained(element))

    def set(self, value: SSAValue, found: int) -> None:
        """Makes ``found`` the id of ``value``."""
        self.ids[value] = found

    def variable(self, element: str, initial: int | None = None) -> int:
        """Makes a variable of this invocation, which may be stored to more than once; returns its id."""
        pointer = self.module.pointer(StorageClass.Function, self.module.type_of(retained(element)))
        variable = self.module.fresh()
        self.variables += encode(Op.Variable, pointer, variable, StorageClass.Function)
        if initial is not None:
            self.statement(Op.Store, variable, initial)
        return variable

    def load(self, variable: int, element: str) -> int:
        """Returns the value of a variable."""
        return self.emit(Op.Load, element, variable)

    def label(self) -> int:
        """Returns an id for a block that ``begin`` starts."""
        return self.module.fresh()

    def begin(self, label: int) -> None:
        """Starts the block ``label``; the one before must have ended."""
        self.statement(Op.Label, label)

    def operands(self, op: Operation) -> Sequence[int]:
        """Returns the ids of the operands of ``op``."""
        return [self.ids[operand] for operand in op.operands]


Printer = Callable[[SpirvEmitter, Operation], None]


def retained(element: str) -> str:
    """Returns the element that values of ``element`` are stored as: 16-bit floats are their bits."""
    return "i16" if element in NARROW else element


def bits_of(element: str) -> int:
    """Returns the width of an element."""
    return 16 if element in NARROW else int(element[1:])
