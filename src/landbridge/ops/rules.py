"""Rules of an operator: what its operands' shapes and its attributes may be, checked before its handler is called
(``rule_check``).

They stand above ``@operator``, one text for each operand in the order of the handler's arguments::

    @rules(
        "X: N C *D",
        "W: M K *k",
        "B?: M",
        attributes={"group": at_least(1, default=1), "strides": at_least(1, count="len(D)")},
        where=("C == K * group", "M % group == 0"),
    )
    @kernel("", "Conv")
    def conv(c, x, w, bias=None): ...

A text is ``name: dims``, ``name?: dims`` for an operand that may be left out, ``*name: dims`` for all that are left.
``dims`` are words, one an axis, and forms between ``|`` are alternatives:

- ``N``: any extent, the same wherever the name occurs in the node; a number is that extent, ``_`` is any;
- ``*D``: any number of axes, the same wherever it occurs; ``...`` is any number of any axes;
- ``&S`` alone: a shape that broadcasts together with those of the other operands that say so;
- ``<S`` alone: a shape that broadcasts to the axes ``*S``;
- ``()``: no axes.

``where`` holds conditions on these names, on operands (their shapes) and on attributes, which are Python; one that
speaks of what a node does not have, such as an operand left out, does not count for it. A ``Condition`` says in words
what its expression means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from landbridge.errors import CompileError
from landbridge.operators import Handler
from landbridge.ops.legal import Condition, Legal, names_in
from landbridge.records import record

_H = TypeVar("_H", bound=Handler)

_RULES: dict[Handler, Rules] = {}


@record(frozen=True)
class OperandRule:
    """The rule of one operand: the words of each alternative."""

    text: str
    name: str
    dims: str
    forms: tuple[tuple[str, ...], ...]
    optional: bool
    variadic: bool

    @staticmethod
    def parse(text: str) -> OperandRule:
        head, colon, dims = text.partition(":")
        name = head.strip().strip("*?")
        if not colon or not name.isidentifier():
            raise CompileError(f"rule {text!r} is not of the form 'name: dims'")
        forms = tuple(tuple(w for w in form.split() if w != "()") for form in dims.split("|"))
        for form in forms:
            if sum(w == "..." or w[0] in "*&<" for w in form) > 1:
                raise CompileError(f"rule {text!r} has two words that stand for many axes")
        return OperandRule(text, name, dims.strip(), forms, head.strip().endswith("?"), head.strip().startswith("*"))


@record(frozen=True)
class Index:
    """An operand of indices, legal from ``low`` to ``high``: expressions of one integer, or of one for each index
    along the operand's last axis."""

    low: str
    high: str


def index_of(extent: str) -> Index:
    """Returns indices of an axis of ``extent`` elements, negative ones from its end."""
    return Index(f"[-e for e in many({extent})]", f"[e - 1 for e in many({extent})]")


@record(frozen=True)
class Rules:
    """The rules of one handler, see the module."""

    operands: tuple[OperandRule, ...]
    attributes: Mapping[str, Legal]
    where: tuple[Condition, ...]
    indices: Mapping[str, Index]


def rules(
    *operands: str,
    attributes: Mapping[str, Legal] | None = None,
    where: Sequence[str | Condition] = (),
    indices: Mapping[str, Index] | None = None,
) -> Callable[[_H], _H]:
    """States the rules of the handler below; see the module.

    ``attributes`` are what values are legal, by name, and count for constant operands of that name too. ``indices``
    name the operands that hold indices. Raises CompileError for rules that do not parse.
    """
    parsed = tuple(OperandRule.parse(text) for text in operands)
    conditions = tuple(c if isinstance(c, Condition) else Condition(c) for c in where)
    for condition in conditions:
        names_in(condition.expression)

    def state(handler: _H) -> _H:
        _RULES[handler] = Rules(parsed, dict(attributes or {}), conditions, dict(indices or {}))
        return handler

    return state


def rules_of(handler: Handler) -> Rules | None:
    """Returns the rules that stand above a handler, or None."""
    return _RULES.get(handler)
