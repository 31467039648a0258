"""Shows a program in a notebook: tables in the colours of the page around them, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from landbridge.executable.parts import Function, StorageReport, TensorSpec
from landbridge.sizes.dim import Dim
from landbridge.text.markup import markup

#: Rows of one table; a program may have thousands of inputs.
_ROWS = 20
_CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:top;overflow-wrap:anywhere"
_TABLE = "border-collapse:collapse;background:none;color:inherit;margin:4px 0;max-width:100%"


def notebook_view(
    title: str,
    main: Function | None,
    images: Iterable[object],
    constants: Mapping[str, np.ndarray[Any, Any]],
    memory: Iterable[StorageReport],
    dimensions: Mapping[str, Dim],
) -> str:
    """Returns HTML with tables of the inputs and outputs of ``main``, then of code, constants, planned memory and open
    dimensions, under ``title``. Texts are escaped.
    """
    weights = sum(array.nbytes for array in constants.values())
    facts = [
        ("code", "; ".join(map(repr, images)) or "none"),
        ("constants", f"{len(constants)} arrays, {weights:,} bytes"),
        *((f"plan of {report.program}", _plan(report)) for report in memory),
        *((f"dimension {name}", _dimension(dim)) for name, dim in dimensions.items()),
    ]
    tensors = [] if main is None else [*_tensors("input", main.inputs), *_tensors("output", main.outputs)]
    return (
        '<div style="font-size:13px;line-height:1.4;max-width:100%;overflow-x:auto;color:inherit">'
        f"<strong>{markup(title)}</strong>{_table(tensors)}{_table(facts)}</div>"
    )


def _plan(report: StorageReport) -> str:
    """Returns a text of one memory's planned bytes and their lower bound; with open dimensions these are
    expressions.
    """
    planned, bound = (_number(each) for each in (report.planned_bytes, report.lower_bound_bytes))
    place = f"{report.device} {report.scope}".strip()
    return f"{planned} bytes of {place}" + ("" if planned == bound else f", no plan is below {bound}")


def _dimension(dim: Dim) -> str:
    highest = "any number" if dim.high is None else f"{dim.high:,}"
    return f"{dim.low:,} to {highest}" + (f", multiples of {dim.multiple_of}" if dim.multiple_of > 1 else "")


def _number(size: int) -> str:
    return f"{size:,}" if type(size) is int else str(size)


def _tensors(kind: str, specs: Sequence[TensorSpec]) -> Iterable[tuple[str, ...]]:
    for spec in specs:
        yield kind, spec.name, " x ".join(map(str, spec.shape)) or "one element", str(spec.dtype)


def _table(rows: Iterable[Sequence[str]]) -> str:
    listed = list(rows)
    shown = [f"<tr>{''.join(_cell(text) for text in row)}</tr>" for row in listed[:_ROWS]]
    if len(listed) > _ROWS:
        shown.append(f"<tr>{_cell(f'and {len(listed) - _ROWS} more')}</tr>")
    return f'<table style="{_TABLE}">{"".join(shown)}</table>' if shown else ""


def _cell(text: str) -> str:
    return f'<td style="{_CELL}">{markup(text)}</td>'
