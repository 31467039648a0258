"""Products on one thread of BLAS, and the number of threads afterwards."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from landbridge.process import blas_threads
from landbridge.process.blas_threads import OneBlasThread


@pytest.fixture
def library(monkeypatch):
    """Stands for OpenBLAS: the number of its threads, and each that was set."""
    state = [4]
    monkeypatch.setattr(blas_threads, "_functions", lambda: (lambda: state[-1], state.append))
    return state


def test_the_number_is_restored_by_the_last_that_leaves(library):
    one = OneBlasThread()
    with one:
        assert library == [4, 1]
        with one:
            assert library == [4, 1]
        assert library == [4, 1]
    assert library == [4, 1, 4]


def test_it_is_restored_after_an_error(library):
    with pytest.raises(ValueError, match="any"), OneBlasThread():
        raise ValueError("any")
    assert library[-1] == 4


def test_two_threads_inside(library):
    one, entered, leave = OneBlasThread(), threading.Event(), threading.Event()

    def work():
        with one:
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=work)
    with one:
        thread.start()
        entered.wait(60)
    assert library[-1] == 1
    leave.set()
    thread.join(60)
    assert library[-1] == 4


def test_one_thread_is_left_as_it_is(library):
    library[:] = [1]
    with OneBlasThread():
        pass
    assert library == [1]


def test_without_openblas(monkeypatch):
    monkeypatch.setattr(blas_threads, "_functions", lambda: None)
    with OneBlasThread():
        pass


def test_a_fork_inside_restores_it_in_the_child():
    code = """
import os
import numpy
from landbridge.process import blas_threads
functions = blas_threads._functions()
if functions is None:
    print("other")
else:
    count, limit = functions
    limit(2)
    with blas_threads.one_blas_thread:
        child = os.fork()
        if child == 0:
            os._exit(count())
        print(count(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), end=" ")
    print(count())
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() in ("1 2 2", "other")
