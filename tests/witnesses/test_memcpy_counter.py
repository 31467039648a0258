"""Zero copy, counted outside Landbridge: a preloaded library counts memcpy and memmove calls over 4 KiB."""

import os
import subprocess
import sys

import pytest

from tests.selection.installed import program
from tests.vm import programs

COUNTER = r"""
#include <stddef.h>
static volatile long large;
long large_copies(void) { return large; }
static void *move(char *to, const char *from, size_t n) {
    if (n > 4096) large++;
    if (to < from) for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = from[i];
    else for (size_t i = n; i-- > 0;) ((volatile char *)to)[i] = from[i];
    return to;
}
void *memcpy(void *to, const void *from, size_t n) { return move(to, from, n); }
void *memmove(void *to, const void *from, size_t n) { return move(to, from, n); }
void *__memcpy_chk(void *to, const void *from, size_t n, size_t room) { return move(to, from, n); }
void *__memmove_chk(void *to, const void *from, size_t n, size_t room) { return move(to, from, n); }
"""

PROGRAM = """
import ctypes, numpy as np, landbridge as lb
count = ctypes.CDLL(None).large_copies
count.restype = ctypes.c_long
executable = lb.load({path!r})
s = lb.Session(executable, num_threads={threads})
x, y = np.ones({n}, np.float32), np.zeros({n}, np.float32)
s.set_input_zero_copy("x", x); s.set_output_zero_copy(0, y); s.run(); s(x); s(x, out=[y])

before = count()
for _ in range(10):
    s.set_input_zero_copy("x", x)
    s.run()
    s.get_output(0)
    s(x, out=[y])
    s(x)
print(count() - before)

before = count()
s.set_input("x", x)
print(count() - before)
assert np.array_equal(y, executable.constants["w"] + 1)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_no_large_copy_in_a_run(tmp_path, threads):
    n = 1 << 16
    source, library, path = tmp_path / "counter.c", tmp_path / "counter.so", tmp_path / "model.lbx"
    source.write_text(COUNTER)
    compiler = program("cc", "debian")
    subprocess.run([compiler, "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", library, source], check=True)
    programs.add_weights(n, tasks=n).save(path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(path=str(path), threads=threads, n=n)],
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    in_runs, in_set_input = map(int, done.stdout.split() or pytest.fail(done.stderr))
    assert in_set_input >= 1, "the counter does not see a copy that is there"
    assert in_runs == 0
