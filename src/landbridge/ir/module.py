"""IRModule: the IR of one program with its constant table and vdevices; it prints and parses."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import field
from typing import Any
from zlib import crc32

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.errors import ParseError
from landbridge.executable.file_watch import FileWatch
from landbridge.executable.parts import VDevice
from landbridge.ir.dialect import context
from landbridge.ir.graph_ops import CallOp, ConstantOp
from landbridge.ir.kernel_attributes import is_prim
from landbridge.ir.length_ops import LengthOp
from landbridge.ir.limits import take_constant
from landbridge.ir.main_attributes import (
    DIMENSIONS,
    VDEVICES,
    input_elements,
    io_names,
    parameter_names,
    set_io_names,
    unpacked_names,
)
from landbridge.ir.parser import IrParser
from landbridge.ir.traversal import all_operations, operations_of
from landbridge.records import record
from landbridge.sizes.parsing import parse_range
from landbridge.sizes.printing import range_text
from landbridge.sizes.size import Extent, dimensions_of
from landbridge.sizes.terms import Symbol
from landbridge.targets import Target


def _none_declined(prim: func.FuncOp, target: Target) -> str | None:
    return None


_DECLARED = re.compile(r"lb\.dimensions = \{([^{}]*)\}")
_ENTRY = re.compile(r'(\w+) = "([^"]*)"')


@record(eq=False, repr=False)
class IRModule:
    """The IR of one program. ``op`` holds ``@main`` (the graph) and PrimFuncs, marked by the attribute ``lb.prim``.

    ``constants`` maps symbols to C-contiguous read-only arrays; text dumps name them and never hold their bytes.
    ``parameters`` are the first values of weights that stay replaceable, by the names of the inputs of ``@main`` that
    they are. ``sources`` are the files that the program comes from, ``files`` those that constants are mapped from.
    ``vdevices`` are numbered by ``#lb.vdevice``; ``targets`` by ``VDevice.target``. ``declined`` says why the code
    generator of a target makes no code of a PrimFunc, None when it does.
    """

    op: ModuleOp
    targets: tuple[Target, ...]
    vdevices: tuple[VDevice, ...] = (VDevice("cpu", 0),)
    constants: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    parameters: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    prim_count: int = 0
    sources: tuple[str, ...] = ()
    files: tuple[FileWatch, ...] = ()
    #: Programs that calls of this one run, by the names that the calls use in ``BODIES``.
    bodies: dict[str, IRModule] = field(default_factory=dict)
    #: Dimensions of the enclosing program that this one uses, if it is such a program.
    around: tuple[str, ...] = ()
    declined: Callable[[func.FuncOp, Target], str | None] = field(default=_none_declined, repr=False, compare=False)
    #: Constants and what they are packed to, by memory and layout, where several programs of one model share these.
    packs: dict[Hashable, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] | None = field(
        default=None, repr=False, compare=False
    )
    _symbols: dict[tuple[Any, ...], str] = field(default_factory=dict, init=False, repr=False, compare=False)
    #: Constants by hint, shape and dtype: the first symbol while it is the only one, then all symbols by checksum.
    _first: dict[tuple[Any, ...], str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _equal_constants: dict[tuple[Any, ...], list[str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _values: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"IRModule({len(self.prims())} PrimFuncs, {len(self.constants)} constants, {len(self.targets)} targets)"

    @property
    def main(self) -> func.FuncOp:
        """Returns the graph function."""
        for f in self.functions():
            if f.sym_name.data == "main":
                return f
        raise ParseError("the module has no function @main")

    def add_main(self) -> None:
        """Add a @main that does nothing, if there is none."""
        if all(f.sym_name.data != "main" for f in self.functions()):
            main = func.FuncOp("main", ((), ()), Region(Block([func.ReturnOp()])))
            set_io_names(main, (), ())
            self.op.body.block.add_op(main)

    def functions(self) -> Iterator[func.FuncOp]:
        """Yields all functions, in order."""
        for op in self.op.body.block.ops:
            if isinstance(op, func.FuncOp):
                yield op

    def prims(self) -> dict[str, func.FuncOp]:
        """Returns the PrimFuncs by name."""
        return {f.sym_name.data: f for f in self.functions() if is_prim(f)}

    def clone_prim(self, function: func.FuncOp, name: str) -> func.FuncOp:
        """Insert a copy of a PrimFunc, called ``name``, right behind it, and return the copy."""
        copy = function.clone()
        copy.properties["sym_name"] = StringAttr(name)
        self.op.body.block.insert_op_after(copy, function)
        return copy

    def dimensions(self) -> dict[str, Symbol]:
        """Returns the open dimensions of the inputs of @main, by name; none if there is no such function."""
        mains = [f for f in self.functions() if f.sym_name.data == "main" and len(f.body.blocks) == 1]
        types = [argument.type for main in mains for argument in main.body.block.args]
        extents: list[Extent] = [e for ty in types if isinstance(ty, TensorType | MemRefType) for e in ty.get_shape()]
        extents += [e for main in mains for elements in input_elements(main).values() for e in elements]
        return dimensions_of(extents)

    def target_of(self, vdevice: int) -> Target:
        """Returns the target that compiles for vdevice number ``vdevice``."""
        return self.targets[self.vdevices[vdevice].target]

    def add_constant(self, array: np.ndarray[Any, Any], hint: str = "c") -> str:
        """Put ``array`` into the table (a read-only view of it, C-contiguous) and return its symbol.

        The same memory under the same hint has one symbol, and so have arrays of equal bytes: the steps of a recurrent
        layer each transpose and pack its weights, and share the result.
        """
        table_array = np.ascontiguousarray(array).reshape(array.shape).view()
        table_array.flags.writeable = False
        stem = symbol_name(hint)
        key = (stem, *memory_of(table_array))
        for known in (stem, self._symbols.get(key, stem)):
            if known in self.constants and memory_of(self.constants[known]) == memory_of(table_array):
                return known
        twins = self._twins(stem, table_array)
        for twin in twins or ():
            if twin in self.constants and np.array_equal(_bytes_of(self.constants[twin]), _bytes_of(table_array)):
                return twin
        # Handlers give one hint to thousands of constants: numbering continues after the last one.
        take_constant(table_array.nbytes, hint)
        symbol, n = stem, self._values.get(stem, 0)
        while symbol in self.constants:
            n += 1
            symbol = f"{stem}_{n}"
        self._values[stem] = n
        self._symbols[key] = symbol
        self.constants[symbol] = table_array
        if twins is None:
            self._first[stem, table_array.shape, table_array.dtype] = symbol
        else:
            twins.append(symbol)
        return symbol

    def forget_constants(self, count: int) -> None:
        """Remove the constants that were added after the first ``count``."""
        added = set(list(self.constants)[count:])
        for key, symbol in [entry for entry in self._symbols.items() if entry[1] in added]:
            stem = key[0]
            del self._symbols[key]
            number = int(symbol[len(stem) + 1 :] or 1) - 1
            self._values[stem] = min(self._values[stem], number)
        for symbol in added:
            del self.constants[symbol]
        self._first = {kind: symbol for kind, symbol in self._first.items() if symbol not in added}

    def _twins(self, stem: str, array: np.ndarray[Any, Any]) -> list[str] | None:
        """Returns the symbols of constants with the checksum of ``array``; None if it is the first, which gets no
        checksum."""
        kind = (stem, array.shape, array.dtype)
        first = self._first.get(kind)
        if first is None:
            return None
        if first:
            if first in self.constants:
                self._equal_constants[(*kind, _checksum(self.constants[first]))] = [first]
            self._first[kind] = ""
        return self._equal_constants.setdefault((*kind, _checksum(array)), [])

    def symbols_of(self, name: str) -> frozenset[str]:
        """Returns the symbols of what was put into the table under ``name``: a weight in several layouts has several.

        A module that was parsed, or made from another one, knows only the first of them.
        """
        stem = symbol_name(name)
        known = {symbol for (of, *_), symbol in self._symbols.items() if of == stem}
        return frozenset((known | {stem}) & self.constants.keys())

    def drop_unused(self) -> None:
        """Remove PrimFuncs that nothing calls, and constants that nothing loads or whose value nothing uses."""
        for op in [op for op in operations_of(self.main, ConstantOp) if op.results[0].first_use is None]:
            Rewriter.erase_op(op)
        ops = all_operations(self.main)
        called = {op.callee_name for op in ops if isinstance(op, CallOp)}
        loaded = {op.symbol_name for op in ops if isinstance(op, ConstantOp)}
        for name, function in self.prims().items():
            if name not in called:
                Rewriter.erase_op(function)
        for symbol in self.constants.keys() - loaded:
            del self.constants[symbol]

    def print(self) -> str:
        """Returns the IR as text, with constants by symbol, and with vdevices by name if there are several."""
        if len(self.vdevices) > 1:
            self.op.attributes[VDEVICES] = ArrayAttr(
                [ArrayAttr([StringAttr(v.name), IntegerAttr(v.target, i64)]) for v in self.vdevices]
            )
        lengths = {op.dimension.name: op.dimension for op in operations_of(self.op, LengthOp)}
        if dimensions := {**self.dimensions(), **lengths}:
            ranges = {name: StringAttr(range_text(symbol)) for name, symbol in dimensions.items()}
            self.op.attributes[DIMENSIONS] = DictionaryAttr(ranges)
        try:
            return _ESCAPED.sub(_as_text, str(self.op)) + "\n"
        finally:
            self.op.attributes.pop(VDEVICES, None)
            self.op.attributes.pop(DIMENSIONS, None)

    @staticmethod
    def parse(
        text: str,
        targets: tuple[Target, ...],
        vdevices: tuple[VDevice, ...] = (VDevice("cpu", 0),),
        constants: dict[str, np.ndarray[Any, Any]] | None = None,
    ) -> IRModule:
        """Parse IR text, for ``vdevices`` unless it names its own; raises ParseError with the location of the fault."""
        _check_strings(text)
        try:
            op = IrParser(context(), text, _declared_dimensions(text)).parse_module()
            op.verify()
        except RecursionError as error:
            raise ParseError("the IR text is nested too deep to parse; give it fewer regions inside regions") from error
        except Exception as error:  # xdsl has its own ParseError, and raises others for unexpected text
            raise ParseError(f"the IR text does not parse: {error}") from error
        declared = _take_vdevices(op)
        op.attributes.pop(DIMENSIONS, None)
        return IRModule(op, targets, declared or vdevices, dict(constants or {}))


def parameters(module: IRModule) -> frozenset[SSAValue]:
    """Returns the arguments of @main that are parameters: the last of its inputs, on tensors as on memrefs."""
    main = module.main
    end = len(io_names(main)[0])
    return frozenset(main.body.block.args[end - len(parameter_names(main)) : end])


def packed_parameters(module: IRModule) -> frozenset[SSAValue]:
    """Returns the parameters of which copies may be made in advance, when they are set."""
    main = module.main
    end, left = len(io_names(main)[0]), unpacked_names(main)
    names = parameter_names(main)
    arguments = main.body.block.args[end - len(names) : end]
    return frozenset(a for a, name in zip(arguments, names, strict=True) if name not in left)


def _declared_dimensions(text: str) -> dict[str, Symbol]:
    """Returns the open dimensions that printed IR declares, by name; types use them before the attribute is parsed."""
    found = _DECLARED.search(text)
    if found is None:
        return {}
    return dimensions_of([parse_range(name, text) for name, text in _ENTRY.findall(found[1])])


def _take_vdevices(op: ModuleOp) -> tuple[VDevice, ...]:
    """Returns the vdevices that printed IR names, with the numbers of their targets; none if it names none."""
    found = []
    declared = op.attributes.pop(VDEVICES, ArrayAttr(()))
    for entry in declared if isinstance(declared, ArrayAttr) else (declared,):
        match entry:
            case ArrayAttr(data=(StringAttr(data=name), IntegerAttr(value=IntAttr(data=target)))):
                found.append(VDevice(name, target))
            case _:
                raise ParseError(f"{VDEVICES} has {entry}; legal: [name, number of its target] for each vdevice")
    return tuple(found)


def symbol_name(name: str) -> str:
    """Returns the symbol for a constant called ``name``, without the number that distinguishes it from others."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "c"


_PAGE = 4096


def _bytes_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.reshape(-1).view(np.uint8)


def _checksum(array: np.ndarray[Any, Any]) -> int:
    """Returns a checksum of the bytes; of large arrays it covers every sixteenth page, as hits are compared."""
    data = _bytes_of(array)
    pages = data.size // _PAGE
    if pages >= 64:
        data = np.ascontiguousarray(data[: pages * _PAGE].reshape(pages, _PAGE)[::16])
    return crc32(data.data)


def memory_of(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """Returns a key that is equal for C-contiguous arrays that are the same memory."""
    return array.__array_interface__["data"][0], array.shape, array.dtype


# xdsl prints the bytes of text that is not ASCII escaped and reads them back as bytes; "\\\\" is one backslash.
_ESCAPED = re.compile(r"\\\\|(?:\\[89A-F][0-9A-F])+")


def _as_text(escaped: re.Match[str]) -> str:
    try:
        return escaped[0] if escaped[0] == r"\\" else bytes.fromhex(escaped[0].replace("\\", "")).decode()
    except UnicodeDecodeError:
        return escaped[0]


# Matches text with whole comments and strings; possessive, so that it takes linear time.
_WHOLE_STRINGS = re.compile(
    r'(?:[^"/]|//[^\n]*+|/(?!/)|"(?:[^"\\\n\v\f]|\\["nt\\]|\\[0-9A-Fa-f]{2})*+")*+',
)


def _check_strings(text: str) -> None:
    """Raises ParseError for a string that is not closed: xdsl takes exponential time to find out."""
    match = _WHOLE_STRINGS.match(text)
    end = match.end() if match else 0
    if end < len(text):
        line = text.count("\n", 0, end) + 1
        raise ParseError(f"the IR text does not parse: the string that begins in line {line} is not closed in it")
