"""Objects that only accept the fields of their onnxruntime classes, and only values of the fields' types."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar

from landbridge.errors import LandbridgeError
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.text.did_you_mean import did_you_mean


class NoFieldError(LandbridgeError, AttributeError):
    """Raised when there is no such option; an AttributeError, as in onnxruntime."""


class FieldTypeError(LandbridgeError, TypeError):
    """Raised when an option is of another type; a TypeError, as in onnxruntime."""


class NoEntryError(failures.Fail, RuntimeError):
    """Raised when no entry of this key was added; a RuntimeError, as in onnxruntime."""


class OptionFields:
    """Base of option classes. ``_FIELDS`` has each field with its default, whose type other values must have."""

    _FIELDS: ClassVar[dict[str, bool | int | str]] = {}

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}
        for name, value in self._FIELDS.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._FIELDS:
            value = _converted(f"{type(self).__name__}.{name}", value, type(self._FIELDS[name]))
        elif not name.startswith("_"):
            raise NoFieldError(
                f"{type(self).__name__!r} object has no attribute {name!r}{did_you_mean(name, self._FIELDS)}; "
                f"it has {', '.join(sorted(self._FIELDS))}"
            )
        object.__setattr__(self, name, value)

    def _add_entry(self, key: str, value: str) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise FieldTypeError(f"a config entry is text by text, not {value!r} by {key!r}")
        self._entries[key] = value

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise NoEntryError(f"{type(self).__name__} does not have configuration with key: {key}")
        return self._entries[key]

    def config_entry(self, key: str) -> str:
        """Returns the entry that was added, or ``""``."""
        return self._entries.get(key, "")


def _converted(subject: str, value: Any, kind: type[bool | int | str]) -> Any:
    """Returns ``value`` as one of ``kind``; raises FieldTypeError where onnxruntime does not accept it."""
    if kind is bool:
        is_legal = isinstance(value, bool | int) or type(value).__name__ in ("bool", "bool_")
    elif kind is str:
        is_legal = isinstance(value, str)
    elif issubclass(kind, IntEnum):
        is_legal = isinstance(value, kind)
    else:
        is_legal = hasattr(value, "__index__")
    if not is_legal:
        raise FieldTypeError(f"{subject} takes {kind.__name__}, not {type(value).__name__} {value!r}")
    return value if issubclass(kind, IntEnum) else kind(value)
