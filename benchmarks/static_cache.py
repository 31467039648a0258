"""A step of torch over a StaticCache of transformers: the peer of a State in ``state_filled.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def static_cache_step(query: Array, new: tuple[Array, Array], past: tuple[Array, Array]) -> Callable[[], object] | None:
    """Returns the last step of a full cache ``past`` of keys and values [1, shared, capacity, size]; None where
    transformers is not installed.

    It writes the ``new`` key and value [1, shared, 1, size] at the last position, in place, as ``StaticCache.update``
    does, and attends from ``query`` [1, heads, 1, size] to all of the capacity under a mask. The mask is made once, as
    a model makes one for all of its layers.
    """
    try:
        import torch
        from transformers import LlamaConfig, StaticCache
    except ImportError:
        return None
    heads, shared, capacity, size = query.shape[1], *past[0].shape[1:]
    config = LlamaConfig(
        num_hidden_layers=1,
        num_attention_heads=heads,
        num_key_value_heads=shared,
        hidden_size=heads * size,
        head_dim=size,
    )
    cache = StaticCache(config, capacity)
    queries, key, value = (torch.from_numpy(each.copy()) for each in (query, *new))
    cache.update(*(torch.from_numpy(each.copy()) for each in past), 0)
    last, count = torch.tensor(capacity - 1), cache.layers[0].cumulative_length
    mask = (torch.arange(capacity) <= last).reshape(1, 1, 1, capacity)

    def step() -> object:
        count.copy_(last)  # each step is the last one again
        keys, values = cache.update(key, value, 0)
        return torch.nn.functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, enable_gqa=shared < heads
        )

    return step
