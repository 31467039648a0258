"""The command line: ``landbridge COMMAND``, one module for each command."""

from __future__ import annotations


def main() -> None:
    """Run the command that ``sys.argv`` names and exit with its code."""
    from landbridge.cli.app import app

    app()
