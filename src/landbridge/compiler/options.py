"""CompileOptions: the options of ``landbridge.compile`` besides the model and its targets; its docstring describes
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from landbridge.errors import InputError, ShapeError, UnknownArgumentError
from landbridge.frontend.input_spec import InputSpec
from landbridge.ir.budget import MAX_NODES
from landbridge.records import record
from landbridge.sizes.dim import Dim
from landbridge.text.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from landbridge.passes.lower.measured_tiles import TileChoice
    from landbridge.passes.place import Places


#: Characters of a value in an error.
_SHOWN = 60

#: The form of each option that is not a number, and an example.
_FORMS: dict[str, tuple[Any, str, str]] = {
    "shapes": (Mapping, "shapes of inputs by name", '{"x": (1, 3, 224, 224)}'),
    "dims": (Mapping, "what open dimensions may be, by name", '{"W": "32..2560:8"}'),
    "inputs": (Mapping, "InputSpecs by name of an input", '{"x": lb.InputSpec(dtype="uint8")}'),
    "constants": (Mapping, "values of inputs by name", '{"k": 5}'),
    "spill": (Mapping, "scopes by scope", '{"global.vtcm": "global"}'),
    "place": ((Mapping, Callable), "places by pattern of nodes, or a function", '{"Conv*": "npu"}'),
    "alias": (Mapping, "names of inputs by output", '{"present.0.key": "past_key_values.0.key"}'),
    "extra_outputs": (Sequence, "names of tensors", '["features"]'),
    "mutable": (Sequence, "names of weights", '["fc.weight"]'),
    "unpacked": (Sequence, "names of weights", '["fc.weight"]'),
}


def check_form(options: Mapping[str, object]) -> None:
    """Raises InputError for an option of ``landbridge.compile`` whose value is not of a form that it takes."""
    for name, (legal, subject, example) in _FORMS.items():
        given = options[name]
        if (
            given is not None
            and not (name == "alias" and given == "auto")
            and (not isinstance(given, legal) or isinstance(given, str | bytes))
        ):
            raise InputError(f"{name}= takes {subject}, as {name}={example}, not {_shown(given)}")
    for name, shape in (options["shapes"] or {}).items():  # type: ignore[attr-defined]
        _check_shape(name, shape)
    for name, spec in (options["inputs"] or {}).items():  # type: ignore[attr-defined]
        if not isinstance(spec, InputSpec):
            raise InputError(f"inputs= takes a landbridge.InputSpec for {name!r}, not {_shown(spec)}")
    nodes = options["max_nodes"]
    if isinstance(nodes, bool) or not hasattr(nodes, "__index__"):
        raise InputError(f"max_nodes={nodes!r}; legal: a number from 1")


def unknown_options(given: Iterable[str], parameters: Iterable[str]) -> UnknownArgumentError:
    """Returns the error for the first of ``given`` that is none of the ``parameters`` of ``landbridge.compile``."""
    name, legal = next(iter(given)), [each for each in parameters if each not in ("model", "unknown")]
    return UnknownArgumentError(
        f"compile() has no option {name!r}{did_you_mean(name, legal)}; legal: {', '.join(legal)}"
    )


def _check_shape(name: object, shape: object) -> None:
    """Raises ShapeError unless ``shape`` lists extents: numbers, or text where one is open."""
    if isinstance(shape, str) or not hasattr(shape, "__iter__"):
        raise ShapeError(f"shapes: {name!r} is {_shown(shape)}; a shape lists its extents, as (1, 3, 224, 224)")
    for extent in shape:
        is_legal = (hasattr(extent, "__index__") and not isinstance(extent, bool)) or isinstance(extent, str)
        if not is_legal:
            raise ShapeError(
                f"shapes: extent {extent!r} of input {name!r} is not legal; give a whole number, or a name where it is "
                'open, as "N"'
            )


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({type(given).__name__})"


@record(frozen=True)
class CompileOptions:
    """All options that decide the result of a compile; each field is also part of the key of a cached result.
    Those that are left out are as ``landbridge.compile`` has them.
    """

    shapes: Mapping[str, Sequence[int | str]] | None = None
    inputs: Mapping[str, InputSpec] | None = None
    extra_outputs: Sequence[str] = ()
    constants: Mapping[str, Any] | None = None
    mutable: Sequence[str] = ()
    unpacked: Sequence[str] = ()
    place: Places | None = None
    spill: Mapping[str, str] | None = None
    alias: Mapping[str, str] | Literal["auto"] | None = None
    on_mismatch: str = "error"
    max_nodes: int = MAX_NODES
    check_indices: bool = False
    sanitize: bool = False
    external_data: str | Path | None = None
    allow_links: bool = False
    dims: Mapping[str, Dim | str | int] | None = None
    tiles: TileChoice | None = None
