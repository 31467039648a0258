"""Tests of properties draw few examples by default, and many with ``--full``; of those that passed with few, a share of
``--full`` repeats its part.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.selection import sampling

FEW, MANY = 25, 100

# The tests say nothing of time, and other work may have the processor: no deadline, no check of speed.
_PLAIN = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", _PLAIN, max_examples=FEW)
settings.register_profile("many", _PLAIN, max_examples=MANY)


def choose_profile(config: pytest.Config) -> None:
    """Let tests that state no number of examples of their own draw few, or many with ``--full``."""
    settings.load_profile("many" if config.getoption("--full") else "few")


def drawn_again(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether ``item`` tests a property, and is of the share that draws more examples than before."""
    is_property = getattr(getattr(item, "function", None), "is_hypothesis_test", False)
    return is_property and config.getoption("--full") and sampling.is_in_share(config, item)
