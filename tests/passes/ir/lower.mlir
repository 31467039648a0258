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
  %6 = arith.constant 3 : index
  %7 = arith.constant 8 : index
  %8 = arith.constant 16 : index
  %9 = arith.minsi %3, %4 : index
  scf.for %10 = %2 to %9 step %4 {
    %11 = arith.muli %5, %4 : index
    %12 = arith.addi %11, %4 : index
    %13 = arith.minsi %12, %4 : index
    scf.for %14 = %11 to %13 step %4 {
      %15 = arith.muli %14, %6 : index
      %16 = arith.muli %15, %7 : index
      %17 = vector.load %0[%16] : !m, vector<8xf32>
      %18 = arith.addf %17, %17 : vector<8xf32>
      vector.store %18, %1[%16] : !m, vector<8xf32>
      %19 = arith.addi %16, %7 : index
      %20 = vector.load %0[%19] : !m, vector<8xf32>
      %21 = arith.addf %20, %20 : vector<8xf32>
      vector.store %21, %1[%19] : !m, vector<8xf32>
      %22 = arith.addi %16, %8 : index
      %23 = vector.load %0[%22] : !m, vector<8xf32>
      %24 = arith.addf %23, %23 : vector<8xf32>
      vector.store %24, %1[%22] : !m, vector<8xf32>
    }
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  "lb.call"(%x, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
