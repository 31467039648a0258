"""``landbridge cache``: shows or removes the results of compiles on disk, ours and those of drivers."""

from __future__ import annotations

import time
from typing import Annotated

from landbridge.cli import arguments as args
from landbridge.cli.options import CliOption
from landbridge.cli.output import emit, message, table


def cache(
    clear: Annotated[bool, CliOption("--clear", help="Remove every entry.")] = False, json: args.Json = False
) -> None:
    """Show the compiled programs that are kept, and what drivers of devices made of their kernels, or remove them."""
    from landbridge.files.cache_folder import DRIVER_BINARY, LIMIT, PROCESSOR, PROGRAM, SWITCH, TILES, open_folder

    kinds = {
        PROGRAM: "program",
        DRIVER_BINARY: "driver's binary",
        PROCESSOR: "LLVM's facts of a processor",
        TILES: "measured tiles",
    }
    folder = open_folder()
    if folder is None:
        if json:
            emit({"folder": None, "entries": []})
        else:
            message(
                f"nothing is kept: {SWITCH}=0, or the user's cache folder takes no files; {SWITCH}=FOLDER names one"
            )
        return
    if clear:
        folder.clear()
    entries = folder.entries()
    total = sum(entry.nbytes for entry in entries)
    if json:
        retained = [
            {
                "file": entry.path.name,
                "kind": kinds[entry.path.suffix],
                "bytes": entry.nbytes,
                "used_ns": entry.used_ns,
            }
            for entry in entries
        ]
        emit({"folder": str(folder.path), "bytes": total, "limit_bytes": folder.limit, "entries": retained})
        return
    rows = [
        (
            entry.path.name[:16],
            kinds[entry.path.suffix],
            entry.nbytes,
            time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used_ns / 1e9)),
        )
        for entry in entries
    ]
    if rows:
        table("cached results of compiles", ("entry", "what it is", "bytes", "last used"), rows)
    count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    message(f"{folder.path}: {count}, {total:,} of {folder.limit:,} bytes ({LIMIT})")
