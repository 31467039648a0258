"""``python -m landbridge``: the command line, where the console script is not installed."""

import sys

if not getattr(sys.flags, "safe_path", False):  # of Python 3.11
    sys.path.append(sys.path.pop(0))  # the current folder, whose files are the user's: last, where Python puts it first

from landbridge.cli import main

main()
