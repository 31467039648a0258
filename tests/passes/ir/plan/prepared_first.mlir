// plan.prepared_first begins a storage of open size with what is prepared once: it then has one offset for all sizes.

!m = memref<16xf32, "global">
!o = memref<[n]xf32, "global">
#id1 = affine_map<(d0) -> (d0)>

// ---- the prepared buffer is at offset 0, and the buffer of n elements follows
builtin.module attributes {lb.dimensions = {n = "1..512@64"}} {
func.func @prepare(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @double(%x: !o, %y: !o) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !o) outs(%y : !o) attrs = {lb.extents = [#lb.size<[n]>]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @add(%x: !o, %w: !m, %y: !o) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, affine_map<(d0) -> (0)>, #id1], iterator_types = ["parallel"]} ins(%x, %w : !o, !m) outs(%y : !o) attrs = {lb.extents = [#lb.size<[n]>]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !o, %w: !m, %y: !o) {
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "a"} : !o
  %p = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "p"} : !m
  "lb.call"(%w, %p) {callee = @prepare, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.prepared"(%p) : (!m) -> ()
  "lb.call"(%x, %a) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!o, !o) -> ()
  "lb.call"(%a, %p, %y) {callee = @add, operandSegmentSizes = array<i32: 2, 1>} : (!o, !m, !o) -> ()
  func.return
}
}
// becomes
builtin.module attributes {lb.dimensions = {n = "1..512@64"}} {
func.func @prepare(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @double(%x: !o, %y: !o) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !o) outs(%y : !o) attrs = {lb.extents = [#lb.size<[n]>]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @add(%x: !o, %w: !m, %y: !o) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, affine_map<(d0) -> (0)>, #id1], iterator_types = ["parallel"]} ins(%x, %w : !o, !m) outs(%y : !o) attrs = {lb.extents = [#lb.size<[n]>]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !o, %w: !m, %y: !o) {
  %0 = "lb.alloc_storage"() {nbytes = #lb.size<[4*n + 64]>, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global">, lb.lower_bound = 320 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %a = "lb.alloc_tensor"(%0) {offset = 64 : i64, node = "a"} : (!lb.storage) -> !o
  %p = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "p"} : (!lb.storage) -> !m
  "lb.call"(%w, %p) {callee = @prepare, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.prepared"(%p) : (!m) -> ()
  "lb.call"(%x, %a) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!o, !o) -> ()
  "lb.call"(%a, %p, %y) {callee = @add, operandSegmentSizes = array<i32: 2, 1>} : (!o, !m, !o) -> ()
  func.return
}
}

// ---- not in a storage of known size
builtin.module attributes {lb.dimensions = {n = "1..512@64"}} {
func.func @prepare(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @add(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1, #id1], iterator_types = ["parallel"]} ins(%x, %w : !m, !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !m, %w: !m, %y: !m) {
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "a"} : !m
  %p = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "p"} : !m
  "lb.call"(%w, %p) {callee = @prepare, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.prepared"(%p) : (!m) -> ()
  "lb.call"(%x, %a) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%a, %p, %y) {callee = @add, operandSegmentSizes = array<i32: 2, 1>} : (!m, !m, !m) -> ()
  func.return
}
}
// becomes
builtin.module attributes {lb.dimensions = {n = "1..512@64"}} {
func.func @prepare(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @add(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id1, #id1, #id1], iterator_types = ["parallel"]} ins(%x, %w : !m, !m) outs(%y : !m) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !m, %w: !m, %y: !m) {
  %0 = "lb.alloc_storage"() {nbytes = 128 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global">, lb.lower_bound = 128 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %a = "lb.alloc_tensor"(%0) {offset = 64 : i64, node = "a"} : (!lb.storage) -> !m
  %p = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "p"} : (!lb.storage) -> !m
  "lb.call"(%w, %p) {callee = @prepare, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.prepared"(%p) : (!m) -> ()
  "lb.call"(%x, %a) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%a, %p, %y) {callee = @add, operandSegmentSizes = array<i32: 2, 1>} : (!m, !m, !m) -> ()
  func.return
}
}
