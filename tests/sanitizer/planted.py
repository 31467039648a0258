"""Planted CPU kernels: lowered functions whose index is the number that they are called with, right or wrong."""

from __future__ import annotations

from dataclasses import dataclass

#: Elements of each buffer.
EXTENT = 64


@dataclass(frozen=True)
class Planted:
    """``body`` reaches ``elements`` of operand ``operand`` (1: x, 2: y, 3: a temporary), counted from ``%i``."""

    body: str
    operand: int
    reads: bool
    elements: range = range(1)
    dtype: str = "f32"

    def outside(self, at: int) -> int | None:
        """The first element outside that the kernel reaches when its index is ``at``."""
        return next((at + e for e in self.elements if not 0 <= at + e < EXTENT), None)


def _scalar(dtype: str) -> Planted:
    body = f"%v = memref.load %x[%i] : memref<64x{dtype}>\n memref.store %v, %y[%c5] : memref<64x{dtype}>"
    return Planted(body, 1, True, dtype=dtype)


_MASKED = """%mask = {mask} : vector<8xi1>
  %other = arith.constant dense<0.0> : vector<8xf32>
  %v = vector.maskedload %x[%i], %mask, %other : memref<64xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  vector.store %v, %y[%c5] : memref<64xf32>, vector<8xf32>"""
_MASKED_STORE = """%mask = {mask} : vector<8xi1>
  %v = vector.load %x[%c5] : memref<64xf32>, vector<8xf32>
  vector.maskedstore %y[%i], %mask, %v : memref<64xf32>, vector<8xi1>, vector<8xf32>"""
_THREE = "vector.create_mask %c3"
_MIDDLE = "arith.constant dense<[0, 0, 1, 0, 1, 0, 0, 0]>"

PLANTED = {
    "load": _scalar("f32"),
    "load of bytes": _scalar("i8"),
    "load of halves": _scalar("f16"),
    "load of bfloat16": _scalar("bf16"),
    "load of truths": _scalar("i1"),
    "load of doubles": _scalar("f64"),
    "load of numbers": _scalar("i64"),
    "store": Planted("%v = memref.load %x[%c5] : memref<64xf32>\n memref.store %v, %y[%i] : memref<64xf32>", 2, False),
    "vector load": Planted(
        "%v = vector.load %x[%i] : memref<64xf32>, vector<8xf32>\n"
        "vector.store %v, %y[%c5] : memref<64xf32>, vector<8xf32>",
        1,
        True,
        range(8),
    ),
    "vector store": Planted(
        "%v = vector.load %x[%c5] : memref<64xf32>, vector<8xf32>\n"
        "vector.store %v, %y[%i] : memref<64xf32>, vector<8xf32>",
        2,
        False,
        range(8),
    ),
    "vector of truths": Planted(
        "%v = vector.load %x[%i] : memref<64xi1>, vector<8xi1>\nvector.store %v, %y[%c5] : memref<64xi1>, vector<8xi1>",
        1,
        True,
        range(8),
        "i1",
    ),
    "masked load": Planted(_MASKED.format(mask=_THREE), 1, True, range(3)),
    "masked load of the middle": Planted(_MASKED.format(mask=_MIDDLE), 1, True, range(2, 5)),
    "masked store": Planted(_MASKED_STORE.format(mask=_THREE), 2, False, range(3)),
    "masked store of the middle": Planted(_MASKED_STORE.format(mask=_MIDDLE), 2, False, range(2, 5)),
    "in a loop": Planted(
        """%zero = arith.constant 0.0 : f32
  %end2 = arith.addi %i, %c3 : index
  %sum = scf.for %j = %i to %end2 step %c1 iter_args(%s = %zero) -> (f32) {
    %v = memref.load %x[%j] : memref<64xf32>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  memref.store %sum, %y[%c5] : memref<64xf32>""",
        1,
        True,
        range(3),
    ),
    "temporary": Planted(
        """%t = memref.alloca() : memref<64xf32>
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c64 step %c1 {
    memref.store %zero, %t[%j] : memref<64xf32>
  }
  %v = memref.load %t[%i] : memref<64xf32>
  memref.store %v, %y[%c5] : memref<64xf32>""",
        3,
        True,
    ),
}


def symbol(name: str) -> str:
    """The name of the function of planted kernel ``name``."""
    return name.replace(" ", "_")


def text(name: str, report: str = "") -> str:
    """The kernel, lowered; ``report``: the type of one more operand."""
    planted = PLANTED[name]
    buffer = f"memref<64x{planted.dtype}>"
    last = f", %report: {report}" if report else ""
    return f"""
func.func @{symbol(name)}(%at: memref<1xi64>, %x: {buffer}, %y: {buffer}{last}, %begin: index, %end: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %number = memref.load %at[%c0] : memref<1xi64>
  %i = arith.index_cast %number : i64 to index
  {planted.body}
  func.return
}}"""
