"""What runs in the emulated machine: the device ``cma`` over the kernel's own sources of memory.

Arguments: the scopes that must be there; ``dev_mem=ADDRESS+BYTES`` states reserved memory, which is
looked at by another mapping of ``/dev/mem``. For each scope: the facts, alignment, a second mapping in this process,
barriers, and a child that reads and writes by the file while this process cannot touch its own mapping. A line for each
thing that holds; ends with 1 where one does not.
"""

import ctypes
import mmap
import os
import sys

import numpy as np

import landbridge as lb
from landbridge.device.registry import discovery
from landbridge.devices.cma.pagemap import is_contiguous
from landbridge.memory.memory_barriers import is_dma_buf

SHAPE = (1, 3, 64, 64)
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def protect(tensor, rights):
    page = tensor.storage.kind.alignment  # a huge one is protected whole
    length = -(-tensor.nbytes // page) * page
    assert libc.mprotect(tensor.data_address, length, rights) == 0, os.strerror(ctypes.get_errno())


def in_a_child(work):
    """How the child ended: its exit status, or minus its signal."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException as error:
            print(f"child: {error!r}", flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def check(scope):
    assert lb.device("cma").memory_kind(scope).pinned == (scope == "global.udmabuf")
    tensor = None
    for alignment in (1, 32, 4096, 65536, 1 << 21, 1 << 30):
        del tensor  # of pages of 1 GiB there is one
        tensor = lb.empty(SHAPE, dtype="float32", device="cma", scope=scope, alignment=alignment)
        assert tensor.data_address % alignment == 0
    print(f"holds {scope} alignment")
    expected = True if "huge" in scope or "reserved" in scope else None
    assert tensor.storage.kind.physically_contiguous is expected
    contiguous = is_contiguous(tensor.data_address, tensor.nbytes)
    # A buffer in one huge page is contiguous; pagemap says nothing of what a driver maps as one range of frames.
    assert contiguous is expected, contiguous
    with tensor.host_view("w") as view:
        view[...] = np.arange(view.size, dtype=np.float32).reshape(SHAPE)
    fd, offset = lb.export_fd(tensor)
    assert is_dma_buf(fd) == ("huge" not in scope)
    barriers = [domain.memory.granule for domain in tensor.storage.domains()[0]]
    assert barriers == ([None] if is_dma_buf(fd) else []), barriers
    print(f"holds {scope} barriers")
    with lb.no_copies():
        again = lb.from_dma_buf(fd, SHAPE, "float32", device="cpu", offset=offset)
        assert again.data_address != tensor.data_address
        with again.host_view("r") as view:
            assert view[0, 2, 63, 63] == 12287
    print(f"holds {scope} mapped twice")
    del again

    def touch():
        ctypes.string_at(tensor.data_address, 1)

    def work():
        with lb.no_copies():
            there = lb.from_dma_buf(fd, SHAPE, "float32", device="cpu", offset=offset)
        with there.host_view("rw") as view:
            assert view[0, 2, 63, 63] == 12287
            view[...] = -view

    protect(tensor, 0)
    assert in_a_child(touch) == -11, "the pages can be read"
    assert in_a_child(work) == 0
    protect(tensor, mmap.PROT_READ | mmap.PROT_WRITE)
    with tensor.host_view("r") as view:
        assert view[0, 2, 63, 63] == -12287
    print(f"holds {scope} used by a process while this one has no rights to its pages")
    os.close(fd)
    if "huge" not in scope:
        check_retained(scope)


def check_retained(scope):
    """Tensors have a dma-buf each; those that come back are kept, and none that others have."""
    tensors = [lb.empty((3,), dtype="float32", device="cma", scope=scope) for _ in range(8)]
    files = {os.fstat(t.storage.live_region.space.handle.fd).st_ino for t in tensors}
    assert len(files) == 8
    os.close(lb.export_fd(tensors[0])[0])
    given = os.fstat(tensors[0].storage.live_region.space.handle.fd).st_ino
    del tensors
    again = [lb.empty((5,), dtype="float32", device="cma", scope=scope) for _ in range(7)]
    assert {os.fstat(t.storage.live_region.space.handle.fd).st_ino for t in again} <= files - {given}
    try:
        lb.empty((1 << 40,), dtype="uint8", device="cma", scope=scope)
        raise AssertionError("more memory than the machine has")
    except (lb.OutOfMemoryError, lb.InputError):
        print(f"holds {scope} kept by size class")


def check_reserved(declared):
    os.environ["LANDBRIDGE_DEV_MEM"] = declared
    print(*discovery("cma"), sep="\n")
    tensor = lb.empty((64,), dtype="uint8", device="cma", scope="global.dev_mem", alignment=1 << 16)
    ((address, nbytes),) = tensor.extents()
    assert (nbytes, address % (1 << 16)) == (64, 0)
    tensor.copy_from(np.arange(64, dtype=np.uint8))
    file = os.open("/dev/mem", os.O_RDWR | os.O_SYNC)
    with mmap.mmap(file, mmap.PAGESIZE, offset=address) as memory:
        assert memory[:64] == bytes(range(64))
    try:
        mmap.mmap(file, mmap.PAGESIZE, offset=1 << 24)
        raise AssertionError("the kernel's own memory can be mapped")
    except PermissionError:
        print("holds global.dev_mem bus address")
    os.close(file)


if sys.argv[1].startswith("dev_mem="):
    check_reserved(sys.argv[1].removeprefix("dev_mem="))
    sys.exit()
print(*discovery("cma"), sep="\n")
for scope in sys.argv[1:]:
    check(scope)
