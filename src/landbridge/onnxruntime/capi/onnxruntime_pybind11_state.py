"""onnxruntime's exceptions, under the name that programs import them by; each is also an error of Landbridge."""

from __future__ import annotations

from landbridge.errors import LandbridgeError


class OrtError(LandbridgeError):
    """Base class of the errors of this module; the message begins with ``code`` and ``status``, as
    onnxruntime's does.
    """

    code, status = 1, "FAIL"

    def __init__(self, text: str) -> None:
        super().__init__(f"[ONNXRuntimeError] : {self.code} : {self.status} : {text}")


class Fail(OrtError):
    """Raised for an error without a class of its own."""


class InvalidArgument(OrtError):
    """Raised for a feed whose name, dtype, rank or shape the model does not take."""

    code, status = 2, "INVALID_ARGUMENT"


class NoSuchFile(OrtError):
    """Raised when the model's file does not exist."""

    code, status = 3, "NO_SUCHFILE"


class NoModel(OrtError):
    """Raised when there is no model."""

    code, status = 4, "NO_MODEL"


class RuntimeException(OrtError):
    """Raised when a run fails."""

    code, status = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(OrtError):
    """Raised when the file is no ONNX model."""

    code, status = 7, "INVALID_PROTOBUF"


class NotImplemented(OrtError):
    """Raised when parts of the model cannot be compiled; the message lists them."""

    code, status = 9, "NOT_IMPLEMENTED"


class InvalidGraph(OrtError):
    """Raised when the model is not valid."""

    code, status = 10, "INVALID_GRAPH"


class EPFail(OrtError):
    """Exists for imports only and is never raised, as no execution provider can fail."""

    code, status = 11, "EP_FAIL"
