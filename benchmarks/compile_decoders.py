"""What equal layers, 2, 8 and 24 of them, take to compile, of time and memory, before a change and after.

python benchmarks/compile_decoders.py --export FOLDER
python benchmarks/compile_decoders.py FOLDER BEFORE

The first command needs torch, transformers and onnxscript. It writes LlamaForCausalLM with a past, once of weights that
are large, and BertModel, as ``torch.onnx.export(dynamo=True)`` exports them: batch, steps and past are open. The other
models are decoders of GroupQueryAttention nodes, as optimum and Olive write them. BEFORE is the folder of another
checkout.

Each compile is the first of a process of its own, on one core, so that seconds and processor seconds are one number but
for what other processes take. The two checkouts are measured alternately; the figure is the mean of two rounds. Memory
is the most that was resident, interpreter and libraries included. Modules are byte code before, as an installer leaves
them.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import ModelProto

ROOT = Path(__file__).parents[1]
LAYERS = (2, 8, 24)
ROUNDS = 2
#: Sizes of the decoder of large weights, of 24 layers.
LARGE = {
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "intermediate_size": 1408,
    "vocab_size": 4000,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("--export", action="store_true")
    parser.add_argument("--priority", type=int, help="of a compile, real-time, where the machine does other work too")
    given = parser.parse_args()
    if given.export:
        for count in LAYERS:
            export_llama(given.folder / f"Llama-{count}.onnx", count)
            export_bert(given.folder / f"Bert-{count}.onnx", count)
        export_llama(given.folder / "large Llama-24.onnx", 24, **LARGE)
        return
    import onnx
    from measure import write

    checkouts = [given.before / "src", ROOT / "src"]
    for checkout in checkouts:
        compileall.compile_dir(checkout, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        files: dict[tuple[str, int], Path] = {}
        for path in given.folder.glob("*.onnx"):
            name, _, number = path.stem.rpartition("-")
            files[name, int(number)] = path
        for count in LAYERS:
            path = files["GroupQueryAttention", count] = Path(folder) / f"{count}.onnx"
            onnx.save(grouped(count), path)
        measured = {key: compiled(files[key], checkouts, given.priority) for key in sorted(files)}
    rows: list[tuple[object, ...]] = []
    for (name, count), found in measured.items():
        size = found[1]["size"]
        for when, each in zip(("before", "after"), found, strict=True):
            fewest = measured.get((name, LAYERS[0]))
            ratio = "" if fewest is None else each["processor"] / fewest[when == "after"]["processor"]
            limit = 300e6 + 2 * size
            memory = f"{each['peak'] / 1e6:.0f} MB, {each['peak'] / limit:.2f} of 300 MB and twice the file"
            rows.append((name, count, when, each["wall"], each["processor"], ratio, f"{size / 1e6:.1f} MB", memory))
    columns = ("model", "layers", "when", "seconds", "processor seconds", "of those of 2 layers", "file", "peak memory")
    write("compile_decoders", columns, rows)


def compiled(file: Path, checkouts: list[Path], priority: int | None) -> list[dict[str, float]]:
    """Returns what a compile took in each checkout: means of ``ROUNDS`` rounds, which alternate."""

    def begin() -> None:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        if priority is not None:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))

    found: list[list[dict[str, float]]] = [[] for _ in checkouts]
    for _ in range(ROUNDS):
        for checkout, rounds in zip(checkouts, found, strict=True):
            environment = {**os.environ, "PYTHONPATH": str(checkout), "LANDBRIDGE_CACHE": "0"}
            command = [sys.executable, __file__, "--child", str(file)]
            child = subprocess.run(
                command, capture_output=True, check=True, text=True, env=environment, preexec_fn=begin
            )
            rounds.append({**json.loads(child.stdout), "size": file.stat().st_size})
    return [{key: statistics.fmean(each[key] for each in rounds) for key in rounds[0]} for rounds in found]


def compile_alone(file: str) -> None:
    """Compiles ``file`` and prints what that took."""
    import resource

    import landbridge as lb

    began = time.perf_counter()
    lb.compile(file)
    wall = time.perf_counter() - began
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(each.ru_utime + each.ru_stime for each in used)
    print(json.dumps({"wall": wall, "processor": processor, "peak": used[0].ru_maxrss << 10}))


def export_llama(file: Path, layers: int, **sizes: int) -> None:
    """Writes a decoder of ``layers`` with keys and values of the past; batch, steps and past are open."""
    import torch
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found]

    small = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128}
    config = LlamaConfig(num_hidden_layers=layers, max_position_embeddings=512, **({"vocab_size": 256} | small | sizes))
    config._attn_implementation = "sdpa"
    network = LlamaForCausalLM(config).eval()

    class Step(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any, past: Any) -> Any:
            cache = DynamicCache()
            for layer, (key, value) in enumerate(past):
                cache.update(key, value, layer)
            found = self.network(
                input_ids=input_ids,
                attention_mask=attention_mask,
                position_ids=position_ids,
                past_key_values=cache,
                use_cache=True,
            )
            return found.logits, [(each.keys, each.values) for each in found.past_key_values.layers]

    batch, steps, length = 2, 3, 5
    size = config.hidden_size // config.num_attention_heads
    state = torch.zeros(batch, config.num_key_value_heads, length, size)
    positions = torch.arange(length, length + steps)[None].expand(batch, steps).contiguous()
    given = (torch.ones(batch, steps, dtype=torch.int64), torch.ones(batch, length + steps, dtype=torch.int64))
    open_one = torch.export.Dim.DYNAMIC
    rows, past = {0: open_one, 1: open_one}, {0: open_one, 2: open_one}
    torch.onnx.export(
        Step(),
        (*given, positions, [(state.clone(), state.clone()) for _ in range(layers)]),
        dynamo=True,
        dynamic_shapes=(rows, rows, rows, [(past, past)] * layers),
    ).save(file, external_data=False)


def export_bert(file: Path, layers: int) -> None:
    """Writes an encoder of ``layers``, whose batch and length are open."""
    import torch
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "max_position_embeddings": 128}
    network = BertModel(BertConfig(num_hidden_layers=layers, vocab_size=256, **sizes)).eval()
    names = ("input_ids", "attention_mask")
    rows = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    torch.onnx.export(
        network,
        kwargs={name: torch.ones(2, 5, dtype=torch.int64) for name in names},
        dynamo=True,
        dynamic_shapes=dict.fromkeys(names, rows),
    ).save(file, external_data=False)


def grouped(layers: int) -> ModelProto:
    """Returns a decoder of ``layers`` with GroupQueryAttention, whose batch, steps and past are open."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    width, heads, shared, size, inner, words = 64, 4, 2, 16, 128, 256
    nodes: list[Any] = []
    weights: list[Any] = []

    def weight(name: str, *shape: int) -> str:
        weights.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 8, name))
        return name

    def node(op_type: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        nodes.append(helper.make_node(op_type, inputs, [output], name=output, domain=domain, **attributes))
        return output

    for name, number, dtype in (("one", 1, np.int64), ("axis", [1], np.int64)):
        weights.append(numpy_helper.from_array(np.array(number, dtype), name))
    ends = node("Sub", [node("ReduceSum", ["attention_mask", "axis"], "filled", keepdims=0), "one"], "last")
    ends = node("Cast", [ends], "ends", to=TensorProto.INT32)
    total = node("Gather", [node("Shape", ["attention_mask"], "extents"), "one"], "length", axis=0)
    total = node("Cast", [total], "total", to=TensorProto.INT32)
    angles = [weight(name, 512, size // 2) for name in ("cosines", "sines")]
    value = node("Gather", [weight("words", words, width), "input_ids"], "embedded")
    states = []
    for layer in range(layers):
        rows = node(
            "SimplifiedLayerNormalization", [value, weight(f"scale.{layer}", width)], f"rows.{layer}", epsilon=1e-5
        )
        three = [
            node("MatMul", [rows, weight(f"w{each}.{layer}", width, count * size)], f"{each}.{layer}")
            for each, count in (("q", heads), ("k", shared), ("v", shared))
        ]
        past, present = ([f"{when}.{layer}.{what}" for what in ("key", "value")] for when in ("past", "present"))
        nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                [*three, *past, ends, total, *angles],
                [f"attended.{layer}", *present],
                domain="com.microsoft",
                num_heads=heads,
                kv_num_heads=shared,
                do_rotary=1,
            )
        )
        states += list(zip(past, present, strict=True))
        attended = node(
            "MatMul", [f"attended.{layer}", weight(f"wo.{layer}", heads * size, width)], f"projected.{layer}"
        )
        value = node("Add", [value, attended], f"added.{layer}")
        rows = node("SimplifiedLayerNormalization", [value, weight(f"after.{layer}", width)], f"again.{layer}")
        gate = node("MatMul", [rows, weight(f"wg.{layer}", width, inner)], f"gate.{layer}")
        gate = node("Mul", [gate, node("Sigmoid", [gate], f"sigmoid.{layer}")], f"silu.{layer}")
        wide = node("MatMul", [rows, weight(f"wu.{layer}", width, inner)], f"up.{layer}")
        wide = node("Mul", [gate, wide], f"gated.{layer}")
        down = node("MatMul", [wide, weight(f"wd.{layer}", inner, width)], f"down.{layer}")
        value = node("Add", [value, down], f"out.{layer}")
    node("MatMul", [value, weight("head", width, words)], "logits")

    def info(name: str, dtype: int, *shape: int | str) -> Any:
        return helper.make_tensor_value_info(name, dtype, shape)

    whole, real = TensorProto.INT64, TensorProto.FLOAT
    inputs = [info("input_ids", whole, "batch", "steps"), info("attention_mask", whole, "batch", "total")]
    inputs += [info(past, real, "batch", shared, "past", size) for past, _ in states]
    outputs = [info("logits", real, "batch", "steps", words)]
    outputs += [info(present, real, "batch", shared, "total", size) for _, present in states]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        compile_alone(sys.argv[2])
    else:
        main()
