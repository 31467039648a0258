"""The workspace of the thread that calls a run: memory for temporaries of kernels that are too large for its stack."""

from __future__ import annotations

import ctypes
import mmap
from typing import TypeAlias

from landbridge.errors import OutOfMemoryError
from landbridge.executable.abi import STACK_TEMPORARY_BYTES

#: The pointer argument of native code: bytes that stay allocated as long as it is referred to, or None.
Workspace: TypeAlias = "ctypes.Array[ctypes.c_char] | None"


def workspace_for(scratch_bytes: int) -> Workspace:
    """Returns memory for kernels whose temporaries take ``scratch_bytes``; None where these fit the stack.

    Its pages are allocated when kernels write to them. Raises OutOfMemoryError.
    """
    if scratch_bytes <= STACK_TEMPORARY_BYTES:
        return None
    try:
        memory = mmap.mmap(-1, scratch_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise OutOfMemoryError(
            f"the system gave no memory for {scratch_bytes:,} bytes of temporaries ({error.strerror}); end other "
            "programs, or raise the limit of this one"
        ) from error
    return (ctypes.c_char * scratch_bytes).from_buffer(memory)
