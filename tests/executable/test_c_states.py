"""States of a program exported for C: a cache that the caller owns, in one buffer, continued step by step."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import landbridge as lb
from landbridge.executable.c_export import export_c
from tests.executable.test_c_export import build

CAPACITY, SIZE = 12, 8
#: Keys and values grow by one step in each run.
LAYER = f"""<ir_version: 8, opset_import: ["" : 17]>
layer (float[1, 1, {SIZE}] x, float[1, P, {SIZE}] past_key, float[1, P, {SIZE}] past_value)
    => (float[1, 1, {SIZE}] y, float[1, T, {SIZE}] present_key, float[1, T, {SIZE}] present_value)
{{
    present_key = Concat <axis = 1> (past_key, x)
    present_value = Concat <axis = 1> (past_value, x)
    keys = Transpose <perm = [0, 2, 1]> (present_key)
    scores = MatMul (x, keys)
    weights = Softmax <axis = -1> (scores)
    y = MatMul (weights, present_value)
}}"""
#: Reads rows of x from its input and writes those of y, then both caches; ends with the code of the first error.
STEPS = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
int main(void) {
  static float keys[MODEL_INPUT_PAST_KEY_BYTES / 4], values[MODEL_INPUT_PAST_VALUE_BYTES / 4];
  float x[MODEL_INPUT_X_BYTES / 4], y[MODEL_OUTPUT_Y_BYTES / 4];
  model_sizes sizes = {0};
  int64_t length;
  while (fread(x, sizeof x, 1, stdin)) {
    model_program self;
    size_t bytes = (size_t)model_memory_bytes(&sizes);
    void *memory;
    int code;
    length = sizes.P;
    memory = aligned_alloc(MODEL_MEMORY_ALIGNMENT, (bytes / MODEL_MEMORY_ALIGNMENT + 1) * MODEL_MEMORY_ALIGNMENT);
    code = model_init(&self, &sizes, memory, bytes);
    if (!code) {
      code |= model_set_input(&self, MODEL_INPUT_X, x);
      code |= model_set_input(&self, MODEL_INPUT_PAST_KEY, keys);
      code |= model_set_input(&self, MODEL_INPUT_PAST_VALUE, values);
      code |= model_set_input(&self, MODEL_INPUT_P, &length);
      code |= model_set_output(&self, MODEL_OUTPUT_Y, y);
      code |= model_set_output(&self, MODEL_OUTPUT_PRESENT_KEY, keys);
      code |= model_set_output(&self, MODEL_OUTPUT_PRESENT_VALUE, values);
      code |= model_run(&self);
    }
    free(memory);
    if (code) return code;
    fwrite(y, sizeof y, 1, stdout);
    ++sizes.P;
  }
  fwrite(keys, sizeof keys, 1, stdout);
  fwrite(values, sizeof values, 1, stdout);
  return 0;
}
"""


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_steps_in_one_buffer(target: str, tmp_path: Path) -> None:
    shapes = dict.fromkeys(("past_key", "past_value"), (1, CAPACITY, SIZE))
    executable = lb.compile(onnx.parser.parse_model(LAYER), target, alias="auto", shapes=shapes)
    export_c(executable, tmp_path, "model")
    assert "Output 1 may be set to the address of input 1" in (tmp_path / "model.h").read_text()
    build(tmp_path, "-std=c11", source=STEPS)
    rows = np.random.default_rng(6).standard_normal((CAPACITY, 1, 1, SIZE), np.float32)
    done = subprocess.run(["./run"], cwd=tmp_path, input=rows.tobytes(), capture_output=True)
    assert done.returncode == 0, done.stderr
    found = np.frombuffer(done.stdout, np.float32)

    session = lb.Session(lb.compile(onnx.parser.parse_model(LAYER), target, alias="auto"))
    state = session.bind_state(capacity=CAPACITY)
    for number, row in enumerate(rows):
        np.testing.assert_array_equal(found[number * SIZE :][:SIZE], session(row)[0].numpy().ravel())
    caches = found[CAPACITY * SIZE :].reshape(2, CAPACITY, SIZE)
    np.testing.assert_array_equal(caches, np.stack([rows[:, 0, 0]] * 2))
    assert state.length == CAPACITY

    more = np.concatenate([rows, rows[:1]])  # a step more than there is memory for is refused before it is written
    done = subprocess.run(["./run"], cwd=tmp_path, input=more.tobytes(), capture_output=True)
    assert done.returncode == 8 and len(done.stdout) == CAPACITY * SIZE * 4, done.stderr  # MODEL_ERROR_SIZES
