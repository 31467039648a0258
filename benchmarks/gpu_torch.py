"""Networks of torchvision as ONNX, and runs of them by torch on a GPU."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np


def torch_model(name: str, shape: tuple[int, ...]) -> tuple[Any, bytes]:
    """The network ``name`` of torchvision with seeded random weights, and its ONNX file for inputs of ``shape``."""
    import torch
    import torchvision

    torch.manual_seed(0)
    network = getattr(torchvision.models, name)(weights=None).eval()
    file = io.BytesIO()
    given = torch.zeros(shape)
    torch.onnx.export(network, (given,), file, input_names=["x"], output_names=["y"], opset_version=17, dynamo=False)
    return network, file.getvalue()


def on_cuda(network: Any, x: np.ndarray[Any, Any]) -> dict[str, Callable[[], object]]:
    """Runs of ``network`` by torch on the GPU, waited for: as it is, and its kernels replayed as a CUDA graph."""
    import torch

    if not torch.cuda.is_available():
        return {}
    moved, given = network.cuda(), torch.from_numpy(x).cuda()

    def eager() -> None:
        with torch.inference_mode():
            moved(given)
        torch.cuda.synchronize()

    side = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(side):
        for _ in range(3):
            moved(given)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        moved(given)

    def replayed() -> None:
        graph.replay()
        torch.cuda.synchronize()

    return {"torch": eager, "torch, CUDA graph": replayed}
