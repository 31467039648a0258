"""Text forms of a target: option text (``llvm -mcpu=native -num-cores=2``), dict, and JSON text.

Option text holds a kind and its options only. A target that declares more (memory, shares, keys, host) is written as
JSON; ``Target(text)`` reads both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from landbridge.errors import TargetError
from landbridge.targets.kind import Options, OptionValue

#: Text without quotes and escapes, in which words of a shell are what spaces separate.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:=+ -]*")


def parse(text: str) -> dict[str, object]:
    """Returns the dict form of option text or JSON text; option values stay text. Raises TargetError for other text."""
    if text.lstrip().startswith("{"):
        return _parse_json(text)
    words = text.split() if _PLAIN.fullmatch(text) else _shell_words(text)
    if not words:
        raise TargetError("the target is empty; legal: a kind and options, such as 'llvm -mcpu=native'")
    form: dict[str, object] = {"kind": words[0]}
    for word in words[1:]:
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise TargetError(f"target {text!r}: {word!r} is not an option; options are written -name=value")
        if name in form:
            raise TargetError(f"target {text!r}: option {name!r} is given twice")
        form[name] = value if equals else True
    return form


def _shell_words(text: str) -> list[str]:
    import shlex  # most texts have no quotes

    try:
        return shlex.split(text)
    except ValueError as error:
        raise TargetError(f"target {text!r} does not parse: {error}") from error


def _parse_json(text: str) -> dict[str, object]:
    try:
        form = json.loads(text)
    except (ValueError, RecursionError) as error:  # no JSON, an integer too long to read, or nested too deep
        raise TargetError(f"target JSON does not parse: {error}") from error
    if not isinstance(form, dict):
        raise TargetError(f"target JSON must be an object with the key 'kind', not {type(form).__name__}")
    return form


def format_options(kind: str, options: Options) -> str:
    """Returns option text that ``parse`` reads as the same kind and options."""
    import shlex

    return " ".join([shlex.quote(kind), *(shlex.quote(f"-{k}={_format(v)}") for k, v in options.items())])


def format_json(form: Mapping[str, object]) -> str:
    """Returns canonical JSON text of a dict form: equal targets give equal text."""
    return json.dumps(form, sort_keys=True, separators=(",", ":"))


def _format(value: OptionValue) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return ",".join(value) if isinstance(value, tuple) else str(value)
