// lower turns PrimFuncs into the structured form that code generators print: flat memrefs, loops over vectors, tasks.

!m = memref<24xf32, "global">
#id = affine_map<(d0) -> (d0)>

// ---- an elementwise kernel on vectors of 8
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [24 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  "lb.call"(%x, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
func.func @double(%0: !m, %1: !m, %2: index, %3: index) attributes {lb.tasks = 1 : i64, lb.schedule = "3x1 block of 8 lanes, each element on its own"} {
  %4 = arith.constant 1 : index
  %5 = arith.constant 0 : index
  %6 = arith.constant 8 : index
  %7 = arith.constant 16 : index
  %8 = arith.minsi %3, %4 : index
  scf.for %9 = %2 to %8 step %4 {
    %10 = vector.load %0[%5] : !m, vector<8xf32>
    %11 = arith.addf %10, %10 : vector<8xf32>
    vector.store %11, %1[%5] : !m, vector<8xf32>
    %12 = vector.load %0[%6] : !m, vector<8xf32>
    %13 = arith.addf %12, %12 : vector<8xf32>
    vector.store %13, %1[%6] : !m, vector<8xf32>
    %14 = vector.load %0[%7] : !m, vector<8xf32>
    %15 = arith.addf %14, %14 : vector<8xf32>
    vector.store %15, %1[%7] : !m, vector<8xf32>
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  "lb.call"(%x, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
