"""xdsl defines its operations while plugins are unknown: a test that swaps entry points first would spoil them."""

import landbridge.ir.dialect  # noqa: F401
