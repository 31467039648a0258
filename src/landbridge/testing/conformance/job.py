"""The request to the server of isolated tests."""

from __future__ import annotations

from landbridge.records import record

#: The job that asks for what the device says of itself.
FACTS = "facts"
#: How the detail of a test begins whose process did not end by itself.
ENDED = ("crashed", "hangs")
#: The environment in which the server imports numpy without threads: a process with others cannot be forked safely.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@record(frozen=True)
class IsolatedTest:
    """A request to run test ``test`` on ``device``, ended after ``seconds``.

    ``origin``, ``module:class``, is for a device that no entry point names.
    """

    device: str
    origin: str
    test: str
    seconds: float
