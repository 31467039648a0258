"""What runs on the emulated board: the program of docs/boards/de10.md, and what it says of kernels and of ``cma``.

Argument: the page. A line for each thing that holds; ends with 1 where one does not.
"""

import mmap
import os
import sys

import numpy as np
from check_page import run_page

import landbridge as lb

#: Reserved by the device tree with ``no-map``, where the page's program has neither frame nor scores.
PART = 0x3080_0000
#: Reserved by the device tree, and mapped by the kernel.
MAPPED = 0x3200_0000

run_page(sys.argv[1])

file = os.open("/dev/mem", os.O_RDWR | os.O_SYNC)
try:
    mmap.mmap(file, mmap.PAGESIZE, offset=MAPPED)
    raise AssertionError("a kernel with STRICT_DEVMEM maps what it uses itself")
except PermissionError as error:
    print(f"holds the first row is refused: {error.strerror}")
os.close(file)

os.environ["LANDBRIDGE_DEV_MEM"] = f"{PART:#x}+0x100000,write_combined"
tensor = lb.empty((256,), dtype="uint8", device="cma", scope="global.dev_mem", alignment=4096)
tensor.copy_from(np.arange(256, dtype=np.uint8))
print(f"holds global.dev_mem is at {tensor.extents()[0][0]:#x}")
