"""onnxruntime's exceptions, under the name that programs import them by; each is an error of Landbridge, too."""

from __future__ import annotations

from landbridge.errors import LandbridgeError


class OrtError(LandbridgeError):
    """Base of the errors here; the text begins as onnxruntime's does."""

    code = 1

    def __init__(self, text: str) -> None:
        name = "".join(f"_{c}" if c.isupper() else c for c in type(self).__name__).lstrip("_").upper()
        super().__init__(f"[ONNXRuntimeError] : {self.code} : {name} : {text}")


class Fail(OrtError):
    """What has no better name."""


class InvalidArgument(OrtError):
    """A feed that the model does not take: name, dtype, rank or shape."""

    code = 2


class NoSuchFile(OrtError):
    """There is no such file."""

    code = 3


class NoModel(OrtError):
    """There is no model."""

    code = 4


class RuntimeException(OrtError):
    """A run that failed."""

    code = 6


class InvalidProtobuf(OrtError):
    """The file is no ONNX model."""

    code = 7


class NotImplemented(OrtError):
    """The model has what cannot be compiled; the text lists it."""

    code = 9


class InvalidGraph(OrtError):
    """The model is not valid."""

    code = 10
