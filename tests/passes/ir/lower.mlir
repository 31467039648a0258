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
  %9 = arith.muli %2, %4 : index
  %10 = arith.muli %3, %4 : index
  %11 = arith.minsi %10, %4 : index
  scf.for %12 = %9 to %11 step %4 {
    %13 = arith.muli %5, %4 : index
    %14 = arith.addi %13, %4 : index
    %15 = arith.minsi %14, %4 : index
    scf.for %16 = %13 to %15 step %4 {
      %17 = arith.muli %16, %6 : index
      %18 = arith.muli %17, %7 : index
      %19 = vector.load %0[%18] : !m, vector<8xf32>
      %20 = arith.addf %19, %19 : vector<8xf32>
      vector.store %20, %1[%18] : !m, vector<8xf32>
      %21 = arith.addi %18, %7 : index
      %22 = vector.load %0[%21] : !m, vector<8xf32>
      %23 = arith.addf %22, %22 : vector<8xf32>
      vector.store %23, %1[%21] : !m, vector<8xf32>
      %24 = arith.addi %18, %8 : index
      %25 = vector.load %0[%24] : !m, vector<8xf32>
      %26 = arith.addf %25, %25 : vector<8xf32>
      vector.store %26, %1[%24] : !m, vector<8xf32>
    }
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  "lb.call"(%x, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
