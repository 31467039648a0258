"""Constants of which a node takes as much as an extent says, beside onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb

#: ``y`` of ids (batch, length) and ``v``, a list of the length: a table of 64 positions and one of their 8 features.
BODIES = {
    "to the length": "p = Slice(positions, zero, v, one)  e = Gather(table, p)  y = Add(w, e)",
    "from the length on": "p = Slice(positions, v, far, one)  e = Gather(table, p)  y = ReduceSum(e, one)",
    "the last of the length": "n = Neg(v)  p = Slice(positions, n, far, one)  e = Gather(table, p)  y = Add(w, e)",
    "rows of the table": "p = Slice(table, zero, v, zero)  y = Add(w, p)",
    "one row of the table": "p = Gather(table, v)  y = Add(w, p)",
}


def model(body: str) -> onnx.ModelProto:
    rng = np.random.default_rng(3)
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    g (int64[batch,length] ids) => (float[r,s,t] y) {{
        zero = Constant<value_ints = [0]>()  one = Constant<value_ints = [1]>()  far = Constant<value_ints = [1000]>()
        shape = Shape(ids)  v = Gather(shape, one)  w = Gather(words, ids)
        {body}
    }}"""
    made = onnx.parser.parse_model(text)
    tables = {"words": rng.random((9, 8)), "table": rng.random((64, 8))}
    made.graph.initializer.extend(onnx.numpy_helper.from_array(a.astype(np.float32), n) for n, a in tables.items())
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(64)[None], "positions"))
    return made


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", BODIES)
def test_a_part_of_a_constant_is_as_long_as_an_input(name: str) -> None:
    made = model(BODIES[name])
    session = lb.Session(lb.compile(made))
    peer = onnxruntime.InferenceSession(made.SerializeToString())
    for batch, length in ((1, 1), (1, 7), (2, 1), (2, 16), (3, 63)):
        ids = np.random.default_rng(length).integers(0, 9, (batch, length))
        wanted = peer.run(None, {"ids": ids})[0]
        np.testing.assert_allclose(session({"ids": ids})["y"], wanted, rtol=1e-5, err_msg=f"{batch} of {length}")
