"""Measured tiles on disk: a file of JSON for each kernel, in the folder of cached programs."""

from __future__ import annotations

import json
from collections.abc import Iterable

from xdsl.dialects import func

from landbridge.compiler.cache.key import code_text
from landbridge.errors import FallbackWarning
from landbridge.executable.digest import sha256
from landbridge.files.cache_folder import TILES, CacheFolder
from landbridge.passes.lower.measured_tiles import MeasuredTiles, Tile
from landbridge.reporting.warning_notes import warn
from landbridge.targets import Target


def file_name(function: func.FuncOp, target: Target) -> str:
    """Returns the name of the file of a PrimFunc: a digest of its IR without its name, the target, and the compiler."""
    text = str(function).replace(f"@{function.sym_name.data}(", "@(", 1)
    parts = (text, target.to_json(), code_text())
    return sha256([f"{len(part)}:{part}".encode() for part in parts]).hex() + TILES


def read_tiles(folder: CacheFolder, name: str) -> MeasuredTiles | None:
    """Returns what file ``name`` of ``folder`` holds; None where there is none. Warns of one that is damaged."""
    file = folder.path / name
    try:
        text = file.read_bytes()
        folder.note_use(file)
    except OSError:
        return None
    try:
        return _parsed(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        warn(f"{file} is no file of measured tiles and is ignored: {error}", FallbackWarning)
        return None


def write_tiles(folder: CacheFolder, name: str, tiles: MeasuredTiles) -> bool:
    """Writes ``tiles`` as file ``name`` of ``folder``; returns False where that is impossible."""
    content = {"fastest": tiles.fastest, "seconds": [[*tile, seconds] for tile, seconds in tiles.seconds]}
    try:
        with folder.new_file(name) as file:
            file.write(json.dumps(content).encode())
    except OSError:
        return False
    return True


def _parsed(content: dict[str, list[object]]) -> MeasuredTiles:
    seconds = []
    for m, n, time in content["seconds"]:  # type: ignore[misc]
        if not isinstance(time, float) or not time > 0:  # type: ignore[has-type]
            raise ValueError(f"a time of {time!r}")  # type: ignore[has-type]
        seconds.append((_tile((m, n)), time))  # type: ignore[has-type]
    fastest = None if content["fastest"] is None else _tile(content["fastest"])
    if fastest is not None and fastest not in dict(seconds):
        raise ValueError(f"the fastest tile, {fastest}, was not measured")
    return MeasuredTiles(fastest, tuple(seconds))


def _tile(given: Iterable[object]) -> Tile:
    m, n = given
    if not (isinstance(m, int) and isinstance(n, int) and 0 < m < 1 << 16 and 0 < n < 1 << 16):
        raise ValueError(f"a tile of {m!r} x {n!r}")
    return m, n
