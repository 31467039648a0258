"""Programs exported for C, built by the system's compiler, give what a Session gives; others are refused."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import ExecutableError, InputError
from landbridge.executable.c_export import export_c
from landbridge.executable.executable import Executable
from tests.selection.installed import program
from tests.whole_models.small_models import add, edges, projection

Array = np.ndarray[Any, Any]

#: Reads the bytes of each input from a file, in.0 on, and writes those of each output; sizes are given.
HARNESS = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
static void *bytes_of(const char *name, int number, size_t size) {
  char path[32];
  FILE *file;
  void *memory = calloc(1, size + 1);
  snprintf(path, sizeof path, "%s.%d", name, number);
  if ((file = fopen(path, "rb")) && fread(memory, 1, size, file) < size) exit(9);
  if (file) fclose(file);
  return memory;
}
int main(int argc, char **argv) {
  model_program self;
  int i, code, io = MODEL_INPUTS + MODEL_OUTPUTS;
  void **places = (void **)calloc(io, sizeof(void *));
  size_t units = MODEL_MEMORY_BYTES / MODEL_MEMORY_ALIGNMENT + 1;
  void *memory = aligned_alloc(MODEL_MEMORY_ALIGNMENT, units * MODEL_MEMORY_ALIGNMENT);
#ifdef APART
  void *weights = aligned_alloc(64, (MODEL_WEIGHTS_BYTES + 63) / 64 * 64);
  FILE *file = fopen("model.weights", "rb");
  if (fread(weights, 1, MODEL_WEIGHTS_BYTES, file) != MODEL_WEIGHTS_BYTES) return 9;
  fclose(file);
  code = model_init(&self, memory, MODEL_MEMORY_BYTES, weights, MODEL_WEIGHTS_BYTES);
#else
  code = model_init(&self, memory, MODEL_MEMORY_BYTES);
#endif
  for (i = 0; i < io && argc > i + 1; ++i) {
    places[i] = bytes_of("in", i, (size_t)atol(argv[i + 1]));
    code |= i < MODEL_INPUTS ? model_set_input(&self, i, places[i])
                             : model_set_output(&self, i - MODEL_INPUTS, places[i]);
  }
  code |= model_start_threads(&self, 2);
  code |= model_run(&self);
  code |= model_run(&self);
  model_stop_threads(&self);
  for (i = MODEL_INPUTS; i < io; ++i) {
    char path[32];
    FILE *out;
    snprintf(path, sizeof path, "out.%d", i - MODEL_INPUTS);
    out = fopen(path, "wb");
    fwrite(places[i], 1, (size_t)atol(argv[i + 1]), out);
    fclose(out);
  }
  for (i = 0; i < io; ++i) free(places[i]);
  free(places), free(memory);
#ifdef APART
  free(weights);
#endif
  return code;
}
"""


def run_in_c(
    executable: Executable, inputs: list[Array], folder: Path, *flags: str, apart: bool = False
) -> list[Array]:
    export_c(executable, folder, "model", weights_apart=apart)
    (folder / "main.c").write_text(HARNESS)
    define = ["-DAPART"] if apart else []
    strict = [
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-D_GNU_SOURCE",
    ]
    link = ["libmodel.a", "-lm", "-lpthread", "-ldl"]
    command = [program("gcc", "debian"), *strict, *define, *flags, "main.c", "-x", "none", *link, "-o", "run"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    for number, array in enumerate(inputs):
        array.tofile(folder / f"in.{number}")
    specs = executable.main.outputs
    sizes = [str(array.nbytes) for array in inputs] + [str(spec.nbytes) for spec in specs]
    done = subprocess.run(["./run", *sizes], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [np.fromfile(folder / f"out.{i}", spec.dtype).reshape(spec.shape) for i, spec in enumerate(specs)]


def check(executable: Executable, inputs: list[Array], folder: Path, *flags: str, apart: bool = False) -> None:
    wanted = lb.Session(executable, num_threads=1)(*inputs)
    for ours, theirs in zip(run_in_c(executable, inputs, folder, *flags, apart=apart), wanted, strict=True):
        assert ours.tobytes() == np.asarray(theirs).tobytes()


@pytest.mark.parametrize("apart", [False, True], ids=["inside", "apart"])
@pytest.mark.parametrize("flags", [("-std=c99",), ("-x", "c++", "-std=c++17")], ids=["c99", "c++"])
def test_convolutions(tmp_path: Path, flags: tuple[str, ...], apart: bool) -> None:
    x = np.random.default_rng(0).normal(size=(1, 3, 24, 32)).astype(np.float32)
    check(lb.compile(edges(24, 32)), [x], tmp_path, *flags, apart=apart)


@pytest.mark.parametrize("taken", [True, False])
def test_branches(tmp_path: Path, taken: bool) -> None:
    branches = {}
    for name, op in (("then_branch", "Exp"), ("else_branch", "Neg")):
        out = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, (4,))
        branches[name] = helper.make_graph([helper.make_node(op, ["x"], [f"{name}_y"])], name, [], [out])
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, ())
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (4,)) for name in "xy")
    graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], **branches)], "branches", [c, x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    inputs = {"c": np.array(taken), "x": np.arange(4, dtype=np.float32)}
    executable = lb.compile(model)
    check(executable, [inputs[spec.name] for spec in executable.main.inputs], tmp_path)


def test_weights_that_may_be_replaced_are_prepared_once(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    check(lb.compile(projection(8, 64, 32), mutable=["w"]), [x], tmp_path)


def test_from_a_file_with_code_of_the_c_compiler(tmp_path: Path) -> None:
    lb.compile(edges(24, 32), "c").save(tmp_path / "edges.lbx")
    x = np.random.default_rng(1).normal(size=(1, 3, 24, 32)).astype(np.float32)
    check(lb.load(tmp_path / "edges.lbx"), [x], tmp_path)


def test_every_mistake_has_its_code(tmp_path: Path) -> None:
    export_c(lb.compile(add()), tmp_path, "model", weights_apart=True)
    (tmp_path / "main.c").write_text(
        """
        #include <stdio.h>
        #include "model.h"
        static _Alignas(64) unsigned char memory[MODEL_MEMORY_BYTES + 64];
        int main(void) {
          model_program p;
          printf("%d ", model_init(0, memory, sizeof memory, memory, 1 << 20));
          printf("%d ", model_init(&p, memory + 1, sizeof memory, memory, 1 << 20));
          printf("%d ", model_init(&p, memory, MODEL_MEMORY_BYTES - 1, memory, 1 << 20));
          printf("%d ", model_init(&p, memory, sizeof memory, 0, 0));
          printf("%d ", model_init(&p, memory, sizeof memory, memory, 1 << 20));
          printf("%d %d ", model_set_input(&p, MODEL_INPUTS, memory), model_set_output(&p, -1, memory));
          printf("%d ", model_set_input(&p, 0, 0));
          printf("%d ", model_run(&p));
          printf("%d %d ", model_start_threads(&p, 0), model_start_threads(&p, 2));
          printf("%d", model_start_threads(&p, 2));
          model_stop_threads(&p);
          return 0;
        }
        """
    )
    command = [program("gcc", "debian"), "-std=c11", "main.c", "libmodel.a", "-lm", "-lpthread", "-ldl", "-o", "run"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run(["./run"], cwd=tmp_path, capture_output=True, text=True).stdout == "1 2 3 1 0 4 4 1 5 6 0 6"


def test_what_c_cannot_run_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lower-case letter"):
        export_c(lb.compile(add()), tmp_path, "2D model")
    opened = onnx.ModelProto()
    opened.CopyFrom(edges(24, 32))
    opened.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "W"
    opened.graph.output[0].type.tensor_type.shape.dim[3].dim_param = "V"
    with pytest.raises(ExecutableError, match="dimensions W are open"):
        export_c(lb.compile(opened), tmp_path, "model")
    indices = numpy_helper.from_array(np.arange(8, dtype=np.float32), "table")
    x = helper.make_tensor_value_info("x", TensorProto.INT64, (2,))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2,))
    graph = helper.make_graph([helper.make_node("Gather", ["table", "x"], ["y"])], "gather", [x], [y], [indices])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(ExecutableError, match=r"Python does \(landbridge.check_indices\)"):
        export_c(lb.compile(model, check_indices=True), tmp_path, "model")
    assert not list(tmp_path.iterdir())
