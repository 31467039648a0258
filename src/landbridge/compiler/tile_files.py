"""Measured tiles on disk: a file of JSON for each kernel, in the folder of cached programs."""

from __future__ import annotations

import json

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
    except (ValueError, RecursionError) as error:
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


def _parsed(content: object) -> MeasuredTiles:
    """Returns the tiles of a file's JSON; raises ValueError that says what is wrong with it."""
    if not isinstance(content, dict) or content.keys() != {"fastest", "seconds"}:
        raise ValueError("it is no object of 'fastest' and 'seconds'")
    if not isinstance(content["seconds"], list):
        raise ValueError("'seconds' is no list")
    seconds = []
    for entry in content["seconds"]:
        if not isinstance(entry, list) or len(entry) != 3:
            raise ValueError(f"{entry!r} is no tile with its seconds")
        *tile, time = entry
        if not isinstance(time, float) or not time > 0:
            raise ValueError(f"a time of {time!r}")
        seconds.append((_tile(tile), time))
    fastest = None if content["fastest"] is None else _tile(content["fastest"])
    if fastest is not None and fastest not in dict(seconds):
        raise ValueError(f"the fastest tile, {fastest}, was not measured")
    return MeasuredTiles(fastest, tuple(seconds))


def _tile(given: object) -> Tile:
    """Returns the rows and columns of a tile."""
    if not isinstance(given, list) or len(given) != 2 or not all(type(n) is int and 0 < n < 1 << 16 for n in given):
        raise ValueError(f"a tile of {given!r}")
    m, n = given
    return m, n
