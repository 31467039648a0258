// lower turns PrimFuncs into the structured form that code generators print: flat memrefs, loops over vectors, tasks.

!m = memref<24xf32, "global">
!rows = memref<5x2x8xf32, "global">
!windows = memref<4x2x8xf32, "global">
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

// ---- rows of a peeled tile leave out the iterations that read padding, and test nothing
func.func @window(%x: !rows, %y: !windows) attributes {lb.prim} {
  %wide = memref.alloc() : memref<6x2x8xf32, "global">
  "lb.pad"(%x, %wide) {low = [1 : i64, 0 : i64, 0 : i64], value = 0.000000e+00 : f32} : (!rows, memref<6x2x8xf32, "global">) -> ()
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !windows)
  %taps = memref.alloc() : memref<3xf32, "global">
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0 + d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%wide, %taps : memref<6x2x8xf32, "global">, memref<3xf32, "global">) outs(%y : !windows) attrs = {lb.extents = [4 : i64, 2 : i64, 8 : i64, 3 : i64]} {
  ^bb0(%a: f32, %t: f32, %sum: f32):
    %next = arith.addf %sum, %a : f32
    linalg.yield %next : f32
  }
  func.return
}
func.func @main(%x: !rows, %y: !windows) {
  "lb.call"(%x, %y) {callee = @window, operandSegmentSizes = array<i32: 1, 1>} : (!rows, !windows) -> ()
  func.return
}
// becomes
func.func @window(%0: memref<80xf32, "global">, %1: memref<64xf32, "global">, %2: index, %3: index) attributes {lb.tasks = 1 : i64, lb.schedule = "4x1 block of 8 lanes, sums over 3", lb.weighed = ["4x2: 100 %", "2x2: 181 %", "3x2: 181 %", "4x1: 190 %"]} {
  %4 = arith.constant 2 : index
  %5 = arith.constant 1 : index
  %6 = arith.constant 8 : index
  %7 = arith.constant dense<0.000000e+00> : vector<8xf32>
  %8 = arith.constant 16 : index
  %9 = arith.constant -16 : index
  %10 = arith.constant 32 : index
  %11 = arith.constant 48 : index
  %12 = arith.muli %2, %4 : index
  %13 = arith.muli %3, %4 : index
  %14 = arith.minsi %13, %4 : index
  scf.for %15 = %12 to %14 step %5 {
    %16 = arith.muli %15, %6 : index
    %17 = arith.addi %8, %16 : index
    %18 = arith.addi %17, %9 : index
    %19 = vector.load %0[%18] : memref<80xf32, "global">, vector<8xf32>
    %20 = arith.addf %7, %19 : vector<8xf32>
    %21 = arith.addf %7, %19 : vector<8xf32>
    %22 = arith.addi %10, %16 : index
    %23 = arith.addi %22, %9 : index
    %24 = vector.load %0[%23] : memref<80xf32, "global">, vector<8xf32>
    %25 = arith.addf %20, %24 : vector<8xf32>
    %26 = arith.addf %21, %24 : vector<8xf32>
    %27 = arith.addf %7, %24 : vector<8xf32>
    %28 = arith.addi %23, %8 : index
    %29 = vector.load %0[%28] : memref<80xf32, "global">, vector<8xf32>
    %30 = arith.addf %26, %29 : vector<8xf32>
    %31 = arith.addf %27, %29 : vector<8xf32>
    %32 = arith.addf %7, %29 : vector<8xf32>
    %33 = arith.addi %23, %10 : index
    %34 = vector.load %0[%33] : memref<80xf32, "global">, vector<8xf32>
    %35 = arith.addf %31, %34 : vector<8xf32>
    %36 = arith.addf %32, %34 : vector<8xf32>
    %37 = arith.addi %23, %11 : index
    %38 = vector.load %0[%37] : memref<80xf32, "global">, vector<8xf32>
    %39 = arith.addf %36, %38 : vector<8xf32>
    vector.store %25, %1[%16] : memref<64xf32, "global">, vector<8xf32>
    %40 = arith.addi %16, %8 : index
    vector.store %30, %1[%40] : memref<64xf32, "global">, vector<8xf32>
    %41 = arith.addi %16, %10 : index
    vector.store %35, %1[%41] : memref<64xf32, "global">, vector<8xf32>
    %42 = arith.addi %16, %11 : index
    vector.store %39, %1[%42] : memref<64xf32, "global">, vector<8xf32>
  }
  func.return
}
func.func @main(%x: !rows, %y: !windows) {
  "lb.call"(%x, %y) {callee = @window, operandSegmentSizes = array<i32: 1, 1>} : (!rows, !windows) -> ()
  func.return
}
