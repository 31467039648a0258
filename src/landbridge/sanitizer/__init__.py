"""The sanitizer: a device around any device, ``sanitize(opencl:0)``, that finds wrong uses of its memory.

Every finding is a SanitizerError that names the two accesses; one that is found where nothing can be raised is told
when the process ends. ``docs/sanitizer.md`` says what is found, and how.
"""

from landbridge.sanitizer.findings import Finding, findings
from landbridge.sanitizer.wrap import Sanitize, check_all

__all__ = ["Finding", "Sanitize", "check_all", "findings"]
