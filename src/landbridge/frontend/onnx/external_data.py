"""Reads external data of a model, and decides from which files its tensors may be read.

The author of a model chooses the paths in it. They may only lead into folders that the user named, also through links,
so that no model can reveal other files of the machine; `DataFiles` has the rules.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx_ir as ir
from onnx import TensorProto

from landbridge.errors import ImportModelError
from landbridge.executable.file_watch import FileWatch
from landbridge.frontend.onnx.data_rules import DataRules
from landbridge.ir.limits import check_file_bytes
from landbridge.records import record

#: External data of at most this many bytes is read, so that the files may change afterwards; more is mapped.
_MOST_READ = 256 << 20
#: The most links that a warning lists.
_LISTED = 3


@record(frozen=True)
class _DataFile:
    """An open file: the path of its location, the descriptor, and its size in bytes."""

    path: Path
    descriptor: int
    nbytes: int


class DataFiles:
    """The files with the external data of one model, each opened once, open until the ``with`` block ends.

    A location is a relative path inside the folder of external data. A link may lead to a file in that folder, or from
    the ``blobs`` of a Hugging Face cache to others there; it may lead elsewhere only if the rules allow links. A file
    may have several hard links, as installers create them. ``links`` lists links of both kinds.
    """

    def __init__(self, name: str, model: Path | None, rules: DataRules) -> None:
        self._name, self._model, self._allow_links = name, model, rules.allow_links
        self._folder = rules.folder or (None if model is None else model.parent)
        self._open: dict[str, _DataFile] = {}
        self.links: list[str] = []

    def __enter__(self) -> DataFiles:
        return self

    def __exit__(self, *raised: object) -> None:
        for file in self._open.values():
            os.close(file.descriptor)
        self._open.clear()

    def file_of(self, tensor: ir.ExternalTensor) -> _DataFile:
        """Returns the file that contains the bytes of ``tensor``; raises ImportModelError if it may not or cannot be
        read.
        """
        subject = f"{self._name}: tensor {tensor.name!r}"
        if tensor.dtype == ir.DataType.STRING:
            raise ImportModelError(f"{subject} is text in external data, where ONNX has numbers only")
        dims = tuple(tensor.shape.numpy())
        if any(extent < 0 for extent in dims):
            raise ImportModelError(f"{subject} has shape {dims}; extents from 0 are legal")
        offset, length = tensor.offset or 0, tensor.length or 0
        if offset < 0 or length < 0:
            raise ImportModelError(f"{subject} has offset={offset}, length={length} of external data; legal: from 0")
        if length and length != tensor.nbytes:
            raise ImportModelError(
                f"{subject} is {tensor.dtype.name} of shape {dims}, which takes {tensor.nbytes:,} bytes, and its "
                "external "
                f"data says length={length:,}; export the model again"
            )
        location = os.fspath(tensor.location)
        file = self._open.get(location)
        if file is None:
            file = self._open[location] = self._opened(location, subject)
        if offset + tensor.nbytes > file.nbytes:
            raise ImportModelError(
                f"{subject} takes bytes {offset:,} to {offset + tensor.nbytes:,} of its external data {location!r}, "
                "which "
                f"has {file.nbytes:,}; the file is truncated or of another model: download or export both again"
            )
        return file

    def _opened(self, location: str, subject: str) -> _DataFile:
        if self._folder is None:
            raise ImportModelError(
                f"{subject} has its data in a file, {location!r}, and a model in memory has no folder to look for it "
                "in; "
                "give the path of the model's file, external_data=FOLDER, or a model with its data in it (onnx.load)"
            )
        path = self._folder / location
        leaves = Path(location).is_absolute() or Path(os.path.normpath(location)).parts[:1] == (os.pardir,)
        if not location or "\0" in location or leaves:
            raise ImportModelError(
                f"{subject} has its data in {location!r}, and paths in a model may not leave its folder; "
                "legal is a path from there to a file in it"
            )
        real = Path(os.path.realpath(path))
        if not self._allow_links and not self._is_named(real):
            raise ImportModelError(
                f"{subject} has its data in {location!r}, a link to {real}, which is outside of {self._folder}; put "
                "the "
                "file there, name its folder, external_data=FOLDER, or allow links to lead anywhere: "
                "allow_links=True, or --allow-links"
            )
        try:
            descriptor = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError as error:
            hint = self._hint(location) if isinstance(error, FileNotFoundError) else ""
            raise ImportModelError(
                f"{subject}: its data {str(path)!r} cannot be opened: {error.strerror}{hint}"
            ) from error
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            raise ImportModelError(f"{subject} has its data in {location!r}, which is no regular file")
        if real != Path(os.path.normpath(Path(os.path.realpath(self._folder), location))):
            self.links.append(f"{location!r} leads to {str(real)!r}")
        elif found.st_nlink > 1:
            self.links.append(f"{location!r} has {found.st_nlink} hard links")
        return _DataFile(path, descriptor, found.st_size)

    def _is_named(self, real: Path) -> bool:
        """Returns whether naming the model allows ``real`` to be read: a file in the model's folder, or among the
        ``blobs`` of its Hugging Face cache.
        """
        assert self._folder is not None
        blobs = None if self._model is None else _blobs_of(self._model)
        return real.is_relative_to(os.path.realpath(self._folder)) or (blobs is not None and real.parent == blobs)

    def _hint(self, location: str) -> str:
        real = None if self._model is None else Path(os.path.realpath(self._model))
        if real is not None and self._folder is not None and (real.parent / location).exists():
            return f"; the model is a link to {real}, beside which there is one: name that"
        return "; download or export it with the model, as its folder has to hold both"

    def links_text(self) -> str:
        """Returns a sentence that lists ``links``."""
        more = f" and {len(self.links) - _LISTED} more" if len(self.links) > _LISTED else ""
        listed = ", ".join(self.links[:_LISTED]) + more
        return f"{self._name}: external data is behind links, which onnx's own loader refuses: {listed}"

    def memory_of(self, tensor: ir.ExternalTensor) -> bytearray:
        """Returns the bytes of ``tensor`` in a new buffer, read from its file.

        Raises ImportModelError if the file may not be read, or is shorter than the tensor needs.
        """
        file = self.file_of(tensor)
        memory = bytearray(tensor.nbytes)
        view, done = memoryview(memory), 0
        while done < tensor.nbytes:
            count = os.preadv(file.descriptor, [view[done:]], (tensor.offset or 0) + done)
            if not count:
                raise ImportModelError(f"{file.path} was cut while it was read")
            done += count
        return memory

    def map(self, location: str, end: int) -> tuple[memoryview, FileWatch]:
        """Returns a read-only memory map of the file ``location``, up to byte ``end`` (more than 0), and a watch on it.

        The file must have been opened by ``file_of``. The map stays valid when the ``with`` block ends.
        """
        file = self._open[location]
        memory = memoryview(mmap.mmap(file.descriptor, end, access=mmap.ACCESS_READ))
        return memory, FileWatch(file.descriptor, end, os.fspath(file.path))


def _blobs_of(model: Path) -> Path | None:
    """Returns the folder ``blobs`` of a Hugging Face cache; None if ``model`` is not a link in such a cache.

    Next to it is a folder ``snapshots``, which contains, at any depth, links to the files of ``blobs``.
    """
    blobs = Path(os.path.realpath(model)).parent
    links = Path(os.path.realpath(model.parent))
    is_cache = model.is_symlink() and blobs.name == "blobs" and links.is_relative_to(blobs.parent / "snapshots")
    return blobs if is_cache else None


def take_external_data(model: ir.Model, files: DataFiles) -> tuple[list[str], tuple[FileWatch, ...]]:
    """Replace the external tensors of ``model`` by tensors in memory: read if they are small together, else mapped.

    Returns the paths of the files, and watches on those that stay mapped. Raises ImportModelError for paths that are
    not legal, and BudgetError for more bytes than the compile may read.
    """
    paths: dict[str, str] = {}
    ends: dict[str, int] = {}
    total = 0
    for tensor in _external_tensors(model):
        location = os.fspath(tensor.location)
        paths[location] = os.fspath(files.file_of(tensor).path)
        ends[location] = max(ends.get(location, 0), (tensor.offset or 0) + tensor.nbytes)
        total += tensor.nbytes
    check_file_bytes(sum(ends.values()), "the model's external data")
    if total <= _MOST_READ:
        _replace(model, lambda tensor: _tensor(tensor, files.memory_of(tensor)))
        return list(paths.values()), ()
    maps = {location: files.map(location, end) for location, end in ends.items() if end}
    for _, watch in maps.values():
        watch.check()

    def of_map(tensor: ir.ExternalTensor) -> ir.TensorProtocol:
        begin = tensor.offset or 0
        memory = maps[os.fspath(tensor.location)][0][begin : begin + tensor.nbytes] if tensor.nbytes else b""
        return _tensor(tensor, memory)

    _replace(model, of_map)
    return list(paths.values()), tuple(watch for _, watch in maps.values())


def _tensor(tensor: ir.ExternalTensor, memory: bytes | bytearray | memoryview) -> ir.TensorProtocol:
    """Returns ``tensor`` with its elements in ``memory``, which is not copied unless elements are smaller than a
    byte.
    """
    dims = tuple(tensor.shape.numpy())
    if tensor.dtype.bitwidth < 8:
        packed = TensorProto(name=tensor.name, data_type=int(tensor.dtype), dims=dims, raw_data=bytes(memory))
        return ir.TensorProtoTensor(packed)
    dtype = np.dtype(tensor.dtype.numpy()).newbyteorder("<")
    array = np.frombuffer(memory, dtype).reshape(dims) if tensor.nbytes else np.empty(dims, dtype)
    return ir.Tensor(array, tensor.dtype, name=tensor.name)


def _external_tensors(model: ir.Model) -> Iterator[ir.ExternalTensor]:
    for graph in model.graphs():
        tensors = [value.const_value for value in graph.initializers.values()]
        tensors += [a.value for node in graph for a in node.attributes.values() if a.type == ir.AttributeType.TENSOR]
        yield from (tensor for tensor in tensors if isinstance(tensor, ir.ExternalTensor))


def _replace(model: ir.Model, other: Callable[[ir.ExternalTensor], ir.TensorProtocol]) -> None:
    """Replace each external tensor of ``model`` by the result of ``other``."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                value.const_value = other(value.const_value)
        for node in graph:
            for name, attribute in list(node.attributes.items()):
                if attribute.type == ir.AttributeType.TENSOR and isinstance(attribute.value, ir.ExternalTensor):
                    node.attributes[name] = ir.AttrTensor(name, other(attribute.value))
