"""Which allocator a scope uses: by name, by object, for the process and for a Session."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import landbridge as lb
from landbridge.device.api import Device
from landbridge.device.registry import device
from landbridge.errors import InputError
from landbridge.memory.allocators.default import (
    default_allocator,
    named_allocator,
    set_default_allocator,
    set_memory_cfg,
)
from landbridge.memory.allocators.memory_cfg import MemoryCfg, check_memory_cfg, parse_memory_cfg
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory.allocators.statistics import StatisticsAllocator
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.device.queueing_device import QueueingDeviceAPI
from tests.whole_models.small_models import add

CPU = device("cpu")


@pytest.fixture
def process_cfg() -> Iterator[None]:
    before = set_memory_cfg({})
    yield
    set_memory_cfg(before)


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        ("navie", "no allocator is called 'navie' .did you mean 'naive'"),
        ({"cpu:0": "heap"}, "no allocator is called 'heap'; legal: pooled, size_classes, naive"),
        ({("cpu:0", 3): "naive"}, "memory_cfg has the key"),
        ({("cpu:0", "global", "x"): "naive"}, "memory_cfg has the key"),
        (["naive"], "memory_cfg is"),
        ({"cpu": NaiveAllocator(CPU)}, "serves the one"),
        ({("cpu:0", "vtcm"): NaiveAllocator(CPU)}, "an allocator of cpu:0 global for"),
    ],
)
def test_what_is_not_legal(cfg: MemoryCfg, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_memory_cfg(cfg)


@pytest.mark.parametrize(
    ("texts", "cfg"),
    [
        ([], None),
        (["naive"], "naive"),
        (["cpu=naive"], {"cpu:0": "naive"}),
        (["cpu:0/=pooled"], {("cpu:0", "global"): "pooled"}),
        (["sim:lazy:1/shared=naive", "cpu=pooled"], {("sim:lazy:1", "shared"): "naive", "cpu:0": "pooled"}),
    ],
)
def test_text(texts: list[str], cfg: MemoryCfg | None) -> None:
    assert parse_memory_cfg(texts) == cfg
    for wrong in (["naive", "pooled"], ["cpu:0"], ["cpu:0=", "naive"]):
        with pytest.raises(InputError):
            parse_memory_cfg(wrong)


@given(st.lists(st.text(max_size=12), max_size=3))
def test_any_text_is_read_or_refused(texts: list[str]) -> None:
    try:
        cfg = parse_memory_cfg(texts)
    except (InputError, lb.errors.UnknownDeviceError):
        return
    assert cfg is None or check_memory_cfg(cfg) == cfg


def test_the_process(process_cfg: None) -> None:
    assert isinstance(default_allocator(CPU), PooledAllocator)
    assert set_memory_cfg({"cpu": "naive"}) == {}
    assert isinstance(default_allocator(CPU), NaiveAllocator)
    set_memory_cfg({"cpu": "naive", ("cpu", "global"): "pooled"})  # the more exact entry counts
    assert isinstance(default_allocator(CPU), PooledAllocator)
    counted = StatisticsAllocator(default_allocator(CPU))
    assert set_memory_cfg({("cpu", ""): counted}) == {"cpu:0": "naive", ("cpu:0", "global"): "pooled"}
    retained = lb.empty(1000, dtype="int8", device="cpu")
    assert counted.counters.current_count == 1
    del retained
    owned = NaiveAllocator(CPU)
    before = set_default_allocator(owned)
    assert before is counted
    assert default_allocator(CPU) is owned
    shared = default_allocator(CPU, shared=True)  # an object says nothing of memory made to be shared
    assert isinstance(shared, PooledAllocator)
    set_default_allocator(named_allocator(CPU, "global", "pooled"))


def test_a_name_for_everything_leaves_scopes_that_do_not_allow_it(process_cfg: None) -> None:
    class Fixed(QueueingDeviceAPI):
        def memory_kinds(self, index: int):  # type: ignore[no-untyped-def]
            from dataclasses import replace

            return {name: replace(kind, allocators=("naive",)) for name, kind in super().memory_kinds(index).items()}

    where = Device(Fixed(), 0)
    set_memory_cfg("pooled")
    assert isinstance(default_allocator(where), NaiveAllocator)
    set_memory_cfg({("queueing:0", "global"): "pooled"})
    with pytest.raises(InputError, match=r"'pooled' was requested for scope 'global' of queueing:0; legal: naive"):
        default_allocator(where)


@pytest.fixture(scope="module")
def program() -> lb.Executable:
    return lb.compile(add())


class TestSession:
    def test_by_object(self, program: lb.Executable) -> None:
        counted = StatisticsAllocator(NaiveAllocator(CPU))
        session = lb.Session(program, num_threads=1, memory_cfg={("cpu:0", "global"): counted})
        session.set_input("x", np.ones(64, np.float32))
        session.run()
        assert counted.counters.current_count == 2  # its copy of the input, and the output
        del session
        assert counted.counters.current_count == 0

    def test_by_name(self, program: lb.Executable) -> None:
        for name, kind in (("naive", NaiveAllocator), ("pooled", PooledAllocator)):
            session = lb.Session(program, memory_cfg={("cpu:0", "global"): name})
            assert isinstance(session._executor.program.memory.binding(0).allocator, kind)

    @pytest.mark.parametrize(
        ("cfg", "message"),
        [
            (
                {("cpu:0", "globl"): "naive"},
                r"about \('cpu:0', 'globl'\), which the program does not use; it uses \(",
            ),
            ({"sim:lazy": "naive"}, "about 'sim:lazy:0', which the program does not use"),
            ("best", "no allocator is called 'best'"),
        ],
    )
    def test_wrong(self, program: lb.Executable, cfg: MemoryCfg, message: str) -> None:
        with pytest.raises(InputError, match=message):
            lb.Session(program, memory_cfg=cfg)

    def test_an_allocator_of_a_lost_device(self, program: lb.Executable) -> None:
        from dataclasses import replace

        api = SimLazyDeviceAPI(0)
        where = Device(api, 0)
        old = NaiveAllocator(where, "shared")
        api.lose(0)
        anew = where.reopen()
        on_shared = replace(program, vdevices=(replace(program.vdevices[0], scope="shared"),))
        with pytest.raises(InputError, match="another life of sim:lazy:0"):
            lb.Session(on_shared, device=anew, memory_cfg={("sim:lazy:0", "shared"): old})
