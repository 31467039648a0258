"""What runs on the emulated board: the program of docs/boards/pynq.md, once for each memory that the stand-in knows.

Argument: the page. What its program prints is printed after the memory's name.
"""

import sys

import pynq
from check_page import run_page

for memory in (pynq.MAPPED, pynq.CACHED, pynq.NEVER_FLUSHED):
    pynq.memory = memory
    print(f"memory {memory}", flush=True)
    run_page(sys.argv[1])
