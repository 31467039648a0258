"""MiniMalloc's CSV: buffers that are legal, or a PlanError."""

from __future__ import annotations

import tempfile
from pathlib import Path

from landbridge.errors import PlanError
from landbridge.planner.csv_reader import read_csv

INSTRUMENT = ("landbridge",)
SEEDS = [
    b"id,lower,upper,size\nb0,0,3,4\nb1,3,9,4\n",
    b"buffer,start,end,size,alignment,offset\n0,0,10,64,32,\n1,4,7,64,,32\n",
    b'id,lower,upper,size\n"a,b",1,2,3\n\n"a""b",1,2,0\r\n',
]

_folder = tempfile.TemporaryDirectory()
_path = Path(_folder.name) / "buffers.csv"


def check(data: bytes) -> None:
    _path.write_bytes(data)
    try:
        buffers = read_csv(_path)
    except PlanError:
        return
    for buffer in buffers:
        assert buffer.size >= 0 and buffer.start < buffer.end
        assert buffer.offset is None or buffer.offset % buffer.alignment == 0


if __name__ == "__main__":
    from harness import restart_under_atheris

    restart_under_atheris(__file__)
