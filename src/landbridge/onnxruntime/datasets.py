"""The models that onnxruntime's documentation uses, read from its installed package."""

from __future__ import annotations

from landbridge.errors import ImportModelError
from landbridge.onnxruntime.installed import folder_of_theirs


class NoExampleError(ImportModelError, FileNotFoundError):
    """Raised when there is no example of this name."""


def get_example(name: str) -> str:
    """Returns the path of the example ``name``, such as ``"sigmoid.onnx"``, in an installed onnxruntime.

    Raises NoExampleError, a FileNotFoundError as in onnxruntime, where there is none.
    """
    theirs = folder_of_theirs()
    if theirs is None:
        raise NoExampleError(
            f"example {name!r} is a file of onnxruntime, which is not installed: pip install onnxruntime"
        )
    folder = theirs / "datasets"
    if not (folder / name).is_file():
        known = sorted(path.name for path in folder.glob("*.onnx"))
        raise NoExampleError(f"Unable to find example {name!r}; there are: {', '.join(known)}")
    return str(folder / name)
