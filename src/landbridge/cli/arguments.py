"""Options that several commands share, and functions that parse their texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from landbridge.cli.options import CliArgument, CliOption, UsageError

if TYPE_CHECKING:
    from landbridge.frontend.input_spec import InputSpec


def complete_devices(incomplete: str) -> list[str]:
    """Returns names of devices that complete the last one of a list; no device is opened."""
    from landbridge.device.registry import names

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names() if name.startswith(last)]


def complete_targets(incomplete: str) -> list[str]:
    """Returns the kinds of targets and the tags."""
    from landbridge.targets import registry, tags

    return [name for name in (*registry.names(), *sorted(tags.known_tags())) if name.startswith(incomplete)]


def _allocators(incomplete: str) -> list[str]:
    before, equals, last = incomplete.rpartition("=")
    return [f"{before}{equals}{name}" for name in ("pooled", "naive") if name.startswith(last)]


def choices(*legal: str) -> Callable[[str], list[str]]:
    """Returns a function that completes a value to the ``legal`` ones."""
    return lambda incomplete: [name for name in legal if name.startswith(incomplete)]


Model: TypeAlias = Annotated[
    Path, CliArgument(metavar="MODEL", exists=True, file=True, help="An .onnx, .mlir or .lbx file.")
]
TargetText: TypeAlias = Annotated[
    str | None,
    CliOption(
        "--target",
        "-t",
        metavar="TARGET",
        help='What to compile for, as in "llvm -mcpu=generic"; this host if absent.',
        completer=complete_targets,
    ),
]
DeviceText: TypeAlias = Annotated[
    str,
    CliOption("--device", "-d", help="The device to run on: name[:index], as in cpu.", completer=complete_devices),
]
DeviceTexts: TypeAlias = Annotated[
    str,
    CliOption(
        "--device",
        "-d",
        help="The device to run on, as in cpu; with others behind it for the rest: opencl:0,cpu.",
        completer=complete_devices,
    ),
]
Places: TypeAlias = Annotated[
    list[str] | None,
    CliOption(
        "--place",
        metavar="NODES=DEVICE[@SCOPE]",
        help="The device and scope of nodes (a pattern), an input or a weight, as in 'Conv*=cpu'; repeatable.",
    ),
]
Spills: TypeAlias = Annotated[
    list[str] | None,
    CliOption(
        "--spill",
        metavar="SCOPE=SCOPE",
        help="The scope that takes what does not fit into another, as in global.vtcm=global.",
    ),
]
Aliases: TypeAlias = Annotated[
    list[str] | None,
    CliOption(
        "--alias",
        metavar="OUTPUT=INPUT",
        help="An output that may be the memory of an input, as in present=past; repeatable. auto: the caches that are "
        "found.",
    ),
]
Mutable: TypeAlias = Annotated[
    list[str] | None,
    CliOption("--mutable", metavar="WEIGHT", help="A weight that a Session may replace; repeat for others."),
]
Unpacked: TypeAlias = Annotated[
    list[str] | None,
    CliOption(
        "--unpacked",
        metavar="WEIGHT",
        help="A weight whose memory a Session may replace by the application's; kernels are slower; repeatable.",
    ),
]
InputSpecs: TypeAlias = Annotated[
    list[str] | None,
    CliOption(
        "--input-spec",
        metavar="N=FIELD:VALUE,...",
        help="What frames of input N are, as in x=dtype:uint8,scale:0.017; or layout, mean, shape, ...",
    ),
]
Constants: TypeAlias = Annotated[
    list[str] | None,
    CliOption("--constant", metavar="N=FILE.npy", help="The value of input N, fixed now; repeat for others."),
]
Shapes: TypeAlias = Annotated[
    list[str] | None,
    CliOption("--shape", metavar="N=1x3x320x320", help="The shape of input N, names where it is open; repeatable."),
]
Dims: TypeAlias = Annotated[
    list[str] | None,
    CliOption("--dim", metavar="W=32..2560:8", help="What open dimension W may be, in steps of 8; repeat for others."),
]
At: TypeAlias = Annotated[
    list[str] | None,
    CliOption(
        "--at",
        metavar="W=320",
        help="What open dimension W is now; if absent that of the inputs given, or a likely one.",
    ),
]
Inputs: TypeAlias = Annotated[
    list[str] | None,
    CliOption("--input", "-i", metavar="N=FILE.npy", help="The value of input N; inputs not given are seeded random."),
]
On: TypeAlias = Annotated[
    str | None,
    CliOption(
        "--on",
        metavar="ssh://[USER@]BOARD",
        help="Compile here, run on that board with the landbridge that is installed there.",
    ),
]
Threads: TypeAlias = Annotated[
    int | None, CliOption("--threads", minimum=1, help="Threads to run on; all cores this process has if absent.")
]
MemoryTexts: TypeAlias = Annotated[
    list[str] | None,
    CliOption(
        "--memory-cfg",
        metavar="[DEVICE[/SCOPE]=]NAME",
        help="The allocator to use, pooled or naive: of all memory, a device or one scope; repeat for others.",
        completer=_allocators,
    ),
]
AllowLinks: TypeAlias = Annotated[
    bool,
    CliOption(
        "--allow-links", help="Let links to external data lead out of the model's folder; for models that you trust."
    ),
]
CheckIndices: TypeAlias = Annotated[
    bool, CliOption("--check-indices", help="End a run at an index out of range, with an error that names it.")
]
Sanitize: TypeAlias = Annotated[
    bool,
    CliOption("--sanitize", help="Look for wrong uses of memory on every device; exit code 3 where one was found."),
]
Optimize: TypeAlias = Annotated[
    str,
    CliOption(
        "--optimize",
        metavar="fast|full",
        help="fast: run a first program at once, of other last bits, while the full one is compiled.",
        completer=choices("fast", "full"),
    ),
]
#: Errors of an output up to this are no difference, unless `--absolute` of ``landbridge compare`` is another.
SMALL_ERROR = 5e-7
Seed: TypeAlias = Annotated[int, CliOption("--seed", minimum=0, help="Seed of the inputs that are not given.")]
Json: TypeAlias = Annotated[
    bool, CliOption("--json", help="Print one JSON object on standard output, messages on standard error.")
]


def parse_optimize(text: str) -> str | None:
    """Returns ``text`` as ``landbridge.compile`` takes it, None for its default; raises UsageError for no legal one."""
    if text not in ("fast", "full"):
        raise UsageError(f"{text!r} is neither fast nor full", parameter="--optimize")
    return None if text == "full" else text


#: What joins extents; a capital one beside a digit too, as it is typed at times.
_X = re.compile(r"x|(?<=\d)X(?=\d)")


def parse_dims(texts: list[str] | None) -> dict[str, str] | None:
    """Parses ``["W=32..2560:8"]`` to ``{"W": "32..2560:8"}``, to None where it is empty; raises UsageError."""
    if texts is None:
        return None
    dims: dict[str, str] = {}
    for text in texts:
        name, equals, declared = text.rpartition("=")
        if not equals or not name or name in dims:
            raise UsageError(f"{text!r} is not NAME=LOW..HIGH:STEP, as in W=32..2560:8", parameter="--dim")
        dims[name] = declared
    return dims


def parse_limits(texts: list[str] | None) -> dict[str, float]:
    """Parses ``["nodes=1000"]`` to ``{"nodes": 1000}``; raises UsageError."""
    limits: dict[str, float] = {}
    for text in texts or ():
        name, _, number = text.partition("=")
        try:
            limits[name] = float(number) if name == "seconds" else int(number)
        except ValueError:
            raise UsageError(f"{text!r} is not NAME=NUMBER, as in seconds=60", parameter="--limit") from None
    return limits


def parse_at(texts: list[str] | None) -> dict[str, int]:
    """Parses ``["W=320"]`` to ``{"W": 320}``; raises UsageError."""
    values: dict[str, int] = {}
    for text in texts or ():
        name, _, number = text.rpartition("=")
        if not name or not number.isdecimal() or name in values:
            raise UsageError(f"{text!r} is not NAME=NUMBER, each once, as in W=320", parameter="--at")
        values[name] = int(number)
    return values


def parse_shapes(texts: list[str] | None) -> dict[str, tuple[int | str, ...]]:
    """Parses ``["x=1x3xW"]`` to ``{"x": (1, 3, "W")}``; ``"x="`` is a scalar. Raises UsageError.

    The notations of other programs are legal too: ``x=1×3×W``, ``x=[1, 3, W]``.
    """
    shapes: dict[str, tuple[int | str, ...]] = {}
    for text in texts or ():
        name, equals, dims = text.rpartition("=")
        shape = _extents(dims)
        legal = all(isinstance(dim, int) or dim.isidentifier() for dim in shape)
        if not equals or not name or not legal or name in shapes:
            raise UsageError(
                f"{text!r} is not NAME=DIMxDIM..., as in x=1x3x320x320, one for each input", parameter="--shape"
            )
        shapes[name] = shape
    return shapes


def _extents(dims: str) -> tuple[int | str, ...]:
    """Parses ``"1x3x320"``, ``"1×3×320"`` or ``"[1, 3, 320]"`` to extents; names in a list with commas may contain an
    x.
    """
    plain = dims.strip().removeprefix("[").removesuffix("]").removeprefix("(").removesuffix(")").replace("×", "x")
    if not plain.strip():
        return ()
    parts = plain.removesuffix(",").split(",") if "," in plain else _X.sub(",", plain).split(",")
    return tuple(int(part) if part.strip().isdecimal() else part.strip() for part in parts)


def parse_places(texts: list[str] | None) -> dict[str, str]:
    """Parses ``["Conv*=npu@global.vtcm"]`` to ``{"Conv*": "npu@global.vtcm"}``; raises UsageError."""
    return _pairs(texts, str.rpartition, "NODES=DEVICE[@SCOPE]", "--place")


def parse_spills(texts: list[str] | None) -> dict[str, str]:
    """Parses ``["global.vtcm=global"]`` to ``{"global.vtcm": "global"}``; raises UsageError."""
    return _pairs(texts, str.partition, "SCOPE=SCOPE", "--spill")


def parse_aliases(texts: list[str] | None) -> dict[str, str] | Literal["auto"]:
    """Parses ``["present=past"]`` to ``{"present": "past"}``, ``["auto"]`` to ``"auto"``; raises UsageError."""
    if texts == ["auto"]:
        return "auto"
    return _pairs(texts, str.partition, "OUTPUT=INPUT", "--alias")


def _pairs(
    texts: list[str] | None, split: Callable[[str, str], tuple[str, str, str]], form: str, option: str
) -> dict[str, str]:
    """Parses ``["a=b"]`` to ``{"a": "b"}``, each text split by ``split``; raises UsageError for a repeated name and for
    a text that is not of the ``form`` of ``option``.
    """
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, _, value = split(text, "=")
        if not name or not value or name in pairs:
            raise UsageError(f"{text!r} is not {form}, each once", parameter=option)
        pairs[name] = value
    return pairs


def parse_input_specs(texts: list[str] | None) -> dict[str, InputSpec]:
    """Parses ``["x=dtype:uint8,layout:NHWC"]`` to ``{"x": InputSpec(dtype="uint8", layout="NHWC")}``.

    Extents and strides are joined by ``x``, numbers for each channel by ``/``. Raises UsageError.
    """
    from landbridge.frontend.input_spec import InputSpec

    specs: dict[str, InputSpec] = {}
    for text in texts or ():
        name, _, listed = text.partition("=")
        declared = [field.partition(":") for field in listed.split(",")]
        known = [field.name for field in fields(InputSpec)]
        names = [field for field, _, value in declared if value]
        if not name or name in specs or len(set(names)) < len(declared) or not set(names) <= set(known):
            raise UsageError(
                f"{text!r} is not NAME=FIELD:VALUE,FIELD:VALUE, each once; legal fields: {', '.join(known)}",
                parameter="--input-spec",
            )
        try:
            specs[name] = InputSpec(**{field: _spec_value(field, value) for field, _, value in declared})
        except ValueError as error:
            raise UsageError(f"{text!r}: {error}", parameter="--input-spec") from error
    return specs


def _spec_value(field: str, text: str) -> Any:
    if field == "shape":
        return tuple(int(extent) if extent.isdecimal() else extent for extent in text.split("x"))
    if field == "strides":
        return tuple(int(number) for number in text.split("x"))
    if field in ("mean", "scale"):
        values = tuple(float(number) for number in text.split("/"))
        return values if len(values) > 1 else values[0]
    return text


def parse_arrays(texts: list[str] | None, option: str = "--input") -> dict[str, Path]:
    """Parses ``["x=a.npy"]`` of ``option`` to ``{"x": Path("a.npy")}``; raises UsageError, also for a missing file."""
    files: dict[str, Path] = {}
    for text in texts or ():
        name, equals, file = text.partition("=")
        if not equals or not name or not file or name in files:
            raise UsageError(f"{text!r} is not NAME=FILE.npy, one for each input", parameter=option)
        if not Path(file).is_file():
            raise UsageError(f"input {name!r}: there is no file {file!r}", parameter=option)
        files[name] = Path(file)
    return files
