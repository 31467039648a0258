// plan.unused_buffer removes buffers that nothing uses.

!m = memref<16xf32, "global">
#id1 = affine_map<(d0) -> (d0)>

// ---- a buffer without uses takes no memory
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "a"} : !m
  %b = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "b"} : !m
  "lb.call"(%x, %b) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%b, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %0 = "lb.alloc_storage"() {nbytes = 64 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global">, lb.lower_bound = 64 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %b = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "b"} : (!lb.storage) -> !m
  "lb.call"(%x, %b) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%b, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}

// ---- not one that is written and never read
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "a"} : !m
  "lb.call"(%x, %a) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%x, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %0 = "lb.alloc_storage"() {nbytes = 64 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global">, lb.lower_bound = 64 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %a = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "a"} : (!lb.storage) -> !m
  "lb.call"(%x, %a) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%x, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
