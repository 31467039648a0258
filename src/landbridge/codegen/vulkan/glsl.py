"""Numbers of the instructions of GLSL.std.450 (SPIR-V Extended Instructions for GLSL 1.00, section 2)."""

from __future__ import annotations

OPCODES = {
    "roundeven": 2,
    "trunc": 3,
    "fabs": 4,
    "sabs": 5,
    "floor": 8,
    "ceil": 9,
    "sqrt": 31,
    "rsqrt": 32,
    "umin": 38,
    "smin": 39,
    "umax": 41,
    "smax": 42,
    "fma": 50,
    "lowest_bit": 73,
    "highest_bit": 75,
    "minnum": 79,
    "maxnum": 80,
}
