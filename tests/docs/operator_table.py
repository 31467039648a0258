"""docs/operator-table.md, made from what is registered: ``python -m tests.docs.operator_table`` writes it anew."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx

from landbridge.frontend.onnx.known_operators import implementations
from landbridge.frontend.onnx.main_function import CONTROL_FLOW
from landbridge.frontend.onnx.sequences import OF_SEQUENCES
from landbridge.operators import REGISTRY, Definition, HostOperator, Kernel
from landbridge.operators.implementations import is_built_in

PAGE = Path(__file__).parents[2] / "docs" / "operator-table.md"
#: The newest opset that the page is of; an onnx that has no such opset cannot make it.
OPSET = 26
_NEWEST = {"": OPSET, "ai.onnx.ml": 5, "com.microsoft": 1, "landbridge": 1}
_GROUPS = {
    "floats": ("float16", "float", "double", "bfloat16"),
    "ints": ("int8", "int16", "int32", "int64"),
    "uints": ("uint8", "uint16", "uint32", "uint64"),
    "bool": ("bool",),
}
_TEXT = {"float": "float32", "double": "float64"}
_HEAD = """# Table of operators

`python -m tests.docs.operator_table` writes this page from what is registered; [Operators](operators.md) says what a
node must be.

- **Versions** are those of the operator in ONNX, up to opset {opset}, that are compiled. Models of opsets under 7 are
  converted when they are imported.
- **dtypes** are those of its first input that ONNX lists and that can be compiled: floats are `float16`, `bfloat16`,
  `float32` and `float64`, ints and uints those of 8 to 64 bits.
- **Runs as**: a *kernel* is compiled for every [target](targets.md). Kernels of dtypes that a target's options exclude
  (`fp64`, `int64`, `small-elements`), and those with more buffers than it binds, run on the CPU beside it. A
  *definition* is compiled as the kernels that the operator is defined by. *Import*: it leaves no code of its own, but
  what is in it. *Host* is a numpy function, on the CPU whatever the target; `lb.host_operator` adds yours.

"""


def _versions(domain: str, name: str) -> list[Any]:
    """ONNX's own of the operator, old to new."""
    found = [s for s in _schemas() if (s.domain, s.name) == (domain, name) and s.since_version <= _NEWEST[domain]]
    return sorted(found, key=lambda schema: int(schema.since_version))


def _schemas() -> list[Any]:
    return [s for s in onnx.defs.get_all_schemas_with_history() if s.domain in _NEWEST and not s.deprecated]


def _dtypes(schema: Any) -> str:
    """Of the first input, or the output where there is none, of those that can be compiled."""
    (formal, *_) = schema.inputs or schema.outputs
    constrained = {t.type_param_str: t.allowed_type_strs for t in schema.type_constraints}
    allowed = {
        text.removeprefix("tensor(").removesuffix(")") for text in constrained.get(formal.type_str, [formal.type_str])
    }
    words = []
    for group, members in _GROUPS.items():
        of_group = [member for member in members if member in allowed]
        whole = len(of_group) == len(members) or set(of_group) == {"float16", "float", "double"}
        words += [group] if whole else [f"`{_TEXT.get(member, member)}`" for member in of_group]
        if whole and len(of_group) < len(members):
            words[-1] += " but `bfloat16`"
    return ", ".join(words) or "-"


def _runs_as(domain: str, name: str, opset: int) -> str:
    """In words; empty where that version is refused."""
    kinds = [kind.removesuffix(" operator") for kind in implementations(domain, name, opset)]
    if "import" in kinds:
        return "import"
    if len(kinds) > 1 and kinds[-1] == "host":
        return f"{kinds[0]}; host where data decide its sizes, or what it does"
    return kinds[0] if kinds else ""


def _has_body(schema: Any) -> bool:
    return bool(schema.has_function or schema.has_context_dependent_function)


def _rows(domain: str, names: Iterable[str]) -> list[str]:
    rows = []
    for name in sorted(names):
        versions = _versions(domain, name)
        taken = [(int(v.since_version), _runs_as(domain, name, int(v.since_version))) for v in versions]
        values = [str(number) for number, kind in taken if kind]
        kind = _runs_as(domain, name, _NEWEST[domain])
        if kind and (values or not versions):
            dtypes = _dtypes(versions[-1]) if versions else "-"
            rows.append(f"| {name} | {' '.join(values) or '1'} | {dtypes} | {kind} |\n")
    return rows


def operators() -> dict[str, set[str]]:
    """The names of all operators that the page is of, by domain."""
    names: dict[str, set[str]] = {domain: set() for domain in _NEWEST}
    registered = [each for kind in (Kernel, Definition, HostOperator) for each in REGISTRY.of_kind(kind)]
    for each in registered:
        if is_built_in(each):
            names[each.domain].add(each.op_type)
    names[""] |= {*CONTROL_FLOW, *OF_SEQUENCES}
    names[""] |= defined_by_onnx()
    return names


def defined_by_onnx() -> set[str]:
    """The names of operators of ONNX's own domain that ONNX defines by others."""
    schemas = [schema for schema in _schemas() if not schema.domain and schema.since_version <= OPSET]
    return {schema.name for schema in schemas if _has_body(schema)}


def page() -> str:
    """The whole page."""
    names = operators()
    text = _HEAD.format(opset=OPSET)
    for domain in _NEWEST:
        rows = _rows(domain, names[domain])
        number = f"{len(rows)} operator{'s' * (len(rows) > 1)}"
        text += f"## {domain or 'ai.onnx'}\n\n{number}.\n\n| operator | versions | dtypes | runs as |\n"
        text += "| --- " * 4 + "|\n" + "".join(rows) + "\n"
    return text.rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
