"""Programs for processors without an operating system, run by emulated boards."""
