// lengths gives kernels the lengths that their sizes depend on as operands. Where one cannot load them, all compute the
// whole capacity.

!n = tensor<i32, #lb.vdevice<0, "global">>
!t = tensor<[clamped(lb_length_0, 1, 8)]xf32, #lb.vdevice<0, "global">>
!m = memref<[clamped(lb_length_0, 1, 8)]xf32, "global">
!w = tensor<8xf32, #lb.vdevice<0, "global">>
!mw = memref<8xf32, "global">
#id = affine_map<(d0) -> (d0)>
!one = tensor<1xf32, #lb.vdevice<0, "global">>
!w9 = tensor<9xf32, #lb.vdevice<0, "global">>

// ---- a kernel for workgroups loads the length
// target gpu: opencl
builtin.module attributes {lb.dimensions = {lb_length_0 = "-2147483647..2147483647@8"}} {
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [#lb.size<[clamped(lb_length_0, 1, 8)]>]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @spread(%x: memref<1xf32, "global">, %y: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (0)>, #id], iterator_types = ["parallel"]} ins(%x : memref<1xf32, "global">) outs(%y : !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%n: !n, %x: !w) -> !w {
  "lb.length"(%n) {size = #lb.size<[lb_length_0]>} : (!n) -> ()
  %v = "lb.view"(%x) {offset = 0 : i64} : (!w) -> !t
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%v, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %z = "lb.view"(%y) {offset = 0 : i64} : (!t) -> !one
  %e = bufferization.alloc_tensor() : !w
  %r = "lb.call"(%z, %e) {callee = @spread, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!one, !w) -> !w
  func.return %r : !w
}
}
// becomes
builtin.module attributes {lb.dimensions = {lb_length_0 = "-2147483647..2147483647@8"}} {
func.func @double(%x: !m, %n: memref<i32, "global">, %y: !m) attributes {lb.prim} {
  "lb.length"(%n) {size = #lb.size<[lb_length_0]>} : (memref<i32, "global">) -> ()
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [#lb.size<[clamped(lb_length_0, 1, 8)]>]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @spread(%x: memref<1xf32, "global">, %y: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (0)>, #id], iterator_types = ["parallel"]} ins(%x : memref<1xf32, "global">) outs(%y : !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%n: !n, %x: !w) -> !w {
  %v = "lb.view"(%x) {offset = 0 : i64} : (!w) -> !t
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%v, %n, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!t, !n, !t) -> !t
  %z = "lb.view"(%y) {offset = 0 : i64} : (!t) -> !one
  %e = bufferization.alloc_tensor() : !w
  %r = "lb.call"(%z, %e) {callee = @spread, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!one, !w) -> !w
  func.return %r : !w
}
}

// ---- a CPU computes the whole capacity
// target cpu: llvm -mcpu=x86-64-v3
builtin.module attributes {lb.dimensions = {lb_length_0 = "-2147483647..2147483647@8"}} {
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [#lb.size<[clamped(lb_length_0, 1, 8)]>]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @spread(%x: memref<1xf32, "global">, %y: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (0)>, #id], iterator_types = ["parallel"]} ins(%x : memref<1xf32, "global">) outs(%y : !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%n: !n, %x: !w) -> !w {
  "lb.length"(%n) {size = #lb.size<[lb_length_0]>} : (!n) -> ()
  %v = "lb.view"(%x) {offset = 0 : i64} : (!w) -> !t
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%v, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %z = "lb.view"(%y) {offset = 0 : i64} : (!t) -> !one
  %e = bufferization.alloc_tensor() : !w
  %r = "lb.call"(%z, %e) {callee = @spread, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!one, !w) -> !w
  func.return %r : !w
}
}
// becomes
builtin.module attributes {lb.dimensions = {lb_length_0 = "-2147483647..2147483647@8"}} {
func.func @double(%x: !mw, %y: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mw) outs(%y : !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @spread(%x: memref<1xf32, "global">, %y: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (0)>, #id], iterator_types = ["parallel"]} ins(%x : memref<1xf32, "global">) outs(%y : !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%n: !n, %x: !w) -> !w {
  %v = "lb.view"(%x) {offset = 0 : i64} : (!w) -> !w
  %d = bufferization.alloc_tensor() : !w
  %y = "lb.call"(%v, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!w, !w) -> !w
  %z = "lb.view"(%y) {offset = 0 : i64} : (!w) -> !one
  %e = bufferization.alloc_tensor() : !w
  %r = "lb.call"(%z, %e) {callee = @spread, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!one, !w) -> !w
  func.return %r : !w
}
}

// ---- a buffer that begins elsewhere is read whole: its first element depends on the length
// target gpu: opencl
builtin.module attributes {lb.dimensions = {lb_length_0 = "-2147483647..2147483647@8"}} {
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [#lb.size<[clamped(lb_length_0, 1, 8)]>]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @spread(%x: memref<1xf32, "global">, %y: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (0)>, #id], iterator_types = ["parallel"]} ins(%x : memref<1xf32, "global">) outs(%y : !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%n: !n, %x: !w9) -> !w {
  "lb.length"(%n) {size = #lb.size<[lb_length_0]>} : (!n) -> ()
  %v = "lb.view"(%x) {offset = 1 : i64} : (!w9) -> !t
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%v, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %z = "lb.view"(%y) {offset = 0 : i64} : (!t) -> !one
  %e = bufferization.alloc_tensor() : !w
  %r = "lb.call"(%z, %e) {callee = @spread, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!one, !w) -> !w
  func.return %r : !w
}
}
// becomes
builtin.module attributes {lb.dimensions = {lb_length_0 = "-2147483647..2147483647@8"}} {
func.func @double(%x: !mw, %y: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mw) outs(%y : !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @spread(%x: memref<1xf32, "global">, %y: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (0)>, #id], iterator_types = ["parallel"]} ins(%x : memref<1xf32, "global">) outs(%y : !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%n: !n, %x: !w9) -> !w {
  %v = "lb.view"(%x) {offset = 1 : i64} : (!w9) -> !w
  %d = bufferization.alloc_tensor() : !w
  %y = "lb.call"(%v, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!w, !w) -> !w
  %z = "lb.view"(%y) {offset = 0 : i64} : (!w) -> !one
  %e = bufferization.alloc_tensor() : !w
  %r = "lb.call"(%z, %e) {callee = @spread, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!one, !w) -> !w
  func.return %r : !w
}
}

// ---- a length that is computed after a kernel: none is loaded
// target gpu: opencl
builtin.module attributes {lb.dimensions = {lb_length_0 = "-2147483647..2147483647@8"}} {
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [#lb.size<[clamped(lb_length_0, 1, 8)]>]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @spread(%x: memref<1xf32, "global">, %y: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (0)>, #id], iterator_types = ["parallel"]} ins(%x : memref<1xf32, "global">) outs(%y : !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @next(%x: memref<i32, "global">, %y: memref<i32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%x : memref<i32, "global">) outs(%y : memref<i32, "global">) attrs = {lb.extents = []} {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %a : i32
    linalg.yield %c : i32
  }
  func.return
}
func.func @main(%n: !n, %x: !w) -> !w {
  %v = "lb.view"(%x) {offset = 0 : i64} : (!w) -> !t
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%v, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %z = "lb.view"(%y) {offset = 0 : i64} : (!t) -> !one
  %e = bufferization.alloc_tensor() : !w
  %r = "lb.call"(%z, %e) {callee = @spread, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!one, !w) -> !w
  %m = bufferization.alloc_tensor() : !n
  %late = "lb.call"(%n, %m) {callee = @next, node = "c", operandSegmentSizes = array<i32: 1, 1>} : (!n, !n) -> !n
  "lb.length"(%late) {size = #lb.size<[lb_length_0]>} : (!n) -> ()
  func.return %r : !w
}
}
// becomes
builtin.module attributes {lb.dimensions = {lb_length_0 = "-2147483647..2147483647@8"}} {
func.func @double(%x: !mw, %y: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mw) outs(%y : !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @spread(%x: memref<1xf32, "global">, %y: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (0)>, #id], iterator_types = ["parallel"]} ins(%x : memref<1xf32, "global">) outs(%y : !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @next(%x: memref<i32, "global">, %y: memref<i32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%x : memref<i32, "global">) outs(%y : memref<i32, "global">) attrs = {lb.extents = []} {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %a : i32
    linalg.yield %c : i32
  }
  func.return
}
func.func @main(%n: !n, %x: !w) -> !w {
  %v = "lb.view"(%x) {offset = 0 : i64} : (!w) -> !w
  %d = bufferization.alloc_tensor() : !w
  %y = "lb.call"(%v, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!w, !w) -> !w
  %z = "lb.view"(%y) {offset = 0 : i64} : (!w) -> !one
  %e = bufferization.alloc_tensor() : !w
  %r = "lb.call"(%z, %e) {callee = @spread, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!one, !w) -> !w
  %m = bufferization.alloc_tensor() : !n
  %late = "lb.call"(%n, %m) {callee = @next, node = "c", operandSegmentSizes = array<i32: 1, 1>} : (!n, !n) -> !n
  func.return %r : !w
}
}
