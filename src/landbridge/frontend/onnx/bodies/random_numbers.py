"""Operators that draw random numbers."""

from __future__ import annotations

import onnx

from landbridge.dtypes import numpy_dtype
from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, number
from landbridge.operators import definition


@definition("", "Bernoulli", since=15, inputs="input", outputs="output")
def bernoulli(n: NodeFacts) -> str:
    """1 with the probability ``input``, as the operator's text and onnxruntime have it: ONNX's own function gives 0."""
    kind = 11 if n.dtype("input") == "float64" else 1
    seed = n.attribute("seed", None)
    chosen = f", seed = {number(seed)}" if seed is not None else ""
    dtype = n.attribute("dtype", None)
    result = "CastLike (is_one, input)"
    if dtype is not None:
        result = f"Cast <to = {onnx.helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype))}> (is_one)"
    return f"""p = Cast <to = {kind}> (input) drawn = RandomUniformLike <dtype = {kind}{chosen}> (p)
        is_one = Less (drawn, p) output = {result}"""
