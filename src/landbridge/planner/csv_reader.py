"""Reads the CSV of MiniMalloc's benchmark instances: ``id,lower,upper,size`` and optional columns."""

from __future__ import annotations

import csv
from pathlib import Path

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer

_COLUMNS = {"id": "id", "buffer": "id", "lower": "start", "start": "start", "upper": "end", "end": "end",
            "size": "size", "alignment": "alignment", "offset": "offset"}  # fmt: skip


def read_csv(path: str | Path) -> list[Buffer]:
    """Returns the buffers of ``path``: columns id, lower, upper (exclusive), size, and optionally alignment and offset.

    Raises PlanError naming the line that is wrong; OSError when the file cannot be read.
    """
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        try:
            columns = [_COLUMNS.get(name.strip().lower(), "") for name in next(rows, [])]
            numbered = list(enumerate(rows, 2))
        except (csv.Error, UnicodeDecodeError) as error:
            raise PlanError(f"{path}: after line {rows.line_num}, this is no CSV in UTF-8: {error}") from error
    missing = {"id", "start", "end", "size"} - set(columns)
    if missing:
        raise PlanError(f"{path}: the first line must name the columns id, lower, upper and size")
    buffers: dict[str, Buffer] = {}
    for line, row in numbered:
        if not row:
            continue
        buffer = _buffer(path, line, dict(zip(columns, row, strict=False)))
        if buffers.setdefault(str(buffer.id), buffer) is not buffer:
            raise PlanError(f"{path}, line {line}: a buffer before it is called {buffer.id!r} too; ids must differ")
    return list(buffers.values())


def _buffer(path: str | Path, line: int, row: dict[str, str]) -> Buffer:
    absent = [name for name in ("id", "start", "end", "size") if name not in row]
    if absent:
        raise PlanError(f"{path}, line {line}: {len(row)} columns, too few: nothing is given for {', '.join(absent)}")
    try:
        return Buffer(
            id=row["id"],
            size=int(row["size"]),
            alignment=int(row.get("alignment") or 1),
            start=int(row["start"]),
            end=int(row["end"]),
            offset=int(row["offset"]) if row.get("offset") else None,
        )
    except (ValueError, PlanError) as error:
        raise PlanError(f"{path}, line {line}: {error}") from error
