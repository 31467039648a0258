"""The native interface between compiled code and the runtime.

Everything is little-endian, 64-bit. A *kernel* is a function of a code image::

    void kernel(const uint64_t *args, int64_t begin, int64_t end, void *workspace)

``args[i]`` is the address of the first element of operand ``i`` (a tensor, dense row-major in its physical shape,
aligned to its element only). The kernel runs tasks ``begin <= t < end`` of the ``tasks`` of its Call. Tasks are
independent and may run in any order on any thread; a kernel never allocates and never fails.

A kernel takes at most KERNEL_STACK_BYTES of the stack of its thread. Temporaries of more than STACK_TEMPORARY_BYTES lie
in its ``workspace``: memory of the thread that calls it, aligned to STORAGE_ALIGNMENT, of the bytes that the program
states, which are never more than WORKSPACE_BYTES. What is in it is of no use after the call. A program whose kernels
need none may pass any address.

An operand in a scope of more than one dimension is passed by its rows. ``args[i]`` is then the address of its
*row table*: 64-bit words, word ``r`` the address of the first element of row ``r``. The operand's ``axis_separators``
say what a row is (``landbridge.shapes.physical``): the elements of the axes from the first separator on, dense; rows
count in row-major order of the axes before it. Nothing is known of where rows lie to each other. A kernel reads and
writes elements of the rows and never the table, which holds still for as long as the program is bound. Objects whose
rows have no address (textures) cannot be operands of such kernels.

A bound program is an array of *records*, each four 64-bit words::

    word 0  kind     RECORD_CALL, RECORD_FLUSHING_CALL, RECORD_BRANCH_IF_ZERO, RECORD_JUMP
    word 1  CALL: the kernel's address.   BRANCH: the address of the byte tested.   JUMP: 0
    word 2  CALL: address of its args.    BRANCH, JUMP: index of the record to go to
    word 3  CALL: tasks.                  BRANCH, JUMP: 0

Kernels of a FLUSHING_CALL take denormal floats for zeros of their sign and give zeros in place of them; those of a CALL
compute with them. Either has the default rounding and no traps, and leaves no trace in the floating-point state of
the calling thread.

Every CPU image also exports the runtime it runs under, with versioned names so that the first image loaded
can serve the process::

    int64_t landbridge_run_v3(void *pool, void *workspace, const int64_t *records, int64_t count)
    void   *landbridge_pool_create_v2(int64_t threads, int64_t workspace_bytes)
    void    landbridge_pool_destroy_v1(void *pool)          joins the workers

Creating a pool gives 0 on failure. Of its ``threads``, at least one, the caller is one; each other one gets a workspace
in the pool. They also export ``landbridge_packed_v3``, which ``landbridge.executable.packed`` describes: it serves
callers that speak tvm-ffi.

``landbridge_run_v3`` runs records from 0 until index ``count`` and returns 0. ``workspace`` is the calling thread's.
``pool`` may be 0: one thread. A pool that is busy with another run is not waited for: that run goes on the calling
thread alone. Images of earlier versions export ``landbridge_run_v2``, without a workspace, and
``landbridge_pool_create_v1``, of threads alone; their kernels have all temporaries on the stack.
"""

from __future__ import annotations

RECORD_WORDS = 4
RECORD_CALL = 0
RECORD_BRANCH_IF_ZERO = 1
RECORD_JUMP = 2
RECORD_FLUSHING_CALL = 3
#: The kinds that call a kernel.
RECORD_CALLS = frozenset({RECORD_CALL, RECORD_FLUSHING_CALL})

RUN_SYMBOL = "landbridge_run_v3"
POOL_CREATE_SYMBOL = "landbridge_pool_create_v2"
#: Of images whose kernels take no workspace.
STACK_RUN_SYMBOL = "landbridge_run_v2"
STACK_POOL_CREATE_SYMBOL = "landbridge_pool_create_v1"
POOL_DESTROY_SYMBOL = "landbridge_pool_destroy_v1"

#: Alignment of storages, constants and code images in bytes: a cache line, and a zmm register.
CONSTANT_ALIGNMENT = 256
STORAGE_ALIGNMENT = 64

#: Bytes of stack that a kernel takes at most, with what the runtime and the compiler's spilled registers take of it:
#: threads with stacks of 96 KiB can run programs.
KERNEL_STACK_BYTES = 32 << 10
#: Bytes of temporaries up to which a kernel has them there.
STACK_TEMPORARY_BYTES = 16 << 10
#: Bytes of workspace that a thread has at most.
WORKSPACE_BYTES = 2 << 20
