"""Checks a node against the rules of its handler (``rules``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import SSAValue

from landbridge.errors import NodeError, ShapeError
from landbridge.ir.broadcasting import broadcast_shape
from landbridge.operators import Handler
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import Names, broadcasts, evaluate, names_in
from landbridge.ops.rules import OperandRule, Rules, rules_of
from landbridge.records import record
from landbridge.sizes.size import Extent, agree, at_least, must_agree

Shape: TypeAlias = tuple[Extent, ...]


@record
class _Facts:
    """The facts of a node: names and their values, and the source of each value.

    ``broadcasts`` is among the names: how its program broadcasts.
    """

    names: dict[str, Any] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    #: Says whether extents are equal that have to be.
    agree: Callable[[Extent, Extent], bool] = agree

    def copy(self) -> _Facts:
        return _Facts(dict(self.names), dict(self.origin))


@record(frozen=True, eq=False)
class Checked:
    """A node that its rules allow: by name, the index operands whose values are not known, and their ranges.

    ``needed``: operands whose values are not known and are integers by the rules, by ``id``, and their least and
    largest.
    """

    indices: Mapping[str, tuple[Operand, Sequence[int], Sequence[int]]]
    needed: Mapping[SSAValue, tuple[int, int]] = field(default_factory=dict)


def check(c: OpContext, handler: Handler, inputs: Sequence[Operand | None]) -> Checked:
    """Raises ShapeError or NodeError where the rules of ``handler`` do not allow the node."""
    declared = rules_of(handler)
    if declared is None:
        return Checked({})
    facts = _Facts({"broadcasts": partial(broadcasts, either=c.g.broadcasting.either)})
    given = _bind(c, declared, inputs, facts)
    _check_attributes(c, declared, given, facts)
    for condition in declared.where:
        if condition.fails(facts.names):
            found = _values(names_in(condition.expression), facts)
            raise ShapeError(f"{_node(c)}: it must hold that {condition}; {found}")
    return Checked(dict(_indices(c, declared, given, facts)), dict(_needed(c, declared, given, facts)))


def _node(c: OpContext) -> str:
    return f"{c.op_type} node {c.g.node!r}"


def _bind(c: OpContext, declared: Rules, inputs: Sequence[Operand | None], facts: _Facts) -> dict[str, Operand]:
    """Matches every operand; the operands that are there, by name."""
    left = list(inputs)
    given: dict[str, Operand] = {}
    groups: dict[str, list[tuple[str, Shape]]] = {}
    for operand in declared.operands:
        here = left if operand.variadic else left[:1]
        left = left[len(here) :]
        present = [x for x in here if x is not None]
        if not present and not operand.optional:
            raise NodeError(f"{_node(c)} lacks operand {operand.name}; its operands: {_texts(declared)}")
        if len(present) < len(here) and operand.variadic:
            raise NodeError(f"{_node(c)}: an operand of {operand.name} is left out; each must be given")
        for number, x in enumerate(present):
            name = f"{operand.name}[{number}]" if operand.variadic else operand.name
            _match(c, operand, name, c.shape(x), facts, groups)
            given[name] = x
        if present:
            given[operand.name] = present[0]
            facts.names[operand.name] = c.shape(present[0])
    if any(x is not None for x in left):
        raise NodeError(f"{_node(c)} has {len(inputs)} operands; {c.op_type} takes {_texts(declared) or 'none'}")
    for members in groups.values():
        try:
            constants = [isinstance(given[name], np.ndarray) for name, _ in members]
            broadcast_shape(c.g, [shape for _, shape in members], constants)
        except ValueError:
            shown = ", ".join(f"{name} {shape}" for name, shape in members)
            raise ShapeError(f"{_node(c)}: {shown} does not broadcast; extents of an axis must be equal or 1") from None
    return given


def _texts(declared: Rules) -> str:
    return ", ".join(f"{o.name}{'?' * o.optional}" for o in declared.operands)


def _match(
    c: OpContext,
    operand: OperandRule,
    name: str,
    shape: Shape,
    facts: _Facts,
    groups: dict[str, list[tuple[str, Shape]]],
) -> None:
    forms = [form for form in operand.forms if _may_have(form, len(shape))]
    for form in forms:
        trial = facts.copy()
        trial.agree = partial(must_agree, _node(c)) if form is forms[-1] else agree
        if _matches(form, name, shape, trial):
            facts.names, facts.origin = trial.names, trial.origin
            for word in form:
                if word[0] == "&":
                    groups.setdefault(word, []).append((name, shape))
            return
    bound = [w.lstrip("*<") for form in operand.forms for w in form if w.lstrip("*<") in facts.origin]
    known = "".join(f"; {w} is {facts.names[w]} by {facts.origin[w]}" for w in dict.fromkeys(bound))
    raise ShapeError(f"{_node(c)}: {name} has shape {shape}; legal: {operand.dims}{known}")


def _may_have(form: Sequence[str], rank: int) -> bool:
    """Returns whether a shape of ``rank`` axes may have this form."""
    many = any(word == "..." or word[0] in "*&<" for word in form)
    return rank >= len(form) - 1 if many else rank == len(form)


def _matches(form: Sequence[str], name: str, shape: Shape, facts: _Facts) -> bool:
    """Returns whether ``shape`` has this form, with the names that it binds."""
    many = next((i for i, w in enumerate(form) if w == "..." or w[0] in "*&<"), None)
    if many is None:
        return len(shape) == len(form) and all(_axis(w, e, name, facts) for w, e in zip(form, shape, strict=True))
    after = len(form) - many - 1
    if len(shape) < many + after:
        return False
    end = len(shape) - after
    ends = [*zip(form[:many], shape[:many], strict=True), *zip(form[many + 1 :], shape[end:], strict=True)]
    word, middle = form[many], shape[many:end]
    if not all(_axis(w, e, name, facts) for w, e in ends):
        return False
    if word == "..." or word[0] == "&":
        return True
    if word[0] == "<":
        return bool(facts.names["broadcasts"](middle, facts.names.get(word[1:], middle)))
    return _same(word[1:], middle, name, facts)


def _axis(word: str, extent: Extent, name: str, facts: _Facts) -> bool:
    if word == "_":
        return True
    if word.isdigit():
        return facts.agree(extent, int(word))
    return _same(word, extent, name, facts)


def _same(word: str, value: Extent | Shape, name: str, facts: _Facts) -> bool:
    facts.origin.setdefault(word, name)
    known = facts.names.setdefault(word, value)
    if isinstance(known, tuple) and isinstance(value, tuple):
        return len(known) == len(value) and all(map(facts.agree, known, value))
    return bool(known == value) or facts.agree(cast(Extent, known), cast(Extent, value))


def _check_attributes(c: OpContext, declared: Rules, given: Mapping[str, Operand], facts: _Facts) -> None:
    """Check attributes, and constant operands that replace them in newer opsets; their values are added to the
    names.
    """
    values: dict[str, Any] = {}
    for name, legal in declared.attributes.items():
        operand, value = given.get(name), c.attribute(name)
        if isinstance(operand, np.ndarray):
            value = operand.reshape(-1).tolist()
            value = value[0] if _is_single(declared, name) else value
        elif operand is not None:
            del facts.names[name]  # its values are not known
            continue
        if isinstance(value, list) and not value and legal.count and operand is None:
            value = None  # exporters write a list without values for one left out
        if value is not None:
            values[name] = value
        elif legal.default is not None:
            value = legal.default
        if value is not None:
            facts.names[name] = value
    for name, value in values.items():
        legal = declared.attributes[name]
        wrong = legal.wrong(value, facts.names)
        if wrong is not None:
            raise NodeError(f"{_node(c)}: {name} is {_shown(value)}; legal: {wrong}")


def _is_single(declared: Rules, name: str) -> bool:
    """Returns whether an operand is one value by its rule, and no list that may be written as a number."""
    return any(o.name == name and () in o.forms and ("_",) not in o.forms for o in declared.operands)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:200]}..."


def _values(names: frozenset[str], facts: _Facts) -> str:
    return ", ".join(f"{n} is {_shown(facts.names[n])}" for n in sorted(names))


def _indices(
    c: OpContext, declared: Rules, given: Mapping[str, Operand], facts: _Facts
) -> Iterator[tuple[str, tuple[Operand, Sequence[int], Sequence[int]]]]:
    """Yields the index operands that are not constant; constant ones, and those no index of which is legal, are
    checked.
    """
    for name, index in declared.indices.items():
        if name not in given or 0 in c.shape(given[name]) or c.g.never_runs:
            continue
        x, low, high = given[name], _many(index.low, facts.names), _many(index.high, facts.names)
        if any(at_least(b, a) is False for a, b in zip(low, high, strict=True)):
            raise ShapeError(f"{_node(c)}: {name} of shape {c.shape(x)} points into an axis without elements")
        if not isinstance(x, np.ndarray):
            yield name, (x, low, high)
            continue
        rows = x.reshape(-1, len(low))
        bad = np.argwhere((rows < np.array(low)) | (rows > np.array(high)))
        if bad.size:
            at, column = bad[0]
            raise ShapeError(f"{_node(c)}: {name} holds index {rows[at, column]}; legal: {low[column]}..{high[column]}")


def _needed(
    c: OpContext, declared: Rules, given: Mapping[str, Operand], facts: _Facts
) -> Iterator[tuple[SSAValue, tuple[int, int]]]:
    """Yields operands that the handler may want to know."""
    for name, legal in declared.attributes.items():
        operand = given.get(name)
        if operand is None or isinstance(operand, np.ndarray):
            continue
        count = math.prod(c.shape(operand))
        ends = legal.range({**facts.names, name: [0] * count if isinstance(count, int) else []})
        if ends is not None:
            yield operand, ends


def _many(expression: str, names: Names) -> list[int]:
    value = evaluate(expression, names)
    return list(value) if isinstance(value, list | tuple) else [value]
