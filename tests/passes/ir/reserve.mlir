// reserve gives the buffers of @main that are filled up to a length memory for the longest; PrimFuncs keep the length.

!m = memref<[clamped(lb_length_0, 1, 8)]xf32, "global">
!mw = memref<8xf32, "global">
#id = affine_map<(d0) -> (d0)>

// ---- a buffer in use up to a length has the capacity
// target gpu: opencl
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
func.func @main(%n: memref<i32, "global">, %x: !mw, %r: !mw) {
  %v = "lb.view"(%x) {offset = 0 : i64} : (!mw) -> !m
  %d = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "lb.call"(%v, %n, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!m, memref<i32, "global">, !m) -> ()
  func.return
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
func.func @main(%n: memref<i32, "global">, %x: !mw, %r: !mw) {
  %v = "lb.view"(%x) {offset = 0 : i64} : (!mw) -> !mw
  %d = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !mw
  "lb.call"(%v, %n, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!mw, memref<i32, "global">, !mw) -> ()
  func.return
}
}
