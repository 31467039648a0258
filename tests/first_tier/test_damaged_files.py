"""Files that were damaged at random: the first tier leaves them to the compiler, or makes a program of them."""

from __future__ import annotations

import random

import landbridge as lb
from landbridge.first_tier.program import first_program, is_first
from tests.ops import node_cases


def _damaged(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, kind = rng.randrange(len(changed)), rng.random()
        if kind < 0.6:
            changed[at] = rng.choice((0, 1, 2, 127, 128, 255, rng.randrange(256)))
        elif kind < 0.8 and len(changed) > 8:
            del changed[at : at + rng.randrange(1, 4)]
        else:
            changed[at:at] = bytes([rng.randrange(256)])
    return bytes(changed)


def test_damaged_files():
    rng, target = random.Random(0), lb.Target("llvm")
    models = [case.model.SerializeToString() for case in node_cases.cases().values() if case.model is not None]
    models = [model for model in models if len(model) < 5000]
    outcomes = [first_program(_damaged(rng.choice(models), rng), target) for _ in range(8000)]
    taken = [each for each in outcomes if each is not None]
    assert all(map(is_first, taken))
    assert 0 < len(taken) < len(outcomes)
