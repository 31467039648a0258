// scratch gives kernels operands for temporaries that may not fit the stack of a thread.

!x = memref<80x2x200000xf32, "global">
!max = memref<80x200000xf32, "global">
!part = memref<12800000xf32, "global">
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d0, d2)>

// ---- the largest of two in 80 rows of 200000: 800 kB in a row fit a stack
func.func @fits(%x: !x, %y: !x) attributes {lb.prim} {
  %t = memref.alloc() : !max
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%t : !max)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction", "parallel"]} ins(%x : !x) outs(%t : !max) attrs = {lb.extents = [80 : i64, 2 : i64, 200000 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    linalg.yield %c : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %t : !x, !max) outs(%y : !x) attrs = {lb.extents = [80 : i64, 2 : i64, 200000 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    linalg.yield %d : f32
  }
  func.return
}
func.func @main(%x: !x, %y: !x) {
  "lb.call"(%x, %y) {callee = @fits, operandSegmentSizes = array<i32: 1, 1>, node = "n"} : (!x, !x) -> ()
  func.return
}
// becomes
func.func @fits(%x: !x, %y: !x) attributes {lb.prim} {
  %t = memref.alloc() : !max
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%t : !max)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction", "parallel"]} ins(%x : !x) outs(%t : !max) attrs = {lb.extents = [80 : i64, 2 : i64, 200000 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    linalg.yield %c : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %t : !x, !max) outs(%y : !x) attrs = {lb.extents = [80 : i64, 2 : i64, 200000 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    linalg.yield %d : f32
  }
  func.return
}
func.func @main(%x: !x, %y: !x) {
  "lb.call"(%x, %y) {callee = @fits, operandSegmentSizes = array<i32: 1, 1>, node = "n"} : (!x, !x) -> ()
  func.return
}

// ---- rows of any length may not: 64 parts of a row, or as many as there are rows
builtin.module attributes {lb.dimensions = {N = "1..2147483647", L = "1..2147483647"}} {
func.func @any(%x: memref<[N]x2x[L]xf32, "global">, %y: memref<[N]x2x[L]xf32, "global">) attributes {lb.prim} {
  %t = memref.alloc() : memref<[N]x[L]xf32, "global">
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%t : memref<[N]x[L]xf32, "global">)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction", "parallel"]} ins(%x : memref<[N]x2x[L]xf32, "global">) outs(%t : memref<[N]x[L]xf32, "global">) attrs = {lb.extents = [#lb.size<[N]>, 2 : i64, #lb.size<[L]>]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    linalg.yield %c : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %t : memref<[N]x2x[L]xf32, "global">, memref<[N]x[L]xf32, "global">) outs(%y : memref<[N]x2x[L]xf32, "global">) attrs = {lb.extents = [#lb.size<[N]>, 2 : i64, #lb.size<[L]>]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    linalg.yield %d : f32
  }
  func.return
}
func.func @main(%x: memref<[N]x2x[L]xf32, "global">, %y: memref<[N]x2x[L]xf32, "global">) {
  "lb.call"(%x, %y) {callee = @any, operandSegmentSizes = array<i32: 1, 1>, node = "n"} : (memref<[N]x2x[L]xf32, "global">, memref<[N]x2x[L]xf32, "global">) -> ()
  func.return
}
}
// becomes
builtin.module attributes {lb.dimensions = {N = "1..2147483647", L = "1..2147483647"}} {
func.func @any(%x: memref<[N]x2x[L]xf32, "global">, %y: memref<[N]x2x[L]xf32, "global">, %s: memref<[L*N - L*max(0, N - 64)]xf32, "global">) attributes {lb.prim, lb.scratch = 2 : i64} {
  %t = memref.alloc() : memref<[N]x[L]xf32, "global">
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%t : memref<[N]x[L]xf32, "global">)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction", "parallel"]} ins(%x : memref<[N]x2x[L]xf32, "global">) outs(%t : memref<[N]x[L]xf32, "global">) attrs = {lb.extents = [#lb.size<[N]>, 2 : i64, #lb.size<[L]>]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    linalg.yield %c : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %t : memref<[N]x2x[L]xf32, "global">, memref<[N]x[L]xf32, "global">) outs(%y : memref<[N]x2x[L]xf32, "global">) attrs = {lb.extents = [#lb.size<[N]>, 2 : i64, #lb.size<[L]>]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    linalg.yield %d : f32
  }
  func.return
}
func.func @main(%x: memref<[N]x2x[L]xf32, "global">, %y: memref<[N]x2x[L]xf32, "global">) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "n scratch"} : memref<[L*N - L*max(0, N - 64)]xf32, "global">
  "lb.call"(%x, %y, %s) {callee = @any, node = "n", operandSegmentSizes = array<i32: 1, 2>} : (memref<[N]x2x[L]xf32, "global">, memref<[N]x2x[L]xf32, "global">, memref<[L*N - L*max(0, N - 64)]xf32, "global">) -> ()
  func.return
}
}
