"""ImportRequest: what a caller asks of an import of an ONNX model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import onnx_ir as ir

from landbridge.executable.parts import VDevice
from landbridge.frontend.input_spec import InputSpec
from landbridge.frontend.onnx.data_rules import OF_THE_MODEL, DataRules
from landbridge.ir.budget import MAX_NODES, SearchBudget
from landbridge.ir.empties import Empties
from landbridge.records import record
from landbridge.sizes.size import Extent
from landbridge.targets import Target

if TYPE_CHECKING:
    from onnx import ModelProto


@record(frozen=True, eq=False)
class ImportRequest:
    """A model, and what is stated about it.

    ``shapes``: static shapes of inputs by name, needed if the file leaves dimensions open and ``dimensions`` is None.
    ``dimensions``: open dimensions stay open, in these ranges by name; if None, each extent has to be known. An input
    of sizes stays an argument, and its elements are dimensions. ``constants``: values of inputs that are fixed now,
    arrays or numbers by name. Such an input is not an argument of ``@main``, and values that depend only on it are
    folded. A value with text stays an argument, whose elements are open dimensions. ``frames``: the form in which the
    application has inputs, by name, if it differs from the model's. ``extra_outputs``: names of inner values that are
    returned after the model's outputs. ``mutable``: names of weights that stay replaceable: the last arguments of
    ``@main``, ``parameters`` of the module. ``alias``: outputs that shall have the memory of an input, and therefore
    its shape; "auto": the caches that are found. ``max_nodes``: the most nodes after functions, loops and recurrent
    layers are unfolded. ``check_indices``: indices out of range end a run with IndexRangeError. ``rules``: which files
    may contain external data.

    ``chosen``: the elements of inputs that stay arguments, but have these values in this program. ``not_empty``:
    dimensions decided by data that are at least 1 in this program. ``empties``: whether tensors may have no elements if
    inputs decide the number. ``hosts``: nodes without a kernel, because an input decides what they do, run on the host.
    ``others`` and ``spares``: modules for other sizes are built too (``Imported``).

    ``around``: names of dimensions of the enclosing program; None unless the model is the body of a loop or a branch.
    ``begin``: ranges of dimensions, by name, that are tried first. ``search``: what a search may still do
    that the import is part of, such as that of the enclosing program; None for a search of its own.
    """

    model: str | Path | bytes | ModelProto | ir.Model
    targets: tuple[Target, ...]
    vdevices: tuple[VDevice, ...] = (VDevice("cpu", 0),)
    shapes: Mapping[str, Sequence[int | str]] | None = None
    dimensions: Mapping[str, Extent] | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)
    frames: Mapping[str, InputSpec] = field(default_factory=dict)
    extra_outputs: Sequence[str] = ()
    mutable: Sequence[str] = ()
    alias: Mapping[str, str] | Literal["auto"] | None = None
    max_nodes: int = MAX_NODES
    check_indices: bool = False
    rules: DataRules = OF_THE_MODEL
    chosen: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    not_empty: Collection[str] = ()
    empties: Empties = field(default_factory=Empties)
    hosts: bool = False
    others: bool = False
    spares: bool = False
    around: Collection[str] | None = None
    begin: Mapping[str, Extent] = field(default_factory=dict)
    search: SearchBudget | None = None
