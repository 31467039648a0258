"""Arenas of programs and of buffers: lifetimes, uses, kinds, live bytes; planned again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge import planner
from landbridge.errors import ExecutableError, PlanError
from landbridge.executable.instructions import Prepared
from landbridge.plan_chart import Kind, Use, arena_of_buffers, arenas_of_executable, replanned
from landbridge.planner import Buffer
from tests.plan_chart.programs import PROGRAM, program


def test_steps_of_a_program_have_names_and_kinds() -> None:
    flat, rows = arenas_of_executable(program())
    assert flat.steps == rows.steps
    assert [(step.name, step.kind) for step in flat.steps] == [
        ("left", Kind.CONTRACTION),
        ("right", Kind.MOVE),
        ("update", Kind.ELEMENTWISE),
        ("NonZero", Kind.HOST),
        ("if", Kind.UNKNOWN),
        ("there", Kind.MOVE),
        ("max_pool_9", Kind.REDUCTION),
        ("last", Kind.ELEMENTWISE),
    ]


def test_blocks_of_a_program_have_lifetimes_and_uses() -> None:
    flat, rows = arenas_of_executable(program())
    joined, flag = flat.blocks
    assert (joined.id, joined.offset, joined.nbytes, joined.start, joined.end) == ("concat", 64, 512, 0, 7)
    assert (joined.kind, joined.subject) == (Kind.CONTRACTION, "float32 2x64")
    assert joined.uses == (
        Use(0, 0, 256, writes=True),
        Use(1, 256, 256, writes=True),
        Use(2, 0, 512, writes=False),
        Use(2, 0, 512, writes=True),
        Use(3, 0, 512, writes=False),
        Use(5, 0, 512, writes=False),
        Use(6, 0, 512, writes=False),
    )
    assert joined.rewritten_at() == [2]
    assert (flag.id, flag.start, flag.end, flag.kind, flag.subject) == ("flag", 3, 5, Kind.HOST, "bool scalar")
    (block,) = rows.blocks  # two rows of 16 bytes, from row 1 on
    assert (block.id, block.offset, block.nbytes, block.start, block.end) == ("concat#2", 16, 32, 5, 8)


def test_arenas_state_what_the_target_and_the_planner_reported() -> None:
    flat, rows = arenas_of_executable(program())
    assert (flat.device, flat.scope, flat.peak, flat.lower_bound, flat.capacity) == ("cpu", "global", 1024, 577, 4096)
    assert (rows.scope, rows.peak, rows.capacity, rows.granule) == ("global.rows", 64, None, 16)
    assert flat.live_bytes == (512, 512, 512, 513, 513, 512, 512, 0)
    assert flat.peak_step == 3
    assert [block.id for block in flat.holders(3)] == ["concat", "flag"]


def test_an_arena_is_planned_again_in_its_own_granules() -> None:
    flat, rows = arenas_of_executable(program())
    again, _ = replanned(flat, 577, 1.0)
    assert (again.peak, again.lower_bound, again.proved_optimal, again.capacity) == (513, 513, True, 577)
    assert {block.id: block.offset for block in again.blocks} == {"concat": 0, "flag": 512}
    assert again.blocks[0].uses == flat.blocks[0].uses
    again, _ = replanned(rows, None, 1.0)
    assert (again.peak, again.blocks[0].offset) == (32, 0)
    with pytest.raises(PlanError):
        replanned(rows, 31, 1.0)


def test_what_is_prepared_lives_to_the_end() -> None:
    executable = program()
    main = replace(executable.main, instructions=(*PROGRAM[:10], Prepared((5,)), *PROGRAM[10:]))
    flat, _ = arenas_of_executable(replace(executable, functions={"main": main}))
    assert len(flat.steps) == 8
    assert [(block.id, block.start, block.end) for block in flat.blocks] == [("concat", 0, 8), ("flag", 3, 5)]


def test_a_program_without_steps_has_no_blocks() -> None:
    executable = program()
    main = replace(executable.main, instructions=PROGRAM[:8])
    arenas = arenas_of_executable(replace(executable, functions={"main": main}))
    assert [(arena.blocks, arena.live_bytes, arena.peak_step) for arena in arenas] == [((), (), 0)] * 2


def test_a_storage_of_no_vdevice_is_refused() -> None:
    executable = program()
    with pytest.raises(ExecutableError, match="vdevice 1, of 1"):
        arenas_of_executable(replace(executable, vdevices=executable.vdevices[:1]))


_buffers = st.lists(
    st.tuples(st.integers(0, 100), st.integers(-50, 50), st.integers(1, 40)), min_size=1, max_size=12
).map(lambda rows: [Buffer(i, size, 1, start, start + life) for i, (size, start, life) in enumerate(rows)])


@given(_buffers)
def test_steps_of_buffers_lie_between_times_at_which_something_changes(buffers: list[Buffer]) -> None:
    arena = arena_of_buffers(buffers, planner.plan(buffers, budget_seconds=0))
    times = [*(step.time for step in arena.steps), arena.end_time]
    assert times == sorted({time for b in buffers for time in (b.start, b.end)})
    for buffer, block in zip(buffers, arena.blocks, strict=True):
        assert (times[block.start], times[block.end]) == (buffer.start, buffer.end)
    for step, live in enumerate(arena.live_bytes):
        assert live == sum(b.size for b in buffers if b.start <= times[step] < b.end)
