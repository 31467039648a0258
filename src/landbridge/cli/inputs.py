"""Makes the inputs of a run in memory for the device, filled from files or with seeded random values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from landbridge.cli.output import message
from landbridge.dtypes import dtype as dtype_of
from landbridge.dtypes import dtype_name, numpy_dtype
from landbridge.errors import InputError

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable
    from landbridge.executable.parts import TensorSpec
    from landbridge.tensor import Tensor

#: Random integers are below this: as indices they are legal for most real models.
_INTEGERS_BELOW = 8

#: Bytes that an element takes at most while values are drawn.
_WHILE_CREATED = 8

#: How files of numpy begin: one array, and an archive of several.
_ARRAY, _ARCHIVE = b"\x93NUMPY", b"PK"


def make_inputs(executable: Executable, files: Mapping[str, Path], device: str, seed: int) -> dict[str, Tensor]:
    """Returns a Tensor on ``device`` for every input, read from ``files``, else random with ``seed``.

    Raises InputError for a name the model does not have and for a file that does not fit its input, OutOfMemoryError
    where memory is too small for them, before any is made.
    """
    from landbridge.tensor import Tensor, empty

    specs = {spec.name: spec for spec in executable.main.inputs}
    unknown = set(files) - set(specs)
    if unknown:
        raise InputError(f"the model has no input {sorted(unknown)}; its inputs are {', '.join(specs) or 'none'}")
    _check_memory(specs.values())
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, spec in specs.items():
        if 0 in spec.shape:
            message(f"input {name!r} is {'x'.join(map(str, spec.shape))}: it has no elements, and nothing is computed")
        source = _read(name, files[name], spec) if name in files else _random(rng, spec)
        memory = empty(spec.memory.shape, dtype=spec.dtype, device=device)
        tensor = Tensor(memory.storage, spec.dtype, spec.shape, spec.strides) if spec.strides else memory
        with tensor.host_view("rw" if spec.strides else "w") as view:
            view[...] = source
        tensors[name] = tensor
    return tensors


def _check_memory(specs: Collection[TensorSpec]) -> None:
    from landbridge.process.available_memory import check_available

    nbytes = sum(spec.nbytes for spec in specs)
    making = max((spec.nbytes // dtype_of(spec.dtype).itemsize * _WHILE_CREATED for spec in specs), default=0)
    check_available(
        nbytes + making,
        f"a run ({nbytes:,} bytes for its inputs, {making:,} while the largest is made)",
        "name smaller sizes (--at, --shape), or end other programs",
    )


def read_array(name: str, file: Path) -> np.ndarray[Any, Any]:
    """Returns the value of input ``name`` in ``file``; raises InputError for a file that is no .npy file of plain
    values.
    """
    from zipfile import BadZipFile  # this import takes 4 ms, which a command without files saves

    with file.open("rb") as opened:
        head = opened.read(len(_ARRAY))
    if head != _ARRAY and head[: len(_ARCHIVE)] != _ARCHIVE:
        subject = "is empty" if not head else f"begins with {head.decode(errors='backslashreplace')!r}"
        raise InputError(
            f"input {name!r}: {file} is not a .npy file of plain values, it {subject}; write the array with "
            "numpy.save(FILE, array)"
        )
    try:
        array = np.load(file, allow_pickle=False)  # not mapped, as a file may be truncated while it is read
    except (ValueError, EOFError, MemoryError, BadZipFile) as error:
        raise InputError(f"input {name!r}: {file} is not a .npy file of plain values: {error}") from error
    if not isinstance(array, np.ndarray):
        raise InputError(
            f"input {name!r}: {file} is an archive of {', '.join(array.files) or 'nothing'}, as numpy.savez writes it; "
            "save the array that is meant with numpy.save"
        )
    return array


def _read(name: str, file: Path, spec: TensorSpec) -> np.ndarray[Any, Any]:
    array = read_array(name, file)
    wanted = numpy_dtype(spec.dtype)
    if wanted.kind == "V" and array.dtype == np.dtype(f"V{wanted.itemsize}"):
        array = array.view(wanted)  # for a type that numpy lacks, a file only has its width
    found = dtype_name(array.dtype)
    if array.shape != spec.shape or found != spec.dtype:
        raise InputError(
            f"input {name!r} is {spec.dtype} of shape {spec.shape}, and {file} holds {found} of shape "
            f"{array.shape}; nothing is cast or reshaped: save the array as the input wants it"
        )
    return array


def _random(rng: np.random.Generator, spec: TensorSpec) -> np.ndarray[Any, Any]:
    if spec.dtype == "bool":
        return rng.integers(0, 2, spec.shape).astype(bool)
    if "int" in spec.dtype:
        return rng.integers(0, _INTEGERS_BELOW, spec.shape).astype(spec.dtype)
    return rng.random(spec.shape, dtype=np.float32).astype(numpy_dtype(spec.dtype), copy=False)
