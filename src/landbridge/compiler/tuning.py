"""Tuning: measures the best tiles of the kernels that take longest on this machine, and keeps the fastest on disk.

Only tiles that add up in the order of the chosen one are tried, and one counts only where its results on random inputs
are the same to the bit; a tuned program therefore computes what the other one does. Kernels run in a process of their
own (``session/kernel_timer.py``), which ends with the time that was given, or with an interrupt.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp

from landbridge.analysis.accesses import writers_of
from landbridge.codegen.generate import Generation
from landbridge.compiler.given_functions import calling
from landbridge.compiler.tile_files import file_name, read_tiles, write_tiles
from landbridge.emit import emit
from landbridge.errors import CompileError, FallbackWarning
from landbridge.executable.executable import Executable
from landbridge.files.cache_folder import open_folder
from landbridge.ir.kernel_attributes import first_scratch, is_checked, is_in_place, set_target_number
from landbridge.ir.module import IRModule
from landbridge.ir.stages import view_prim
from landbridge.ir.types import SpaceAttr, nbytes_of
from landbridge.passes.lower.candidates import ScheduleCandidate, alternatives, candidates
from landbridge.passes.lower.in_groups import lower_kernels
from landbridge.passes.lower.measured_tiles import MeasuredTiles, Tile
from landbridge.passes.lower.nest import build_nests
from landbridge.passes.lower.prims import vector_unit_of
from landbridge.passes.lower.simplify import simplify
from landbridge.passes.lower.tasks import may_repeat
from landbridge.passes.registry import run_pipeline
from landbridge.process.start_helper import start_helper
from landbridge.records import record
from landbridge.reporting.warning_notes import warn
from landbridge.sizes.size import Size
from landbridge.targets import Target

#: The most tiles of a kernel that are measured, and by how much their prediction may exceed the least: the model of
#: cycles is closer than that for operands in L2 (``passes/lower/cost.py``). Chosen, 2026-11-30.
_TILES, _WORSE = 4, 1.5
#: A tile counts as faster if it takes less than this share of the time of the predicted one. Chosen, 2026-11-30: least
#: times of a busy machine differ by a hundredth or two.
_FASTER = 0.97
#: The seconds that a kernel is measured for at most, of those that are left one part in so many.
_SECONDS, _PARTS = 2.0, 4
_SERVE = "from landbridge.session.kernel_timer import serve; serve()"


@record(frozen=True)
class _Kernel:
    """A PrimFunc that may be tuned, by the name of its file, with the candidates that are measured."""

    file: str
    function: func.FuncOp
    target: Target
    found: tuple[ScheduleCandidate, ...]


class Tuning:
    """The tiles that were measured on this machine, now or before; a TileChoice.

    It notes the kernels that it is asked for, which ``measure`` measures.
    """

    def __init__(self) -> None:
        self._folder = open_folder()
        self._known: dict[str, MeasuredTiles | None] = {}
        self._requested: dict[str, tuple[func.FuncOp, Target]] = {}

    def measured(self, function: func.FuncOp, target: Target) -> MeasuredTiles | None:
        """Returns what was measured for the PrimFunc ``function``."""
        name = file_name(function, target)
        if name not in self._requested:
            self._requested[name] = function.clone(), target
        if name not in self._known:
            self._known[name] = None if self._folder is None else read_tiles(self._folder, name)
        return self._known[name]

    def measure(self, seconds: float) -> bool:
        """Measures kernels that were asked for and not measured yet, those with the most predicted cycles first, for
        ``seconds``; returns whether some were measured.

        Raises CompileError where this machine cannot run the code of a target.
        """
        end = time.monotonic() + seconds
        left = {name: each for name, each in self._requested.items() if self._known[name] is None}
        kernels = [kernel for name, each in left.items() if (kernel := _kernel(name, *each)) is not None]
        found = False
        for kernel in sorted(kernels, key=lambda each: -each.found[0].cycles):
            if time.monotonic() >= end:
                break
            tiles = _measured(kernel, end)
            if tiles is not None:
                self._keep(kernel.file, tiles)
                found = True
        return found

    def _keep(self, name: str, tiles: MeasuredTiles) -> None:
        self._known[name] = tiles
        if self._folder is not None and not write_tiles(self._folder, name, tiles):
            warn(f"measured tiles cannot be written to {self._folder.path}; this compile has them", FallbackWarning)
            self._folder = None


def check_tunable(targets: Sequence[Target]) -> None:
    """Raises CompileError for targets whose kernels this process could not run."""
    for target in targets:
        if target.kind != "llvm" or not target.on_host:
            raise CompileError(
                f"tune= measures kernels on this machine, and target kind {target.kind!r} has none that it times; "
                "legal: targets of kind llvm for this machine; compile without tune="
            )


def _kernel(name: str, function: func.FuncOp, target: Target) -> _Kernel | None:
    """Returns ``function`` with the candidates to measure; None if it has no choice or cannot run alone."""
    if is_checked(function) or not all(_is_plain(argument.type) for argument in function.body.block.args):
        return None
    prim = view_prim(function)
    if prim.forall is not None or prim.is_iterated:
        return None
    nests = [nest for nest in build_nests(prim) if not nest.is_empty]
    if len(nests) != 1 or nests[0].is_scan:
        return None
    repeats = not is_in_place(function) and may_repeat(nests[0])
    found = candidates(simplify(nests[0]), vector_unit_of(target), repeats=repeats, may_copy=True)
    tried = [each for each in alternatives(found) if each.cycles <= _WORSE * found[0].cycles][:_TILES]
    return _Kernel(name, function, target, tuple(tried)) if len(tried) > 1 else None


def _is_plain(ty: object) -> bool:
    """Returns whether an operand is flat memory of a known size."""
    return (
        isinstance(ty, MemRefType)
        and not isinstance(ty.memory_space, SpaceAttr)
        and not isinstance(nbytes_of(ty), Size)
    )


def _measured(kernel: _Kernel, end: float) -> MeasuredTiles | None:
    """Returns the seconds of each tile of ``kernel``, and the fastest of those whose results are those of the first;
    None where there was not enough time until ``end``.
    """
    with TemporaryDirectory(prefix="landbridge-tune-") as folder:
        files = []
        for number, each in enumerate(kernel.found):
            if time.monotonic() >= end:
                return None
            file = Path(folder) / f"{number}.lbx"
            _alone(kernel, each.tile if number else None).save(file)
            files.append(str(file))
        answer = _timed(files, _results(kernel.function), end)
    if answer is None:
        return None
    first = answer[0]
    equal = {
        each.tile: float(times["seconds"])
        for each, times in zip(kernel.found, answer, strict=True)
        if times["digest"] == first["digest"]
    }
    fastest = min(equal, key=equal.__getitem__)
    is_faster = equal[fastest] < _FASTER * equal[kernel.found[0].tile]
    return MeasuredTiles(fastest if is_faster else None, tuple(equal.items()))


def _alone(kernel: _Kernel, tile: Tile | None) -> Executable:
    """Returns a program that calls the kernel, lowered with ``tile`` or the predicted one, on operands of its own."""
    function = kernel.function.clone()
    name = function.sym_name.data
    set_target_number(function, 0)
    module = IRModule(ModuleOp([]), (kernel.target,))
    module = run_pipeline(calling(name, function, module), ("plan",))
    lowered, variants = lower_kernels(module, tiles=_Fixed(tile))
    executable = emit(module, lowered, variants)
    with closing(Generation(early=False)) as code:
        return replace(executable, modules=code.images(module.targets, lowered))


@record(frozen=True)
class _Fixed:
    """One tile for every kernel, None for the predicted one."""

    tile: Tile | None

    def measured(self, function: func.FuncOp, target: Target) -> MeasuredTiles:
        """Returns the tile as if it had been measured."""
        return MeasuredTiles(self.tile, ())


def _results(function: func.FuncOp) -> int:
    """Returns how many outputs of the kernel are results; scratch follows them."""
    arguments = function.body.block.args
    written = sum(bool(writers_of(argument)) for argument in arguments)
    scratch = first_scratch(function)
    return written if scratch is None else written - (len(arguments) - scratch)


def _timed(files: list[str], results: int, end: float) -> list[dict[str, Any]] | None:
    """Returns what the timing process says of the programs in ``files``; None where time or the process ended.

    Raises CompileError where this machine cannot run them.
    """
    left = end - time.monotonic()
    if left <= 0:
        return None
    request = {"files": files, "results": results, "seconds": min(_SECONDS, left / _PARTS)}
    process = start_helper(_SERVE, is_silent=True)
    try:
        output, _ = process.communicate(json.dumps(request).encode() + b"\n", timeout=left)
    except TimeoutExpired:
        return None
    finally:
        process.kill()
        process.wait()
    try:
        answer = json.loads(output)
    except ValueError:  # it was ended, as by a lack of memory
        return None
    if isinstance(answer, dict):
        raise CompileError(f"tune= cannot run the kernels of this target on this machine: {answer['error']}")
    return answer  # type: ignore[no-any-return]
