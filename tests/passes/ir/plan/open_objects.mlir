// plan.open_objects lets buffers of rows or images whose extents a run decides share objects of equal extents.

!r = memref<4x8xf32, #lb.space<"global.rows", [1]>>
!g = memref<4x8xf32, "global">
!ro = memref<[n]x8xf32, #lb.space<"global.rows", [1]>>
!go = memref<[n]x8xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>

// ---- buffers of n rows that are not in use together share an object
// target npu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.rows", "host_access": "read_write", "coherent": true, "ndim": 2, "row_alignment": 32}]}
builtin.module attributes {lb.dimensions = {n = "1..512@64"}} {
func.func @load(%x: !go, %y: !ro) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !go) outs(%y : !ro) attrs = {lb.extents = [#lb.size<[n]>, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @double(%x: !ro, %y: !ro) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !ro) outs(%y : !ro) attrs = {lb.extents = [#lb.size<[n]>, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @store(%x: !ro, %y: !go) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !ro) outs(%y : !go) attrs = {lb.extents = [#lb.size<[n]>, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !go, %y: !go) {
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.rows", [1]>, node = "a"} : !ro
  %b = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.rows", [1]>, node = "b"} : !ro
  %c = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.rows", [1]>, node = "c"} : !ro
  "lb.call"(%x, %a) {callee = @load, operandSegmentSizes = array<i32: 1, 1>} : (!go, !ro) -> ()
  "lb.call"(%a, %b) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!ro, !ro) -> ()
  "lb.call"(%b, %c) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!ro, !ro) -> ()
  "lb.call"(%c, %y) {callee = @store, operandSegmentSizes = array<i32: 1, 1>} : (!ro, !go) -> ()
  func.return
}
}
// becomes
builtin.module attributes {lb.dimensions = {n = "1..512@64"}} {
func.func @load(%x: !go, %y: !ro) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !go) outs(%y : !ro) attrs = {lb.extents = [#lb.size<[n]>, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @double(%x: !ro, %y: !ro) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !ro) outs(%y : !ro) attrs = {lb.extents = [#lb.size<[n]>, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @store(%x: !ro, %y: !go) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !ro) outs(%y : !go) attrs = {lb.extents = [#lb.size<[n]>, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !go, %y: !go) {
  %0 = "lb.alloc_storage"() {nbytes = #lb.size<[32*n]>, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global.rows">, shape = [#lb.size<[n]>, 8 : i64], dtype = "float32", lb.lower_bound = 32 : i64, lb.proved_optimal = false} : () -> !lb.storage
  %1 = "lb.alloc_storage"() {nbytes = #lb.size<[32*n]>, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global.rows">, shape = [#lb.size<[n]>, 8 : i64], dtype = "float32", lb.lower_bound = 32 : i64, lb.proved_optimal = false} : () -> !lb.storage
  %a = "lb.alloc_tensor"(%1) {offset = 0 : i64, node = "a"} : (!lb.storage) -> !ro
  %b = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "b"} : (!lb.storage) -> !ro
  %c = "lb.alloc_tensor"(%1) {offset = 0 : i64, node = "c"} : (!lb.storage) -> !ro
  "lb.call"(%x, %a) {callee = @load, operandSegmentSizes = array<i32: 1, 1>} : (!go, !ro) -> ()
  "lb.call"(%a, %b) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!ro, !ro) -> ()
  "lb.call"(%b, %c) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!ro, !ro) -> ()
  "lb.call"(%c, %y) {callee = @store, operandSegmentSizes = array<i32: 1, 1>} : (!ro, !go) -> ()
  func.return
}
}

// ---- not buffers of known extents, which share rows
// target npu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.rows", "host_access": "read_write", "coherent": true, "ndim": 2, "row_alignment": 32}]}
builtin.module attributes {lb.dimensions = {n = "1..512@64"}} {
func.func @load(%x: !g, %y: !r) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !g) outs(%y : !r) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @double(%x: !r, %y: !r) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !r) outs(%y : !r) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @store(%x: !r, %y: !g) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !r) outs(%y : !g) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !g, %y: !g) {
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.rows", [1]>, node = "a"} : !r
  %b = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.rows", [1]>, node = "b"} : !r
  %c = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.rows", [1]>, node = "c"} : !r
  "lb.call"(%x, %a) {callee = @load, operandSegmentSizes = array<i32: 1, 1>} : (!g, !r) -> ()
  "lb.call"(%a, %b) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!r, !r) -> ()
  "lb.call"(%b, %c) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!r, !r) -> ()
  "lb.call"(%c, %y) {callee = @store, operandSegmentSizes = array<i32: 1, 1>} : (!r, !g) -> ()
  func.return
}
}
// becomes
builtin.module attributes {lb.dimensions = {n = "1..512@64"}} {
func.func @load(%x: !g, %y: !r) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !g) outs(%y : !r) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @double(%x: !r, %y: !r) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !r) outs(%y : !r) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @store(%x: !r, %y: !g) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !r) outs(%y : !g) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !g, %y: !g) {
  %0 = "lb.alloc_storage"() {nbytes = 256 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global.rows">, shape = [8 : i64, 32 : i64], dtype = "uint8", lb.lower_bound = 256 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %a = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "a"} : (!lb.storage) -> !r
  %b = "lb.alloc_tensor"(%0) {offset = 128 : i64, node = "b"} : (!lb.storage) -> !r
  %c = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "c"} : (!lb.storage) -> !r
  "lb.call"(%x, %a) {callee = @load, operandSegmentSizes = array<i32: 1, 1>} : (!g, !r) -> ()
  "lb.call"(%a, %b) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!r, !r) -> ()
  "lb.call"(%b, %c) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!r, !r) -> ()
  "lb.call"(%c, %y) {callee = @store, operandSegmentSizes = array<i32: 1, 1>} : (!r, !g) -> ()
  func.return
}
}
