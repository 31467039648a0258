// plan.spaces gives buffers storages that hold one of them at a time, for memory where a launch takes no space twice.

!m = memref<16xf32, "global">
#id1 = affine_map<(d0) -> (d0)>

// ---- buffers that are not in use together have one space
// target npu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "none", "coherent": false, "one_tensor_per_space": true}]}
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
  %c = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "c"} : !m
  "lb.call"(%x, %a) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%a, %b) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%b, %c) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%c, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
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
  %1 = "lb.alloc_storage"() {nbytes = 64 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global">, lb.lower_bound = 64 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %a = "lb.alloc_tensor"(%1) {offset = 0 : i64, node = "a"} : (!lb.storage) -> !m
  %b = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "b"} : (!lb.storage) -> !m
  %c = "lb.alloc_tensor"(%1) {offset = 0 : i64, node = "c"} : (!lb.storage) -> !m
  "lb.call"(%x, %a) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%a, %b) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%b, %c) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%c, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}

// ---- not in other flat memory
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
  %c = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "c"} : !m
  "lb.call"(%x, %a) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%a, %b) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%b, %c) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%c, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
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
  %0 = "lb.alloc_storage"() {nbytes = 128 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global">, lb.lower_bound = 128 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %a = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "a"} : (!lb.storage) -> !m
  %b = "lb.alloc_tensor"(%0) {offset = 64 : i64, node = "b"} : (!lb.storage) -> !m
  %c = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "c"} : (!lb.storage) -> !m
  "lb.call"(%x, %a) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%a, %b) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%b, %c) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%c, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
