"""What applications in C do with exported programs: several at once, quantized ones, mistakes; against onnxruntime."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.errors import OutputFileError
from landbridge.executable.c_export import export_c
from landbridge.files import output_file
from tests.executable.test_c_export import LINKED, run_in_c
from tests.selection.installed import program
from tests.whole_models.small_models import edges

Array = np.ndarray[Any, Any]

QUANTIZED = """<ir_version: 8, opset_import: ["": 17]>
g (uint8[2, 24] a, int8[24, 17] b, float[2, 17] c, bool[2, 1] m) => (float[2, 17] y, int32[2, 17] p, uint8[2, 17] q) {
    za = Constant<value = uint8 {7}>() zb = Constant<value = int8 {-3}>()
    s = Constant<value = float {0.02}>() zq = Constant<value = uint8 {128}>()
    p = MatMulInteger(a, b, za, zb) f = Cast<to = 1>(p) t = Mul(f, s) u = Add(t, c) z = Neg(u)
    y = Where(m, u, z) q = QuantizeLinear(y, s, zq) }"""


def reference(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, feeds)]


def build(folder: Path, source: str, *flags: str) -> subprocess.CompletedProcess[str]:
    (folder / "main.c").write_text(source)
    strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-D_GNU_SOURCE"]
    command = [program("gcc", "debian"), *strict, *flags, "main.c", "-x", "none", "libmodel.a", *LINKED]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("separate", [False, True], ids=["inside", "separate"])
def test_several_inputs_and_outputs_of_bytes(separate: bool, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(QUANTIZED)
    r = np.random.default_rng(1)
    feeds: dict[str, Array] = {
        "a": r.integers(0, 256, (2, 24), np.uint8),
        "b": r.integers(-128, 128, (24, 17), np.int8),
        "c": r.normal(size=(2, 17)).astype(np.float32),
        "m": np.array([[True], [False]]),
    }
    executable = lb.compile(model)
    y, p, q = run_in_c(executable, [feeds[spec.name] for spec in executable.main.inputs], tmp_path, separate=separate)
    wanted_y, wanted_p, wanted_q = reference(model, feeds)
    assert p.tobytes() == wanted_p.tobytes()
    # A product and a sum, rounded each or once: sums of 24 products of bytes, by 0.02, are below 16384.
    np.testing.assert_allclose(y, wanted_y, rtol=0, atol=2 * 2**-24 * 16384)
    assert np.abs(q.astype(int) - wanted_q.astype(int)).max() <= 1  # where that is next to a half


TWO_THREADS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
enum { RUNS = 20, IN = 3 * 24 * 32 };
struct job { const float *in; float *out; int code; };
static void *work(void *given) {
  struct job *job = (struct job *)given;
  model_program p;
  int i, code;
  void *memory = aligned_alloc(MODEL_MEMORY_ALIGNMENT, (MODEL_MEMORY_BYTES / MODEL_MEMORY_ALIGNMENT + 1) *
                               MODEL_MEMORY_ALIGNMENT);
  code = model_init(&p, memory, MODEL_MEMORY_BYTES);
  if (!code) code = model_start_threads(&p, 2);
  if (!code) code = model_set_input(&p, 0, job->in) | model_set_output(&p, 0, job->out);
  for (i = 0; i < RUNS && !code; ++i) code = model_run(&p);
  model_stop_threads(&p);
  free(memory);
  job->code = code;
  return 0;
}
int main(void) {
  static float in[2 * IN], out[2 * OUT];
  struct job jobs[2];
  pthread_t threads[2];
  int i, code = fread(in, 1, sizeof in, stdin) != sizeof in;
  for (i = 0; i < 2; ++i) {
    jobs[i].in = in + i * IN, jobs[i].out = out + i * OUT;
    code |= pthread_create(&threads[i], 0, work, &jobs[i]);
  }
  for (i = 0; i < 2; ++i) pthread_join(threads[i], 0), code |= jobs[i].code;
  return code || fwrite(out, 1, sizeof out, stdout) != sizeof out;
}
"""


@pytest.mark.parametrize("flags", [("-std=c99", "-O2"), ("-x", "c++", "-O0")], ids=["c", "c++"])
def test_two_threads_with_a_program_and_threads_each(flags: tuple[str, ...], tmp_path: Path) -> None:
    model = edges(24, 32)
    x = np.random.default_rng(0).normal(size=(2, 1, 3, 24, 32)).astype(np.float32)
    wanted = [reference(model, {"x": each})[0] for each in x]
    export_c(lb.compile(model), tmp_path, "model")
    sanitizers = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-DOUT={wanted[0].size}")
    built = build(tmp_path, TWO_THREADS, *flags, *sanitizers)
    assert built.returncode == 0, built.stderr
    done = subprocess.run(["./run"], cwd=tmp_path, input=x.tobytes(), capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr
    found = np.frombuffer(done.stdout, np.float32).reshape(2, *wanted[0].shape)
    # Sums of 48 terms of about 2 in another order.
    np.testing.assert_allclose(found, np.stack(wanted), rtol=0, atol=1e-5)


def test_a_program_whose_init_failed_is_refused(tmp_path: Path) -> None:
    """Wherever it lies: what was there before is read by none."""
    export_c(lb.compile(edges(24, 32)), tmp_path, "model")
    source = """
        #include <stdio.h>
        #include "model.h"
        static float x[3 * 24 * 32];
        int main(void) {
          static unsigned char memory[64];
          model_program p;
          void *places[] = {0, memory + 1, memory};
          int i;
          for (i = 0; i < 3; ++i) {
            memset(&p, 0xa5, sizeof p);
            printf("%d: ", model_init(&p, places[i], 0));
            printf("%d ", model_set_input(&p, 0, x));
            printf("%d ", model_set_output(&p, 0, x));
            printf("%d ", model_run(&p));
            printf("%d\\n", model_start_threads(&p, 2));
            model_stop_threads(&p);
          }
          return 0;
        }
        """
    built = build(tmp_path, source, "-std=c99", "-fsanitize=address,undefined")
    assert built.returncode == 0, built.stderr
    done = subprocess.run(["./run"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n")[:3] == ["1: 1 1 1 1", "2: 1 1 1 1", "3: 1 1 1 1"], done.stderr


@pytest.mark.parametrize("target", ["raspberry-pi-4", "x86-64-v2"])
def test_a_header_for_another_instruction_set_says_so(target: str, tmp_path: Path) -> None:
    export_c(lb.compile(edges(24, 32), target), tmp_path, "model")
    isa = "aarch64" if target == "raspberry-pi-4" else "x86_64"
    built = build(tmp_path, '#include "model.h"\nint main(void) { return 0; }\n', f"-U__{isa}__")
    assert built.returncode and f"this program is code for {isa}" in built.stderr


def test_of_an_export_that_finds_no_space_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export_c(lb.compile(edges(24, 32)), tmp_path, "model")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    # A place that takes a few bytes and no library, as a full disk does.
    usual, files = output_file.open_output, [0]

    def full(*words: Any, **more: Any) -> Any:
        files[0] += 1
        return usual(*words, **more) if files[0] < 3 else usual(os.devnull + "/x", **more)

    monkeypatch.setattr(output_file, "open_output", full)
    with pytest.raises(OutputFileError):
        export_c(lb.compile(edges(48, 32)), tmp_path, "model")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_program_finds_the_shared_library_where_it_lies_then(tmp_path: Path) -> None:
    """Not where it lay when they were linked."""
    export_c(lb.compile(edges(24, 32)), tmp_path / "made", "model")
    (tmp_path / "main.c").write_text('#include "model.h"\nint main(void) { return model_init(0, 0, 0); }\n')
    command = [program("gcc", "debian"), "-Imade", "main.c", "made/libmodel.so", "-o", "run"]
    subprocess.run(command, cwd=tmp_path, check=True)
    (tmp_path / "made").rename(tmp_path / "board")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "board")}
    done = subprocess.run(["./run"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr  # it was told of a null pointer
