"""Reports in which a kernel that checks its accesses records one outside of an operand, for the host to read.

A report is 64-bit words, all 0 while nothing was found: two for each operand of the kernel, in their order, and two for
its temporaries. The first of them is about reads, the second about writes. One that is not 0 is ``2 * element + 1``:
the element, counted from the operand's first, that was to be reached and was not. Of several, any one is kept.
"""

from __future__ import annotations

#: The host builtin that looks at a report, clears it and raises SanitizerError.
ACCESS_CHECK = "landbridge.check_accesses"
#: The host builtin that makes a report of any memory.
CLEAR_REPORT = "landbridge.clear_access_report"


def report_words(operands: int) -> int:
    """Returns the number of words in the report of a kernel of ``operands`` operands."""
    return 2 * (operands + 1)


def report_word(operand: int, reads: bool) -> int:
    """Returns the index of the word about reads or writes of operand number ``operand``; temporaries follow the last
    operand.
    """
    return 2 * operand + (0 if reads else 1)
