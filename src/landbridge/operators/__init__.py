"""The registry of operators: one table, and one argument order for everything that implements an operator.

Each decorator takes the domain, one or more names and the first opset version, in this order. The first that fits is
the one to use::

    @definition("my.domain", "BiasGelu", inputs="A, B", outputs="C")   # by operators that there are, on every target
    def bias_gelu(n: NodeFacts) -> str:
        return "sum = Add (A, B)  C = Gelu (sum)"

    @kernel("my.domain", "SquaredRelu", since=1)                       # compiled for every target
    def squared_relu(c: OpContext, x: Operand) -> Operand: ...

    @host_operator("my.domain", "Rank", since=1)                       # a numpy function, on the host
    def rank(x: Array, *, axis: int = -1) -> Array: ...

A package registers its operators when it is imported, so a program that uses it imports it before it compiles or loads.
Those of Landbridge are in ``frontend/onnx/bodies``, ``ops`` and ``host_operators``; each of these packages is imported
when an implementation of its kind is looked up for the first time.
"""

from landbridge.array_type import Array
from landbridge.operators.decorators import definition, host_operator, kernel
from landbridge.operators.implementations import (
    Definition,
    Draw,
    Handler,
    HostOperator,
    HostValue,
    Implementation,
    Kernel,
    Results,
)
from landbridge.operators.registry import REGISTRY, OperatorRegistry

__all__ = [
    "REGISTRY",
    "Array",
    "Definition",
    "Draw",
    "Handler",
    "HostOperator",
    "HostValue",
    "Implementation",
    "Kernel",
    "OperatorRegistry",
    "Results",
    "definition",
    "host_operator",
    "kernel",
]
