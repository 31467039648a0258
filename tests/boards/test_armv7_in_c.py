"""ARMv7 and C: exported programs, built by the cross compiler; packed functions; kernels that a C compiler made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import landbridge as lb
from landbridge.errors import CodegenError
from landbridge.executable.c_export import export_c
from landbridge.executable.instance import instance
from landbridge.executable.packed import PREFIX, PackedKernel, with_packed_functions
from landbridge.executable.parts import CodeImage, TensorSpec
from landbridge.executable.shared_library import shared_library
from tests.boards.board import ProgramRunner
from tests.boards.test_armv7 import _HEAD, A7, A9, SMALL, feeds_of
from tests.boards.test_models import check_equal
from tests.executable.test_c_export import HARNESS, LINKED, open_edges
from tests.selection.installed import program
from tests.whole_models.small_models import edges
from tests.whole_models.test_models import reference

#: Seconds that a program may take, emulated, on a busy machine.
LIMIT = 500
STRICT = ("-std=gnu11", "-Wall", "-Wextra", "-pedantic", "-Werror")
C_TARGET = "c -compiler=arm-linux-gnueabihf-gcc"


def gcc(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [program("arm-linux-gnueabihf-gcc", "boards"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def built(folder: Path, *arguments: str) -> None:
    done = gcc(folder, *STRICT, *arguments)
    assert done.returncode == 0, done.stderr


def emulated(folder: Path, cpu: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    libraries = ["-L", "/usr/arm-linux-gnueabihf", "-E", f"LD_LIBRARY_PATH={folder}"]
    command = [program("qemu-arm", "boards"), "-cpu", cpu, *libraries, "./run", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT)


@pytest.mark.parametrize("library", ["static", "shared"])
@pytest.mark.parametrize("code", [(), ("-marm",)], ids=["thumb", "arm"])
def test_an_exported_program(library: str, code: tuple[str, ...], tmp_path: Path) -> None:
    executable = lb.compile(edges(24, 32), A9)
    x = np.random.default_rng(0).normal(size=executable.main.inputs[0].shape).astype(np.float32)
    export_c(executable, tmp_path, "model", separate_weights=library == "shared")
    (tmp_path / "main.c").write_text(HARNESS)
    if library == "static":
        built(tmp_path, *code, "-static", "main.c", "libmodel.a", *LINKED)
    else:
        (tmp_path / "libmodel.a").unlink()
        built(tmp_path, *code, "-DAPART", "main.c", "-L.", "-lmodel", *LINKED)
    x.tofile(tmp_path / "in.0")
    (spec,) = executable.main.outputs
    done = emulated(tmp_path, "cortex-a9", x.nbytes, spec.nbytes)
    assert done.returncode == 0, done.stderr
    (wanted,) = lb.Session(lb.compile(edges(24, 32)))(x)
    # Sums in another order: 48 terms of about 2, each rounded.
    np.testing.assert_allclose(
        np.fromfile(tmp_path / "out.0", np.float32).reshape(spec.shape), np.asarray(wanted), rtol=0, atol=1e-5
    )


def test_open_dimensions(tmp_path: Path) -> None:
    executable = lb.compile(open_edges(), A9)
    export_c(executable, tmp_path, "model")
    (tmp_path / "main.c").write_text(HARNESS)
    here = lb.Session(lb.compile(open_edges()))
    for width in (1, 77):
        built(tmp_path, f"-DSIZES={width}", "-static", "main.c", "libmodel.a", *LINKED)
        x = np.random.default_rng(width).normal(size=(1, 3, 24, width)).astype(np.float32)
        x.tofile(tmp_path / "in.0")
        (spec,) = instance(executable, {"W": width}).main.outputs
        assert emulated(tmp_path, "cortex-a9", x.nbytes, spec.nbytes).returncode == 0
        found = np.fromfile(tmp_path / "out.0", np.float32).reshape(spec.shape)
        # Sums in another order: 48 terms of about 2, each rounded.
        np.testing.assert_allclose(found, np.asarray(here(x)[0]), rtol=0, atol=1e-5)


def test_a_cpu_without_the_features_runs_nothing(tmp_path: Path) -> None:
    export_c(lb.compile(edges(24, 32), A7), tmp_path, "model")
    (tmp_path / "main.c").write_text(
        '#include "model.h"\nint main(void) { return model_init((model_program[1]){0}, (void *)64, 0); }\n'
    )
    built(tmp_path, "-static", "main.c", "libmodel.a", *LINKED)
    assert emulated(tmp_path, "cortex-a9").returncode == 7, "it has neither vfpv4 nor idiva"
    assert emulated(tmp_path, "cortex-a7").returncode == 3, "it is told of too little memory"


def test_other_compilers_are_refused_by_the_header(tmp_path: Path) -> None:
    export_c(lb.compile(edges(24, 32), A9), tmp_path, "model")
    (tmp_path / "main.c").write_text('#include "model.h"\n')
    assert gcc(tmp_path, "-fsyntax-only", "main.c").returncode == 0
    refused = [gcc(tmp_path, "-fsyntax-only", "-mfloat-abi=softfp", "main.c").stderr]
    here = [program("gcc", "debian"), "-fsyntax-only", "main.c"]
    refused.append(subprocess.run(here, cwd=tmp_path, capture_output=True, text=True).stderr)
    for text in refused:
        assert "this program is code for armv7, and this compiler makes another" in text


#: Calls a packed function on two tensors of 32-bit addresses, and with one tensor too few.
PACKED = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
typedef struct {
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;
typedef struct {
  int32_t type_index;
  uint32_t zero;
  union {
    int64_t number;
    void *pointer;
  } value;
} TVMFFIAny;
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *text) { printf("%s: %s\n", kind, text); }
int main(void) {
  int32_t (*kernel)(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);
  float x[2 * 5], y[5];
  int64_t shape[2] = {1, 5};
  int i;
  void *library = dlopen("./kernels.so", RTLD_NOW);
  DLTensor tensors[2] = {{x, 1, 0, 2, 2, 32, 1, shape, 0, 5 * sizeof(float)}, {y, 1, 0, 2, 2, 32, 1, shape, 0, 0}};
  TVMFFIAny arguments[2] = {{7, 0, {0}}, {7, 0, {0}}}, result;
  if (!library) return puts(dlerror()), 1;
  *(void **)&kernel = dlsym(library, "__tvm_ffi_NAME");
  for (i = 0; i < 10; ++i) x[i] = (float)i;
  for (i = 0; i < 2; ++i) arguments[i].value.pointer = &tensors[i];
  printf("%d", (int)kernel(0, arguments, 2, &result));
  for (i = 0; i < 5; ++i) printf(" %g", y[i]);
  puts("");
  kernel(0, arguments, 1, &result);
  shape[1] = 4;
  kernel(0, arguments, 2, &result);
  return 0;
}
"""


def test_packed_functions(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"{_HEAD}(float[1,5] a) => (float[1,5] y) {{ y = Add(a, a) }}")
    executable = lb.compile(model, A9)
    image = executable.modules[0].image
    assert isinstance(image, CodeImage)
    (name,) = (symbol for symbol in image.symbols if not symbol.startswith("landbridge_"))
    spec = TensorSpec("", (1, 5), "float32")
    made = with_packed_functions(image, {name: PackedKernel(1, (spec, spec))})
    (tmp_path / "kernels.so").write_bytes(shared_library(made, [PREFIX + name]))
    (tmp_path / "main.c").write_text(PACKED.replace("NAME", name))
    done = gcc(tmp_path, "-std=gnu11", "-Wall", "-Werror", "-rdynamic", "main.c", "-ldl", "-o", "run")
    assert done.returncode == 0, done.stderr
    first, second, third = emulated(tmp_path, "cortex-a9").stdout.splitlines()
    assert first == "0 10 12 14 16 18"
    assert second == f"TypeError: kernel '{name}' takes 2 tensors, 1 were given"
    assert third == f"ValueError: kernel '{name}': operand 0 is float32[1, 5]; dimension 1 of this tensor is 4"


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("cpu", ["", "-mcpu=cortex-a9", "-mcpu=armv7-a+fp"], ids=["generic", "a9", "vfp"])
def test_kernels_of_a_c_compiler(on_armv7: ProgramRunner, name: str, cpu: str) -> None:
    program("arm-linux-gnueabihf-gcc", "boards")
    model = onnx.parser.parse_model(_HEAD + SMALL[name])
    feeds = feeds_of(model)
    compiled = lb.compile(model, f"{C_TARGET} {cpu}")
    image = compiled.modules[0].image
    assert isinstance(image, CodeImage) and image.isa == "armv7"
    assert ("neon" in image.features) == ("+fp" not in cpu)
    check_equal(on_armv7(compiled, feeds, threads=2), reference(model.SerializeToString()).run(None, feeds))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("-cflags=-mfloat-abi=softfp", "passes floats in integer registers, .*-compiler=arm-linux-gnueabihf-gcc"),
        ("-mcpu=armv6+fp", "profile none of version 6 of Arm's architecture, .*legal: -mcpu=armv7-a"),
    ],
)
def test_what_a_c_compiler_makes_is_checked(options: str, reason: str) -> None:
    program("arm-linux-gnueabihf-gcc", "boards")
    model = onnx.parser.parse_model(_HEAD + SMALL["product"])
    with pytest.raises(CodegenError, match=reason):
        lb.compile(model, f"{C_TARGET} {options}")


def test_code_is_a32_whatever_is_asked_for(on_armv7: ProgramRunner) -> None:
    program("arm-linux-gnueabihf-gcc", "boards")
    model = onnx.parser.parse_model(_HEAD + SMALL["window"])
    feeds = feeds_of(model)
    wanted = reference(model.SerializeToString()).run(None, feeds)
    check_equal(on_armv7(lb.compile(model, f"{C_TARGET} -cflags=-mthumb"), feeds), wanted)
