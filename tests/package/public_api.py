"""The package's public names and signatures, as text: ``python -m tests.package.public_api`` writes it anew."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import landbridge as lb

FILE = Path(__file__).with_suffix(".txt")


def _signature(value: object) -> str:
    try:
        return str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""


def _bases(value: type) -> str:
    names = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
    return f"({names})" if names else ""


def _members(value: type) -> Iterator[str]:
    ours = {name for base in value.__mro__ if base.__module__.startswith("landbridge") for name in vars(base)}
    for name in sorted(name for name in ours if not name.startswith("_")):
        member = inspect.getattr_static(value, name)
        if isinstance(member, property):
            yield f"  {name}: property, {'may be set' if member.fset else 'read only'}"
        elif isinstance(member, classmethod | staticmethod):
            yield f"  {type(member).__name__} {name}{_signature(member.__func__)}"
        elif inspect.isroutine(member):
            yield f"  {name}{_signature(member)}"
        else:
            yield f"  {name}"


def described() -> str:
    """A line for each public name with its signature, then what a class offers; of exceptions the bases alone."""
    lines = []
    for name in lb.__all__:
        value = getattr(lb, name)
        if inspect.isclass(value):
            lines.append(f"class {name}{_bases(value)}{'' if issubclass(value, Exception) else _signature(value)}")
            lines += [] if issubclass(value, Exception) else _members(value)
        elif inspect.isroutine(value):
            lines.append(f"{name}{_signature(value)}")
        else:
            lines.append(f"{name}: {type(value).__name__}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(described())
