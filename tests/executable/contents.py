"""Contents of records that compare by identity, such as images of code."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any


def contents(value: Any) -> Any:
    """Returns ``value`` with each record in it as the values of its fields, which compare."""
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, contents(getattr(value, field.name))) for field in fields(value)]
    if isinstance(value, dict):
        return {key: contents(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [contents(each) for each in value]
    return value
