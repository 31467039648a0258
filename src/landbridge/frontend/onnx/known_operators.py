"""How nodes of an operator are compiled, in the order in which the importer tries it."""

from __future__ import annotations

from landbridge.frontend.onnx.functions import has_function
from landbridge.frontend.onnx.main_function import CONTROL_FLOW
from landbridge.frontend.onnx.sequences import OF_SEQUENCES
from landbridge.operators import REGISTRY, Definition, HostOperator, Kernel
from landbridge.operators.registry import own_domain


def implementations(domain: str, op_type: str, opset: int) -> list[str]:
    """Returns ``import``, ``kernel``, ``definition`` and ``host operator``, those that there are, in order of
    preference; empty for an operator of which no node can be compiled.

    ``import`` is for operators that the importer resolves: control flow, and sequences of tensors. A ``definition`` may
    be of the registry, or ONNX's own.
    """
    found = []
    if own_domain(domain) == "" and (op_type in CONTROL_FLOW or op_type in OF_SEQUENCES):
        found.append("import")
    known = {type(each) for each in REGISTRY.find_all(domain, op_type, opset)}
    for kind in (Kernel, Definition, HostOperator):
        if kind in known or (kind is Definition and has_function(domain, op_type, opset)):
            found.append(kind.NOUN)
    return found
