"""Products of ``com.microsoft``: with factors, transposed operands, activations, quantized weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from landbridge.frontend.onnx.bodies.activations import activation
from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, integer_list, like, number
from landbridge.operators import definition

_MS = "com.microsoft"


@definition(_MS, "FusedMatMul", inputs="A, B", outputs="Y")
def fused_matmul(n: NodeFacts) -> str:
    return f"{_transposed(n, 'A')} {_transposed(n, 'B')} {_scaled(n)}"


@definition(_MS, "TransposeMatMul", inputs="A, B", outputs="Y")
def transpose_matmul(n: NodeFacts) -> str:
    return f"{_transposed(n, 'A')} {_transposed(n, 'B')} {_scaled(n)}"


@definition(_MS, "FusedGemm", inputs="A, B, C", outputs="Y")
def fused_gemm(n: NodeFacts) -> str:
    factors = f"alpha = {number(n.attribute('alpha', 1.0))}, beta = {number(n.attribute('beta', 1.0))}"
    transposes = f"transA = {n.attribute('transA', 0)}, transB = {n.attribute('transB', 0)}"
    parameters = [n.attribute(f"activation_{k}", None) for k in ("alpha", "beta", "gamma")]
    known = tuple(p for p in parameters if p is not None)
    bias = ", C" if n.has("C") else ""
    return (
        f"p = Gemm <{factors}, {transposes}> (A, B{bias}) {activation(n.attribute('activation', ''), 'p', 'Y', known)}"
    )


def convolution(n: NodeFacts) -> str:
    """Returns the attributes of a convolution, as text."""
    lists = ("dilations", "kernel_shape", "pads", "strides")
    how = [f"{k} = {integer_list(n.attribute(k, []))}" for k in lists if n.attribute(k, [])]
    return ", ".join([*how, f"group = {n.attribute('group', 1)}", f'auto_pad = "{n.attribute("auto_pad", "NOTSET")}"'])


@definition(_MS, "FusedConv", inputs="X, W, B, Z", outputs="Y")
def fused_conv(n: NodeFacts) -> str:
    bias = ", B" if n.has("B") else ""
    added = "s = Add (p, Z)" if n.has("Z") else "s = Identity (p)"
    kind, parameters = n.attribute("activation", ""), tuple(n.attribute("activation_params", []))
    return f"p = Conv <{convolution(n)}> (X, W{bias}) {added} {activation(kind, 's', 'Y', parameters)}"


@definition(_MS, "DynamicQuantizeMatMul", inputs="A, B, b_scale, b_zero_point, bias", outputs="Y")
def dynamic_quantize_matmul(n: NodeFacts) -> str:
    zeros = ", b_zero_point" if n.has("b_zero_point") else ""
    added = "Y = Add (scaled, bias)" if n.has("bias") else "Y = Identity (scaled)"
    return f"""q, a_scale, zero = DynamicQuantizeLinear (A) total = MatMulInteger (q, B, zero{zeros})
        floats = Cast <to = 1> (total) scale = Mul (a_scale, b_scale) scaled = Mul (floats, scale) {added}"""


@definition(_MS, "MatMulIntegerToFloat", inputs="A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias", outputs="Y")
def matmul_integer_to_float(n: NodeFacts) -> str:
    zeros = ["a_zero_point", "b_zero_point"]
    while zeros and not n.has(zeros[-1]):
        zeros.pop()
    given = "".join(f", {name if n.has(name) else ''}" for name in zeros)
    added = "Y = Add (scaled, bias)" if n.has("bias") else "Y = Identity (scaled)"
    return f"""total = MatMulInteger (A, B{given}) floats = CastLike (total, a_scale) scale = Mul (a_scale, b_scale)
        scaled = Mul (floats, scale) {added}"""


@definition(_MS, "MatMulNBits", inputs="A, B, scales, zero_points, g_idx, bias", outputs="Y")
def matmul_n_bits(n: NodeFacts) -> str:
    """Returns the product with weights of 2, 4 or 8 bits, in blocks along the summed axis, which are converted to
    floats at compile time.
    """
    depth, columns = n.attribute("K", 0), n.attribute("N", 0)
    bits, block = n.attribute("bits", 4), n.attribute("block_size", 32)
    blocks = -(-depth // block)
    scales = n.constant("scales").reshape(columns, blocks).astype(np.float32)
    codes = _unpacked(n.constant("B").reshape(columns, blocks, -1), bits)[..., :block].astype(np.float32)
    codes = codes.reshape(columns, blocks * block)[:, :depth]
    group = n.constant("g_idx")[:depth] if n.has("g_idx") else np.arange(depth) // block
    weights = (codes - _zero_points(n, columns, blocks, bits)[:, group]) * scales[:, group]
    n.array("weights", np.ascontiguousarray(weights.T).astype(n.dtype("A")))
    added = "Y = Add (p, bias)" if n.has("bias") else "Y = Identity (p)"
    return f"p = MatMul (A, weights) {added}"


@definition(_MS, "GatherBlockQuantized", inputs="data, indices, scales, zero_points", outputs="output")
def gather_block_quantized(n: NodeFacts) -> str:
    bits, block, axis = n.attribute("bits", 4), n.attribute("block_size", 128), n.attribute("quantize_axis", 1)
    data, scales = n.constant("data"), n.constant("scales").astype(np.float32)
    if data.dtype != np.uint8 or (n.has("zero_points") and n.constant("zero_points").dtype != np.uint8):
        codes, zeros = (
            data.astype(np.float32),
            n.constant("zero_points").astype(np.float32) if n.has("zero_points") else 0,
        )
    else:
        codes = _unpacked(data, bits).astype(np.float32)
        zeros = _unpacked(n.constant("zero_points"), bits) if n.has("zero_points") else 1 << (bits - 1)
        zeros = zeros[..., : scales.shape[-1]].astype(np.float32) if isinstance(zeros, np.ndarray) else zeros
    group = np.arange(codes.shape[axis]) // block
    taken = np.take(zeros, group, axis) if isinstance(zeros, np.ndarray) else zeros
    table = (codes - taken) * np.take(scales, group, axis)
    n.array("table", table.astype(n.dtype("scales")))
    return f"output = Gather <axis = {n.attribute('gather_axis', 0)}> (table, indices)"


def _unpacked(packed: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """Returns the numbers of ``bits`` that bytes contain, lowest bits first."""
    if bits == 8:
        return packed
    parts = [packed >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)


def _zero_points(n: NodeFacts, columns: int, blocks: int, bits: int) -> np.ndarray[Any, Any]:
    if not n.has("zero_points"):
        return np.full((columns, blocks), 1 << (bits - 1), np.float32)
    zeros = n.constant("zero_points")
    if zeros.dtype == np.uint8:
        return _unpacked(zeros.reshape(columns, -1), bits)[:, :blocks].astype(np.float32)
    return zeros.reshape(columns, blocks).astype(np.float32)


def _transposed(n: NodeFacts, name: str) -> str:
    """Returns statements for ``A_t``, ``A`` with its rows, columns and batch axes in the order of a plain product."""
    rank = len(n.shape(name))
    order = list(range(rank))
    if n.attribute(f"transBatch{name}", 0) and rank > 2:
        order = [*range(1, rank - 1), 0, rank - 1]
    if n.attribute(f"trans{name}", 0) and rank > 1:
        order[-2:] = order[:-3:-1]
    return f"{name}_t = Transpose <perm = {integer_list(order)}> ({name})"


def _scaled(n: NodeFacts) -> str:
    alpha = n.attribute("alpha", 1.0)
    if alpha == 1:
        return "Y = MatMul (A_t, B_t)"
    return f"p = MatMul (A_t, B_t) {like('alpha', alpha, 'p')} Y = Mul (p, alpha)"
