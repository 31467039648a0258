"""Exports a torch module or ExportedProgram as an ONNX model in memory, with the dimensions that torch knows."""

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
from landbridge.reporting.warning_notes import warn
from landbridge.sizes.dim import Dim

#: The most characters of torch's own message in an error.
_SHOWN = 600
#: Torch's message about an output that it cannot flatten, with the name of its class.
_OUTPUT = re.compile(r"Found <class '(?:[^']*\.)?(\w+)'> in output")


@record(frozen=True, eq=False)
class TorchExport:
    """``model``, whose weights share the module's memory, and its dimensions as arguments of compile."""

    model: ir.Model
    dimensions: TorchDimensions

    def shapes(self, given: Mapping[str, Sequence[int | str]] | None) -> Mapping[str, Sequence[int | str]]:
        """Returns ``shapes=`` of compile: those ``given``, then those that torch knows."""
        return {**self.dimensions.shapes, **(given or {})}

    def dims(self, given: Mapping[str, Dim | str | int] | None) -> Mapping[str, Dim | str | int]:
        """Returns ``dims=`` of compile, likewise."""
        return {**self.dimensions.dims, **(given or {})}


def export(model: Any, args: Any, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any) -> TorchExport:
    """Export ``model``, a ``torch.nn.Module`` or ``torch.export.ExportedProgram``, with ``torch.onnx.export``.

    ``args``: example inputs, a tuple or one tensor, and ``kwargs`` those by name; an ExportedProgram has its own.
    ``dynamic_shapes``: the axes that stay open, with their ranges, in torch's format.

    Raises InputError for missing or superfluous inputs, CompileError if torch lacks a package, and ImportModelError
    with torch's message if it cannot export the model.
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
    except Exception as error:  # torch's exporter raises many types of exceptions, of torch, sympy and Python
        account = _account(error)
        raise ImportModelError(f"torch cannot export {name} to ONNX: {account}{_way_out(account)}") from error


def _account(error: BaseException) -> str:
    """Returns torch's message, from the innermost cause, without the advice about torch's own reports."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None and cause not in causes:
        causes.append(cause)
    text = " ".join(str(causes[-1]).split()) or type(causes[-1]).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _way_out(account: str) -> str:
    """Returns advice if torch's message ``account`` is about an output that is not a tensor; else an empty text."""
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
    """Drop the Python source lines that torch records, so that equal models are equal."""
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        for node in ir.traversal.RecursiveGraphIterator(graph):
            node.metadata_props.clear()
            node.doc_string = None
    for value in (*model.graph.inputs, *model.graph.outputs, *model.graph.initializers.values()):
        value.metadata_props.clear()


@contextmanager
def _no_fast_paths() -> Iterator[None]:
    """Disable, while the ``with`` lasts, the fused operators that torch uses instead of layers if no gradients are
    needed.
    """
    import torch

    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence, while the ``with`` lasts, torch's notes about optional packages and its own deprecations, which no
    caller can act on.
    """
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
