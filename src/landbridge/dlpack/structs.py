"""The structs of dlpack.h 1.1, and the constants of their fields."""

from __future__ import annotations

import ctypes

#: The version that we write, and the newest that we read.
VERSION = (1, 1)
CPU = (1, 0)  # (kDLCPU, 0)
FLAG_READ_ONLY = 1
FLAG_IS_COPIED = 2
VERSIONED = b"dltensor_versioned"
UNVERSIONED = b"dltensor"
# A capsule keeps a pointer to its name, not a copy.
USED = {VERSIONED: b"used_dltensor_versioned", UNVERSIONED: b"used_dltensor"}

HOST_TYPES = (1, 3, 11)  # kDLCPU, kDLCUDAHost, kDLROCMHost: addresses the host can use
CUDA_TYPES = (2, 13)  # kDLCUDA, kDLCUDAManaged


class DLTensor(ctypes.Structure):
    """``DLTensor`` of dlpack.h, its nested DLDevice and DLDataType written out (the layout is the same)."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLManagedTensor(ctypes.Structure):
    """The unversioned form of a managed tensor."""

    _fields_ = (("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class DLManagedTensorVersioned(ctypes.Structure):
    """The form of a managed tensor since DLPack 1.0."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    )


Managed = DLManagedTensor | DLManagedTensorVersioned
