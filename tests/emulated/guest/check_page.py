"""The program of a page about boards, as it stands, beside the ``cls.lbx`` that the page saves on the laptop."""

import os
import runpy


def run_page(name):
    """Returns the program's variables."""
    os.chdir(f"/packages/{name}")
    return runpy.run_path("program.py")
