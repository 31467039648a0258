"""Attention operators of ``com.microsoft``: with masks, past keys and values, rotary positions, quantized weights."""

from __future__ import annotations

from landbridge.frontend.onnx.bodies.attention_scores import as_heads, as_rows, attended, retained_in_buffer, split
from landbridge.frontend.onnx.bodies.node_facts import NodeFacts
from landbridge.operators import definition

_MS = "com.microsoft"


@definition(
    _MS,
    "Attention",
    inputs="input, weights, bias, mask, past, attention_bias, past_length, length",
    outputs="output, present",
)
def attention(n: NodeFacts) -> str:
    added = "qkv = Add (product, bias)" if n.has("bias") else "qkv = Identity (product)"
    return f"product = MatMul (input, weights) {added} {_of_packed(n, 'mask')}"


@definition(
    _MS,
    "QAttention",
    inputs="input, weights, bias, input_scale, weight_scale, mask, input_zero, weight_zero, past, length",
    outputs="output, present",
)
def quantized_attention(n: NodeFacts) -> str:
    zeros = ", input_zero" if n.has("input_zero") else ""
    zeros = f", {zeros.removeprefix(', ')}, weight_zero" if n.has("weight_zero") else zeros
    return f"""total = MatMulInteger (input, weights{zeros}) floats = CastLike (total, bias)
        scale = Mul (input_scale, weight_scale) product = Mul (floats, scale) qkv = Add (product, bias)
        {_of_packed(n, "mask")}"""


@definition(
    _MS,
    "MultiHeadAttention",
    inputs="query, key, value, bias, mask, attention_bias, past_key, past_value, past_length, cache_indirection, "
    "length",
    outputs="output, present_key, present_value, qk",
)
def multi_head_attention(n: NodeFacts) -> str:
    """Returns attention; queries may be packed with keys and values as (batch, steps, heads, 3, size), keys with values
    likewise.
    """
    heads = int(n.attribute("num_heads", 1))
    if n.has("cache_indirection"):
        raise n.unsupported("beams whose past steps are those of others; legal: rows of their own")
    is_packed = len(n.shape("query")) == 5
    if is_packed:
        lines = [*_unpacked("query", "qkv")]
    elif not n.has("key"):
        raise n.unsupported("a query of 3 axes without keys; legal: 5 axes, or keys")
    elif len(n.shape("key")) == 5:
        lines = ["q0 = Identity (query)", *_unpacked("key", "kv")]
    elif len(n.shape("key")) == 4:  # keys and values of an encoder, which are split into heads already
        lines = ["q0 = Identity (query) k = Identity (key) v = Identity (value)"]
    else:
        lines = ["q0 = Identity (query) k0 = Identity (key) v0 = Identity (value)"]
    names = "q" if not is_packed and len(n.shape("key")) == 4 else "qkv"
    if n.has("bias"):
        query, whole = n.shape("query"), int(n.shape("bias")[0])
        width = heads * int(query[4]) if is_packed else int(query[2])
        lines.append(split("bias", "bq, bk, bv", [width, width, whole - 2 * width], 0))
        lines += [f"{x}1 = Add ({x}0, b{x})" for x in names]
    else:
        lines += [f"{x}1 = Identity ({x}0)" for x in names]
    lines += [as_heads(f"{x}1", x, heads) for x in names]
    lines.append(_with_past(n))
    lines.append(attended(n, "mask", is_causal=bool(n.attribute("unidirectional", 0))))
    return " ".join(lines)


@definition(
    _MS,
    "DecoderMaskedMultiHeadAttention",
    inputs="query, key, value, mask, attention_bias, past_key, past_value, past_length, beam_width, "
    "cache_indirection, bias, length",
    outputs="output, present_key, present_value, qk",
)
def decoder_attention(n: NodeFacts) -> str:
    """Returns attention of one step. ``cache_indirection`` says which row of the past each beam continues."""
    heads = int(n.attribute("num_heads", 1))
    if n.has("cache_indirection"):
        raise n.unsupported("beams whose past steps are those of others; legal: rows of their own")
    is_cached = n.has("key") and len(n.shape("key")) == 4
    names = "q" if is_cached else "qkv"
    if is_cached:
        lines = ["q0 = Identity (query) k = Identity (key) v = Identity (value)"]
    elif n.has("key"):
        lines = ["q0 = Identity (query) k0 = Identity (key) v0 = Identity (value)"]
    else:
        lines = [split("query", "q0, k0, v0", [int(n.shape("query")[2]) // 3] * 3, 2)]
    if n.has("bias"):
        width = int(n.shape("query")[2]) // (1 if n.has("key") else 3)
        lines.append(split("bias", "bq, bk, bv", [width, width, int(n.shape("bias")[0]) - 2 * width], 0))
        lines += [f"{x}1 = Add ({x}0, b{x})" for x in names]
    else:
        lines += [f"{x}1 = Identity ({x}0)" for x in names]
    lines += [as_heads(f"{x}1", x, heads) for x in names]
    lines.append(_with_past(n))
    lines.append(attended(n, "mask"))
    return " ".join(lines)


@definition(_MS, "RotaryEmbedding", inputs="input, position_ids, cos_cache, sin_cache", outputs="output")
def rotary_embedding(n: NodeFacts) -> str:
    rank, width = len(n.shape("input")), n.attribute("rotary_embedding_dim", 0)
    interleaved, heads = n.attribute("interleaved", 0), n.attribute("num_heads", 0)
    if rank == 3 and not heads:
        heads = n.shape("input")[2] // (2 * n.shape("cos_cache")[1])
    lines = [_positions(n, rank)]
    if rank == 3:
        lines.append(f"{as_heads('input', 'x', int(heads))}")
    else:
        lines.append("x = Identity (input)")
    how = f"interleaved = {interleaved}, rotary_embedding_dim = {width}"
    lines.append(f"y = RotaryEmbedding <{how}> (x, cos_cache, sin_cache, places)")
    lines.append(as_rows("y", "output") if rank == 3 else "output = Identity (y)")
    return " ".join(lines)


def _positions(n: NodeFacts, rank: int) -> str:
    """Returns statements for ``places``: a position for each row and step; ``position_ids`` may have the first one
    only.
    """
    if len(n.shape("position_ids")) == 2:
        return "places = Identity (position_ids)"
    steps = 1 if rank == 3 else 2
    return f"""zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
        length_of = Shape <start = {steps}, end = {steps + 1}> (input) length = Squeeze (length_of)
        first = Cast <to = 7> (position_ids) steps = Range (zero, length, one) row = Add (steps, first)
        batch = Shape <start = 0, end = 1> (input) whole = Concat <axis = 0> (batch, length_of)
        places = Expand (row, whole)"""


def _of_packed(n: NodeFacts, mask: str) -> str:
    """Returns attention of ``qkv``, which has the columns of queries, keys and values one after the other."""
    heads, sizes = n.attribute("num_heads", 1), n.attribute("qkv_hidden_sizes", [])
    if n.attribute("do_rotary", 0):
        raise n.unsupported("rotary positions inside; legal: RotaryEmbedding before MultiHeadAttention")
    widths = sizes or [int(n.shape("weights")[1]) // 3] * 3
    lines = [split("qkv", "q1, k1, v1", widths, 2), *(as_heads(f"{x}1", x, heads) for x in "qkv")]
    if n.has("past") or "present" in n.wanted:
        lines.append("""first = Constant <value_ints = [0]> () p_k = Unsqueeze (k, first) p_v = Unsqueeze (v, first)
            new = Concat <axis = 0> (p_k, p_v)""")
    if n.has("past"):
        length = next((each for each in ("past_length", "length") if n.has(each)), "")
        lines.append(
            retained_in_buffer("new", "past", "present", length, axis=3)
            if length
            else "present = Concat <axis = 3> (past, new)"
        )
        for number, both in enumerate(("keys", "values")):
            part = f"all_{both}" if length else both  # a part of the buffer first, which is read where it is
            lines.append(
                f"at_{both} = Constant <value_int = {number}> () {part} = Gather <axis = 0> (present, at_{both})"
            )
            lines += [f"{both} = landbridge.InUse <axis = 2> ({part}, new_total)"] if length else []
    else:
        lines.append("keys = Identity (k) values = Identity (v)")
        if "present" in n.wanted:
            lines.append("present = Identity (new)")
    lines.append(attended(n, mask, is_causal=bool(n.attribute("unidirectional", 0))))
    return " ".join(lines)


def _with_past(n: NodeFacts) -> str:
    """Returns statements for ``keys`` and ``values``, from ``k``, ``v`` and those of the past, and for the present of
    the next steps.
    """
    if not n.has("past_key"):
        return "keys = Identity (k) values = Identity (v) present_key = Identity (k) present_value = Identity (v)"
    pairs = (("k", "past_key", "present_key", "keys"), ("v", "past_value", "present_value", "values"))
    for length in ("past_length", "length"):
        if n.has(length):  # past and present are one buffer
            return " ".join(
                f"{retained_in_buffer(new, past, present, length)} "
                f"{both} = landbridge.InUse <axis = 2> ({present}, {new}_total)"
                for new, past, present, both in pairs
            )
    return " ".join(
        f"{both} = Concat <axis = 2> ({past}, {new}) {retained} = Identity ({both})"
        for new, past, retained, both in pairs
    )


def _unpacked(x: str, names: str) -> list[str]:
    """Returns statements for ``q0`` and so on (batch, steps, heads * size) from ``x`` (batch, steps, heads, 3 or 2,
    size).
    """
    parts = ", ".join(f"{name}_part" for name in names)
    lines = [split(x, parts, [1] * len(names), 3), "row_to = Constant <value_ints = [0, 0, -1]> ()"]
    return [*lines, *(f"{name}0 = Reshape ({name}_part, row_to)" for name in names)]
