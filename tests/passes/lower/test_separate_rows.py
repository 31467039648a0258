"""Iterated stages on a grid: a workgroup for each row where rows are independent, else one for all."""

from __future__ import annotations

import pytest

from landbridge.ir.module import IRModule
from landbridge.passes.lower import lowering_for
from landbridge.targets import Target

#: A stage that is iterated three times. It reads the state of the iteration before, and writes its own.
TEXT = """
!s = memref<4x4x6xf32, "global">
!x = memref<3x4x6xf32, "global">
#in = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#out = affine_map<(d0, d1, d2) -> ({written})>
func.func @step(%x: !x, %s: !s) attributes {{lb.prim}} {{
  "lb.steps"(%x, %s) ({{
  ^bb0(%v: !x, %t: !s):
    linalg.generic {{indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "parallel"]}}
        ins(%v : !x) outs(%t : !s) attrs = {{lb.extents = [3 : i64, 4 : i64, 6 : i64]}} {{
    ^bb0(%e: f32, %f: f32):
      %k = linalg.index 0 : index
      %a = linalg.index 1 : index
      %b = linalg.index 2 : index
      %z = arith.constant 0 : index
      %o = memref.load %t[{read}] : !s
      %g = arith.addf %e, %o : f32
      linalg.yield %g : f32
    }}
  }}) {{count = 3 : i64}} : (!x, !s) -> ()
  func.return
}}
func.func @main() {{
  func.return
}}
"""


@pytest.mark.parametrize("target", ["opencl -device-class=gpu", "opencl -device-class=cpu", "vulkan"])
@pytest.mark.parametrize(
    ("read", "written", "rows"),
    [
        ("%k, %a, %z", "d0 + 1, d1, d2", 4),
        ("%k, %a, %b", "d0 + 1, d1, d2", 4),
        ("%k, %z, %b", "d0 + 1, d1, d2", 1),  # reads another row
        ("%k, %b, %a", "d0 + 1, d1, d2", 1),  # the row is another index there
    ],
)
def test_rows_are_workgroups_where_they_are_independent(read: str, written: str, rows: int, target: str) -> None:
    chosen = Target(target)
    module = IRModule.parse(TEXT.format(read=read, written=written), (chosen,))
    lowered = lowering_for(chosen)(module.prims()["step"])
    (launch,) = (op for op in lowered.walk() if op.name == "gpu.launch")
    assert launch.operands[0].owner.value.value.data == rows  # type: ignore[union-attr]
