"""TfIdfVectorizer beside onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import landbridge as lb


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.filterwarnings("error::landbridge.FallbackWarning")
def test_random_pools(mode: str, seed: int) -> None:
    """Random n-grams of up to four tokens, some of them prefixes of others, with tokens between them skipped."""
    rng = np.random.default_rng(seed)
    spread = int(rng.choice([1, 10**9]))  # tokens close together, or far apart
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


def test_rows_of_an_open_number_and_one_row() -> None:
    pool = {"ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2], "pool_int64s": [4, 7, 4, 7]}
    node = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=0, **pool
    )

    def compiled(*shape: int | str) -> lb.Session:
        inputs = [helper.make_tensor_value_info("x", 6, shape)]
        outputs = [helper.make_tensor_value_info("y", 1, [*shape[:-1], 3])]
        graph = helper.make_graph([node], "grams", inputs, outputs)
        return lb.Session(
            lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
        )

    x = np.tile(np.array([4, 7, 7, 4, 7], np.int32), (40, 1))
    (found,) = compiled("N", "C")(x)
    assert np.asarray(found).tolist() == [[2, 3, 2]] * 40
    (found,) = compiled(5)(x[0])
    assert np.asarray(found).tolist() == [2, 3, 2]


def test_a_pool_that_is_not_numbered_is_refused() -> None:
    node = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0,
        ngram_counts=[0], ngram_indexes=[0, 1], pool_int64s=[4],
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 7, [3])], [helper.make_tensor_value_info("y", 1, [2])]
    )
    with pytest.raises(lb.NodeError, match="1 n-grams of integers and 2 ngram_indexes; legal is one for each"):
        lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
