"""export(): a torch module or ExportedProgram as an ONNX model in memory, with what torch knows of its dimensions."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir

from landbridge.errors import CompileError, ImportModelError, InputError, ModelWarning
from landbridge.frontend.torch.dimensions import TorchDimensions, dimensions_of, fixed_axes
from landbridge.records import record
from landbridge.sizes.dim import Dim
from landbridge.warning_notes import warn

#: Characters of torch's own account in an error.
_SHOWN = 600
#: What torch says of an output that it cannot take apart, with the name of its class.
_OUTPUT = re.compile(r"Found <class '(?:[^']*\.)?(\w+)'> in output")


@record(frozen=True, eq=False)
class TorchExport:
    """``model``, whose weights are the module's own memory, and how ``shapes=`` and ``dims=`` say its dimensions."""

    model: ir.Model
    dimensions: TorchDimensions

    def shapes(self, given: Mapping[str, Sequence[int | str]] | None) -> Mapping[str, Sequence[int | str]]:
        """``shapes=`` of compile: what is ``given``, then what torch knows."""
        return {**self.dimensions.shapes, **(given or {})}

    def dims(self, given: Mapping[str, Dim | str | int] | None) -> Mapping[str, Dim | str | int]:
        """``dims=`` of compile, likewise."""
        return {**self.dimensions.dims, **(given or {})}


def export(model: Any, args: Any, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any) -> TorchExport:
    """``model``, a ``torch.nn.Module`` or ``torch.export.ExportedProgram``, through ``torch.onnx.export``.

    ``args``: example inputs, a tuple or one tensor, and ``kwargs`` those by name; an ExportedProgram has its own.
    ``dynamic_shapes``: as torch takes it: the axes that stay open, with their ranges.

    Raises InputError for missing or needless inputs, CompileError where torch lacks a package, and ImportModelError
    with torch's own account for what it cannot export.
    """
    import torch

    exported = isinstance(model, torch.export.ExportedProgram)
    name = "the ExportedProgram" if exported else type(model).__name__
    if exported and (args is not None or kwargs is not None or dynamic_shapes is not None):
        raise InputError("an ExportedProgram has its inputs and dynamic shapes; leave out args, kwargs, dynamic_shapes")
    if not exported:
        if args is None and kwargs is None:
            raise InputError(f"{name} is a torch module: give example inputs too, lb.compile(module, (x,))")
        _warn_of_training(model, name)
    tensors = (args,) if isinstance(args, torch.Tensor) else tuple(args or ())
    program = _exported(model, tensors, dict(kwargs or {}), dynamic_shapes, name)
    created: ir.Model = program.model
    _forget_sources(created)
    created.graph.name = created.graph.name if exported else name
    for axis in fixed_axes(dynamic_shapes, created.graph):
        warn(f"{name}: {axis}, as torch's exporter fixed it, though dynamic_shapes leaves it open", ModelWarning)
    signature = program.exported_program.graph_signature
    changed = [*signature.user_inputs_to_mutate.values(), *signature.buffers_to_mutate.values()]
    if changed:
        warn(f"{name} changes {', '.join(changed)} in place, and the program leaves them as they are", ModelWarning)
    return TorchExport(created, dimensions_of(created.graph, program.exported_program))


def _exported(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, name: str) -> Any:
    import torch

    try:
        from landbridge.frontend.torch.missing_operators import translations

        with quiet(), _no_fast_paths():
            return torch.onnx.export(
                model,
                args,
                kwargs=kwargs,
                dynamic_shapes=dynamic_shapes,
                custom_translation_table=translations(),
                dynamo=True,
                verbose=False,
            )
    except ImportError as error:
        raise CompileError(f"{error}; torch models need: pip install 'landbridge[torch]'") from error
    except Exception as error:  # torch's exporter raises of many kinds, of torch, sympy and Python
        account = _account(error)
        raise ImportModelError(f"torch cannot export {name} to ONNX: {account}{_way_out(account)}") from error


def _account(error: BaseException) -> str:
    """What torch says, from the innermost cause, without the advice on its own reports."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None and cause not in causes:
        causes.append(cause)
    text = " ".join(str(causes[-1]).split()) or type(causes[-1]).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _way_out(account: str) -> str:
    """What to do where torch's ``account`` is of an output that is no tensor; nothing where it is of something else."""
    found = _OUTPUT.search(account)
    if found is None:
        return ""
    if found[1].endswith("Cache"):
        return (
            f". The model returns its keys and values as a {found[1]}: compile it without them, by "
            "kwargs={..., 'use_cache': False} or model.config.use_cache = False"
        )
    return f". The model returns an object of {found[1]}: let it return tensors, or tuples, lists and dicts of them"


def _warn_of_training(module: Any, name: str) -> None:
    if module.training:
        warn(
            f"{name} is in training mode, and so are its Dropout and BatchNorm in the program; call eval() first",
            ModelWarning,
        )


def _forget_sources(model: ir.Model) -> None:
    """Drop what torch notes of Python's lines, so that equal models are equal."""
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        for node in ir.traversal.RecursiveGraphIterator(graph):
            node.metadata_props.clear()
            node.doc_string = None
    for value in (*model.graph.inputs, *model.graph.outputs, *model.graph.initializers.values()):
        value.metadata_props.clear()


@contextmanager
def _no_fast_paths() -> Iterator[None]:
    """Without the operators that torch puts in the place of layers when no gradients are wanted."""
    import torch

    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextmanager
def quiet() -> Iterator[None]:
    """Without torch's notes of optional packages and its own deprecations, which no caller can act on."""
    logs = [logging.getLogger(name) for name in ("torch.onnx._internal.exporter", "onnxscript")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)
