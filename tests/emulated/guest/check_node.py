"""What runs on the emulated board: the program of docs/boards/u-dma-buf.md, then its Session on frames of the logic.

Argument: the page.
"""

import sys

from check_page import run_page
from logic_engine import READ, WRITE_FRAME, Engine

page, engine = run_page(sys.argv[1]), Engine()
frame, scores, address = page["frame"], page["scores"], page["memory"].address
for _ in range(3):
    engine.start(WRITE_FRAME, address, frame.nbytes)
    engine.wait()
    page["session"].run()
    engine.start(READ, address + frame.nbytes, scores.nbytes)
    engine.wait()
