"""A run drawn as a timeline: a lane for the CPU and each device, a box for each kernel and host step.

Pure data in, text out.
"""

from __future__ import annotations

from landbridge.timeline.span import Span

__all__ = ["Span"]
