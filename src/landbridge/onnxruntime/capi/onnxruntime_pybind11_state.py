"""onnxruntime's exceptions, under the name that programs import them by; each is an error of Landbridge, too."""

from __future__ import annotations

from landbridge.errors import LandbridgeError


class OrtError(LandbridgeError):
    """Base of the errors here; the text begins as onnxruntime's does."""

    code, status = 1, "FAIL"

    def __init__(self, text: str) -> None:
        super().__init__(f"[ONNXRuntimeError] : {self.code} : {self.status} : {text}")


class Fail(OrtError):
    """What has no better name."""


class InvalidArgument(OrtError):
    """A feed that the model does not take: name, dtype, rank or shape."""

    code, status = 2, "INVALID_ARGUMENT"


class NoSuchFile(OrtError):
    """There is no such file."""

    code, status = 3, "NO_SUCHFILE"


class NoModel(OrtError):
    """There is no model."""

    code, status = 4, "NO_MODEL"


class RuntimeException(OrtError):
    """A run that failed."""

    code, status = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(OrtError):
    """The file is no ONNX model."""

    code, status = 7, "INVALID_PROTOBUF"


class NotImplemented(OrtError):
    """The model has what cannot be compiled; the text lists it."""

    code, status = 9, "NOT_IMPLEMENTED"


class InvalidGraph(OrtError):
    """The model is not valid."""

    code, status = 10, "INVALID_GRAPH"


class EPFail(OrtError):
    """Never raised: there are no execution providers that fail."""

    code, status = 11, "EP_FAIL"
