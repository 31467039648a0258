"""``pytest --pyargs landbridge.testing --device NAME``: adds the option, for these tests only.

Projects have options of that name, too, so this one exists only where the suite is requested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def pytest_load_initial_conftests(early_config: Any, parser: Any, args: Sequence[str]) -> None:
    """Adds ``--device`` and ``--device-timeout`` where the tests of this package are requested."""
    if "--pyargs" in args and any(arg.split("::")[0].startswith("landbridge.testing") for arg in args):
        group = parser.getgroup("landbridge")
        group.addoption("--device", metavar="NAME", help="the device whose conformance is tested: name[:index]")
        group.addoption(
            "--device-timeout", type=float, metavar="SECONDS", help="after which a test of the device hangs"
        )
