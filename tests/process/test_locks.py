"""Locks and imports at a fork: what a child process needs is never left in the hands of a thread that it lacks."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import landbridge
from landbridge.process import locks
from landbridge.process.garbage import collector_paused

ROOT = Path(landbridge.__file__).parent
#: What has a lock of its own that a fork may leave taken.
_LOCKS = {"Lock", "RLock", "Semaphore", "BoundedSemaphore", "Barrier", "Condition"}
#: A Pool is refused in a child before its locks are touched; a progress bar is of a command; devices' tests fork not.
_OWN_LOCKS = ("process/locks.py", "session/pool.py", "cli/output.py", "testing/conformance/")


def own_locks(tree: ast.Module) -> list[str]:
    """What ``tree`` calls to get a lock besides those of ``process/locks.py``, which a Condition may be given."""
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("threading", "multiprocessing", "functools")
        for alias in node.names
    }
    found = [name for name in imported if name == "cached_property"]
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("threading"), attr=name), args=[]) if name in _LOCKS:
                found.append(name)
            case ast.Call(func=ast.Name(name), args=[]) if name in _LOCKS & imported:
                found.append(name)
    return found


def test_locks_are_made_in_one_place():
    found = {
        path: locks
        for file in ROOT.rglob("*.py")
        if not (path := file.relative_to(ROOT).as_posix()).startswith(_OWN_LOCKS)
        and (locks := own_locks(ast.parse(file.read_text(encoding="utf-8"))))
    }
    assert not found, f"take new_lock() or cached_property of landbridge.process.locks: {found}"


def test_locks_come_and_go():
    before = len(locks._locks)
    made = [locks.new_lock() for _ in range(100)]
    assert len(locks._locks) == before + 100
    del made
    gc.collect()
    assert len(locks._locks) <= before


def test_locks_that_are_made_concurrently_disturb_no_fork():
    over = threading.Event()

    def make() -> None:
        while not over.is_set():
            for _ in range(50):
                locks.new_lock()

    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            locks._take_all()
            locks._give_back()
    finally:
        over.set()
        for thread in threads:
            thread.join()


_IMPORTING = """
import os, signal, sys, threading
import landbridge.process.locks
sys.begun, sys.forked, sys.overlapped = threading.Event(), threading.Event(), []
imports = threading.Thread(target=__import__, args=(sys.argv[1],))
imports.start()
sys.begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    __import__(sys.argv[2])
    os._exit(0)
sys.forked.set()
imports.join()
print(os.waitpid(child, 0)[1], *sys.overlapped)
"""


@pytest.mark.parametrize(("imported", "needed", "waits"), [("onnx_ir", "onnx_ir", True), ("of_a_user", "json", False)])
def test_a_fork_waits_for_imports_of_what_the_package_needs(imported, needed, waits, tmp_path):
    """A child that imports what a thread of its parent was importing gets it; modules of others are theirs to guard."""
    (tmp_path / f"{imported}.py").write_text(
        f"import sys\nsys.begun.set()\nsys.overlapped.append(sys.forked.wait({1 if waits else 50}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _IMPORTING, imported, needed],  # of fork, by 3.12 on
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.split(), done.stderr) == (["0", str(not waits)], "")


_IMPORT_BEGUN_LATE = """
import os, signal, sys, threading
from importlib.util import spec_from_loader
class Waiting:  # it loads the module for the parent's thread alone, and waits before there is one
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "onnx_ir" and sys.argv[1] == "found" and not sys.begun.is_set():
            return spec_from_loader(name, cls)
    def create_module(spec):
        sys.begun.set(), sys.over.wait()
    def exec_module(module):
        module.complete = True
sys.begun, sys.over = threading.Event(), threading.Event()
sys.meta_path.insert(0, Waiting)
def begin():
    thread.start()
    sys.begun.wait()
thread = threading.Thread(target=__import__, args=("onnx_ir",))
os.register_at_fork(before=begin)  # such functions run in reverse order: this one after that of locks
import landbridge.process.locks
child = os.fork()
if child == 0:
    signal.alarm(20)
    import onnx_ir
    print(onnx_ir.complete, flush=True)
    os._exit(0)
status = os.waitpid(child, 0)[1]
sys.over.set()
thread.join()
print(status, sys.modules["onnx_ir"].complete)
"""


@pytest.mark.parametrize("begun", ["found", "run"])
def test_a_child_repeats_an_import_that_began_after_the_fork_had_waited(begun, tmp_path):
    """Whether a thread of the parent has only found the module or already runs it."""
    (tmp_path / "onnx_ir.py").write_text(
        "import sys\nfirst = not sys.begun.is_set()\nsys.begun.set()\nif first: sys.over.wait()\ncomplete = True\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _IMPORT_BEGUN_LATE, begun],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.split(), done.stderr) == (["True", "0", "True"], "")


def test_a_module_of_a_user_may_fork_while_it_is_imported(tmp_path):
    (tmp_path / "forking.py").write_text(
        "import os, time, landbridge, landbridge.process.locks\nbegan = time.monotonic()\n"
        "if not (child := os.fork()):\n    os._exit(0)\nprint(os.waitpid(child, 0)[1], time.monotonic() - began < 5)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import forking"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.split(), done.stderr) == (["0", "True"], "")


def test_the_collector_is_on_in_a_child_of_a_thread_that_paused_it():
    """Another thread paused it when the fork came; the child has no such thread."""
    inside, over = threading.Event(), threading.Event()

    def pause() -> None:
        with collector_paused():
            inside.set()
            over.wait(30)

    thread = threading.Thread(target=pause)
    thread.start()
    inside.wait(30)
    child = os.fork()
    if child == 0:
        os._exit(0 if gc.isenabled() else 1)
    over.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0 and gc.isenabled()


def test_the_thread_that_forks_in_a_pause_goes_on_with_it():
    child = None
    with collector_paused():
        child = os.fork()
    enabled = gc.isenabled()
    if child == 0:
        os._exit(0 if enabled else 1)
    assert os.waitpid(child, 0)[1] == 0 and enabled
