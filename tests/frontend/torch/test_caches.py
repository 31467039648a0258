"""Caches of decoders as torch exports them: one that grows by a Concat, one whose steps are written at positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import landbridge as lb
from tests.frontend.torch.modules import nn, torch

HEADS, SHARED, SIZE, CAPACITY, PROMPT, STEPS = 4, 2, 8, 16, 4, 8
WIDTH = HEADS * SIZE


class Layer(nn.Module):  # type: ignore[misc]
    """Attention of a decoder whose heads share keys and values, as transformers has it."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.key, self.value = nn.Linear(WIDTH, SHARED * SIZE), nn.Linear(WIDTH, SHARED * SIZE)

    def heads(self, x: Any) -> Any:
        return x.view(*x.shape[:2], -1, SIZE).transpose(1, 2)

    def new(self, x: Any) -> tuple[Any, Any]:
        return self.heads(self.key(x)), self.heads(self.value(x))

    def attended(self, x: Any, keys: Any, values: Any, seen: Any) -> Any:
        each = [
            one[:, :, None].expand(*one.shape[:2], HEADS // SHARED, *one.shape[2:]).reshape(-1, HEADS, *one.shape[2:])
            for one in (keys, values)
        ]
        mixed = nn.functional.scaled_dot_product_attention(self.heads(self.query(x)), *each, attn_mask=seen)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Growing(Layer):
    """As a DynamicCache."""

    def forward(self, x: Any, past_key: Any, past_value: Any) -> tuple[Any, Any, Any]:
        keys, values = (torch.cat(each, 2) for each in zip((past_key, past_value), self.new(x), strict=True))
        before, rows = past_key.shape[2], x.shape[1]
        seen = torch.arange(before + rows) <= torch.arange(before, before + rows)[:, None]
        return self.attended(x, keys, values, seen), keys, values


class Written(Layer):
    """As a StaticCache."""

    def forward(self, x: Any, cache_position: Any, past_key: Any, past_value: Any) -> tuple[Any, Any, Any]:
        keys, values = (
            each.index_copy(2, cache_position, new)
            for each, new in zip((past_key, past_value), self.new(x), strict=True)
        )
        return self.attended(x, keys, values, torch.arange(CAPACITY) <= cache_position[:, None]), keys, values


def cache(steps: int) -> Any:
    return torch.zeros(1, SHARED, steps, SIZE)


NAMES = ["past_key", "past_value"]
OUTPUTS = ["y", "present_key", "present_value"]


@pytest.fixture
def rows() -> Any:
    torch.manual_seed(3)
    return torch.randn(1, PROMPT + STEPS, WIDTH)


def exported(module: Any, inputs: tuple[Any, ...], names: list[str], axes: Any) -> Any:
    return torch.onnx.export(
        module, inputs, dynamo=True, input_names=names, output_names=OUTPUTS, dynamic_shapes=axes, verbose=False
    ).model_proto


def test_a_cache_that_grows(rows: Any) -> None:
    """A prompt and steps, in place, are what torch has of all rows at once."""
    layer, free = Growing().eval(), torch.export.Dim.DYNAMIC
    inputs = torch.randn(1, 3, WIDTH), torch.randn(1, SHARED, 5, SIZE), torch.randn(1, SHARED, 5, SIZE)
    written = exported(layer, inputs, ["x", *NAMES], ({1: free}, {2: free}, {2: free}))
    session = lb.Session(lb.compile(written, alias="auto"))
    state = session.bind_state(capacity=CAPACITY)
    found = []
    for part in (rows[:, :PROMPT], *rows[:, PROMPT:].split(1, 1)):
        with lb.no_copies():
            (y,) = session(part.contiguous())
        found.append(np.array(y))
    assert state.length == PROMPT + STEPS
    with torch.no_grad():
        want = layer(rows, cache(0), cache(0))
    np.testing.assert_allclose(np.concatenate(found, 1), want[0], rtol=1e-4, atol=1e-5)
    for name, value in zip(NAMES, want[1:], strict=True):
        filled = np.asarray(state.tensors[name])[:, :, : state.length]
        np.testing.assert_allclose(filled, value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("known", [True, False], ids=["one step", "any steps"])
def test_a_cache_whose_steps_are_written_at_positions(rows: Any, known: bool) -> None:
    layer, steps = Written().eval(), 1 if known else 2
    axes = None if known else ({1: (free := torch.export.Dim.DYNAMIC)}, {0: free}, None, None)
    inputs = torch.randn(1, steps, WIDTH), torch.arange(steps), cache(CAPACITY), cache(CAPACITY)
    written = exported(layer, inputs, ["x", "cache_position", *NAMES], axes)
    session = lb.Session(lb.compile(written, alias="auto"))
    state, found, begin = session.bind_state(), [], 0
    for part in rows.split(1, 1) if known else (rows[:, :PROMPT], *rows[:, PROMPT:].split(1, 1)):
        with lb.no_copies():
            (y,) = session(part.contiguous(), torch.arange(begin, begin + part.shape[1]))
        found.append(np.array(y))
        begin += part.shape[1]
        assert state.length == begin
    with torch.no_grad():
        want = layer(rows, torch.arange(begin), cache(CAPACITY), cache(CAPACITY))
    np.testing.assert_allclose(np.concatenate(found, 1), want[0], rtol=1e-4, atol=1e-5)
    for name, value in zip(NAMES, want[1:], strict=True):
        np.testing.assert_allclose(np.asarray(state.tensors[name]), value, rtol=1e-4, atol=1e-5)
