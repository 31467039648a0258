"""A Generation for several programs of one compile."""

from __future__ import annotations

import threading
from contextlib import closing

from landbridge.codegen.generate import Generation
from landbridge.targets import Target


def test_programs_share_one_image_whose_threads_end() -> None:
    before = set(threading.enumerate())
    with closing(Generation(early=True)) as code:
        code.begin([Target("llvm")], 1000)
        begun = code._begun[0]
        code.begin([Target("llvm")], 1000)
        assert code._begun[0] is begun
    assert set(threading.enumerate()) == before
