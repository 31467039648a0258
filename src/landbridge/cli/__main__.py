"""``python -m landbridge.cli``: the command line, where the console script is not installed."""

from landbridge.cli import main

main()
