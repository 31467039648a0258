"""Features of text beside onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import landbridge as lb


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
def test_random_pools(mode: str, seed: int) -> None:
    """Random n-grams of up to four tokens, some of them prefixes of others, with tokens between them skipped."""
    rng = np.random.default_rng(seed)
    spread = int(rng.choice([1, 10**9]))  # tokens close together, or too far apart for a table
    tokens = np.arange(rng.integers(3, 12)) * spread
    grams = [
        list({tuple(rng.choice(tokens, length).tolist()) for _ in range(rng.integers(1, 6))})
        for length in range(1, rng.integers(2, 6))
    ]
    sizes = [sum(map(len, group)) for group in grams]
    least = int(rng.integers(1, len(grams) + 1))
    count = sum(map(len, grams))
    attributes = {
        "mode": mode,
        "min_gram_length": least,
        "max_gram_length": int(rng.integers(least, len(grams) + 1)),
        "max_skip_count": int(rng.integers(0, 4)),
        "ngram_counts": np.cumsum([0, *sizes[:-1]]).tolist(),
        "ngram_indexes": rng.permutation(count).tolist(),
        "pool_int64s": [token for group in grams for gram in group for token in gram],
    }
    if seed % 2:
        attributes["weights"] = rng.random(count).astype(np.float32).tolist()
    x = rng.choice([*tokens, 1, -5], (int(rng.integers(1, 4)), int(rng.integers(1, 14))))
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **attributes)
    inputs = [helper.make_tensor_value_info("x", 7, x.shape)]
    outputs = [helper.make_tensor_value_info("y", 1, (len(x), count))]
    graph = helper.make_graph([node], "grams", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    (found,) = lb.Session(lb.compile(model))(x)
    np.testing.assert_array_equal(np.asarray(found), expected)
