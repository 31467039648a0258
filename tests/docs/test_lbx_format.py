"""The page of the ``.lbx`` format says of versions what the reader and the writer do."""

from __future__ import annotations

from landbridge.executable.header import (
    FORMAT_VERSION,
    LOOPS_VERSION,
    OLDEST_VERSION,
    OPEN_LAUNCHES_VERSION,
    ROWS_VERSION,
    SIZES_VERSION,
)
from tests.docs.test_docs import ROOT


def test_the_versions_of_the_page_are_those_of_the_reader_and_the_writer() -> None:
    page = (ROOT / "docs" / "lbx-format.md").read_text()
    versions = ", ".join(map(str, range(OLDEST_VERSION, FORMAT_VERSION + 1)))
    for row in (
        f"| formats that this release reads | {versions} |",
        f"| formats that it writes | {LOOPS_VERSION - 1}; {LOOPS_VERSION} for a program with a loop; "
        f"{OPEN_LAUNCHES_VERSION} for open dimensions on other devices than the CPU; "
        f"{ROWS_VERSION} for inputs and outputs in rows; {SIZES_VERSION} for open dimensions |",
        f"| formats before {OLDEST_VERSION} | refused: compile the model again |",
        f"| formats after {FORMAT_VERSION} | refused: install a newer Landbridge |",
    ):
        assert row in page.splitlines()
    promise = f"`.lbx` files of format {OLDEST_VERSION} and newer"
    for name in ("release", "supported-systems"):
        assert promise in " ".join((ROOT / "docs" / f"{name}.md").read_text().split())
