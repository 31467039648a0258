"""The exceptions of Landbridge.

Every error a user can cause is one of these; each says what was asked, what was found, what would be legal
and the way out::

    LandbridgeError
    +-- CompileError                 the model or the request cannot be compiled
    |   +-- ImportModelError         the file is no model, or not a valid one
    |   +-- UnsupportedOperatorError operators or dimensions we cannot compile, all of them listed
    |   +-- BudgetError              functions and loops that unfold into more nodes than were allowed
    |   +-- ShapeError               shapes that contradict each other
    |   +-- NodeError                an attribute, a dtype or a number of operands that an operator does not take
    |   +-- PlacementError           a scope, capacity or alignment a target cannot give
    |   +-- VerifyError              IR that breaks an invariant; names the pass after which it did
    |   |   +-- AccessError          a kernel not proved to stay inside its buffers
    |   +-- ParseError               IR text that does not parse
    |   +-- ScheduleError            a loop transformation that would change what a kernel computes
    |   +-- CodegenError             a code generator or its back end failed
    |   +-- PlanError                a storage plan that is infeasible or wrong
    +-- TargetError (ValueError)     an unknown kind, option or value
    +-- DeviceError
    |   +-- UnknownDeviceError       no device of this name; names the nearest
    |   +-- DeviceIndexError         the device exists, the index does not
    |   +-- DeviceNameTakenError     two plugins claim one name
    |   +-- DeviceTypeTakenError     two plugins claim one device-type code
    |   +-- DeviceVersionError       a plugin written for another DEVICE_API_VERSION
    |   +-- DeviceLostError          sticky: the device is gone
    |   |   +-- ContextLostError     sticky: the device works, and what this process had on it is gone
    |   +-- DeviceSuspendedError     used between suspend() and resume()
    |   +-- JobTimeoutError (TimeoutError)  a job took longer than the device allows, and was ended
    |   +-- ForkedDeviceError        used in a child process after fork
    |   +-- ScopeBusyError           memory that has to be acquired before a run is held by another program
    |   +-- KernelBuildError         a driver refuses a module of kernels; has its log
    |   +-- UnsupportedError         an optional capability the device does not have
    +-- OutOfMemoryError (MemoryError)
    +-- ResourceLimitError (OSError)  the system opens no more files for this process
    +-- StorageError
    |   +-- StorageInUseError        freed while views live; names the holders
    |   +-- UseAfterFreeError
    +-- ZeroCopyError (BufferError, ValueError)  a copy would be needed where none was allowed
    +-- CopyForbiddenError           a copy inside no_copies()
    +-- HostViewError (BufferError)  the scope cannot be viewed by the host
    +-- HostAccessError              an access that conflicts with an open view
    +-- IndexRangeError (IndexError)  an index out of range, in a program compiled to check them
    +-- SanitizerError               memory used as it must not be; only under the sanitizer
    +-- NotPicklableError (TypeError)  an object of this process that was pickled or copied
    +-- InputError (ValueError)      wrong name, shape, dtype, rank or overlap
    |   +-- UnknownArgumentError (TypeError)  a keyword that a function does not take
    |   +-- StateCapacityError       a step that a state has no room for
    +-- ExecutableError              an .lbx that is corrupt, truncated, of another version or ISA
    |   +-- UnreadableFileError (OSError)  one that cannot be opened
    |       +-- MissingFileError (FileNotFoundError)  one that is not there
    +-- OutputFileError (OSError)    a file that cannot be written where it was asked to be
    +-- BindError                    an Executable and a device that do not fit
    +-- BoardError                   a board that cannot be reached, or has no Landbridge of this version
    +-- SessionBusyError             a Session used while a run of it is in flight
    +-- RunTimeoutError (TimeoutError)  a run that is not over when the wait for it ends

What works in another form than requested is a warning: ``FallbackWarning``, a kernel on another device than its place;
``ModelWarning``, a model whose file says what is not so and can be ignored; ``SlowMemoryWarning``, memory that the host
reads past its caches; ``ThreadCountWarning``, more threads than cores.
"""

from __future__ import annotations

from landbridge.text.printable import printable


class _Shown(Exception):
    """Base of errors and warnings that may name what others named: no character of them controls a terminal or log."""

    def __str__(self) -> str:
        return printable(super().__str__(), keep="\n\t")


class LandbridgeError(_Shown):
    """Base of every exception that Landbridge raises on purpose."""


class FallbackWarning(_Shown, UserWarning):
    """Warns that something runs elsewhere, or is compiled later, than requested; the message says what and why."""


class ModelWarning(_Shown, UserWarning):
    """Warns that a model declares something false or lacks what it names; the message says what is used instead."""


class SlowMemoryWarning(_Shown, UserWarning):
    """Warns that the host reads memory past its caches, far slower; the message says which memory, and the way out."""


class ScatteredMemoryWarning(_Shown, UserWarning):
    """Warns that memory of a device that is taken for contiguous memory is not known to be; the message says why."""


class ThreadCountWarning(_Shown, UserWarning):
    """Warns that more threads were requested than this process may use cores; the message says how many it gets."""


class CompileError(LandbridgeError):
    """Raised when the model or the request cannot be compiled."""


class ImportModelError(CompileError):
    """Raised when the file is not a model of the declared format, or the checker of the format rejects it."""


class UnsupportedOperatorError(CompileError):
    """Raised for operators or dimensions that cannot be compiled; the message lists all of them.

    ``needed``: the values that must be known at compile time but are computed at run time, where that is the reason.
    """

    needed: object = None


class BudgetError(CompileError):
    """Raised when functions, loops and recurrent layers unfold into more nodes than ``compile(max_nodes=)`` allows,
    when a compile needs more than ``limits=`` allows, and when the search for a program of a model takes too long.
    """


class ShapeError(CompileError):
    """Raised for shapes that contradict each other."""


class UndecidedSizeError(ShapeError):
    """Raised when a decision depends on a dimension that is known only when the input comes.

    ``question``: the comparison of sizes (``sizes.question``) that cannot be decided, if there is one.
    """

    question: object = None


class NodeError(CompileError):
    """Raised for an attribute, a dtype or a number of operands that the node's operator does not take."""


class PlacementError(CompileError):
    """Raised for a scope, capacity or alignment that the target cannot give."""


class VerifyError(CompileError):
    """Raised for IR that breaks an invariant."""


class AccessError(VerifyError):
    """Raised for a kernel that is not proved to read and write only inside its buffers.

    ``kernel``: the name of its function. The message says whether it was generated from a model, which is a bug in
    Landbridge, or given as IR.
    """

    def __init__(self, message: str, kernel: str = "") -> None:
        super().__init__(message)
        self.kernel = kernel


class ParseError(CompileError):
    """Raised for IR text that does not parse."""


class ScheduleError(CompileError):
    """Raised for a loop transformation that is not legal, because the kernel would compute something else."""


class CodegenError(CompileError):
    """Raised when a code generator, or the back end under it, fails."""


class PlanError(CompileError):
    """Raised for a storage plan that is infeasible or that the checker rejects."""


class TargetError(LandbridgeError, ValueError):
    """Raised for an unknown target kind or option, or a value that is not legal for it."""


class DeviceError(LandbridgeError):
    """Base of errors about devices."""


class UnknownDeviceError(DeviceError, KeyError):
    """Raised when no device of this name is registered."""

    def __str__(self) -> str:
        return printable(str(self.args[0]) if self.args else "", keep="\n\t")


class DeviceIndexError(DeviceError, IndexError):
    """Raised when the device exists but has no instance with this index."""


class DeviceNameTakenError(DeviceError):
    """Raised when two plugins claim one device name."""


class DeviceTypeTakenError(DeviceError):
    """Raised when two plugins claim one device-type code."""


class DeviceVersionError(DeviceError):
    """Raised for a plugin that was written for another version of the DeviceAPI contract."""


class DeviceLostError(DeviceError):
    """Raised when the device is lost, and by each later use until it is reopened."""


class ContextLostError(DeviceLostError):
    """Raised when what a process had on a device is gone and the device works: after its own reset, by a fault of
    another process, or while it was suspended. ``device.reopen()`` gives a new handle.
    """


class DeviceSuspendedError(DeviceError):
    """Raised by uses of a device between ``device.suspend()`` and ``device.resume()``; nothing was done."""


class JobTimeoutError(DeviceError, TimeoutError):
    """Raised when a job took longer than its device allows; the device has ended it, and its results are not valid.

    Memory and other work on the device are as they were; the Session may run again.
    """


class ForkedDeviceError(DeviceError):
    """Raised when a child process uses a device or Session of its parent after a fork."""


class KernelBuildError(DeviceError):
    """Raised when a driver cannot build a module of kernels; the message has its log, and its source if known."""


class UnsupportedError(DeviceError):
    """Raised for an optional capability that this device does not have."""


class ScopeBusyError(DeviceError):
    """Raised when another program holds memory that has to be acquired before a run."""


class OutOfMemoryError(LandbridgeError, MemoryError):
    """Raised when a device or the system gives no memory: after trimming and one retry, or for a thread or a module."""


class ScatteredMemoryError(OutOfMemoryError):
    """Raised when physically contiguous memory was requested, and what there is is scattered or not known to be."""


class ResourceLimitError(LandbridgeError, OSError):
    """Raised when the system gives no more of a resource other than memory, as files. Has the system's ``errno``."""


class StorageError(LandbridgeError):
    """Base of errors about the lifetime of a Storage."""


class StorageInUseError(StorageError):
    """Raised by an explicit free while exported views of the bytes are alive."""


class UseAfterFreeError(StorageError):
    """Raised when a Tensor or Storage is used after it was freed."""


class ZeroCopyError(LandbridgeError, BufferError, ValueError):
    """Raised when only a copy could meet the request, and the caller allowed none."""


class CopyForbiddenError(LandbridgeError):
    """Raised for a copy inside ``no_copies()``, before any byte moves."""


class HostViewError(LandbridgeError, BufferError):
    """Raised when the host cannot access memory of this scope."""


class HostAccessError(LandbridgeError):
    """Raised for an access that conflicts with an open host view."""


class NotPicklableError(LandbridgeError, TypeError):
    """Raised when an object that belongs to one process, such as a Session, is pickled or copied."""


class InputError(LandbridgeError, ValueError):
    """Raised for an argument with the wrong name, shape, dtype, rank or overlap."""


class UnknownArgumentError(InputError, TypeError):
    """Raised for a keyword that a function does not take; it is a TypeError, as Python raises for its own functions."""


class StateCapacityError(InputError):
    """Raised for a step that a state has no room for; nothing was written. ``state.resize`` makes room."""


class SanitizerError(LandbridgeError):
    """Raised when the sanitizer finds a fault in the use of memory; the message names the two accesses."""


class IndexRangeError(LandbridgeError, IndexError):
    """Raised when a run of a program with ``check_indices`` meets an index out of range; its outputs are not valid."""


class ExecutableError(LandbridgeError):
    """Raised for an ``.lbx`` that is corrupt, truncated, or of another version or instruction set."""


class UnreadableFileError(ExecutableError, OSError):
    """Raised for an ``.lbx`` file that cannot be opened. Has the system's ``errno``."""


class MissingFileError(UnreadableFileError, FileNotFoundError):
    """Raised when there is no ``.lbx`` file of this name."""


class OutputFileError(LandbridgeError, OSError):
    """Raised when a file cannot be written where requested; what was there is unchanged. Has the system's ``errno``."""


class BindError(LandbridgeError):
    """Raised for an Executable and a device that do not fit each other."""


class BoardError(LandbridgeError):
    """Raised when a board that ``--on`` names cannot be reached, has no Landbridge of this version, or failed."""


class SessionBusyError(LandbridgeError):
    """Raised when a Session is used while a run of it is in flight, or while another thread uses it."""


class RunTimeoutError(LandbridgeError, TimeoutError):
    """Raised when a run, or another use of a Session, outlasts the time to wait for it; it goes on."""
