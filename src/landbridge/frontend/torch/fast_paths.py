"""Expands the fused operators that torch uses instead of whole layers if no gradients are needed.

Its exporter does not support them. They come from ``torch.nn.TransformerEncoderLayer`` and ``MultiheadAttention``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional


def expand_fast_paths(graph: torch.fx.Graph) -> None:
    """Make ``graph``, a graph of Dynamo, call the functions below instead."""
    for node in graph.nodes:
        name = getattr(node.target, "__name__", "")
        if node.op == "call_function" and name in _LAYERS:
            node.target = _LAYERS[name]


def _encoder_layer(
    source: Any,
    embed_dim: int,
    heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    gelu: bool,
    norm_first: bool,
    eps: float,
    norm1_weight: Any,
    norm1_bias: Any,
    norm2_weight: Any,
    norm2_bias: Any,
    first_weight: Any,
    first_bias: Any,
    second_weight: Any,
    second_bias: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """Returns ``aten::_transformer_encoder_layer_fwd``; ``source`` is [B, T, embed_dim]."""

    def attended(x: Any) -> Any:
        return _attention(x, x, x, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type)

    def fed_forward(x: Any) -> Any:
        inner = functional.linear(x, first_weight, first_bias)
        return functional.linear(functional.gelu(inner) if gelu else functional.relu(inner), second_weight, second_bias)

    def norm1(x: Any) -> Any:
        return functional.layer_norm(x, (embed_dim,), norm1_weight, norm1_bias, eps)

    def norm2(x: Any) -> Any:
        return functional.layer_norm(x, (embed_dim,), norm2_weight, norm2_bias, eps)

    if norm_first:
        source = source + attended(norm1(source))
        return source + fed_forward(norm2(source))
    source = norm1(source + attended(source))
    return norm2(source + fed_forward(source))


def _multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:
    """Returns ``aten::_native_multi_head_attention``: the result, and the attention weights or None."""
    given = (query, key, value, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type)
    if not need_weights:
        return _attention(*given), None
    q, k, v = _heads(query, key, value, heads, qkv_weight, qkv_bias)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~_retained(mask, mask_type), float("-inf"))
    weights = scores.softmax(-1)
    result = functional.linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    return result, weights.mean(1) if average_attn_weights else weights


def _attention(
    query: Any,
    key: Any,
    value: Any,
    heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any,
    mask_type: int | None,
) -> Any:
    q, k, v = _heads(query, key, value, heads, qkv_weight, qkv_bias)
    retained = None if mask is None else _retained(mask, mask_type)
    result = functional.scaled_dot_product_attention(q, k, v, attn_mask=retained)
    return functional.linear(result.transpose(1, 2).flatten(2), proj_weight, proj_bias)


def _heads(query: Any, key: Any, value: Any, heads: int, weight: Any, bias: Any) -> list[Any]:
    """Returns the projected queries, keys and values, each [B, heads, T, D]."""
    parts = zip((query, key, value), weight.chunk(3), bias.chunk(3), strict=True)
    return [functional.linear(x, w, b).unflatten(-1, (heads, -1)).transpose(1, 2) for x, w, b in parts]


def _retained(mask: Any, mask_type: int | None) -> Any:
    """Returns which scores are used, for [B, heads, T, T]: a mask excludes nonzero and true elements; type 1 is [B, T]
    of keys.
    """
    retained = ~mask.to(torch.bool)
    return retained[:, None, None, :] if mask_type == 1 else retained


_LAYERS: dict[str, Callable[..., Any]] = {
    "_transformer_encoder_layer_fwd": _encoder_layer,
    "_native_multi_head_attention": _multi_head_attention,
}
