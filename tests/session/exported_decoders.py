"""A small decoder with random weights as four exporters write it: what differs is the form of its caches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]

WORDS, HEADS, SIZE, LAYERS = 23, 2, 16, 2
WIDTH = HEADS * SIZE
#: The steps of a cache whose shape does not grow.
CAPACITY = 16


class Graph:
    """Nodes and weights, added one by one."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._rng = np.random.default_rng(seed)

    def __call__(self, kind: str, *inputs: str, to: str = "", count: int = 1, **facts: Any) -> str:
        names = [to or f"{kind.lower()}_{len(self.nodes)}", *(f"more_{len(self.nodes)}_{i}" for i in range(1, count))]
        return self.add(kind, inputs, names, **facts)[0]

    def add(self, kind: str, inputs: Any, outputs: list[str], domain: str = "", **facts: Any) -> list[str]:
        name = f"node_{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, name=name, domain=domain, **facts))
        return outputs

    def weight(self, *shape: int) -> str:
        return self.constant((self._rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def constant(self, value: Any) -> str:
        name = f"c_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def input(self, name: str, shape: list[int | str], kind: int = TensorProto.INT64) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, shape: list[int | str]) -> str:
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def model(self, name: str, opset: int, *, microsoft: bool = False) -> ModelProto:
        opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid("com.microsoft", 1)] * microsoft
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.weights)
        return helper.make_model(graph, opset_imports=opsets, ir_version=11 if opset > 22 else 10)


def _decoder(g: Graph, words: str, layer: Callable[[int, str], str], last: list[int | str]) -> None:
    """Words, the layers with what they add to them, and logits."""
    x = g("Gather", g.weight(WORDS, WIDTH), words)
    for number in range(LAYERS):
        mixed = g("MatMul", layer(number, x), g.weight(WIDTH, WIDTH))
        x = g("Add", x, mixed)
    g("MatMul", x, g.weight(WIDTH, WORDS), to=g.output("logits", [*last, WORDS]))


def _as_heads(g: Graph, x: str) -> str:
    """(B, S, WIDTH) as (B, HEADS, S, SIZE)."""
    parts = g("Reshape", g("MatMul", x, g.weight(WIDTH, WIDTH)), g.constant([0, 0, HEADS, SIZE]))
    return g("Transpose", parts, perm=[0, 2, 1, 3])


def _attended(g: Graph, q: str, k: str, v: str, bias: str) -> str:
    """(B, S, WIDTH) of queries, all keys and values, and what is added to the scores."""
    raw = g("MatMul", q, g("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g("Add", g("Mul", raw, g.constant(np.float32(SIZE**-0.5))), bias)
    mixed = g("Transpose", g("MatMul", g("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return g("Reshape", mixed, g.constant([0, 0, WIDTH]))


def _bias(g: Graph, seen: str) -> str:
    """0 where ``seen``, else what hides a score."""
    return g("Where", seen, g.constant(np.float32(0)), g.constant(np.float32(-3e38)))


def _past_and_present(g: Graph, number: int, shapes: tuple[list[int | str], list[int | str]], join: str) -> Any:
    """Names of the inputs and outputs of a layer's cache; ``join`` is what is between the parts of a name."""
    inputs = [
        g.input(join.join(("past_key_values", str(number), x)), shapes[0], TensorProto.FLOAT) for x in ("key", "value")
    ]
    first = "present" if join == "." else "present_key_values"
    return inputs, [g.output(join.join((first, str(number), x)), shapes[1]) for x in ("key", "value")]


def grouped() -> ModelProto:
    """As onnxruntime-genai's builder: GroupQueryAttention, whose lengths are those of a mask."""
    g = Graph(1)
    words, mask = (
        g.input("input_ids", ["batch_size", "sequence_length"]),
        g.input("attention_mask", ["batch_size", "T"]),
    )
    sums = g("ReduceSum", mask, g.constant([1]), keepdims=0)
    g.add("Sub", [sums, g.constant([1])], ["last"])
    g.add("Cast", ["last"], ["seqlens_k"], to=TensorProto.INT32)
    g.add("Gather", [g("Shape", mask), g.constant(1)], ["length"], axis=0)
    g.add("Cast", ["length"], ["total_sequence_length"], to=TensorProto.INT32)
    angles = np.outer(np.arange(64), 0.7 ** np.arange(SIZE // 2)).astype(np.float32)
    tables = [g.constant(np.cos(angles)), g.constant(np.sin(angles))]

    def layer(number: int, x: str) -> str:
        packed = g("MatMul", x, g.weight(WIDTH, 3 * WIDTH))
        shapes = (["batch_size", HEADS, "past_sequence_length", SIZE], ["batch_size", HEADS, "T", SIZE])
        past, present = _past_and_present(g, number, shapes, ".")
        given = [packed, "", "", *past, "seqlens_k", "total_sequence_length", *tables]
        facts = {"num_heads": HEADS, "kv_num_heads": HEADS, "do_rotary": 1}
        return g.add("GroupQueryAttention", given, [f"attended_{number}", *present], "com.microsoft", **facts)[0]

    _decoder(g, words, layer, ["batch_size", "sequence_length"])
    return g.model("grouped", 21, microsoft=True)


def optimum() -> ModelProto:
    """As optimum: Concat of past and new along an axis, a mask of all steps that is an input."""
    g = Graph(2)
    words = g.input("input_ids", ["batch_size", "sequence_length"])
    mask = g.input("attention_mask", ["batch_size", "past_sequence_length + sequence_length"])
    places = g.input("position_ids", ["batch_size", "sequence_length"])
    long = g("Shape", mask, start=1, end=2)
    every = g("Range", g.constant(0), g("Squeeze", long), g.constant(1))
    causal = g("LessOrEqual", g("Unsqueeze", every, g.constant([0, 1, 2])), g("Unsqueeze", places, g.constant([1, 3])))
    g.add("Cast", [mask], ["is_word"], to=TensorProto.BOOL)
    bias = _bias(g, g("And", causal, g("Unsqueeze", "is_word", g.constant([1, 2]))))

    def layer(number: int, x: str) -> str:
        lengths = ("past_sequence_length", "past_sequence_length + sequence_length")
        before, after = ([*each] for each in (("batch_size", HEADS, length, SIZE) for length in lengths))
        past, present = _past_and_present(g, number, (before, after), ".")
        q, k, v = (_as_heads(g, x) for _ in "qkv")
        for old, new, to in zip(past, (k, v), present, strict=True):
            g("Concat", old, new, to=to, axis=2)
        return _attended(g, q, *present, bias)

    _decoder(g, words, layer, ["batch_size", "sequence_length"])
    return g.model("optimum", 17)


def dynamic() -> ModelProto:
    """As torch.onnx of a DynamicCache: lengths have a name for each input, a mask is made of shapes."""
    g = Graph(3)
    words = g.input("input_ids", [1, "s27"])
    first = "past_key_values_0_key"
    steps, before = g("Squeeze", g("Shape", words, start=1, end=2)), g("Squeeze", g("Shape", first, start=2, end=3))
    after, one = g("Add", before, steps), g.constant(1)
    every = g("Unsqueeze", g("Range", g.constant(0), after, one), g.constant([0]))
    places = g("Unsqueeze", g("Range", before, after, one), g.constant([1]))
    bias = _bias(g, g("Unsqueeze", g("LessOrEqual", every, places), g.constant([0, 1])))

    def layer(number: int, x: str) -> str:
        q, k, v = (_as_heads(g, x) for _ in "qkv")
        past, present = [], []
        for part, (new, kind) in enumerate(((k, "key"), (v, "value"))):
            name = f"s{10 * number + part}"
            past.append(g.input(f"past_key_values_{number}_{kind}", [1, HEADS, name, SIZE], TensorProto.FLOAT))
            present.append(g.output(f"present_key_values_{number}_{kind}", [1, HEADS, f"s27 + {name}", SIZE]))
            g("Concat", past[-1], new, to=present[-1], axis=-2)
        return _attended(g, q, *present, bias)

    _decoder(g, words, layer, [1, "s27"])
    made = g.model("dynamic", 20)
    for node in made.graph.node:  # what exporters declare of values between nodes
        if node.op_type == "Concat":
            made.graph.value_info.append(
                helper.make_tensor_value_info(node.input[1], TensorProto.FLOAT, [1, HEADS, "s27", SIZE])
            )
    return made


def static() -> ModelProto:
    """As torch.onnx of a StaticCache: ``index_copy`` along an inner axis is ScatterND between Transposes."""
    g = Graph(4)
    words, places = g.input("input_ids", [1, "s27"]), g.input("cache_position", ["s27"])
    every = g.constant(np.arange(CAPACITY)[None])
    seen = g("LessOrEqual", every, g("Unsqueeze", places, g.constant([1])))
    bias, at = _bias(g, g("Unsqueeze", seen, g.constant([0, 1]))), g("Unsqueeze", places, g.constant([-1]))

    def layer(number: int, x: str) -> str:
        shape: list[int | str] = [1, HEADS, CAPACITY, SIZE]
        past, present = _past_and_present(g, number, (shape, shape), ".")
        q, k, v = (_as_heads(g, x) for _ in "qkv")
        for old, new, to in zip(past, (k, v), present, strict=True):
            rows = g("ScatterND", *(g("Transpose", old, perm=[2, 1, 0, 3]), at, g("Transpose", new, perm=[2, 1, 0, 3])))
            g("Transpose", rows, to=to, perm=[2, 1, 0, 3])
        return _attended(g, q, *present, bias)

    _decoder(g, words, layer, [1, "s27"])
    return g.model("static", 20)


def scattered() -> ModelProto:
    """As ONNX 24 has it: TensorScatter, and Attention of a cache with ``nonpad_kv_seqlen``."""
    g = Graph(5)
    words, starts = g.input("input_ids", ["B", "S"]), g.input("write_indices", ["B"])
    filled = g.input("nonpad_kv_seqlen", ["B"])
    steps = g("Range", g.constant(0), g("Squeeze", g("Shape", words, start=1, end=2)), g.constant(1))
    places = g("Add", g("Unsqueeze", starts, g.constant([1])), g("Unsqueeze", steps, g.constant([0])))
    seen = g("LessOrEqual", g.constant(np.arange(CAPACITY)[None, None]), g("Unsqueeze", places, g.constant([2])))
    mask = g("Unsqueeze", seen, g.constant([1]))

    def layer(number: int, x: str) -> str:
        shape: list[int | str] = ["B", HEADS, CAPACITY, SIZE]
        past, present = _past_and_present(g, number, (shape, shape), ".")
        q, k, v = (_as_heads(g, x) for _ in "qkv")
        for old, new, to in zip(past, (k, v), present, strict=True):
            g("TensorScatter", old, new, starts, to=to, axis=2, mode="linear")
        mixed = g("Attention", q, *present, mask, "", "", filled)
        return g("Reshape", g("Transpose", mixed, perm=[0, 2, 1, 3]), g.constant([0, 0, WIDTH]))

    _decoder(g, words, layer, ["B", "S"])
    return g.model("scattered", 24)


@dataclass(frozen=True)
class Form:
    """A decoder, the ``batch`` that it takes, and what a run is given besides words, of steps so far and of it."""

    model: Callable[[], ModelProto]
    batch: int
    lengths: Callable[[int, int, int], dict[str, Array]]
    grows: bool


def _of_mask(batch: int, before: int, steps: int) -> dict[str, Array]:
    return {"attention_mask": np.ones((batch, before + steps), np.int64)}


def _of_mask_and_places(batch: int, before: int, steps: int) -> dict[str, Array]:
    places = np.tile(np.arange(before, before + steps), (batch, 1))
    return _of_mask(batch, before, steps) | {"position_ids": places}


FORMS = {
    "onnxruntime-genai": Form(grouped, 1, _of_mask, grows=True),
    "optimum": Form(optimum, 2, _of_mask_and_places, grows=True),
    "torch, DynamicCache": Form(dynamic, 1, lambda b, before, steps: {}, grows=True),
    "torch, StaticCache": Form(
        static, 1, lambda b, before, steps: {"cache_position": np.arange(before, before + steps)}, grows=False
    ),
    "ONNX 24": Form(
        scattered,
        2,
        lambda b, before, steps: {
            "write_indices": np.full(b, before),
            "nonpad_kv_seqlen": np.full(b, before + steps),
        },
        grows=False,
    ),
}
