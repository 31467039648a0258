"""The models that onnxruntime's documentation is written with; they are files of its package."""

from __future__ import annotations

from importlib.machinery import PathFinder
from pathlib import Path

from landbridge.errors import ImportModelError


class NoExampleError(ImportModelError, FileNotFoundError):
    """There is no example of this name."""


def get_example(name: str) -> str:
    """The path of the example ``name``, as ``"sigmoid.onnx"``, in an onnxruntime that is installed beside Landbridge.

    Raises NoExampleError, a FileNotFoundError as in onnxruntime, where there is none.
    """
    spec = PathFinder.find_spec("onnxruntime")  # the files, also where ours was installed in its place
    folder = Path(spec.origin).parent / "datasets" if spec is not None and spec.origin else None
    if folder is None:
        raise NoExampleError(
            f"example {name!r} is a file of onnxruntime, which is not installed: pip install onnxruntime"
        )
    if not (folder / name).is_file():
        known = sorted(path.name for path in folder.glob("*.onnx"))
        raise NoExampleError(f"Unable to find example {name!r}; there are: {', '.join(known)}")
    return str(folder / name)
