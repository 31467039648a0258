"""Programs exported for C, built by the cross compiler and run on the board: open dimensions, and what a CPU lacks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

import landbridge as lb
from landbridge.executable.c_export import export_c
from landbridge.executable.instance import instance
from tests.executable.test_c_export import HARNESS, LINKED, open_edges
from tests.selection.installed import program
from tests.whole_models.small_models import projection

#: Seconds that a program may take, emulated, on a busy machine.
LIMIT = 500


def build(folder: Path, *flags: str) -> None:
    (folder / "main.c").write_text(HARNESS)
    command = [
        program("aarch64-linux-gnu-gcc", "boards"),
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        "-static",
        *flags,
        "main.c",
        "libmodel.a",
        *LINKED,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(folder: Path, cpu: str, *sizes: int) -> int:
    command = [program("qemu-aarch64", "boards"), "-cpu", cpu, "./run", *map(str, sizes)]
    return subprocess.run(command, cwd=folder, timeout=LIMIT).returncode


def test_open_dimensions(tmp_path: Path) -> None:
    executable = lb.compile(open_edges(), "raspberry-pi-4")
    export_c(executable, tmp_path, "model")
    here = lb.Session(lb.compile(open_edges()))
    for width in (1, 77):
        build(tmp_path, f"-DSIZES={width}")
        x = np.random.default_rng(width).normal(size=(1, 3, 24, width)).astype(np.float32)
        x.tofile(tmp_path / "in.0")
        (spec,) = instance(executable, {"W": width}).main.outputs
        assert run(tmp_path, "cortex-a72", x.nbytes, spec.nbytes) == 0
        found = np.fromfile(tmp_path / "out.0", np.float32).reshape(spec.shape)
        # Sums in another order: 48 terms of about 2, each rounded.
        np.testing.assert_allclose(found, np.asarray(here(x)[0]), rtol=0, atol=1e-5)


def test_a_cpu_without_the_features_is_reported_and_runs_nothing(tmp_path: Path) -> None:
    export_c(lb.compile(open_edges(), "raspberry-pi-5"), tmp_path, "model")
    (tmp_path / "main.c").write_text(
        '#include "model.h"\nint main(void) { return model_init((model_program[1]){0}, 0, (void *)64, 0); }\n'
    )
    command = [program("aarch64-linux-gnu-gcc", "boards"), "-std=gnu11", "-static", "main.c", "libmodel.a", *LINKED]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert run(tmp_path, "cortex-a72") == 7, "it has no asimddp"
    assert run(tmp_path, "max") == 1, "it is told of what is null"


def test_several_programs_in_one(tmp_path: Path) -> None:
    """Each with names and memory of its own."""
    executable = lb.compile(projection(), "raspberry-pi-4")
    x = np.random.default_rng(0).normal(size=executable.main.inputs[0].shape).astype(np.float32)
    (wanted,) = lb.Session(lb.compile(projection()))(x)
    for name in ("one", "two"):
        export_c(executable, tmp_path, name)
    calls = "".join(
        f"""
        code |= {name}_init(&{name}, {name}_memory, sizeof {name}_memory);
        code |= {name}_set_input(&{name}, 0, in) | {name}_set_output(&{name}, 0, {name}_out) | {name}_run(&{name});
        code |= fwrite({name}_out, 1, sizeof {name}_out, stdout) != sizeof {name}_out;"""
        for name in ("one", "two")
    )
    held = "".join(
        f"""
        static unsigned char {name}_memory[{name.upper()}_MEMORY_BYTES]
            __attribute__((aligned({name.upper()}_MEMORY_ALIGNMENT)));
        static float {name}_out[{np.asarray(wanted).size}];
        static {name}_program {name};"""
        for name in ("one", "two")
    )
    (tmp_path / "main.c").write_text(
        f"""
        #include <stdio.h>
        #include "one.h"
        #include "two.h"
        {held}
        int main(void) {{
          static float in[{x.size}];
          int code = fread(in, 1, sizeof in, stdin) != sizeof in;
          {calls}
          return code;
        }}
        """
    )
    strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-static"]
    libraries = ["libone.a", "libtwo.a", *LINKED]
    command = [program("aarch64-linux-gnu-gcc", "boards"), *strict, "main.c", *libraries]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    emulated = [program("qemu-aarch64", "boards"), "-cpu", "cortex-a72", "./run"]
    done = subprocess.run(emulated, cwd=tmp_path, input=x.tobytes(), capture_output=True, timeout=LIMIT)
    assert done.returncode == 0
    # Sums of 512 terms of about 0.05 in another order.
    for found in np.frombuffer(done.stdout, np.float32).reshape(2, *np.asarray(wanted).shape):
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=0, atol=1e-5)
