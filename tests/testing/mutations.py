"""Changes of Python source that break it, stated by what the code does there, so that harmless edits leave them true.

A change is asked, at every node of a function, what should stand there instead. Where code is written in one, ``_`` is
any expression and ``f(...)`` a call of ``f`` with any arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol


class MutantDoesNotApplyError(Exception):
    """There is no such place in the source, or more than one."""


class Change(Protocol):
    """``instead`` gives what replaces a node, or None for a node that stays."""

    def instead(self, node: ast.AST) -> ast.AST | None: ...


@dataclass(frozen=True)
class Put:
    """The expression ``code`` is ``other``."""

    code: str
    other: str

    def instead(self, node: ast.AST) -> ast.AST | None:
        return _expression(self.other) if _matches(_expression(self.code), node) else None


@dataclass(frozen=True)
class Drop:
    """The statement that calls ``name``, or assigns to it, is left out: the last name of ``a.b.name(...)``."""

    name: str

    def instead(self, node: ast.AST) -> ast.AST | None:
        called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        return ast.Pass() if self.name in (_last_name(called), *_assigned(node)) else None


@dataclass(frozen=True)
class Assign:
    """What is assigned to ``name`` is ``value``."""

    name: str
    value: str

    def instead(self, node: ast.AST) -> ast.AST | None:
        return _with(node, value=_expression(self.value)) if self.name in _assigned(node) else None


@dataclass(frozen=True)
class If:
    """The condition that mentions all ``names``, of an if, is ``value``: names of any kind, or whole strings."""

    names: str | tuple[str, ...]
    value: bool = False

    def instead(self, node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.If | ast.IfExp):
            return None
        wanted = {self.names} if isinstance(self.names, str) else set(self.names)
        return _with(node, test=ast.Constant(self.value)) if wanted <= set(_mentioned(node.test)) else None


@dataclass(frozen=True)
class Without:
    """The operand ``code`` of ``and`` or ``or`` is left out."""

    code: str

    def instead(self, node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.BoolOp):
            return None
        retained = [operand for operand in node.values if not _matches(_expression(self.code), operand)]
        if len(retained) == len(node.values):
            return None
        return _with(node, values=retained) if len(retained) > 1 else retained[0]


@dataclass(frozen=True)
class Pass:
    """The call of ``called`` gets ``value`` for ``parameter``, a name or a position."""

    called: str
    parameter: str | int
    value: str

    def instead(self, node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Call) or _last_name(node.func) != self.called:
            return None
        value = _expression(self.value)
        if isinstance(self.parameter, int):
            at = self.parameter
            return _with(node, args=[*node.args[:at], value, *node.args[at + 1 :]]) if at < len(node.args) else None
        if self.parameter not in (k.arg for k in node.keywords):
            return None
        return _with(node, keywords=[_with(k, value=value) if k.arg == self.parameter else k for k in node.keywords])


@dataclass(frozen=True)
class Return:
    """It returns ``value``."""

    value: str

    def instead(self, node: ast.AST) -> ast.AST | None:
        return _with(node, value=_expression(self.value)) if isinstance(node, ast.Return) else None


@dataclass(frozen=True)
class Begin:
    """It does ``code`` first."""

    code: str

    def instead(self, node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.FunctionDef):
            return None
        docstring = ast.get_docstring(node) is not None
        return _with(node, body=[*node.body[:docstring], *ast.parse(self.code).body, *node.body[docstring:]])


@dataclass(frozen=True)
class Nth:
    """``change`` where it applies for the ``which``-th time: 0 is the first, -1 the last."""

    which: int
    change: Change


@dataclass(frozen=True)
class Text:
    """Of a file that is not Python, ``before`` is ``after``."""

    before: str
    after: str


def mutated(source: str, function: str, change: Change | Nth | Text) -> str:
    """``source`` with ``change`` in ``function``, ``Class.method`` for one; "" is the whole file.

    Raises MutantDoesNotApplyError.
    """
    if isinstance(change, Text):
        if source.count(change.before) != 1:
            raise MutantDoesNotApplyError(f"{source.count(change.before)} times {change}")
        return source.replace(change.before, change.after)
    tree = ast.parse(source)
    scopes = list(_scopes(tree, function.split("."))) if function else [tree]
    once, which = (change.change, change.which) if isinstance(change, Nth) else (change, None)
    sites = [(node, other) for scope in scopes for node in _in_order(scope) if (other := once.instead(node))]
    if not scopes or not sites or (which is None and len(sites) > 1):
        raise MutantDoesNotApplyError(f"{len(scopes)} times {function!r}, in it {len(sites)} times {once}")
    try:
        node, other = sites[which or 0]
    except IndexError:
        raise MutantDoesNotApplyError(f"in {function!r} only {len(sites)} times {once}") from None
    return ast.unparse(ast.fix_missing_locations(_Swap(node, other).visit(tree)))


def _scopes(tree: ast.AST, path: list[str]) -> Iterator[ast.AST]:
    """Functions and classes of that qualified name; properties have several."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from _scopes(child, path)
        elif child.name == path[0]:
            yield from _scopes(child, path[1:]) if path[1:] else [child]


def _in_order(scope: ast.AST) -> Iterator[ast.AST]:
    """A node and all inside it, as they stand in the source."""
    yield scope
    for child in ast.iter_child_nodes(scope):
        yield from _in_order(child)


class _Swap(ast.NodeTransformer):
    def __init__(self, node: ast.AST, other: ast.AST) -> None:
        self._node, self._other = node, other

    def visit(self, node: ast.AST) -> Any:
        return self._other if node is self._node else self.generic_visit(node)


def _expression(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body


def _with(node: Any, **fields: Any) -> Any:
    changed = copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _matches(pattern: Any, found: Any) -> bool:
    """Whether two nodes, or lists of nodes, are alike but for where they stand and what they are used for."""
    if isinstance(pattern, ast.Name) and pattern.id == "_":
        return isinstance(found, ast.expr)
    if isinstance(pattern, list):
        return len(pattern) == len(found) and all(map(_matches, pattern, found))
    if not isinstance(pattern, ast.AST):
        return type(pattern) is type(found) and pattern == found
    if isinstance(pattern, ast.expr_context):
        return True
    fields = pattern._fields
    if isinstance(pattern, ast.Call) and [ast.unparse(argument) for argument in pattern.args] == ["..."]:
        fields = ("func",)
    return type(pattern) is type(found) and all(_matches(getattr(pattern, f), getattr(found, f)) for f in fields)


def _last_name(node: ast.AST | None) -> str | None:
    """``c`` of ``a.b.c``, ``c`` of ``c``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _assigned(node: ast.AST) -> Iterator[str | None]:
    """The last names of what a statement, or ``:=``, assigns to."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        for target in targets:
            yield from map(_last_name, target.elts if isinstance(target, ast.Tuple) else [target])


def _mentioned(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if (name := _last_name(inner)) is not None:
            yield name
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value
