"""``landbridge inspect``: shows inputs and outputs of a model, its operators and its cost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from landbridge.cli import arguments as args
from landbridge.cli.output import emit, line, paragraph, table

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable
    from landbridge.sizes.size import Extent


def inspect(
    model: args.Model,
    target: args.TargetText = None,
    shape: args.Shapes = None,
    dim: args.Dims = None,
    allow_links: args.AllowLinks = False,
    at: args.At = None,
    json: args.Json = False,
) -> None:
    """Say what MODEL takes and gives, its operators and whether each is supported, its size, FLOPs and memory.

    An .onnx or .mlir is compiled to find out, and comes from the cache of results the next time; where it cannot be
    compiled, the reason is told and the rest stands. FLOPs are those of one run: a multiply-add is two.
    """
    from landbridge.cli.models import open_model
    from landbridge.errors import CompileError

    result: dict[str, Any] = {"model": str(model), "bytes": model.stat().st_size}
    if model.suffix == ".lbx":
        result |= _file_facts(model)
    elif model.suffix != ".mlir":
        result |= _contents(model, allow_links)
    try:
        dims = args.parse_dims(dim)
        executable = open_model(model, target, args.parse_shapes(shape), dims=dims, allow_links=allow_links).executable
    except CompileError as error:
        if "operators" not in result:
            raise
        result |= {"compiles": False, "reason": str(error)}
    else:
        result |= {"compiles": True} | _program(executable, args.parse_at(at))
    if json:
        emit(result)
    else:
        _print(result)


def _file_facts(model: Path) -> dict[str, Any]:
    """Returns the fact in the header of an ``.lbx``: its format version."""
    from landbridge.executable.file_reader import format_version

    return {"format": format_version(model)}


def _contents(model: Path, allow_links: bool) -> dict[str, Any]:
    """Returns what the file itself contains."""
    from landbridge.frontend.onnx.contents import contents_of
    from landbridge.frontend.onnx.data_rules import DataRules
    from landbridge.ir.budget import MAX_NODES

    return asdict(contents_of(model, MAX_NODES, DataRules(allow_links=allow_links)))


def _program(executable: Executable, at: dict[str, int]) -> dict[str, Any]:
    """Returns the facts of a compiled program; FLOPs and memory at the sizes ``at``, else at the expected ones."""
    from landbridge.cli.models import at_sizes, describe_memory, describe_tensor
    from landbridge.executable.instance import dimensions
    from landbridge.executable.kernel_facts import facts_of
    from landbridge.executable.state_growth import growths_of, slides_of
    from landbridge.sizes.size import expected_size, of_symbol
    from landbridge.targets import Target

    sized = at_sizes(executable, {}, at)
    sizes = {name: expected_size(of_symbol(symbol)) for name, symbol in dimensions(executable.main).items()} | at
    facts = facts_of(executable)
    calls = [facts[name] for name in _called(sized) if name in facts]
    work = [known.flops if isinstance(known.flops, int) else known.flops.at(sizes) for known in calls]
    return {
        "inputs": [describe_tensor(spec) for spec in executable.main.inputs],
        "outputs": [describe_tensor(spec) for spec in executable.main.outputs],
        "aliases": dict(executable.main.aliases),
        "growth": [
            {"input": g.name, "axis": g.axis, "before": str(g.before), "after": str(g.after), "positions": g.positions}
            for g in growths_of(executable).get("main", ())
            if not g.slides
        ],
        "windows": [
            {"input": g.name, "axis": g.axis, "state": g.before, "new": _number_or_text(g.after - g.before)}
            for g in slides_of(executable).values()
        ],
        "dimensions": {name: asdict(declared) for name, declared in executable.dimensions.items()},
        "targets": [str(Target.from_json(module.target)) for module in executable.modules],
        "compiled_by": executable.metadata.get("landbridge"),
        "kernels": len(list(_called(executable))),
        "code_bytes": sum(len(module.image.code) for module in executable.modules),
        "constant_bytes": sum(array.nbytes for array in executable.constants.values()),
        "at": sizes,
        "flops": sum(work) if facts else None,
        "memory": describe_memory(sized),
    }


def _number_or_text(extent: Extent) -> int | str:
    """Returns ``extent`` for JSON: what depends on dimensions as text."""
    return extent if isinstance(extent, int) else str(extent)


def _called(executable: Executable) -> list[str]:
    """Returns the function of each kernel that a run calls, in order."""
    from landbridge.executable import instructions as ins

    return [i.function for i in ins.flattened(executable.main.instructions) if isinstance(i, ins.Call)]


def _print(result: dict[str, Any]) -> None:
    line(result["model"])
    table("", ("fact", "value"), [(name, result[key]) for name, key in _FACTS if result.get(key) is not None])
    named = [("input", tensor) for tensor in result["inputs"]] + [("output", tensor) for tensor in result["outputs"]]
    table("tensors", ("", "name", "shape", "dtype"), [(k, t["name"], _shape(t["shape"]), t["dtype"]) for k, t in named])
    table("outputs that may be the memory of an input", ("output", "input"), list(result.get("aliases", {}).items()))
    grown = [(g["input"], g["axis"], g["before"], g["after"], g["positions"] or "-") for g in result.get("growth", [])]
    table("states that grow", ("input", "axis", "before a run", "after it", "from the largest of"), grown)
    slid = [(g["input"], g["axis"], g["state"], g["new"]) for g in result.get("windows", [])]
    table("states that slide", ("input", "axis", "read of the last run", "written"), slid)
    rows = [
        (n, d["low"], "any" if d["high"] is None else d["high"], d["multiple_of"], result["at"][n])
        for n, d in result.get("dimensions", {}).items()
    ]
    table("open dimensions", ("name", "from", "to", "multiple of", "here"), rows)
    operators = [
        (o["count"], o["name"], o["domain"], o["opset"], "yes" if o["supported"] else "NO")
        for o in result.get("operators", ())
    ]
    table("operators", ("count", "operator", "domain", "opset", "supported"), operators)
    table(
        "memory",
        ("device", "scope", "planned bytes", "lower bound", "proved optimal"),
        [
            (m["device"], m["scope"], m["planned_bytes"], m["lower_bound_bytes"], m["proved_optimal"])
            for m in result.get("memory", ())
        ],
    )
    if not result["compiles"]:
        paragraph(f"it cannot be compiled: {result['reason']}")


_FACTS = (
    ("bytes of the file", "bytes"),
    ("format of the file", "format"),
    ("compiled by Landbridge", "compiled_by"),
    ("parameters", "parameters"),
    ("bytes of weights", "weight_bytes"),
    ("kernels of a run", "kernels"),
    ("bytes of code", "code_bytes"),
    ("bytes of constants", "constant_bytes"),
    ("FLOPs of a run", "flops"),
)


def _shape(shape: list[Any] | tuple[Any, ...] | None) -> str:
    return "?" if shape is None else ", ".join(map(str, shape)) or "scalar"
