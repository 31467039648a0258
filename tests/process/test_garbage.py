from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

from landbridge.process.garbage import collect_new, collector_paused


@pytest.fixture
def enabled():
    was = gc.isenabled()
    yield
    (gc.enable if was else gc.disable)()


@pytest.mark.parametrize("before", [True, False])
def test_the_collector_is_as_it_was(before: bool, enabled: None) -> None:
    (gc.enable if before else gc.disable)()
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled() == before
    with pytest.raises(ValueError, match="inside"), collector_paused():
        raise ValueError("inside")
    assert gc.isenabled() == before


@pytest.mark.parametrize(("count", "is_much"), [(10, False), (1_100_000, True)])
def test_much_new_garbage_goes_while_collection_is_paused(count: int, is_much: bool) -> None:
    class Held:
        pass

    gc.collect()
    with collector_paused():
        held = Held()
        held.itself = held  # type: ignore[attr-defined]
        held.others = [[held] for _ in range(count)]  # type: ignore[attr-defined]
        gone = weakref.ref(held)
        del held
        assert gone() is not None
        collect_new()
        assert (gone() is None) == is_much


@pytest.mark.parametrize("name", ["Session", "load", "compile"])
def test_importing_a_public_name_collects_nothing(name: str) -> None:
    """Of a fresh process: it was a fifth of the time."""
    code = f"""
import gc, landbridge
import numpy
seen = []
gc.callbacks.append(lambda phase, info: seen.append(phase))
gc.set_threshold(50)
landbridge.{name}
gc.disable()
print(seen.count("start"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60)
    assert int(done.stdout) <= 5  # before and after; within there were 160 and more


def test_a_process_that_ends_frees_no_cycles_and_writes_all() -> None:
    code = """
import atexit, gc, sys
from landbridge.process.garbage import never_collect
class Held:
    def __del__(self):
        print("freed")
atexit.register(lambda: print("asked"))
never_collect()
held = Held()
held.itself = held
del held
made = [[i] for i in range(5000)]
print("ends", gc.isenabled())
sys.exit(3)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, "ends False\nasked\n", "")
