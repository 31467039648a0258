"""Programs exported for C, built by the system's compiler, give what a Session gives; others are refused."""

from __future__ import annotations

import os
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
from landbridge.executable.instance import instance
from landbridge.instruction_sets.aarch64 import features as features_aarch64
from landbridge.instruction_sets.aarch64.processor import hwcap_bits
from landbridge.instruction_sets.x86_64 import features as features_x86_64
from landbridge.instruction_sets.x86_64.processor import cpuid_bits
from landbridge.vm import host_cpu
from tests.frontend.loop_models import recurrence
from tests.selection.installed import program
from tests.whole_models.small_models import add, edges, projection

Array = np.ndarray[Any, Any]
LINKED = ("-lm", "-lpthread", "-ldl", "-o", "run")

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
#ifdef SIZES
  model_sizes sizes = {SIZES};
  size_t memory_bytes = (size_t)model_memory_bytes(&sizes);
#define SIZED &sizes,
#else
  size_t memory_bytes = MODEL_MEMORY_BYTES;
#define SIZED
#endif
  size_t units = (memory_bytes + MODEL_MEMORY_ALIGNMENT - 1) / MODEL_MEMORY_ALIGNMENT;
  void *memory = aligned_alloc(MODEL_MEMORY_ALIGNMENT, units * MODEL_MEMORY_ALIGNMENT);
#ifdef APART
  void *weights = aligned_alloc(64, (MODEL_WEIGHTS_BYTES + 63) / 64 * 64);
  FILE *file = fopen("model.weights", "rb");
  if (fread(weights, 1, MODEL_WEIGHTS_BYTES, file) != MODEL_WEIGHTS_BYTES) return 9;
  fclose(file);
  code = model_init(&self, SIZED memory, memory_bytes, weights, MODEL_WEIGHTS_BYTES);
#else
  code = model_init(&self, SIZED memory, memory_bytes);
#endif
  for (i = 0; i < io && argc > i + 1; ++i) {
#ifdef SIZES
    if ((uint64_t)atol(argv[i + 1]) != (i < MODEL_INPUTS ? model_input_bytes(&sizes, i)
                                                         : model_output_bytes(&sizes, i - MODEL_INPUTS))) return 10;
#endif
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
    executable: Executable, inputs: list[Array], folder: Path, *flags: str, separate: bool = False
) -> list[Array]:
    export_c(executable, folder, "model", separate_weights=separate)
    define = ["-DAPART"] if separate else []
    build(folder, *define, *flags)
    return run_built(executable, inputs, folder)


def build(folder: Path, *flags: str, source: str = HARNESS) -> None:
    (folder / "main.c").write_text(source)
    strict = [
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-D_GNU_SOURCE",
    ]
    link = ["libmodel.a", "-lm", "-lpthread", "-ldl"]
    command = [program("gcc", "debian"), *strict, *flags, "main.c", "-x", "none", *link, "-o", "run"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr


def run_built(executable: Executable, inputs: list[Array], folder: Path) -> list[Array]:
    for number, array in enumerate(inputs):
        array.tofile(folder / f"in.{number}")
    specs = executable.main.outputs
    sizes = [str(array.nbytes) for array in inputs] + [str(spec.nbytes) for spec in specs]
    done = subprocess.run(["./run", *sizes], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [np.fromfile(folder / f"out.{i}", spec.dtype).reshape(spec.shape) for i, spec in enumerate(specs)]


def check(executable: Executable, inputs: list[Array], folder: Path, *flags: str, separate: bool = False) -> None:
    wanted = lb.Session(executable, num_threads=1)(*inputs)
    for ours, theirs in zip(run_in_c(executable, inputs, folder, *flags, separate=separate), wanted, strict=True):
        assert ours.tobytes() == np.asarray(theirs).tobytes()


@pytest.mark.sample(2)
@pytest.mark.parametrize("separate", [False, True], ids=["inside", "separate"])
@pytest.mark.parametrize("flags", [("-std=c99",), ("-x", "c++", "-std=c++17")], ids=["c99", "c++"])
def test_convolutions(tmp_path: Path, flags: tuple[str, ...], separate: bool) -> None:
    x = np.random.default_rng(0).normal(size=(1, 3, 24, 32)).astype(np.float32)
    check(lb.compile(edges(24, 32)), [x], tmp_path, *flags, separate=separate)


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


def test_loops_are_the_records_of_their_trips(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 5), (2, 5), (60, 2, 5))]
    check(lb.compile(recurrence(60, back=1, row_back=1)), inputs, tmp_path)


def test_a_loop_of_as_many_trips_as_a_run_says_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExecutableError, match=r"loop 'scan' runs as often as the data or the sizes of a run say"):
        export_c(lb.compile(recurrence("T")), tmp_path, "model")


def test_weights_that_may_be_replaced_are_prepared_once(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    check(lb.compile(projection(8, 64, 32), mutable=["w"]), [x], tmp_path)


def test_from_a_file_with_code_of_the_c_compiler(tmp_path: Path) -> None:
    lb.compile(edges(24, 32), "c").save(tmp_path / "edges.lbx")
    x = np.random.default_rng(1).normal(size=(1, 3, 24, 32)).astype(np.float32)
    check(lb.load(tmp_path / "edges.lbx"), [x], tmp_path)


def open_edges() -> onnx.ModelProto:
    opened = onnx.ModelProto()
    opened.CopyFrom(edges(24, 32))
    opened.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "W"
    opened.graph.output[0].type.tensor_type.shape.dim[3].dim_param = "V"
    return opened


def softmax_of_products() -> onnx.ModelProto:
    """``y = softmax(x w + b)`` of N batches of M rows, with a dimension whose name is a word of C."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("int", "M 2", 16))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ("int", "M 2", 40))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"], axis=-1),
    ]
    r = np.random.default_rng(3)
    weights = [
        numpy_helper.from_array(r.normal(size=shape).astype(np.float32), n) for n, shape in [("w", (16, 40)), ("b", 40)]
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("model", "dims", "choices"),
    [
        (open_edges, {}, [{"W": 1}, {"W": 33}, {"W": 160}]),
        (open_edges, {"W": "16..256:16"}, [{"W": 16}, {"W": 240}]),
        (softmax_of_products, {}, [{"int": 1, "M_2": 7}, {"int": 3, "M_2": 50}]),
    ],
    ids=["width", "stated", "two"],
)
@pytest.mark.parametrize("separate", [False, True], ids=["inside", "separate"])
def test_open_dimensions(model: Any, dims: dict[str, str], choices: list[Any], separate: bool, tmp_path: Path) -> None:
    executable = lb.compile(model(), dims=dims)
    session = lb.Session(executable, num_threads=1)
    export_c(executable, tmp_path, "model", separate_weights=separate)
    for values in choices:
        sized = instance(executable, values)
        sizes = ", ".join(str(values[name]) for name in executable.dimensions)
        language = ("-x", "c++", "-std=c++17") if separate else ("-std=c99",)
        build(tmp_path, f"-DSIZES={sizes}", *(["-DAPART"] if separate else []), *language)
        shape = sized.main.inputs[0].shape
        x = np.random.default_rng(len(sizes)).normal(size=shape).astype(np.float32)
        (ours,) = run_built(sized, [x], tmp_path)
        assert ours.tobytes() == np.asarray(session(x)[0]).tobytes()


VARIANTS = """<ir_version: 8, opset_import: ["": 11]> g (float[N, 4] x) => (float[A, B] y) {
    w = Constant<value = float[4, 3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0}>()
    product = MatMul(x, w) fewer = Squeeze(product) square = MatMul(fewer, thin) y = Add(square, product) }"""


def variants() -> onnx.ModelProto:
    """Of one row an axis is dropped, and what follows goes another way."""
    model = onnx.parser.parse_model(VARIANTS)
    thin = np.arange(9, dtype=np.float32).reshape(3, 3)
    model.graph.initializer.append(numpy_helper.from_array(thin, "thin"))
    return model


def test_sizes_choose_among_variants(tmp_path: Path) -> None:
    executable = lb.compile(variants())
    assert len(executable.programs) == 2 and list(executable.dimensions) == ["N"]
    session = lb.Session(executable, num_threads=1)
    export_c(executable, tmp_path, "model")
    for rows in (1, 7, 2):
        build(tmp_path, f"-DSIZES={rows}")
        x = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
        (wanted,) = map(np.asarray, session(x))
        way = executable.program([*executable.programs][rows == 1])
        sized = instance(way, {"N": rows}) if way.is_open else way
        (ours,) = run_built(sized, [x], tmp_path)
        assert (ours.shape, ours.tobytes()) == (wanted.shape, wanted.tobytes())


def test_memory_is_that_of_all_variants() -> None:
    executable = lb.compile(variants())
    assert {report.program for report in executable.memory} == set(executable.programs)
    for name in executable.programs:
        planned = [report.planned_bytes for report in executable.memory if report.program == name]
        assert planned == [report.planned_bytes for report in executable.program(name).memory] and planned


EMPTY_VARIANTS = """<ir_version: 8, opset_import: ["": 18]> g (float[N, 4] x, int64[1] k) => (float[A, B] y) {
    axis = Constant<value_ints = [0]>() end = Constant<value_ints = [100]>() columns = Constant<value_ints = [1]>()
    w = Constant<value = float[4, 3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0}>()
    product = MatMul(x, w) most = ReduceMax(product, axis) total = ReduceSum(x, axis)
    both = Concat<axis = 1>(total, most) y = Slice(both, k, end, columns) }"""


def test_no_rows_go_a_way_of_their_own(tmp_path: Path) -> None:
    """As of no rows, whose maximum is computed by none."""
    executable = lb.compile(onnx.parser.parse_model(EMPTY_VARIANTS))
    assert len(executable.programs) == 2 and list(executable.dimensions) == ["N", "k"]
    session = lb.Session(executable, num_threads=1)
    export_c(executable, tmp_path, "model")
    for rows, begin in ((0, 2), (1, -3), (7, 0), (0, 0)):
        build(tmp_path, f"-DSIZES={rows}, {begin}")
        x, k = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32), np.array([begin])
        (wanted,) = map(np.asarray, session(x, k))
        way = executable.program([*executable.programs][rows == 0])
        sized = instance(way, {"N": rows, "k": begin} if rows else {"k": begin})
        (ours,) = run_built(sized, [x, k], tmp_path)
        assert (ours.shape, ours.tobytes()) == (wanted.shape, wanted.tobytes())


REFUSED = {
    "elements": (
        "(float[2, 3] x, int64 axis) => (float[2, 3] y) { y = CumSum(x, axis) }",
        "elements of input 'axis' choose among 4 programs; .* by constants= or --constant",
    ),
    "data": ("(float[3, 4] x) => (int64[2, M] y) { y = NonZero(x) }", "data decide sizes at 'y'.* cut the model there"),
    "read": (
        """(float[3] x) => (float[M] y) {
            m = ReduceMax<keepdims = 0>(x) n = Cast<to = 7>(m) o = Constant<value_int = 1>() s = Max(n, o)
            a = Constant<value_int = 0>() i = Range(a, s, o) y = Cast<to = 1>(i) }""",
        "data decide sizes at .* a C program has one segment",
    ),
    "numpy": ("(float[3, 3] x) => (float y) { y = Det(x) }", r"host:ai.onnx.Det.* take that operator out of the model"),
}


@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_c_alone_cannot_run_is_refused(name: str, tmp_path: Path) -> None:
    text, message = REFUSED[name]
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    with pytest.raises(ExecutableError, match=message):
        export_c(lb.compile(model), tmp_path, "model")
    assert not list(tmp_path.iterdir())


def test_dimensions_are_checked_and_may_be_chosen_again(tmp_path: Path) -> None:
    export_c(lb.compile(open_edges(), dims={"W": "16..256:16"}), tmp_path, "model")
    (tmp_path / "main.c").write_text(
        """
        #include <stdio.h>
        #include <stdlib.h>
        #include "model.h"
        int main(void) {
          model_program p;
          model_sizes sizes[] = {{16}, {15}, {24}, {272}, {-16}, {256}};
          uint64_t most = model_memory_bytes(&sizes[5]), i;
          void *memory = aligned_alloc(64, most / 64 * 64 + 64);
          float *x = (float *)calloc(3 * 24 * 256, 4), *y = (float *)calloc(16 * 24 * 256, 4);
          for (i = 0; i < 6; ++i) printf("%d ", model_init(&p, &sizes[i], memory, most));
          printf("%d ", model_init(&p, &sizes[5], memory, most - 1));
          printf("%d ", model_init(&p, 0, memory, most));
          for (i = 0; i < 2; ++i) {
            const model_sizes *s = &sizes[i ? 0 : 5];
            printf("%d ", model_init(&p, s, memory, most));
            model_set_input(&p, 0, x), model_set_output(&p, 0, y);
            printf("%d %d ", model_run(&p), (int)model_output_extent(s, 0, 3));
          }
          free(memory), free(x), free(y);
          return 0;
        }
        """
    )
    command = [program("gcc", "debian"), "-std=c11", "-fsanitize=address,undefined", "main.c", "libmodel.a", *LINKED]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./run"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "0 8 8 8 8 0 3 1 0 0 256 0 0 16 ", done.stderr


def test_a_cpu_without_the_features_is_refused(tmp_path: Path) -> None:
    export_c(lb.compile(edges(24, 32), "x86-64-v4"), tmp_path, "model")
    header = (tmp_path / "model.h").read_text()
    (tmp_path / "model.h").write_text(header.replace("__get_cpuid_count(", "fewer("))
    (tmp_path / "main.c").write_text(
        """
        #include <cpuid.h>
        static unsigned leaf, reg, gone;
        static int fewer(unsigned l, unsigned part, unsigned *a, unsigned *b, unsigned *c, unsigned *d) {
          unsigned *all[] = {a, b, c, d};
          int known = __get_cpuid_count(l, part, a, b, c, d);
          *a = *b = *c = *d = ~0u;
          if (l == leaf) *all[reg] &= ~gone;
          return known;
        }
        #include <stdio.h>
        #include "model.h"
        int main(void) {
          printf("%d ", model_check_cpu());
          leaf = 7, reg = 1, gone = 1u << 16, printf("%d ", model_check_cpu());  /* avx512f */
          leaf = 1, reg = 2, gone = 1u << 27, printf("%d ", model_check_cpu());  /* osxsave */
          leaf = 1, reg = 2, gone = 1u << 0, printf("%d ", model_check_cpu());   /* sse3 */
          leaf = 7, reg = 3, gone = 1u << 23, printf("%d\\n", model_check_cpu()); /* avx512_fp16, which is not asked */
          return 0;
        }
        """
    )
    command = [program("gcc", "debian"), "-std=c11", "main.c", "libmodel.a", *LINKED]
    subprocess.run(command, cwd=tmp_path, check=True)
    wide = {"avx512f", "avx512vl"} <= host_cpu.features()
    wanted = "0 7 7 7 0" if wide else "7 7 7 7 7"  # the register that says what is saved is this CPU's own
    assert subprocess.run(["./run"], cwd=tmp_path, capture_output=True, text=True).stdout.strip() == wanted


def test_every_feature_of_code_can_be_looked_for() -> None:
    for name in features_x86_64.FLAGS.values():
        assert sum(bits.bit_count() for bits in cpuid_bits([name]).values()) in (1, 2), name
    for name in features_aarch64.FLAGS.values():
        assert hwcap_bits(16, [name]) or hwcap_bits(26, [name]), name


def test_every_feature_that_this_machine_has_is_found(tmp_path: Path) -> None:
    if host_cpu.isa() != "x86_64":
        pytest.skip("CPUID is of x86-64")
    rows = {name: cpuid_bits([name]) for name in features_x86_64.FLAGS.values()}
    tests = "".join(
        f"{{unsigned r[4] = {{0}}; __get_cpuid_count({leaf}u, {part}, r, r + 1, r + 2, r + 3);"
        f' if ((r[{register}] & {bits}u) == {bits}u) puts("{name}");}}\n'
        for name, found in rows.items()
        for (leaf, part, register), bits in [max(found.items())]
    )
    (tmp_path / "main.c").write_text(f"#include <cpuid.h>\n#include <stdio.h>\nint main(void) {{\n{tests}return 0;}}\n")
    subprocess.run([program("gcc", "debian"), "main.c", "-o", "run"], cwd=tmp_path, check=True)
    found = subprocess.run(["./run"], cwd=tmp_path, capture_output=True, text=True).stdout.split()
    assert set(found) == set(rows) & host_cpu.features()


def test_weights_are_neither_written_nor_executed(tmp_path: Path) -> None:
    export_c(lb.compile(projection(8, 64, 32)), tmp_path, "model")
    (tmp_path / "main.c").write_text(
        """
        #include <stdio.h>
        #include <string.h>
        #include "model.h"
        int main(void) {
          char line[512], rights[8];
          unsigned long begin, end, at = (unsigned long)model_weights();
          FILE *maps = fopen("/proc/self/maps", "r");
          while (fgets(line, sizeof line, maps))
            if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) == 3 && begin <= at && at < end) puts(rights);
          return 0;
        }
        """
    )
    for library in ("libmodel.a", "./libmodel.so"):
        command = [program("gcc", "debian"), "-std=gnu11", "main.c", library, *LINKED]
        subprocess.run(command, cwd=tmp_path, check=True)
        found = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
        done = subprocess.run(["./run"], cwd=tmp_path, env=found, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("r--p\n", ""), library


def test_each_tensor_has_constants_of_its_own(tmp_path: Path) -> None:
    names = ["a_2", "a", "A", "a_bytes", "a alignment", "a-", "b_ALIGNMENT", "b", "..", "1"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1 + n,)) for n, name in enumerate(names)]
    outputs = [helper.make_tensor_value_info(f"{name} y", TensorProto.FLOAT, (1 + n,)) for n, name in enumerate(names)]
    nodes = [helper.make_node("Exp", [name], [f"{name} y"]) for name in names]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    export_c(lb.compile(model), tmp_path, "model")
    lines = [line.split() for line in (tmp_path / "model.h").read_text().splitlines() if line.startswith("#define")]
    defined = [line[1] for line in lines]
    assert len(set(defined)) == len(defined) and sum(each.endswith("_BYTES") for each in defined) >= 2 * len(names) + 2


IN_PLACE = """
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  static float state[24], row[4] = {1, 2, 3, 4};
  int64_t at[1] = {5};
  int i;
  model_program self;
  size_t units = MODEL_MEMORY_BYTES / MODEL_MEMORY_ALIGNMENT + 1;
  void *memory = aligned_alloc(MODEL_MEMORY_ALIGNMENT, units * MODEL_MEMORY_ALIGNMENT);
  if (model_init(&self, memory, MODEL_MEMORY_BYTES)) return 1;
  if (model_set_input(&self, 0, state) || model_set_input(&self, 1, at) || model_set_input(&self, 2, row)) return 2;
  if (model_set_output(&self, 0, state) || model_run(&self)) return 3;
  at[0] = 2;
  row[0] = 9;
  if (model_run(&self)) return 4;
  for (i = 0; i < 24; ++i) printf("%g ", state[i]);
  free(memory);
  return 0;
}
"""


def test_an_output_in_the_memory_of_an_input(tmp_path: Path) -> None:
    kinds = {"c": (TensorProto.FLOAT, (6, 4)), "at": (TensorProto.INT64, (1, 1)), "row": (TensorProto.FLOAT, (1, 4))}
    inputs = [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()]
    outputs = [helper.make_tensor_value_info("y", *kinds["c"])]
    graph = helper.make_graph([helper.make_node("ScatterND", list(kinds), ["y"])], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    export_c(lb.compile(model), tmp_path, "model")
    assert "Output 0 may be set to the address of input 0" in (tmp_path / "model.h").read_text()
    build(tmp_path, source=IN_PLACE)
    done = subprocess.run(["./run"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = np.zeros((6, 4))
    expected[5], expected[2] = [1, 2, 3, 4], [9, 2, 3, 4]
    np.testing.assert_array_equal(np.array(done.stdout.split(), float).reshape(6, 4), expected)


def test_every_mistake_has_its_code(tmp_path: Path) -> None:
    export_c(lb.compile(add()), tmp_path, "model", separate_weights=True)
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
          printf("%d %d ", model_set_input(&p, 0, 0), model_set_input(&p, 0, memory + 2));
          printf("%d ", model_set_output(&p, 0, memory + 1));
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
    assert (
        subprocess.run(["./run"], cwd=tmp_path, capture_output=True, text=True).stdout == "1 2 3 1 0 4 4 1 2 2 5 6 0 6"
    )


def test_what_c_cannot_run_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lower-case letter"):
        export_c(lb.compile(add()), tmp_path, "2D model")
    indices = numpy_helper.from_array(np.arange(8, dtype=np.float32), "table")
    x = helper.make_tensor_value_info("x", TensorProto.INT64, (2,))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2,))
    graph = helper.make_graph([helper.make_node("Gather", ["table", "x"], ["y"])], "gather", [x], [y], [indices])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(ExecutableError, match=r"Python does \(landbridge.check_indices\)"):
        export_c(lb.compile(model, check_indices=True), tmp_path, "model")
    assert not list(tmp_path.iterdir())


def test_inputs_in_rows_are_refused(tmp_path: Path) -> None:
    target = lb.Target.from_device(lb.device("sim:scratch"), "llvm")
    executable = lb.compile(add(), {"npu": target}, place={"x": "npu@global.pitched[1]"})
    with pytest.raises(ExecutableError, match=r"'x' is in rows, and a C program takes flat memory"):
        export_c(executable, tmp_path, "rows")
