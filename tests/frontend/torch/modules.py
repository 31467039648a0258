"""Small modules of torch of each common kind, with example inputs and the axes that may stay open."""

from __future__ import annotations

import functools
from typing import Any

from tests.selection.installed import package

torch = package("torch", "peers")
nn = torch.nn
F = torch.nn.functional
Dim = torch.export.Dim

BATCH, TIME = Dim("batch", min=1, max=64), Dim("time", min=2, max=128)
HEIGHT, WIDTH = Dim("h", min=16, max=256), Dim("w", min=16, max=256)


class CNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, stride=2, padding=1, groups=2), nn.Hardswish()),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)),
        )

    def forward(self, x: Any) -> Any:
        return self.net(x)


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(20, 64), nn.LayerNorm(64), nn.Linear(64, 5)

    def forward(self, x: Any) -> Any:
        return F.log_softmax(self.second(F.gelu(self.norm(self.first(x)))), -1)


class Encoder(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, **options)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Any, padding: Any = None) -> Any:
        return self.layers(x, src_key_padding_mask=padding)


class LSTM(nn.Module):
    def __init__(self, bidirectional: bool = False) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, 2, batch_first=True, bidirectional=bidirectional)
        self.out = nn.Linear(32 if bidirectional else 16, 4)

    def forward(self, x: Any) -> Any:
        y, (h, c) = self.lstm(x)
        return self.out(y[:, -1]), h, c


class GRU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 16)

    def forward(self, x: Any, h: Any) -> Any:
        return self.gru(x, h)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(32, 96)

    def forward(self, x: Any, mask: Any) -> Any:
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(b, t, c)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.qkv, self.out = nn.Embedding(50, 32), nn.Linear(32, 96), nn.Linear(32, 50)

    def forward(self, tokens: Any) -> Any:
        x = self.embedding(tokens)
        b, t, c = x.shape
        q, k, v = (part.view(b, t, 4, 8).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x + y.transpose(1, 2).reshape(b, t, c))


class Bag(nn.Module):
    def __init__(self, mode: str, **options: Any) -> None:
        super().__init__()
        self.bag, self.out = nn.EmbeddingBag(30, 8, mode=mode, **options), nn.Linear(8, 3)

    def forward(self, tokens: Any, offsets: Any = None, weights: Any = None) -> Any:
        return self.out(self.bag(tokens, offsets, weights))


def _block(channels: int, out: int) -> Any:
    return nn.Sequential(nn.Conv2d(channels, out, 3, padding=1), nn.GroupNorm(4, out), nn.SiLU())


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.deeper, self.middle, self.last = _block(3, 8), _block(8, 16), _block(16, 16), _block(16, 8)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, stride=2), nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        a = self.down(x)
        b = self.deeper(F.max_pool2d(a, 2))
        m = self.middle(F.interpolate(F.avg_pool2d(b, 2), scale_factor=2, mode="bilinear"))
        return self.out(self.last(torch.cat([a, self.up(b + m)], 1)))


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=4, padding=1)
        self.classes, self.boxes = nn.Conv2d(16, 6, 1), nn.Conv2d(16, 4, 1)

    def forward(self, x: Any) -> Any:
        features = F.relu(self.stem(x))
        h, w = features.shape[2:]
        scores = self.classes(features).flatten(2).transpose(1, 2).sigmoid()
        raw = self.boxes(features).flatten(2).transpose(1, 2)
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centers = (raw[..., :2] + torch.stack([columns, rows], -1).view(1, -1, 2)) * 4
        extents = raw[..., 2:].exp()
        best, index = scores.max(-1).values.topk(5, dim=1)
        boxes = torch.cat([centers - extents / 2, centers + extents / 2], -1)
        return boxes.gather(1, index[..., None].expand(-1, -1, 4)), best, index


class Keyed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        return {"y": self.linear(x) * scale, "mean": x.mean(0, keepdim=True)}


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, self.linear, lambda x: x - 1, (x,))


class Module:
    """One export: how the module is made, its inputs for a (batch, extent), and ``dynamic_shapes``."""

    def __init__(self, make: Any, inputs: Any, open_axes: Any = None) -> None:
        self.make, self.inputs, self.open_axes = make, inputs, open_axes

    @property
    def others(self) -> tuple[int, int]:
        """Beside (2, 8), a batch and an extent that it takes."""
        open_axes = (self.open_axes or {}).values()
        return 3 if any(0 in axes for axes in open_axes) else 2, 12 if any({*axes} - {0} for axes in open_axes) else 8

    def module(self) -> Any:
        torch.manual_seed(0)
        return self.make().eval()


def _image(b: int, n: int) -> Any:
    return (torch.randn(b, 3, 4 * n, 4 * n),)


def _tokens(b: int, n: int) -> Any:
    return (torch.randint(0, 30, (b, n)),)


def _bags(b: int, n: int) -> Any:
    return torch.randint(0, 30, (b * n,)), torch.tensor([0, *([n] * 2), *range(n + 1, n + b)])


def _weighted(b: int, n: int) -> Any:
    return *_bags(b, n), torch.rand(b * n)


def _steps(b: int, n: int) -> Any:
    return (torch.randn(b, n, 8),)


def _rows(b: int, n: int) -> Any:
    return (torch.randn(b, n, 32),)


_bag = functools.partial(functools.partial, Bag)
CASES = {
    "cnn": Module(CNN, _image),
    "cnn, open batch": Module(CNN, _image, {"x": {0: BATCH}}),
    "cnn, open size": Module(CNN, _image, {"x": {0: BATCH, 2: HEIGHT, 3: WIDTH}}),
    "mlp": Module(MLP, lambda b, n: (torch.randn(b, 20),)),
    "mlp, open batch": Module(MLP, lambda b, n: (torch.randn(b, 20),), {"x": {0: BATCH}}),
    "encoder": Module(Encoder, _rows),
    "encoder, open": Module(Encoder, _rows, {"x": {0: BATCH, 1: TIME}}),
    "encoder, padded": Module(
        functools.partial(Encoder, norm_first=True, activation="gelu"),
        lambda b, n: (torch.randn(b, n, 32), torch.arange(n).expand(b, n) > n // 2),
    ),
    "lstm": Module(LSTM, _steps),
    "lstm, both ways": Module(functools.partial(LSTM, True), _steps),
    "lstm, open batch": Module(LSTM, _steps, {"x": {0: BATCH}}),
    "gru": Module(GRU, lambda b, n: (torch.randn(n, b, 8), torch.randn(1, b, 16))),
    "attention": Module(Attention, lambda b, n: (torch.randn(b, n, 32), torch.randn(b, 1, n, n))),
    "attention, open": Module(
        Attention,
        lambda b, n: (torch.randn(b, n, 32), torch.randn(b, 1, n, n)),
        {"x": {0: BATCH, 1: TIME}, "mask": {0: BATCH, 2: TIME, 3: TIME}},
    ),
    "decoder, open": Module(Decoder, _tokens, {"tokens": {0: BATCH, 1: TIME}}),
    "bag sum": Module(_bag("sum"), _bags),
    "bag mean": Module(_bag("mean", padding_idx=3), _bags),
    "bag max": Module(_bag("max"), _bags),
    "bag sum, weighted": Module(_bag("sum", include_last_offset=True), _weighted),
    "bag sum of rows": Module(_bag("sum"), _tokens),
    "bag mean of rows": Module(_bag("mean"), _tokens),
    "bag max of rows, padded": Module(_bag("max", padding_idx=-2), _tokens),
    "unet": Module(UNet, _image),
    "unet, open": Module(
        UNet, _image, {"x": {0: BATCH, 2: 4 * Dim("h4", min=4, max=64), 3: 4 * Dim("w4", min=4, max=64)}}
    ),
    "detector": Module(Detector, _image),
    "detector, open batch": Module(Detector, _image, {"x": {0: BATCH}}),
    "detector, open size": Module(Detector, _image, {"x": {2: Dim.AUTO, 3: Dim.AUTO}}),
    "keyed": Module(Keyed, lambda b, n: (torch.randn(b, 4),)),
    "branch": Module(Branch, lambda b, n: (torch.randn(b, 4),)),
}
