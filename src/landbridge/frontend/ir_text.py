"""Reads IR text as a model: the text printed between any two passes can be compiled again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from landbridge.dtypes import dtype_name
from landbridge.errors import CompileError, ModelWarning, ParseError, TargetError
from landbridge.executable.parts import VDevice, parameter_constant
from landbridge.ir.constants import fill_missing_constants, seeded_values
from landbridge.ir.graph_ops import ConstantOp
from landbridge.ir.main_attributes import parameter_names
from landbridge.ir.module import IRModule, parameters, symbol_name
from landbridge.ir.traversal import all_operations, operations_of
from landbridge.ir.types import dtype_of, shape_of
from landbridge.reporting.warning_notes import warn
from landbridge.targets import Target
from landbridge.text.did_you_mean import did_you_mean

SUFFIX = ".mlir"
_NUMBER = re.compile(r"\d+$")


def is_ir_text(model: object) -> bool:
    """Returns whether ``model`` is IR text (which has several lines, unlike a path) or the path of a file with it."""
    if isinstance(model, str) and "\n" in model:
        return True
    return isinstance(model, str | Path) and Path(model).suffix == SUFFIX


def import_ir_text(
    model: str | Path,
    targets: tuple[Target, ...],
    vdevices: tuple[VDevice, ...],
    constants: Mapping[str, Any] | None = None,
) -> IRModule:
    """Returns the module that ``model`` prints, for ``vdevices`` of ``targets``, matched by name if the text names
    them.

    ``constants``: arrays by symbol, as in ``Executable.constants``. Constants that are not given get random values
    seeded by their names, with a ModelWarning. Raises ParseError for malformed text, CompileError for a constant that
    does not fit, TargetError for a vdevice without a target.
    """
    text, sources = (model, ()) if isinstance(model, str) and "\n" in model else _read(Path(model))
    module = IRModule.parse(text, targets, ())
    module.add_main()
    module.targets, module.vdevices = _bound(module.vdevices or vdevices, targets, vdevices)
    module.sources = sources
    module.prim_count = max((int(m[0]) for name in module.prims() if (m := _NUMBER.search(name))), default=0)
    given = dict(constants or {})
    _take_constants(module, given)
    if given:
        known = ", ".join(sorted(_symbols(module)))
        raise CompileError(f"constants={sorted(given)} are none of the IR's; it names: {known or 'none'}")
    missing = [*_fill_parameters(module), *fill_missing_constants(module)]
    if missing:
        some = ", ".join(missing[:3]) + (" ..." if len(missing) > 3 else "")
        warn(
            f"the IR names {len(missing)} constants and holds none ({some}): they get values seeded by their names; "
            "constants=executable.constants gives them those of a program, landbridge compile --constants FILE those "
            "of a file",
            ModelWarning,
        )
    return module


def _read(file: Path) -> tuple[str, tuple[str, ...]]:
    try:
        return file.read_text(encoding="utf-8"), (str(file),)
    except UnicodeDecodeError as error:
        raise ParseError(f"{file} is no IR text: {error}") from error
    except OSError as error:
        raise ParseError(f"{file} cannot be read: {error}") from error


def _bound(
    declared: Sequence[VDevice], targets: tuple[Target, ...], vdevices: tuple[VDevice, ...]
) -> tuple[tuple[Target, ...], tuple[VDevice, ...]]:
    """Returns targets and vdevices in the order of the text. A CPU that the compiler had added has no target of its
    own.
    """
    given = {v.name: targets[v.target] for v in vdevices}
    names = [v.name for v in declared]
    if unknown := sorted(set(given) - set(names)):
        raise TargetError(
            f"the IR has no vdevice {unknown[0]!r}{did_you_mean(unknown[0], names)}; legal: {', '.join(names)}"
        )
    numbered: dict[int, Target] = {}
    for vdevice in declared:
        target = given.get(vdevice.name) or (_added_host(targets) if vdevice.name == "cpu" else None)
        if target is None:
            raise TargetError(
                f"the IR uses vdevices {', '.join(names)} and target= gives none for {vdevice.name!r}; state "
                "{vdevice name: target}"
            )
        if numbered.setdefault(vdevice.target, target) != target:
            raise TargetError(f"the IR compiles vdevice {vdevice.name!r} and another one for one target; give both one")
    if sorted(numbered) != list(range(len(numbered))):
        raise ParseError(f"the vdevices of the IR are of targets {sorted(numbered)}; legal: 0 and on, each used")
    return tuple(numbered[n] for n in range(len(numbered))), tuple(declared)


def _added_host(targets: tuple[Target, ...]) -> Target:
    return next((t.host for t in targets if t.host is not None), None) or Target("llvm")


def _symbols(module: IRModule) -> set[str]:
    return {op.symbol_name for op in operations_of(module.main, ConstantOp)}


def _take_constants(module: IRModule, given: dict[str, Any]) -> None:
    """Move the arrays that the module names from ``given`` into its tables."""
    for op in all_operations(module.main):
        if isinstance(op, ConstantOp) and op.symbol_name not in module.constants:
            for name in [name for name in given if op.symbol_name in (name, symbol_name(name))]:
                module.constants[op.symbol_name] = _fitting(name, given.pop(name), op.result.type)
    for name, argument in _parameters(module):
        for known in (name, parameter_constant(name)):
            if known in given:
                module.parameters[name] = _fitting(known, given.pop(known), argument)


def _parameters(module: IRModule) -> list[tuple[str, Any]]:
    """Returns the name and the type of each parameter of @main."""
    found = parameters(module)
    types = [a.type for a in module.main.body.block.args if a in found]
    return list(zip(parameter_names(module.main), types, strict=True))


def _fill_parameters(module: IRModule) -> list[str]:
    missing = [(name, ty) for name, ty in _parameters(module) if name not in module.parameters]
    for name, ty in missing:
        module.parameters[name] = seeded_values(name, ty)
    return [name for name, _ in missing]


def _fitting(name: str, value: Any, ty: Any) -> np.ndarray[Any, Any]:
    array = np.ascontiguousarray(value).reshape(np.shape(value)).view()
    if (array.shape, dtype_name(array.dtype)) != (shape_of(ty), dtype_of(ty)):
        raise CompileError(
            f"constant {name!r} is {dtype_name(array.dtype)}{list(array.shape)}; the IR names "
            f"{dtype_of(ty)}{list(shape_of(ty))}"
        )
    array.flags.writeable = False
    return array
