"""``landbridge targets``: lists the target kinds, their options and tags, or shows what one target resolves to."""

from __future__ import annotations

from typing import Annotated, Any

from landbridge.cli import arguments as args
from landbridge.cli.options import CliArgument
from landbridge.cli.output import emit, message, table


def targets(
    target: Annotated[
        str | None,
        CliArgument(
            metavar="TARGET",
            help='Resolve this target, as in "llvm -mcpu=native", and print it.',
            completer=args.complete_targets,
        ),
    ] = None,
    json: args.Json = False,
) -> None:
    """List what can be compiled for, or show what a TARGET means here."""
    if target is not None:
        _show(target, json)
        return
    kinds, broken = _kinds()
    from landbridge.targets import known_tags

    if json:
        tags = known_tags()
        emit({"kinds": kinds, "broken": broken, "tags": tags, "not_linked": [t for t in tags if _not_linked(tags[t])]})
    else:
        for kind in kinds:
            rows = [(f"-{o['name']}", o["legal"], o["default"] or "", o["doc"]) for o in kind["options"]]
            runs_on = ", ".join(kind["device_types"])
            title = f"{kind['name']}: {kind['doc']}{f'; runs on {runs_on}' if runs_on else ''}"
            table(title, ("option", "legal", "default", "meaning"), rows)
        tagged = [(tag, _text(form), _not_linked(form)) for tag, form in known_tags().items()]
        table("tags", ("tag", "stands for", ""), tagged)
    for name, reason in broken.items():
        message(f"{name}: {reason}")


def _show(text: str, json: bool) -> None:
    from landbridge.codegen.registry import check_target
    from landbridge.errors import CodegenError
    from landbridge.targets import Target

    resolved = Target(text)
    try:
        check_target(resolved)
    except CodegenError as error:
        message(str(error))
    if json:
        emit({**resolved.to_dict(), "attrs": dict(resolved.attrs), "text": str(resolved)})
        return
    rows = [(name, _words(value)) for name, value in resolved.options.items()]
    table(resolved.kind, ("option", "value"), rows + [(k, _words(v)) for k, v in resolved.attrs.items()])


def _kinds() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Returns a description of every kind that loads, and the reason for every one that does not."""
    from landbridge.errors import TargetError
    from landbridge.targets import get_kind, names

    kinds: list[dict[str, Any]] = []
    broken = {}
    for name in names():
        try:
            kind = get_kind(name)
        except TargetError as error:
            broken[name] = str(error)
            continue
        options = [
            {"name": o.name, "type": o.type, "legal": o.legal, "default": o.default, "doc": o.doc} for o in kind.options
        ]
        kinds.append({"name": name, "doc": kind.doc, "device_types": list(kind.device_types), "options": options})
    return kinds, broken


def _not_linked(form: dict[str, object]) -> str:
    """Returns why nothing can be compiled yet for the tag that stands for ``form``; empty if it can."""
    from landbridge.instruction_sets.registry import is_known
    from landbridge.targets.llvm_cpu import architecture

    isa = architecture(str(form.get("mtriple", "x86_64")))
    return "" if is_known(isa) else f"described only: {isa} cannot be linked yet"


def _text(form: dict[str, object]) -> str:
    options = [f"-{name}={_words(value)}" for name, value in form.items() if name != "kind"]
    return " ".join([str(form["kind"]), *options])


def _words(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
