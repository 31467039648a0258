"""What runs in the emulated machine: a program on memory of the kernel's contiguous area, and the end of that area.

Arguments: the scope, and a program with a file of its inputs and expected outputs (``NAME.npz``). A line for each thing
that holds; ends with 1 where one does not.
"""

import array
import ctypes
import mmap
import re
import sys
from pathlib import Path

import numpy as np

import landbridge as lb

CHUNK = 8 << 20  # more than the kernel has adjacent outside of the area
_FRAME = (1 << 55) - 1


def area():
    """The addresses of the area, as the kernel's log gives them."""
    log = ctypes.create_string_buffer(1 << 20)
    nbytes = ctypes.CDLL(None).klogctl(3, log, len(log))  # read all
    size, begin = re.search(rb"cma: Reserved (\d+) MiB at (0x[0-9a-f]+)", log.raw[:nbytes]).groups()
    return int(begin, 16), int(size) << 20


def frames(tensor):
    """The physical pages of a tensor that begins with a page, in order: read here, not by Landbridge."""
    pages = -(-tensor.nbytes // mmap.PAGESIZE)
    for page in range(pages):
        ctypes.string_at(tensor.data_address + page * mmap.PAGESIZE, 1)
    entries = array.array("Q")
    with Path("/proc/self/pagemap").open("rb", buffering=0) as file:
        file.seek(tensor.data_address // mmap.PAGESIZE * 8)
        entries.frombytes(file.read(pages * 8))
    assert all(entry >> 63 for entry in entries), "a page is not present"
    return [entry & _FRAME for entry in entries]


def check_frames(tensor, begin, nbytes):
    found = frames(tensor)
    assert found == list(range(found[0], found[0] + len(found))), "the pages are not adjacent"
    first, end = found[0] * mmap.PAGESIZE, (found[-1] + 1) * mmap.PAGESIZE
    assert begin <= first and end <= begin + nbytes, f"{first:#x} to {end:#x} is not of the area"
    return len(found)


scope, program = sys.argv[1:]
begin, nbytes = area()
print(f"area of {nbytes} bytes at {begin:#x}")

wanted = lb.empty((CHUNK,), dtype="uint8", device="cma", contiguous=True)
assert wanted.storage.kind.physically_contiguous is True
print(f"holds adjacent pages of the area: {check_frames(wanted, begin, nbytes)}")
del wanted

values = np.load(program.replace(".lbx", ".npz"))
session = lb.Session(lb.load(program))
bound = {}
for name in values.files:
    like = values[name]
    tensor = lb.empty(like.shape, dtype=like.dtype.name, device="cma", scope=scope)
    check_frames(tensor, begin, nbytes)
    if name.startswith("expected"):
        session.set_output_zero_copy(name.removeprefix("expected_"), tensor)
    else:
        with tensor.host_view("w") as view:
            view[...] = like
        session.set_input_zero_copy(name, tensor)
    bound[name] = tensor
with lb.no_copies():
    session.run()
for name in values.files:
    if name.startswith("expected"):
        with bound[name].host_view("r") as view:
            np.testing.assert_allclose(view, values[name], rtol=1e-4, atol=1e-5)
print("holds a program on it, without a copy")
del session, bound, tensor, view

taken = []
try:
    while len(taken) * CHUNK <= nbytes:
        taken.append(lb.empty((CHUNK,), dtype="uint8", device="cma", scope=scope))
    sys.exit("more memory than the area has")
except lb.OutOfMemoryError as error:
    print(f"error {error}")
    assert 3 <= len(taken) < nbytes // CHUNK + 1, len(taken)
for tensor in taken:
    check_frames(tensor, begin, nbytes)
assert len({frame for tensor in taken for frame in frames(tensor)}) == len(taken) * CHUNK // mmap.PAGESIZE
print("holds an error at the end of the area")
del tensor, taken[-1]
check_frames(lb.empty((CHUNK,), dtype="uint8", device="cma", scope=scope), begin, nbytes)
print("holds memory again once a buffer is given back")
