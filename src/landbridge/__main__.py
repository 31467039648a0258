"""``python -m landbridge``: the command line, where the console script is not installed."""

import sys

if not sys.flags.safe_path:
    sys.path.append(sys.path.pop(0))  # the current folder, whose files are the user's: last, where Python puts it first

from landbridge.cli import main

main()
