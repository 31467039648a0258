"""What runs in the emulated machine: the source of u-dma-buf over a node of the module itself.

A line for each thing that holds; ends with 1 where one does not.
"""

import ctypes
import mmap
import os
import sys
from pathlib import Path

import numpy as np

import landbridge as lb
from landbridge.device.registry import discovery
from landbridge.devices.cma.u_dma_buf import UDmaBuf
from landbridge.testing.memory_check import check_memory

FILES, NODE, SCOPE = Path("/sys/class/u-dma-buf/udmabuf0"), Path("/dev/udmabuf0"), "global.udmabuf0"
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def number(file):
    return int((FILES / file).read_text(), 0)


print(*discovery("cma"), sep="\n")
begin, size = number("phys_addr"), number("size")
print(f"node of {size} bytes at {begin:#x}, sync_mode {number('sync_mode')}, dma_coherent {number('dma_coherent')}")
kind = lb.device("cma").memory_kind(SCOPE)
assert (kind.physically_contiguous, kind.pinned, kind.capacity) == (True, True, size)

tensors = []
for alignment in (1, 64, 4096, 65536):
    tensors.append(lb.empty((1000,), dtype="uint8", device="cma", scope=SCOPE, alignment=alignment))
    ((address, nbytes),) = tensors[-1].extents()
    assert nbytes == 1000 and address % alignment == 0 and begin <= address < begin + size
    assert tensors[-1].data_address % alignment == 0
print("holds bus addresses")

for number_of, tensor in enumerate(tensors):
    with tensor.host_view("w") as view:
        view[...] = number_of + 1
with NODE.open("r+b") as node, mmap.mmap(node.fileno(), size) as whole:
    for number_of, tensor in enumerate(tensors):
        first = tensor.extents()[0][0] - begin
        assert whole[first : first + 1000] == bytes([number_of + 1]) * 1000
print("holds another mapping of the node")
del tensors, tensor

flat = lb.empty((1, 3, 64, 64), dtype="float32", device="cma", scope=SCOPE)
# This machine is coherent, so that no barrier is called for; the module makes one all the same for who asks.
assert [domain.memory.granule for domain in flat.storage.domains()[0]] == [1 if number("dma_coherent") else 128]
first = flat.extents()[0][0] - begin
with flat.host_view("w") as view:
    view[...] = np.arange(view.size, dtype=np.float32).reshape(view.shape)
sync = UDmaBuf("udmabuf0")._sync
sync(first, flat.nbytes, "r", "host")
assert (number("sync_direction"), number("sync_owner")) == (2, 0)
sync(first, flat.nbytes, "w", "device")
assert (number("sync_direction"), number("sync_owner")) == (1, 1)
assert (number("sync_offset"), number("sync_size")) == (first, flat.nbytes)
print("holds barriers with a range")

libc.mprotect(flat.data_address, -(-flat.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE, 0)
child = os.fork()
if not child:
    with NODE.open("r+b") as node, mmap.mmap(node.fileno(), size) as whole:
        there = np.frombuffer(whole, np.float32, flat.nbytes // 4, first)
        there[...] = -there
        del there
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
libc.mprotect(flat.data_address, -(-flat.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)
with flat.host_view("r") as view:
    assert view[0, 2, 63, 63] == -12287
print("holds used by a process while this one has no rights to its pages")

del flat, view
whole = lb.empty((size,), dtype="uint8", device="cma", scope=SCOPE)
try:
    lb.empty((1,), dtype="uint8", device="cma", scope=SCOPE)
    sys.exit("more than the node has")
except lb.OutOfMemoryError as error:
    assert "are taken" in str(error)
del whole
print("holds its end")
found = list(check_memory(lb.device("cma")))
for finding in found:
    print(f"check {finding.scope} {finding.subject}: {finding.outcome}")
assert not any(finding.failed for finding in found)
print("holds the check of devices")
