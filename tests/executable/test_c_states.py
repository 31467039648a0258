"""States of programs exported for C: past and present are one buffer of the application, which runs continue."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.executable.c_export import export_c
from tests.executable.test_c_export import build

CAPACITY, WIDTH, STEPS = 16, 8, 6

GROWING = """
<ir_version: 8, opset_import: ["" : 17]>
layer (float[1, S, 8] x, float[1, P, 8] past) => (float[1, S, 8] y, float[1, T, 8] present)
{
    present = Concat <axis = 1> (past, x)
    keys = Transpose <perm = [0, 2, 1]> (present)
    scores = MatMul (x, keys)
    weights = Softmax <axis = -1> (scores)
    y = MatMul (weights, present)
}
"""

#: A run for each row of the file ``rows``; ``INIT`` sets the program to the length, ``AT`` is the input of positions.
APPENDS = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
int main(void) {
  static float past[CAPACITY * WIDTH], row[WIDTH], y[CAPACITY * WIDTH];
  int64_t length;
  int code = 0;
  void *memory = NULL;
  model_program self;
  FILE *rows = fopen("rows", "rb"), *out = fopen("out", "wb");
  if (!rows || !out) return 9;
  for (length = 0; length < STEPS; ++length) {
    if (fread(row, sizeof row, 1, rows) != 1) return 9;
#ifdef GROWS
    const model_sizes sizes = {length};
    const size_t bytes = (size_t)model_memory_bytes(&sizes);
    free(memory);
    memory = aligned_alloc(MODEL_MEMORY_ALIGNMENT,
                           (bytes + MODEL_MEMORY_ALIGNMENT) / MODEL_MEMORY_ALIGNMENT * MODEL_MEMORY_ALIGNMENT);
    code |= model_init(&self, &sizes, memory, bytes);
    code |= model_set_input(&self, MODEL_INPUT_P, &length);
    code |= model_set_output(&self, MODEL_OUTPUT_Y, y);
#else
    if (!memory) {
      memory = aligned_alloc(MODEL_MEMORY_ALIGNMENT, MODEL_MEMORY_BYTES + MODEL_MEMORY_ALIGNMENT -
                                                         MODEL_MEMORY_BYTES % MODEL_MEMORY_ALIGNMENT);
      code |= model_init(&self, memory, MODEL_MEMORY_BYTES);
    }
    code |= model_set_input(&self, MODEL_INPUT_AT, &length);
#endif
    code |= model_set_input(&self, MODEL_INPUT_X, row);
    code |= model_set_input(&self, MODEL_INPUT_PAST, past);
    code |= model_set_output(&self, MODEL_OUTPUT_PRESENT, past);
    code |= model_run(&self);
    if (code) return code;
    fwrite(past, sizeof past, 1, out);
    fwrite(y, sizeof row, 1, out);
  }
  free(memory);
  return fclose(rows) | fclose(out);
}
"""

#: A run at a length that does not fit, with bytes before and behind the buffer that must stay.
BEYOND = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
int main(int argc, char **argv) {
  static float memory_of_past[3 * CAPACITY * WIDTH], row[WIDTH], y[WIDTH];
  float *past = memory_of_past + CAPACITY * WIDTH;
  const int64_t length = argc > 1 ? atol(argv[1]) : 0;
  const int64_t given = argc > 2 ? atol(argv[2]) : length;
  const model_sizes sizes = {length};
  model_program self;
  size_t bytes, i;
  void *memory;
  int code = model_check_sizes(&sizes);
  for (i = 0; i < WIDTH; ++i) row[i] = 1;
  if (code) return puts("refused"), 0;
  bytes = (size_t)model_memory_bytes(&sizes);
  memory = aligned_alloc(MODEL_MEMORY_ALIGNMENT,
                         (bytes + MODEL_MEMORY_ALIGNMENT) / MODEL_MEMORY_ALIGNMENT * MODEL_MEMORY_ALIGNMENT);
  code |= model_init(&self, &sizes, memory, bytes);
  code |= model_set_input(&self, MODEL_INPUT_P, &given) | model_set_input(&self, MODEL_INPUT_X, row);
  code |= model_set_input(&self, MODEL_INPUT_PAST, past) | model_set_output(&self, MODEL_OUTPUT_PRESENT, past);
  code |= model_set_output(&self, MODEL_OUTPUT_Y, y);
  code |= model_run(&self);
  for (i = 0; i < CAPACITY * WIDTH; ++i) code |= memory_of_past[i] != 0 || past[CAPACITY * WIDTH + i] != 0;
  for (i = 0; i < CAPACITY * WIDTH; ++i) code |= past[i] != (float)((int64_t)(i / WIDTH) == length);
  free(memory);
  puts("ran");
  return code;
}
"""

#: A run for each three samples of the file ``rows``, in memory that holds a few more than the window.
SLIDES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"
#define WINDOW (MODEL_INPUT_CACHE_IN_BYTES / sizeof(float))
int main(void) {
  static float memory_of_state[WINDOW + 5 * MODEL_INPUT_CACHE_IN_SLIDE], row[24], y[24];
  static _Alignas(MODEL_MEMORY_ALIGNMENT) unsigned char memory[MODEL_MEMORY_BYTES];
  float *window = memory_of_state, *end = memory_of_state + sizeof memory_of_state / sizeof(float);
  model_program self;
  FILE *rows = fopen("rows", "rb"), *out = fopen("out", "wb");
  int code = !rows || !out ? 9 : model_init(&self, memory, sizeof memory);
  while (!code && fread(row, sizeof row, 1, rows) == 1) {
    code |= model_set_input(&self, MODEL_INPUT_X, row) | model_set_output(&self, MODEL_OUTPUT_Y, y);
    code |= model_set_input(&self, MODEL_INPUT_CACHE_IN, window);
    code |= model_set_output(&self, MODEL_OUTPUT_CACHE_OUT, window);
    code |= model_run(&self);
    fwrite(y, sizeof y, 1, out);
    window += MODEL_INPUT_CACHE_IN_SLIDE;
    if (window + WINDOW > end) {
      memmove(memory_of_state, window, (WINDOW - MODEL_INPUT_CACHE_IN_SLIDE) * sizeof(float));
      window = memory_of_state;
    }
  }
  return code ? code : fclose(rows) | fclose(out);
}
"""


def run(executable: lb.Executable, rows: np.ndarray, folder: Path, *flags: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns past, [STEPS, CAPACITY, WIDTH], and y, [STEPS, WIDTH], after each step of the C program."""
    export_c(executable, folder, "model")
    rows.tofile(folder / "rows")
    sizes = [f"-D{name}={value}" for name, value in {"CAPACITY": CAPACITY, "WIDTH": WIDTH, "STEPS": STEPS}.items()]
    build(folder, *sizes, *flags, source=APPENDS)
    done = subprocess.run(["./run"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = np.fromfile(folder / "out", np.float32).reshape(STEPS, CAPACITY + 1, WIDTH)
    return found[:, :CAPACITY], found[:, CAPACITY]


def rows_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((STEPS, WIDTH)).astype(np.float32)


def test_a_cache_that_grows_takes_its_length_as_a_size_and_as_an_input(tmp_path: Path) -> None:
    shapes = {"x": (1, 1, WIDTH), "past": (1, CAPACITY, WIDTH)}
    executable = lb.compile(onnx.parser.parse_model(GROWING), alias="auto", shapes=shapes)
    rows, session = rows_of(4), lb.Session(executable, num_threads=1)
    state = session.bind_state()
    past, y = run(executable, rows, tmp_path, "-DGROWS")
    header = (tmp_path / "model.h").read_text()
    assert "Output 1 may be set to the address of input 1" in header
    assert header.count("Elements of input") == header.count("Elements of input 2 are dimensions") == 1
    for number, row in enumerate(rows):
        (expected,) = session(row.reshape(1, 1, WIDTH))
        assert y[number].tobytes() == np.asarray(expected).tobytes()
        assert past[number].tobytes() == np.asarray(state.tensors["past"]).tobytes()
        assert not past[number, number + 1 :].any(), "a step writes its row, and none behind"
    assert state.length == STEPS


def test_rows_of_a_scatter_are_written_where_they_belong(tmp_path: Path) -> None:
    sides = [
        helper.make_tensor_value_info("past", TensorProto.FLOAT, (CAPACITY, WIDTH)),
        helper.make_tensor_value_info("at", TensorProto.INT64, (1, 1)),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, WIDTH)),
        helper.make_tensor_value_info("present", TensorProto.FLOAT, (CAPACITY, WIDTH)),
    ]
    put = helper.make_node("ScatterND", ["past", "at", "x"], ["present"])
    graph = helper.make_graph([put], "append", sides[:3], sides[3:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    rows, expected = rows_of(5), np.zeros((CAPACITY, WIDTH), np.float32)
    past, _ = run(lb.compile(model), rows, tmp_path)
    for number, row in enumerate(rows):
        expected[number] = row
        np.testing.assert_array_equal(past[number], expected)


def test_a_length_that_does_not_fit_writes_nothing_outside_the_buffer(tmp_path: Path) -> None:
    shapes = {"x": (1, 1, WIDTH), "past": (1, CAPACITY, WIDTH)}
    executable = lb.compile(onnx.parser.parse_model(GROWING), alias="auto", shapes=shapes)
    export_c(executable, tmp_path, "model")
    build(tmp_path, f"-DCAPACITY={CAPACITY}", f"-DWIDTH={WIDTH}", source=BEYOND)
    for length in (0, CAPACITY - 1):
        assert outcome(tmp_path, length) == "ran"
    for length in (CAPACITY, CAPACITY + 5, -1, -9, 1 << 40):
        assert outcome(tmp_path, length) == "refused"
    for given in (CAPACITY, CAPACITY + 5, -1, -9):  # the size decides, and not the input beside it
        assert outcome(tmp_path, 3, given) == "ran"


def outcome(folder: Path, *lengths: int) -> str:
    """Returns what the program says of a length as a size, and another as an input; the guards must be as before."""
    done = subprocess.run(["./run", *map(str, lengths)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (lengths, done.stderr)
    return done.stdout.strip()


def test_a_window_of_a_stream_slides_through_memory_of_the_application(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    weights = ", ".join(f"{number:.3f}" for number in rng.standard_normal(320))
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        stream (float[1,8,3] x, float[1,8,4] cache_in) => (float[1,8,3] y, float[1,8,4] cache_out)
        <float[8,8,5] w = {{{weights}}}, int64[2] parts = {{3, 4}}> {{
            all = Concat<axis = 2>(cache_in, x)
            y = Conv(all, w)
            rest, cache_out = Split<axis = 2>(all, parts)
        }}""")
    executable = lb.compile(model, alias="auto")
    rows = rng.standard_normal((23, 1, 8, 3)).astype(np.float32)
    rows.tofile(tmp_path / "rows")
    export_c(executable, tmp_path, "model")
    build(tmp_path, source=SLIDES)
    done = subprocess.run(["./run"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    session = lb.Session(executable, num_threads=1)
    session.bind_state()
    expected = [np.array(session(row)[0]) for row in rows]
    assert (tmp_path / "out").read_bytes() == np.concatenate(expected).tobytes()
    header = (tmp_path / "model.h").read_text()
    assert "reads the first 4 of 7 along axis 2" in header and header.count("_SLIDE 3") == 1
