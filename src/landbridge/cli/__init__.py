"""The command line: ``landbridge run``, ``compile``, ``devices``, ``targets``, ``opt``, ``plan``, ``compare``."""

from __future__ import annotations


def main() -> None:
    """Run the command that ``sys.argv`` names and exit with its code."""
    from landbridge.cli.app import app

    app()
