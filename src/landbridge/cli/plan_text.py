"""Prints a memory plan as text: the size of each scope, its largest holders, and which blocks limit it."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.cli.output import line, table
from landbridge.plan_chart import Arena, ArenaBlock
from landbridge.plan_chart.names import shortened
from landbridge.plan_chart.units import bytes_text

#: Blocks listed for a step; the rest is one line.
_HOLDERS = 10
#: Nodes of a fused kernel that are named.
_NODES = 3
#: Characters of a name.
_NAME = 32


def print_plan(arenas: Sequence[Arena], seconds: float) -> None:
    """Prints the scopes of a plan that took ``seconds``, and for each the step at which most bytes are alive."""
    arenas = [arena for arena in arenas if arena.blocks]
    if not arenas:
        line("nothing is planned: no bytes are needed but those of inputs, outputs and constants")
        return
    table(
        f"memory, planned in {seconds:.3g} s",
        ("device", "scope", "planned bytes", "lower bound", "proved optimal", "capacity", "blocks"),
        [
            (a.device, a.scope, a.peak, a.lower_bound, a.proved_optimal, "" if a.capacity is None else a.capacity,
             len(a.blocks))
            for a in arenas
        ],
    )  # fmt: skip
    for arena in arenas:
        line()
        _print_peak(arena)


def _print_peak(arena: Arena) -> None:
    peak, most = arena.peak_step, max(arena.live_bytes)
    holders = arena.holders(peak)
    place = f"{arena.device} {arena.scope}: " if arena.device else ""
    table(
        f"{place}{bytes_text(most)} alive at {_step(arena, peak)}",
        ("holder", "bytes", "share", "offset", *_LIFETIME[_is_program(arena)]),
        [
            (_short(block.id), block.nbytes, f"{100 * block.nbytes / max(most, 1):.0f} %", block.offset,
             *_lifetime(arena, block))
            for block in holders[:_HOLDERS]
        ],
    )  # fmt: skip
    if len(holders) > _HOLDERS:
        rest = sum(block.nbytes for block in holders[_HOLDERS:])
        line(f"and {len(holders) - _HOLDERS} smaller ones of {rest:,} bytes in all")
    line(_advice(arena, most))


def _step(arena: Arena, step: int) -> str:
    name = _short(arena.steps[step].name)
    return f"{name}, step {step} of {len(arena.steps)}" if _is_program(arena) else f"time {name}"


#: The columns for a lifetime: steps of a program have names, buffers of a file have times.
_LIFETIME = {True: ("last used by", "what"), False: ("from", "until")}


def _lifetime(arena: Arena, block: ArenaBlock) -> tuple[str, str]:
    if _is_program(arena):
        return _short(arena.steps[block.end - 1].name), block.subject
    end = arena.steps[block.end].time if block.end < len(arena.steps) else arena.end_time
    return arena.steps[block.start].name, str(end)


def _short(name: str) -> str:
    """Returns a kernel's name without the middle of a long chain of nodes, and of a long name."""
    nodes = name.split("+")
    return shortened(name if len(nodes) <= _NODES else f"{nodes[0]}+..+{nodes[-1]}", _NAME)


def _is_program(arena: Arena) -> bool:
    return bool(arena.device)


def _advice(arena: Arena, most: int) -> str:
    """Returns a text that says what limits the plan, and how much could be saved there."""
    if not arena.proved_optimal:
        return (
            f"The plan takes {arena.peak - arena.lower_bound:,} bytes more than the lower bound; whether they are "
            "needed is not proved. A longer search may save some: --budget."
        )
    ties = sum(live == most for live in arena.live_bytes) - 1
    others = f" and at {ties} other steps" if ties > 1 else f" and at {_tied(arena, most)}" if ties else ""
    below = max((live for live in arena.live_bytes if live < most), default=0)
    return (
        f"No plan of these blocks takes less. To need less, holders must shrink or live shorter there{others}; "
        f"every other step has at most {below:,} bytes alive, {most - below:,} fewer."
    )


def _tied(arena: Arena, most: int) -> str:
    steps = [step for step, live in enumerate(arena.live_bytes) if live == most]
    return _step(arena, steps[1])
