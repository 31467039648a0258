"""Normalizations of onnxruntime, most of them with a preceding addition, and the embedding that ends in one."""

from __future__ import annotations

from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, number
from landbridge.operators import definition

_MS = "com.microsoft"


@definition(_MS, "LayerNormalization", inputs="X, Scale, B", outputs="Y, Mean, InvStdDev")
def layer_normalization(n: NodeFacts) -> str:
    """Returns the normalization as onnxruntime defines it in opsets before 17."""
    bias = ", B" if n.has("B") else ""
    created = "Y, Mean, InvStdDev" if n.outputs > 1 else "Y"
    return f"{created} = LayerNormalization <{_how(n)}> (X, Scale{bias})"


@definition(_MS, "SimplifiedLayerNormalization", inputs="X, scale", outputs="Y, inv_std_var")
def simplified(n: NodeFacts) -> str:
    return _root_mean_square("X", "scale", "Y", "inv_std_var", n)


@definition(
    _MS, "SkipLayerNormalization", inputs="input, skip, gamma, beta, bias", outputs="output, mean, inv_std_var, total"
)
def skip_layer_normalization(n: NodeFacts) -> str:
    beta = ", beta" if n.has("beta") else ""
    created = "output, mean, inv_std_var" if n.outputs > 1 else "output"
    return f"{_sums(n)} {created} = LayerNormalization <{_how(n, 1e-12)}> (total, gamma{beta})"


@definition(
    _MS,
    "SkipSimplifiedLayerNormalization",
    inputs="input, skip, gamma, bias",
    outputs="output, mean, inv_std_var, total",
)
def skip_simplified(n: NodeFacts) -> str:
    return f"{_sums(n)} {_root_mean_square('total', 'gamma', 'output', 'inv_std_var', n)}"


@definition(
    _MS,
    "EmbedLayerNormalization",
    inputs="input_ids, segment_ids, word, position, segment, gamma, beta, mask, position_ids",
    outputs="output, mask_index, embedding_sum",
)
def embed_layer_normalization(n: NodeFacts) -> str:
    return _embedded(n)


@definition(
    _MS,
    "QEmbedLayerNormalization",
    inputs="input_ids, segment_ids, word_q, position_q, segment_q, gamma_q, beta_q, mask, word_s, position_s, "
    "segment_s, gamma_s, beta_s, word_z, position_z, segment_z, gamma_z, beta_z",
    outputs="output, mask_index",
)
def quantized_embed_layer_normalization(n: NodeFacts) -> str:
    names = [name for name in ("word", "position", "segment", "gamma", "beta") if n.has(f"{name}_q")]
    return " ".join([*(f"{x} = DequantizeLinear ({x}_q, {x}_s, {x}_z)" for x in names), _embedded(n)])


def _embedded(n: NodeFacts) -> str:
    lines = ["words = Gather (word, input_ids)"]
    if n.has("position_ids"):
        lines.append("places = Gather (position, position_ids)")
    else:
        lines.append("""length = Shape <start = 1, end = 2> (input_ids) zero = Constant <value_ints = [0]> ()
            places = Slice (position, zero, length, zero)""")
    lines.append("placed = Add (words, places)")
    if n.has("segment_ids"):
        lines.append("segments = Gather (segment, segment_ids) embedding_sum = Add (placed, segments)")
    else:
        lines.append("embedding_sum = Identity (placed)")
    lines.append(f"output = LayerNormalization <{_how(n, 1e-12)}> (embedding_sum, gamma, beta)")
    if n.has("mask"):  # for every mask_index_type, which onnxruntime's kernel ignores
        lines.append("""one = Constant <value_int = 1> () typed = CastLike (one, mask) set = Equal (mask, typed)
            counted = Cast <to = 6> (set) axes = Constant <value_ints = [1]> ()
            mask_index = ReduceSum <keepdims = 0> (counted, axes)""")
    else:
        lines.append("""batch = Shape <start = 0, end = 1> (input_ids)
            mask_index = ConstantOfShape <value = int32[1] {0}> (batch)""")
    return " ".join(lines)


def _how(n: NodeFacts, epsilon: float = 1e-5) -> str:
    axis = n.attribute("axis", -1)
    return f"axis = {axis}, epsilon = {number(n.attribute('epsilon', epsilon))}"


def _sums(n: NodeFacts) -> str:
    """Returns statements for ``total``: the sum of input, skip and an optional bias."""
    if n.has("bias"):
        return "both = Add (input, skip) total = Add (both, bias)"
    return "total = Add (input, skip)"


def _root_mean_square(x: str, scale: str, y: str, inverse: str, n: NodeFacts) -> str:
    normalized = f"{y} = RMSNormalization <{_how(n)}> ({x}, {scale})"
    if n.outputs < 2 or n.has("skip"):
        return normalized
    return f"""{normalized} square = Mul ({x}, {x}) axes = Constant <value_ints = [{n.attribute("axis", -1)}]> ()
        mean_of = ReduceMean (square, axes) eps = Constant <value_float = {number(n.attribute("epsilon", 1e-5))}> ()
        shifted = Add (mean_of, eps) root = Sqrt (shifted) {inverse} = Reciprocal (root)"""
