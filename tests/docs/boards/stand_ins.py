"""Files in place of what boards have: their modules, nodes and sysfs folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import tests.device.board_array as board_array

#: Notes what a page writes to files of the board, in order.
_NOTES_WRITES = """
from pathlib import Path as _Path
_write_text = _Path.write_text
def _noted(self, text, *args, **kwargs):
    with open("writes.log", "a") as log:
        log.write(f"{self.name}={text}\\n")
    return _write_text(self, text, *args, **kwargs)
_Path.write_text = _noted
"""


def on_a_board(page: str, program: str, folder: Path) -> str:
    """``program`` of ``page``, changed to find in ``folder`` what it would find on a board."""
    for tag in ('"pynq-z2", ', '"de10-nano", '):
        program = program.replace(tag, "")  # compiled for this machine, which plays the laptop and the board
    match page:
        case "pynq":
            shutil.copy(Path(__file__).with_name("pynq.py"), folder)
            shutil.copy(str(board_array.__file__), folder)
        case "u-dma-buf":
            files = folder / "sys" / "udmabuf0"
            files.mkdir(parents=True)
            for name, value in {"phys_addr": "0x1f000000", "size": str(1 << 20)}.items():
                (files / name).write_text(value + "\n")
            (folder / "dev").mkdir()
            (folder / "dev" / "udmabuf0").write_bytes(bytes(1 << 20))
            program = program.replace("/sys/class/u-dma-buf", "sys").replace('"/dev"', '"dev"')
            return _NOTES_WRITES + program
        case "de10":
            with (folder / "mem").open("wb") as memory:
                memory.truncate(0x3000_0000 + (1 << 25))  # nothing but holes
            program = program.replace("/dev/mem", "mem")
    return program


#: What the first run of the page about u-dma-buf writes: the frame comes to the processor, and so does the line of
#: which the scores are 8 bytes; then that goes to the logic.
FIRST_RUN = [
    *("sync_offset=0", "sync_size=110592", "sync_direction=2", "sync_for_cpu=1"),
    *("sync_offset=110592", "sync_size=64", "sync_direction=2", "sync_for_cpu=1"),
    *("sync_offset=110592", "sync_size=64", "sync_direction=1", "sync_for_device=1"),
]
