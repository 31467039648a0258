"""Translation of OpenCL driver errors to exceptions of Landbridge."""

from __future__ import annotations

from types import TracebackType

import pyopencl as cl

from landbridge.errors import DeviceError, DeviceLostError, LandbridgeError, OutOfMemoryError

# After these errors nothing works any more: a queue or context that was valid became invalid with its device.
_LOST = frozenset(
    {
        cl.status_code.DEVICE_NOT_AVAILABLE,
        cl.status_code.INVALID_COMMAND_QUEUE,
        cl.status_code.INVALID_CONTEXT,
        cl.status_code.INVALID_DEVICE,
        cl.status_code.EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
    }
)
_NO_MEMORY = frozenset(
    {
        cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
        cl.status_code.OUT_OF_HOST_MEMORY,
        cl.status_code.INVALID_BUFFER_SIZE,
        cl.status_code.INVALID_IMAGE_SIZE,
    }
)


def driver_call(subject: str) -> DriverCall:
    """Returns a guard of a ``with`` block that calls the driver for ``subject``: its errors become ours, such as
    DeviceLostError.
    """
    return DriverCall(subject)


class DriverCall:
    """What ``driver_call`` returns: a class, not a generator, because every copy and launch enters one."""

    __slots__ = ("_subject",)

    def __init__(self, subject: str) -> None:
        self._subject = subject

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, cl.Error):
            raise translated(self._subject, error) from error


def translated(subject: str, error: cl.Error) -> LandbridgeError:
    """Returns the exception of Landbridge for ``error``, which occurred in ``subject``."""
    if error.code in _LOST:
        return DeviceLostError(f"{subject}: the OpenCL driver says {error}")
    if error.code in _NO_MEMORY or isinstance(error, cl.MemoryError):
        return OutOfMemoryError(
            f"{subject}: the OpenCL driver has no memory for it ({error}); free tensors or ask for less"
        )
    return DeviceError(f"{subject}: the OpenCL driver refuses: {error}")
