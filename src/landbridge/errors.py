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
    +-- ExecutableError              an .lbx that is corrupt, truncated, of another version or ISA
    |   +-- UnreadableFileError (OSError)  one that cannot be opened
    |       +-- MissingFileError (FileNotFoundError)  one that is not there
    +-- OutputFileError (OSError)    a file that cannot be written where it was asked to be
    +-- BindError                    an Executable and a device that do not fit
    +-- BoardError                   a board that cannot be reached, or has no Landbridge of this version
    +-- SessionBusyError             a Session used while a run of it is in flight
    +-- RunTimeoutError (TimeoutError)  a run that is not over when the wait for it ends

What works, but not as it was asked, is a warning: ``FallbackWarning``, a kernel on another device than its place;
``ModelWarning``, a model whose file says what is not so and can be ignored; ``SlowMemoryWarning``, memory that the host
reads past its caches; ``ThreadCountWarning``, more threads than cores.
"""

from __future__ import annotations

from landbridge.printable import printable


class _Shown(Exception):
    """Text that users read in terminals and logs, and that names what others named: it has no character that acts on
    those, an end of a line and a tab apart."""

    def __str__(self) -> str:
        return printable(super().__str__(), keep="\n\t")


class LandbridgeError(_Shown):
    """Base of every exception Landbridge raises on purpose."""


class FallbackWarning(_Shown, UserWarning):
    """Something runs elsewhere, or is compiled later, than it was asked to; the message says what, and why."""


class ModelWarning(_Shown, UserWarning):
    """A model declares what is not so, or lacks what it names; the message says what counts instead."""


class SlowMemoryWarning(_Shown, UserWarning):
    """The host reads memory past its caches, at a fraction of their speed; the message says which, and the way out."""


class ThreadCountWarning(_Shown, UserWarning):
    """More threads were asked for than this process may use cores; the message says how many it gets."""


class CompileError(LandbridgeError):
    """The model, or the request, cannot be compiled."""


class ImportModelError(CompileError):
    """The file is not a model of the stated format, or the format's checker rejects it."""


class UnsupportedOperatorError(CompileError):
    """Operators or dimensions that cannot be compiled; the message lists all of them.

    ``needed``: what has to be known and is computed when the model runs, where that is why.
    """

    needed: object = None


class BudgetError(CompileError):
    """Functions, loops and recurrent layers that unfold into more nodes than ``compile(max_nodes=)`` allows."""


class ShapeError(CompileError):
    """Shapes that contradict each other."""


class UndecidedSizeError(ShapeError):
    """A decision that depends on a dimension which is known only when the input comes.

    ``question``: the comparison, where it is one (``sizes.question``).
    """

    question: object = None


class NodeError(CompileError):
    """An attribute, a dtype or a number of operands that the node's operator does not take."""


class PlacementError(CompileError):
    """A scope, capacity or alignment that the target cannot give."""


class VerifyError(CompileError):
    """IR that breaks an invariant."""


class AccessError(VerifyError):
    """A kernel that is not proved to read and write inside its buffers alone.

    ``kernel``: the name of its function. The message says whether it was generated from a model, which is a bug in
    Landbridge, or given as IR.
    """

    def __init__(self, message: str, kernel: str = "") -> None:
        super().__init__(message)
        self.kernel = kernel


class ParseError(CompileError):
    """IR text that does not parse."""


class CodegenError(CompileError):
    """A code generator, or the back end under it, failed."""


class PlanError(CompileError):
    """A storage plan that is infeasible or that the checker rejects."""


class TargetError(LandbridgeError, ValueError):
    """An unknown target kind or option, or a value that is not legal for it."""


class DeviceError(LandbridgeError):
    """Base of errors about devices."""


class UnknownDeviceError(DeviceError, KeyError):
    """No device of this name is registered."""

    def __str__(self) -> str:
        return printable(str(self.args[0]) if self.args else "", keep="\n\t")


class DeviceIndexError(DeviceError, IndexError):
    """The device exists, an instance with this index does not."""


class DeviceNameTakenError(DeviceError):
    """Two plugins claim one device name."""


class DeviceTypeTakenError(DeviceError):
    """Two plugins claim one device-type code."""


class DeviceVersionError(DeviceError):
    """A plugin was written for another version of the DeviceAPI contract."""


class DeviceLostError(DeviceError):
    """The device is gone; sticky until it is reopened."""


class ForkedDeviceError(DeviceError):
    """A device or Session of the parent was used in a child process after fork."""


class KernelBuildError(DeviceError):
    """A driver cannot build a module of kernels; the message has its log, and the source where there is one."""


class UnsupportedError(DeviceError):
    """An optional capability that this device does not have."""


class ScopeBusyError(DeviceError):
    """Memory that has to be acquired before a run is held by another program."""


class OutOfMemoryError(LandbridgeError, MemoryError):
    """A device or the system could not give memory: after trimming and one retry, or for a thread or a module."""


class ResourceLimitError(LandbridgeError, OSError):
    """The system gives this process no more of something else than memory, as files. Has the system's ``errno``."""


class StorageError(LandbridgeError):
    """Base of errors about the life of a Storage."""


class StorageInUseError(StorageError):
    """An explicit free while exported views of the bytes are alive."""


class UseAfterFreeError(StorageError):
    """A Tensor or Storage used after it was freed."""


class ZeroCopyError(LandbridgeError, BufferError, ValueError):
    """The request could be met only by a copy, and the caller allowed none."""


class CopyForbiddenError(LandbridgeError):
    """A copy inside ``no_copies()``; raised before any byte moves."""


class HostViewError(LandbridgeError, BufferError):
    """The host cannot look at memory of this scope."""


class HostAccessError(LandbridgeError):
    """An access that conflicts with an open host view."""


class NotPicklableError(LandbridgeError, TypeError):
    """An object that belongs to one process, a Session for one, was pickled or copied."""


class InputError(LandbridgeError, ValueError):
    """An argument with the wrong name, shape, dtype, rank or overlap."""


class UnknownArgumentError(InputError, TypeError):
    """A keyword that a function does not take; a TypeError, as Python raises for others."""


class SanitizerError(LandbridgeError):
    """The sanitizer found a fault in how memory is used; the text names the two accesses."""


class IndexRangeError(LandbridgeError, IndexError):
    """A run of a program compiled with ``check_indices`` met an index out of range; its outputs are not to be used."""


class ExecutableError(LandbridgeError):
    """An ``.lbx`` that is corrupt, truncated, or of another version or instruction set."""


class UnreadableFileError(ExecutableError, OSError):
    """An ``.lbx`` file that cannot be opened. Has the system's ``errno``."""


class MissingFileError(UnreadableFileError, FileNotFoundError):
    """There is no ``.lbx`` file of this name."""


class OutputFileError(LandbridgeError, OSError):
    """A file cannot be written where it was asked to be; what was there is unchanged. Has the system's ``errno``."""


class BindError(LandbridgeError):
    """An Executable and a device that do not fit each other."""


class BoardError(LandbridgeError):
    """A board that ``--on`` names cannot be reached, has no Landbridge of this version, or failed there."""


class SessionBusyError(LandbridgeError):
    """A Session was used while a run of it is in flight, or another thread uses it."""


class RunTimeoutError(LandbridgeError, TimeoutError):
    """A run, or another use of a Session, is not over when the time to wait for it is; it goes on."""
