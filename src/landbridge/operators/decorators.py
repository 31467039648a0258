"""The decorators that register implementations, each with the arguments domain, names and first version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from landbridge.operators.implementations import Definition, Handler, HostOperator, Kernel, Results
from landbridge.operators.registry import REGISTRY, own_domain

_Definition = TypeVar("_Definition", bound=Callable[[Any], str | None])
_Handler = TypeVar("_Handler", bound=Handler)
_Function = TypeVar("_Function", bound=Callable[..., Any])


def definition(
    domain: str, *op_types: str, since: int = 1, inputs: str, outputs: str
) -> Callable[[_Definition], _Definition]:
    """Registers a definition, by other operators, of ``op_types`` of ``domain`` from opset ``since`` on.

    The function gets the ``NodeFacts`` of a node and returns the text of a body, in the syntax of ``onnx.parser``, or
    None for a form of the operator that it leaves to others. ``inputs`` and ``outputs`` are the names that the body
    reads and makes, in the operator's order, between commas. A last input ``*X`` stands for ``X0``, ``X1``, ... A body
    reads no input that the node leaves out, and makes those of the outputs that it can.

    Raises CompileError where that version has a definition already.
    """
    names = [tuple(name.strip() for name in text.split(",")) for text in (inputs, outputs)]

    def register(function: _Definition) -> _Definition:
        for op_type in op_types:
            REGISTRY.add(Definition(own_domain(domain), op_type, since, function, *names))
        return function

    return register


def kernel(domain: str, *op_types: str, since: int = 1) -> Callable[[_Handler], _Handler]:
    """Registers the handler of ``op_types`` of ``domain`` from opset ``since`` on, which writes the operator's IR.

    A handler takes an OpContext and one Operand, or None, for each input of the node. It returns one Operand, or a
    sequence of them, for the outputs.

    Raises CompileError where that version has a handler already.
    """

    def register(handler: _Handler) -> _Handler:
        for op_type in op_types:
            REGISTRY.add(Kernel(own_domain(domain), op_type, since, handler))
        return handler

    return register


def host_operator(
    domain: str,
    *op_types: str,
    since: int = 1,
    results: Callable[..., Results] | None = None,
    in_order: bool = False,
) -> Callable[[_Function], _Function]:
    """Registers a numpy function for the operators ``op_types`` of ``domain`` from opset ``since`` on.

    The function gets the inputs as arrays it must not change, None for one that a node leaves out, and the attributes
    by name: int, float, str, lists of those, which tensors of one axis are given as. It returns an array, or one for
    each output in order. It is used for nodes that no kernel and no definition takes, which is a FallbackWarning once a
    compile.

    ``results`` says what the outputs are: called with a HostValue for each input (``shape``, ``dtype``, and ``value``
    where it is a constant) and the attributes, it returns ``(shape, dtype)`` for each output. None in a shape is an
    extent that the data decide: the program is cut there, and what follows is of open size. Left out, the function is
    called with zeros when a model is compiled, and a run in which it gives other shapes is refused; where extents of
    inputs are open, those of outputs are the data's.

    ``in_order``: for a function with a state, as random numbers have it; it is called with the attributes once for each
    place of a Session that uses it, and returns the function of the arrays.

    Raises CompileError where that version has a host operator already.
    """

    def register(function: _Function) -> _Function:
        for op_type in op_types:
            REGISTRY.add(HostOperator(own_domain(domain), op_type, since, function, results, in_order))
        return function

    return register
