"""Updates on a grid: columns that are independent are shared by work-items, without a barrier; others are not."""

from __future__ import annotations

import pytest

from landbridge.ir.module import IRModule
from landbridge.passes.lower import lowering_for
from landbridge.targets import Target

#: One stage that is iterated over rows: it reads and writes the state at the indices given.
TEXT = """
!m = memref<8x4x6xf32, "global">
!i = memref<3xi64, "global">
!u = memref<3x4x6xf32, "global">
!d = memref<3x4x6xi1, "global">
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @put(%i: !i, %u: !u, %y: !m, %d: !d) attributes {{lb.prim}} {{
  "lb.steps"(%i, %u, %y, %d) ({{
  ^bb0(%n: !i, %v: !u, %t: !m, %s: !d):
    linalg.generic {{indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel"]}}
        outs(%s : !d) attrs = {{lb.extents = [3 : i64, 4 : i64, 6 : i64]}} {{
    ^bb0(%e: i1):
      %k = linalg.index 0 : index
      %a = linalg.index 1 : index
      %b = linalg.index 2 : index
      %z = arith.constant 0 : index
      %w = memref.load %n[%k] : !i
      %c = arith.index_cast %w : i64 to index
      %f = memref.load %v[%k, %a, %b] : !u
      %o = memref.load %t[{read}] : !m
      %g = arith.addf %f, %o : f32
      memref.store %g, %t[{written}] : !m
      %q = arith.constant true
      linalg.yield %q : i1
    }}
  }}) {{count = 3 : i64}} : (!i, !u, !m, !d) -> ()
  func.return
}}
func.func @main() {{
  func.return
}}
"""


@pytest.mark.parametrize(
    ("read", "written", "independent"),
    [
        ("%k, %a, %b", "%k, %a, %b", True),
        ("%z, %a, %b", "%k, %a, %b", True),
        ("%k, %a, %z", "%k, %a, %b", False),  # reads what another work-item writes
        ("%k, %z, %a", "%k, %a, %b", False),  # the same loops, of other axes
        ("%k, %a, %z", "%k, %a, %z", False),  # several write one element
    ],
)
def test_columns_are_shared_where_they_are_independent(read: str, written: str, independent: bool) -> None:
    target = Target("opencl -device-class=gpu")
    module = IRModule.parse(TEXT.format(read=read, written=written), (target,))
    lowered = str(lowering_for(target)(module.prims()["put"]))
    assert lowered.count("gpu.launch") == 1
    assert ("gpu.barrier" in lowered) is not independent
