"""Finds by their names which outputs of a model are the next values of which inputs.

The names are those that exporters write: ``past_key_values.0.key`` and ``present.0.key``, ``past_0`` and ``present_0``,
``state`` and ``stateN``, ``h0`` and ``hn``, ``initial_c`` and ``Y_c``, ``cache_in`` and ``cache_out``,
``cache_in_0`` and ``cache_out_0``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: A name without what marks an input that is the value before a run.
_BEFORE = (
    re.compile(r"past_key_values?(?P<rest>.*)"),
    re.compile(r"(?:past|prev|previous|initial|init|old|last)[._]?(?P<rest>.*)"),
    re.compile(r"(?:in|input)[._](?P<rest>.+)"),
    re.compile(r"(?P<rest>.+?)[._]?(?:past|prev|previous|init|initial|old)"),
    re.compile(r"(?P<rest>.+?)[._](?:in|input)(?P<number>[._]?\d+)?"),
    re.compile(r"(?P<rest>[a-zA-Z])_?0"),
    re.compile(r"(?P<rest>.+)"),
)
#: A name without what marks an output that is the value after a run.
_AFTER = (
    re.compile(r"present_key_values?(?P<rest>.*)"),
    re.compile(r"(?:present|next|new|updated)[._]?(?P<rest>.*)"),
    re.compile(r"(?:out|output)[._](?P<rest>.+)"),
    re.compile(r"(?P<rest>.+?)[._]?(?:present|next|new|updated)"),
    re.compile(r"(?P<rest>.+?)[._](?:out|output)(?P<number>[._]?\d+)?"),
    re.compile(r"(?P<rest>[a-zA-Z])_?[nN]"),
    re.compile(r"(?P<rest>.+?)_?N"),
    re.compile(r"Y_(?P<rest>[hc])"),
)
#: What separates the parts of a name.
_SEPARATORS = re.compile(r"[._/]+")


def named_states(inputs: Iterable[str], outputs: Iterable[str]) -> dict[str, str]:
    """Returns the input that each output is the next value of, by the name of the output.

    An output or an input that fits several others is left out: names do not decide then.
    """
    after = {output: _stems(output, _AFTER) for output in outputs}
    fitting: dict[str, list[str]] = {}
    taken: dict[str, int] = {}
    for input in inputs:
        stems = _stems(input, _BEFORE)
        for output, found in after.items():
            if input != output and not stems.isdisjoint(found):
                fitting.setdefault(output, []).append(input)
                taken[input] = taken.get(input, 0) + 1
    return {output: found[0] for output, found in fitting.items() if len(found) == 1 and taken[found[0]] == 1}


def _stems(name: str, forms: Iterable[re.Pattern[str]]) -> set[str]:
    matches = (form.fullmatch(name) for form in forms)
    return {_SEPARATORS.sub(".", _rest(match)).strip(".").lower() for match in matches if match}


def _rest(match: re.Match[str]) -> str:
    number = match.groupdict().get("number")
    return match["rest"] if number is None else f"{match['rest']}.{number}"
