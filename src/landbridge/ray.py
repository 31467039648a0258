"""Runs programs on the workers of Ray: a class for ``ray.data``'s ``map_batches`` and for Serve; the extra ``ray``.

::

    model = share("cls.lbx")  # into Ray's object store, which brings it to each node once
    results = pictures.map_batches(Model, fn_constructor_args=(model,), batch_format="numpy", concurrency=4)

Ray does all scheduling. Arrays that lie in Ray's store are read there.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ray

from landbridge.array_type import Array
from landbridge.errors import InputError
from landbridge.executable.executable import Executable, pieces_of_file
from landbridge.files.output_file import open_output
from landbridge.loader import load
from landbridge.memory.ledger import ledger
from landbridge.session import Session

__all__ = ["Model", "share"]


def share(program: Executable | str | Path) -> Any:
    """Returns an ObjectRef of ``program``, an Executable or the path of its ``.lbx``, from which any node makes a
    ``Model``.
    """
    pieces = pieces_of_file(program) if isinstance(program, Executable) else [Path(program).read_bytes()]
    return ray.put(np.frombuffer(b"".join(pieces), np.uint8))


class Model:
    """A program in an actor: a call takes a batch, as columns by name, and returns the outputs by name.

    ``program``: of ``share``, or the path of an ``.lbx`` that every node has. ``device`` and ``num_threads`` are of
    Session; the default is one thread, as Ray decides the number of actors. ``keep``: columns of the batch that are
    returned too. ``bytes_copied``: the bytes that all calls have copied.

    Each input of the program is a column, whose first axis is the rows. A program with an open first axis takes a batch
    whole; one that is compiled for N rows takes them N by N, the last ones with zeros behind them.
    """

    def __init__(
        self, program: Any, *, device: str = "cpu", num_threads: int | None = 1, keep: Sequence[str] = ()
    ) -> None:
        given = ray.get(program) if isinstance(program, ray.ObjectRef) else program
        path = _on_this_node(given) if isinstance(given, np.ndarray) else Path(given)
        executable = load(path)
        self._session = Session(executable, device=device, num_threads=num_threads)
        self._inputs, self._outputs = executable.main.inputs, executable.main.outputs
        self._keep = tuple(keep)
        rows = {spec.shape[:1] for spec in (*self._inputs, *self._outputs)}
        if len(rows) > 1 or () in rows:
            raise InputError(f"the first axes of {path} differ ({rows}); each has to be the rows of a batch")
        (self._rows,) = rows.pop()
        self.bytes_copied = 0

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the outputs for ``batch`` and the columns to keep; raises InputError for a missing column."""
        missing = [spec.name for spec in self._inputs if spec.name not in batch]
        if missing:
            raise InputError(f"the batch has no column {', '.join(missing)}; it has {', '.join(batch)}")
        arrays = [np.asarray(batch[spec.name]) for spec in self._inputs]
        with ledger() as moves:
            results = self._whole(arrays) if not isinstance(self._rows, int) else self._in_parts(arrays, self._rows)
        self.bytes_copied += moves.total_bytes
        named = {spec.name: result for spec, result in zip(self._outputs, results, strict=True)}
        return {**{name: batch[name] for name in self._keep}, **named}

    def _whole(self, arrays: Sequence[Array]) -> list[Array]:
        return [np.asarray(result) for result in self._session(*arrays)]

    def _in_parts(self, arrays: Sequence[Array], rows: int) -> list[Array]:
        """Returns the results of ``rows`` rows at a time, each written at its rows of one array."""
        count = len(arrays[0])
        padded = -(-count // rows) * rows
        results = [np.empty((padded, *spec.shape[1:]), spec.dtype) for spec in self._outputs]
        for first in range(0, padded, rows):
            part = [array[first : first + rows] for array in arrays]
            if first + rows > count:
                part = [np.concatenate([p, np.zeros((rows - len(p), *p.shape[1:]), p.dtype)]) for p in part]
            self._session(*part, out=[result[first : first + rows] for result in results])
        return [result[:count] for result in results]


def _on_this_node(content: Array) -> Path:
    """Returns the file of ``content``, an ``.lbx``, that all actors of this node map; the first of them writes it."""
    folder = Path(tempfile.gettempdir()) / f"landbridge-ray-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise InputError(f"{folder} is not a folder of this user alone, and programs are code; remove it")
    file = folder / f"{hashlib.sha256(content.data).hexdigest()}.lbx"
    if not file.exists():
        with open_output(file) as opened:
            opened.write(content.data)
    return file
