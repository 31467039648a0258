"""Calls of an open program by somebody who knows its sizes: a piece of a program that is cut."""

from __future__ import annotations

import numpy as np
from onnx import parser

import landbridge as lb
from landbridge.session.open_executor import OpenExecutor


def test_a_call_at_known_sizes_gives_what_any_call_gives() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N,M] x) => (float[N,M] y) { y = Neg(x) }'
    )
    session = lb.Session(lb.compile(model))
    executor = session._executor
    assert isinstance(executor, OpenExecutor)
    for rows, columns in ((3, 2), (1, 5), (3, 2)):
        x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
        # Sizes of other pieces are among those that the caller knows; without all of its own it looks at shapes.
        for sizes in ({"N": rows, "M": columns, "of another": 7}, {"N": rows}):
            (found,) = executor.call_at(sizes, [x])
            np.testing.assert_array_equal(np.asarray(found), -x)
