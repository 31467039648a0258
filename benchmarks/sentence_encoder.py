"""A sentence encoder with the architecture and sizes of all-MiniLM-L6-v2, whose file no wheel has: random weights.

What a run costs does not depend on their values. The sizes are those of the model's published configuration: 6 layers
of 12 heads over 384 features, 1536 within, 30522 words, 512 positions; the mean of the words' vectors, of length one.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

WORDS, POSITIONS, FEATURES, WITHIN, HEADS, LAYERS = 30522, 512, 384, 1536, 12, 6


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(FEATURES, FEATURES) for _ in range(4))
        self.widen, self.narrow = nn.Linear(FEATURES, WITHIN), nn.Linear(WITHIN, FEATURES)
        self.after_attention, self.after = nn.LayerNorm(FEATURES, 1e-12), nn.LayerNorm(FEATURES, 1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        def heads(y: Tensor) -> Tensor:
            return y.view(y.shape[0], y.shape[1], HEADS, FEATURES // HEADS).transpose(1, 2)

        scores = heads(self.query(x)) @ heads(self.key(x)).transpose(2, 3) / (FEATURES // HEADS) ** 0.5 + mask
        mixed = (scores.softmax(-1) @ heads(self.value(x))).transpose(1, 2)
        x = self.after_attention(x + self.out(mixed.reshape(x.shape[0], x.shape[1], FEATURES)))
        return self.after(x + self.narrow(nn.functional.gelu(self.widen(x))))


class SentenceEncoder(nn.Module):
    """Tokens and their mask (batch, length) to vectors (batch, 384)."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, FEATURES), nn.Embedding(POSITIONS, FEATURES)
        self.kinds, self.first = nn.Embedding(2, FEATURES), nn.LayerNorm(FEATURES, 1e-12)
        self.layers = nn.ModuleList(_Layer() for _ in range(LAYERS))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.first(self.words(tokens) + self.positions(places) + self.kinds(torch.zeros_like(tokens)))
        retained = mask.to(x.dtype)
        for layer in self.layers:
            x = layer(x, (1 - retained[:, None, None, :]) * -1e9)
        weights = retained[:, :, None]
        return nn.functional.normalize((x * weights).sum(1) / weights.sum(1).clamp(min=1e-9), dim=1)


def export(file: Path) -> None:
    """Write the encoder to ``file``, with open dimensions ``batch`` and ``length``."""
    torch.manual_seed(0)
    example = (torch.ones(2, 8, dtype=torch.int64), torch.ones(2, 8, dtype=torch.int64))
    axes = {0: "batch", 1: "length"}
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        SentenceEncoder().eval(),
        example,
        str(file),
        input_names=["tokens", "mask"],
        output_names=["sentence"],
        dynamic_axes={"tokens": axes, "mask": axes, "sentence": {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )
