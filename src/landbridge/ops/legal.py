"""Legal values of attributes, as objects that test a value and describe what is legal."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import CodeType
from typing import Any, TypeAlias

from landbridge.records import record
from landbridge.sizes.broadcast import may_broadcast
from landbridge.sizes.size import LARGEST_EXTENT, Extent, Size, agree, largest, must_agree, same, smallest, undecided
from landbridge.sizes.size import at_least as extent_at_least

#: What an expression of a rule may speak of: dims, operands' shapes, attributes.
Names: TypeAlias = Mapping[str, Any]


def _many(value: Any) -> list[Extent]:
    """Returns one extent, or several, as a list."""
    return [value] if isinstance(value, int | Size) else list(value)


def broadcasts(shape: Sequence[Extent], wanted: Sequence[Extent], either: bool = False) -> bool:
    """Returns whether ``shape`` broadcasts to ``wanted``.

    An open extent of ``shape`` has to equal the wanted one; with ``either`` it may also be 1 in a run. Raises
    UndecidedSizeError where that depends on the input.
    """
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(_broadcasts(e, w, either) for e, w in pairs)


def _broadcasts(extent: Extent, wanted: Extent, either: bool) -> bool:
    if extent == 1:
        return True
    equal = same(extent, wanted)
    if equal is not None:
        return equal
    repeats = isinstance(extent, Size) and may_broadcast(extent, wanted)
    if either and repeats:
        return True
    subject = f"{extent} broadcasts to {wanted}"
    raise undecided(subject, extent, wanted, equal=True, needed=True, broadcasts=repeats)


def _equal(left: Any, right: Any, needed: bool = False) -> bool:
    """Returns whether two sides of ``==`` in a rule are equal; extents, and shapes of them, are compared as sizes.

    Raises UndecidedSizeError where sizes known only in a run decide it; ``needed``: the rule is broken unless they are
    equal.
    """
    if isinstance(left, tuple | list) and isinstance(right, tuple | list):
        is_same_shape = type(left) is type(right) and len(left) == len(right)
        return is_same_shape and all(_equal(a, b, needed) for a, b in zip(left, right, strict=True))
    if isinstance(left, Size) or isinstance(right, Size):
        if not (isinstance(left, int | Size) and isinstance(right, int | Size)):
            return False
        return must_agree("a rule", left, right) if needed else agree(left, right)
    return bool(left == right)


def _must_equal(left: Any, right: Any) -> bool:
    """Returns ``_equal`` of two sides that must be equal for the rule to hold."""
    return _equal(left, right, needed=True)


def _must_be_at_least(left: Any, right: Any) -> bool:
    """Returns whether ``left >= right``, which must be true for the rule to hold; raises UndecidedSizeError where only
    a run decides.
    """
    if isinstance(left, Size) or isinstance(right, Size):
        found = extent_at_least(left, right)
        if found is None:
            raise undecided(f"a rule: {left} >= {right}", left, right, needed=True)
        return found
    return bool(left >= right)


def _must_exceed(left: Any, right: Any) -> bool:
    """Returns whether ``left > right``, which must be true for the rule to hold; raises as ``_must_be_at_least``."""
    if isinstance(left, Size) or isinstance(right, Size):
        return _must_be_at_least(left, right + 1)
    return bool(left > right)


def _within(value: Any, options: Any) -> bool:
    """Returns whether ``value in options``, as a rule means it. ``value`` may be an open extent: a program is then
    compiled for each option that remains possible.
    """
    if not isinstance(value, Size):
        return bool(value in options)
    *others, last = [each for each in options if same(value, each) is not False] or [None]
    return last is not None and (any(agree(value, each) for each in others) or must_agree("a rule", value, last))


def _smallest(*values: Any) -> Any:
    """Returns ``min``, for extents too."""
    values = tuple(values[0]) if len(values) == 1 else values
    return smallest(*values) if any(isinstance(v, Size) for v in values) else min(values)


def _largest(*values: Any) -> Any:
    """Returns ``max``, for extents too."""
    values = tuple(values[0]) if len(values) == 1 else values
    return largest(*values) if any(isinstance(v, Size) for v in values) else max(values)


#: The functions that expressions may call.
_FUNCTIONS: dict[str, Any] = {
    "all": all, "broadcasts": broadcasts, "enumerate": enumerate, "equal": _equal, "len": len, "list": list,
    "many": _many, "max": _largest, "min": _smallest, "must_be_at_least": _must_be_at_least,
    "must_equal": _must_equal, "must_exceed": _must_exceed, "prod": math.prod, "range": range, "set": set,
    "sorted": sorted, "sum": sum, "tuple": tuple, "within": _within, "zip": zip,
}  # fmt: skip


#: The functions that comparisons of rules become, as they know open extents.
_COMPARED = {ast.Eq: "equal", ast.NotEq: "equal", ast.In: "within", ast.NotIn: "within"}


class _Comparisons(ast.NodeTransformer):
    """Rewrites ``==``, ``!=``, ``in`` and ``not in`` of two operands to calls of functions that know open extents."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        name = _COMPARED.get(type(node.ops[0]))
        if len(node.ops) != 1 or name is None:
            return node
        called = ast.Call(ast.Name(name, ast.Load()), [node.left, *node.comparators], [])
        return called if isinstance(node.ops[0], ast.Eq | ast.In) else ast.UnaryOp(ast.Not(), called)


def _demanded(node: ast.expr) -> ast.expr:
    """Returns ``node``, the body of a rule, with each comparison that must be true for the rule to hold replaced by a
    call that reports this with an undecided size. Changes ``node`` in place.
    """
    match node:
        case ast.Call(ast.Name("equal") as function):
            function.id = "must_equal"
        case ast.Call(ast.Name("all"), [ast.GeneratorExp() as every]):
            every.elt = _demanded(every.elt)
        case ast.BoolOp(ast.And(), parts):
            node.values = [_demanded(part) for part in parts]
        case ast.BoolOp(ast.Or(), [*others, last]):  # this one is only evaluated where the others do not hold
            node.values = [*others, _demanded(last)]
        case ast.Compare(left, [ast.LtE() | ast.GtE() | ast.Lt() | ast.Gt() as order], [right]):
            sides = [left, right] if isinstance(order, ast.GtE | ast.Gt) else [right, left]
            name = "must_be_at_least" if isinstance(order, ast.LtE | ast.GtE) else "must_exceed"
            return ast.Call(ast.Name(name, ast.Load()), sides, [])
    return node


@cache
def _code(expression: str) -> CodeType:
    tree = _Comparisons().visit(ast.parse(expression, mode="eval"))
    tree.body = _demanded(tree.body)
    return compile(ast.fix_missing_locations(tree), f"<rule {expression}>", "eval")


@cache
def names_in(expression: str) -> frozenset[str]:
    """Returns the names that an expression refers to, without those of the functions it may call."""
    found: set[str] = set()

    def walk(code: CodeType) -> None:
        found.update(code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                walk(constant)

    walk(_code(expression))
    return frozenset(found - _FUNCTIONS.keys())


def evaluate(expression: str, names: Names) -> Any:
    """Returns the value of an expression, which is from the package's own source, never from a model."""
    return eval(_code(expression), {"__builtins__": {}, **_FUNCTIONS, **names})


@record(frozen=True)
class Condition:
    """An ``expression`` that must be true; ``words`` says in messages what it means, where the expression is hard to
    read.
    """

    expression: str
    words: str = ""

    def fails(self, names: Names) -> bool:
        """Returns whether the node has every name that the expression refers to, and the expression is false."""
        return names_in(self.expression) <= names.keys() and not evaluate(self.expression, names)

    def __str__(self) -> str:
        return self.words or self.expression


def distinct_axes(rank: str) -> Condition:
    """Returns the Condition that ``axes`` names no axis twice; ``rank`` is an expression."""
    return Condition(f"len(set(a % ({rank}) for a in axes)) == len(axes)", "axes names each axis once")


def not_empty(shape: str, operand: str) -> Condition:
    """Returns the Condition that no extent of ``shape``, an expression, is 0; ``operand`` names it in messages."""
    return Condition(f"0 not in {shape}", f"{operand} has elements, no extent of 0")


@record(frozen=True)
class Legal:
    """The legal values of an attribute: ``text`` describes them, ``test(value, names)`` tests one.

    ``count`` is an expression of the number of values that a list must have. ``default`` is the value of an attribute
    left out. ``needs``: the names without which ``test`` is not applied. ``ends`` are expressions of the least and the
    largest legal integer, where values are integers.
    """

    text: str
    test: Callable[[Any, Names], bool]
    default: Any = None
    count: str = ""
    needs: frozenset[str] = frozenset()
    ends: tuple[str, str] | None = None

    def range(self, names: Names) -> tuple[int, int] | None:
        """Returns the least and the largest legal integer; None where they are not integers or not known at compile
        time.
        """
        if self.ends is None or not names_in(self.ends[0]) | names_in(self.ends[1]) <= names.keys():
            return None
        low, high = (evaluate(end, names) for end in self.ends)
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None

    def wrong(self, value: Any, names: Names) -> str | None:
        """Returns None for a legal value, else a text of what is legal. A rule that needs a name the node lacks is not
        applied.
        """
        if self.count and names_in(self.count) <= names.keys():
            wanted = evaluate(self.count, names)
            if not isinstance(value, list) or not must_agree("a rule", len(value), wanted):
                return f"{wanted} values ({self.count}), {self.text}"
        if not self.needs <= names.keys():
            return None
        return None if self.test(value, names) else self.text


def _ints(value: Any) -> list[Extent] | None:
    """Returns one integer or a list of them as a list, else None."""
    values = value if isinstance(value, list) else [value]
    return values if all(isinstance(v, int | Size) for v in values) else None


#: No tensor has an axis as long.
_ANY = 1 << 62


def at_least(low: int, default: Any = None, count: str = "", below: int = _ANY) -> Legal:
    """Returns the Legal of integers of which each is ``low`` or more, and less than ``below``."""

    def test(value: Any, names: Names) -> bool:
        values = _ints(value)
        return values is not None and all(low <= v and (below == _ANY or v < below) for v in values)

    text = f"{low} or more" if below == _ANY else f"{low}..{below - 1}"
    ends = str(low), str(LARGEST_EXTENT if below == _ANY else below - 1)
    return Legal(f"{'each ' * bool(count)}{text}", test, default, count, ends=ends)


def any_integer() -> Legal:
    """Returns the Legal of integers of 64 bits."""
    ends = str(-(1 << 63)), str((1 << 63) - 1)
    return Legal("an integer", lambda value, names: _ints(value) is not None, ends=ends)


def one_of(*choices: Any, default: Any = None) -> Legal:
    """Returns the Legal of exactly the values ``choices``."""
    return Legal(", ".join(map(repr, choices)), lambda value, names: value in choices, default)


def between(low: str, high: str, default: Any = None) -> Legal:
    """Returns the Legal of integers from ``low`` to ``high``, both expressions and both included."""

    def test(value: Any, names: Names) -> bool:
        values = _ints(value)
        return values is not None and all(evaluate(low, names) <= v <= evaluate(high, names) for v in values)

    return Legal(f"{low}..{high}", test, default, needs=names_in(low) | names_in(high), ends=(low, high))


def axis_of(rank: str, default: Any = None) -> Legal:
    """Returns the Legal of one axis of a tensor of rank ``rank``, an expression; negative axes count from the end."""
    return between(f"-({rank})", f"({rank}) - 1", default)


def matches(pattern: str, text: str) -> Legal:
    """Returns the Legal of strings that match the regular expression ``pattern`` completely; ``text`` says what they
    are.
    """
    return Legal(text, lambda value, names: isinstance(value, str) and re.fullmatch(pattern, value) is not None)


def holds(condition: str, text: str = "", default: Any = None, ends: tuple[str, str] | None = None) -> Legal:
    """Returns the Legal of values for which the expression ``condition`` is true; it calls the value ``it``.

    ``ends``: expressions of the least and the largest legal integer, where they are known.
    """
    needs = names_in(condition) - {"it"}
    return Legal(text or condition, lambda value, names: bool(evaluate(condition, {**names, "it": value})), default,
                 needs=needs, ends=ends)  # fmt: skip
