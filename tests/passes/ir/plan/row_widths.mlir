// plan.row_widths gives buffers of rows a storage for each width, where that is smaller than rows of the widest for
// all.

!r = memref<4x8xf32, #lb.space<"global.rows", [1]>>
!w = memref<4x64xf32, #lb.space<"global.rows", [1]>>
!g = memref<4x8xf32, "global">
!h = memref<4x64xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#first = affine_map<(d0, d1) -> (d0, 0)>

// ---- rows of 32 and of 256 bytes that are in use together have two storages
// target npu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.rows", "host_access": "read_write", "coherent": true, "ndim": 2, "row_alignment": 32}]}
func.func @load(%x: !g, %y: !r) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !g) outs(%y : !r) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @widen(%x: !r, %y: !w) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#first, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !r) outs(%y : !w) attrs = {lb.extents = [4 : i64, 64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @store(%x: !w, %y: !h) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !w) outs(%y : !h) attrs = {lb.extents = [4 : i64, 64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !g, %y: !h) {
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.rows", [1]>, node = "a"} : !r
  %b = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.rows", [1]>, node = "b"} : !w
  "lb.call"(%x, %a) {callee = @load, operandSegmentSizes = array<i32: 1, 1>} : (!g, !r) -> ()
  "lb.call"(%a, %b) {callee = @widen, operandSegmentSizes = array<i32: 1, 1>} : (!r, !w) -> ()
  "lb.call"(%b, %y) {callee = @store, operandSegmentSizes = array<i32: 1, 1>} : (!w, !h) -> ()
  func.return
}
// becomes
func.func @load(%x: !g, %y: !r) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !g) outs(%y : !r) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @widen(%x: !r, %y: !w) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#first, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !r) outs(%y : !w) attrs = {lb.extents = [4 : i64, 64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @store(%x: !w, %y: !h) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !w) outs(%y : !h) attrs = {lb.extents = [4 : i64, 64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !g, %y: !h) {
  %0 = "lb.alloc_storage"() {nbytes = 1024 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global.rows">, shape = [4 : i64, 256 : i64], dtype = "uint8", lb.lower_bound = 1024 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %1 = "lb.alloc_storage"() {nbytes = 128 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global.rows">, shape = [4 : i64, 32 : i64], dtype = "uint8", lb.lower_bound = 128 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %a = "lb.alloc_tensor"(%1) {offset = 0 : i64, node = "a"} : (!lb.storage) -> !r
  %b = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "b"} : (!lb.storage) -> !w
  "lb.call"(%x, %a) {callee = @load, operandSegmentSizes = array<i32: 1, 1>} : (!g, !r) -> ()
  "lb.call"(%a, %b) {callee = @widen, operandSegmentSizes = array<i32: 1, 1>} : (!r, !w) -> ()
  "lb.call"(%b, %y) {callee = @store, operandSegmentSizes = array<i32: 1, 1>} : (!w, !h) -> ()
  func.return
}

// ---- not where the widest rows serve one buffer after the other
// target npu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.rows", "host_access": "read_write", "coherent": true, "ndim": 2, "row_alignment": 32}]}
func.func @load(%x: !g, %y: !r) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !g) outs(%y : !r) attrs = {lb.extents = [4 : i64, 8 : i64]} {
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
func.func @load_wide(%x: !h, %y: !w) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !h) outs(%y : !w) attrs = {lb.extents = [4 : i64, 64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @store_wide(%x: !w, %y: !h) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !w) outs(%y : !h) attrs = {lb.extents = [4 : i64, 64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !g, %u: !h, %y: !g, %z: !h) {
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.rows", [1]>, node = "a"} : !r
  %b = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.rows", [1]>, node = "b"} : !w
  "lb.call"(%x, %a) {callee = @load, operandSegmentSizes = array<i32: 1, 1>} : (!g, !r) -> ()
  "lb.call"(%a, %y) {callee = @store, operandSegmentSizes = array<i32: 1, 1>} : (!r, !g) -> ()
  "lb.call"(%u, %b) {callee = @load_wide, operandSegmentSizes = array<i32: 1, 1>} : (!h, !w) -> ()
  "lb.call"(%b, %z) {callee = @store_wide, operandSegmentSizes = array<i32: 1, 1>} : (!w, !h) -> ()
  func.return
}
// becomes
func.func @load(%x: !g, %y: !r) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !g) outs(%y : !r) attrs = {lb.extents = [4 : i64, 8 : i64]} {
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
func.func @load_wide(%x: !h, %y: !w) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !h) outs(%y : !w) attrs = {lb.extents = [4 : i64, 64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @store_wide(%x: !w, %y: !h) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !w) outs(%y : !h) attrs = {lb.extents = [4 : i64, 64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !g, %u: !h, %y: !g, %z: !h) {
  %0 = "lb.alloc_storage"() {nbytes = 1024 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global.rows">, shape = [4 : i64, 256 : i64], dtype = "uint8", lb.lower_bound = 1024 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %a = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "a"} : (!lb.storage) -> !r
  %b = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "b"} : (!lb.storage) -> !w
  "lb.call"(%x, %a) {callee = @load, operandSegmentSizes = array<i32: 1, 1>} : (!g, !r) -> ()
  "lb.call"(%a, %y) {callee = @store, operandSegmentSizes = array<i32: 1, 1>} : (!r, !g) -> ()
  "lb.call"(%u, %b) {callee = @load_wide, operandSegmentSizes = array<i32: 1, 1>} : (!h, !w) -> ()
  "lb.call"(%b, %z) {callee = @store_wide, operandSegmentSizes = array<i32: 1, 1>} : (!w, !h) -> ()
  func.return
}
