"""Conversions between f32 and 16-bit floats in integer arithmetic, for scalars and vectors of any width.

A 16-bit float is given as an i32 that holds its bits, and taken as one whose upper half is not read. All round to
nearest, ties to even, once.
"""

from __future__ import annotations

from landbridge.expansions.terms import Term


def widened(bits: Term, element: str) -> Term:
    """Computes the f32 that ``bits`` stand for as ``element``, f16 or bf16; they are below 2**16."""
    return _half_to_float(bits) if element == "f16" else _bfloat_to_float(bits)


def narrowed(x: Term, element: str) -> Term:
    """Computes the bits of f32 or f64 ``x`` as ``element``, f16 or bf16."""
    x = _round_to_odd(x) if x.is_double else x
    return _float_to_half(x) if element == "f16" else _float_to_bfloat(x)


def _float_to_bfloat(x: Term) -> Term:
    """Computes the bits of f32 ``x`` as bf16."""
    bits = x.bits()
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    return x.not_number().where(quiet, rounded)


def _bfloat_to_float(bits: Term) -> Term:
    """Computes the f32 that bf16 ``bits`` stand for."""
    return (bits << 16).as_float()


def _float_to_half(x: Term) -> Term:
    """Computes the bits of f32 ``x`` as f16."""
    bits = x.bits()
    magnitude = bits & 0x7FFFFFFF
    # Rebias the exponent by 15 - 127 and round away 13 bits of the fraction, ties to even.
    normal = (magnitude + (((15 - 127) << 23) + 0xFFF) + ((magnitude >> 13) & 1)) >> 13
    # Adding 1/2 puts the last bit of a subnormal f16 into the last bit of the sum: the addition rounds.
    half = x.like(0.5)
    subnormal = (magnitude.as_float() + half).bits() - half.bits()
    result = magnitude.less(113 << 23).where(subnormal, normal)
    infinite = magnitude.greater(255 << 23).where(magnitude.like(0x7E00), 0x7C00)
    result = magnitude.less(143 << 23).where(result, infinite)
    return result | ((bits >> 16) & 0x8000)


def _half_to_float(bits: Term) -> Term:
    """Computes the f32 that f16 ``bits`` stand for; they are below 2**16."""
    shifted = (bits & 0x7FFF) << 13
    exponent = shifted & (0x1F << 23)
    normal = shifted + ((127 - 15) << 23)
    # The smallest exponent has no hidden bit: with one added, subtracting its value again normalizes.
    lifted = (normal + (1 << 23)).as_float() - 2.0**-14
    result = exponent.equal(0).where(lifted.bits(), normal)
    result = exponent.equal(0x1F << 23).where(normal + ((255 - 143) << 23), result)
    return (result | ((bits & 0x8000) << 16)).as_float()


def _round_to_odd(x: Term) -> Term:
    """Converts f64 to f32 such that rounding the result once more, to fewer bits, equals rounding x once."""
    rounded = x.to_single()
    back = rounded.to_double()
    bits = rounded.bits()
    towards_zero = back.abs().greater(x.abs()).where(bits - 1, bits)
    return back.differs(x).where(towards_zero | 1, bits).as_float()
