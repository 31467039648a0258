"""The former place of the decorator of definitions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, integer_list, like, number
from landbridge.operators import definition

__all__ = ["NodeFacts", "defined", "integer_list", "like", "number"]


def defined(domain: str, op_type: str, inputs: str, outputs: str) -> Callable[[Any], Any]:
    """The former form of ``landbridge.operators.definition``."""
    warnings.warn(
        "landbridge.frontend.onnx.bodies.registry.defined is deprecated; use landbridge.operators.definition(domain, "
        "name, inputs=..., outputs=...)",
        DeprecationWarning,
        stacklevel=2,
    )
    return definition(domain, op_type, inputs=inputs, outputs=outputs)
