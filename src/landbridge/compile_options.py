"""CompileOptions: what ``landbridge.compile`` was asked besides a model and its targets, as its docstring says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from landbridge.input_spec import InputSpec
from landbridge.sizes.dim import Dim

if TYPE_CHECKING:
    from landbridge.passes.place import Places


@dataclass(frozen=True)
class CompileOptions:
    """All that decides the result: one more option is one more field, which kept results are told apart by, too."""

    shapes: Mapping[str, Sequence[int | str]] | None
    inputs: Mapping[str, InputSpec] | None
    extra_outputs: Sequence[str]
    constants: Mapping[str, Any] | None
    mutable: Sequence[str]
    place: Places | None
    spill: Mapping[str, str] | None
    on_mismatch: str
    max_nodes: int
    check_indices: bool
    sanitize: bool
    dims: Mapping[str, Dim | str | int] | None
