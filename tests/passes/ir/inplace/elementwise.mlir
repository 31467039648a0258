// inplace.elementwise lets a kernel write its result onto an operand that its last stage alone reads, each element
// where it writes it, if that is the last use of the operand. The kernel carries lb.in_place then.

!m = memref<4xf32, "global">
!m8 = memref<8xf32, "global">
!q = memref<4x4xf32, "global">
!rows = memref<4x4xf32, #lb.space<"global.vtcm", [1]>>
#id = affine_map<(d0) -> (d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#swap = affine_map<(d0, d1) -> (d1, d0)>

// ---- an elementwise kernel writes onto what it reads last
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "lb.call"(%x, %s) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%s, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @double_in_place(%x: !m, %y: !m) attributes {lb.prim, lb.in_place} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = "lb.view"(%y) {offset = 0 : i64} : (!m) -> !m
  "lb.call"(%x, %s) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%s, %y) {callee = @double_in_place, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}

// ---- not while somebody else still reads it, and never onto an input of the model
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m, %z: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "lb.call"(%x, %s) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%s, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%x, %z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%s, %z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// unchanged

// ---- not where the memory of the two is not of one vdevice
// target cpu: llvm
// target npu: llvm
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  %t = memref.alloc() {lb.vdevice = #lb.vdevice<1, "global">} : !m
  "lb.call"(%x, %s) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%s, %t) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%t, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// unchanged

// ---- one kernel in place for all calls; the other is gone where nobody calls it
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  %t = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %t) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%t, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
func.func @double_in_place(%x: !m, %y: !m) attributes {lb.prim, lb.in_place} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = "lb.view"(%y) {offset = 0 : i64} : (!m) -> !m
  %t = "lb.view"(%s) {offset = 0 : i64} : (!m) -> !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %t) {callee = @double_in_place, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%t, %y) {callee = @double_in_place, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}

// ---- not where elements are written elsewhere than they are read
func.func @across(%x: !q, %y: !q) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id2, #swap], iterator_types = ["parallel", "parallel"]} ins(%x : !q) outs(%y : !q) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: !q, %y: !q) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !q
  "memref.copy"(%x, %s) : (!q, !q) -> ()
  "lb.call"(%s, %y) {callee = @across, operandSegmentSizes = array<i32: 1, 1>} : (!q, !q) -> ()
  func.return
}
// unchanged

// ---- not where elements are read elsewhere than they are written
func.func @down(%x: !q, %y: !q) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#swap, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : !q) outs(%y : !q) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: !q, %y: !q) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !q
  "memref.copy"(%x, %s) : (!q, !q) -> ()
  "lb.call"(%s, %y) {callee = @down, operandSegmentSizes = array<i32: 1, 1>} : (!q, !q) -> ()
  func.return
}
// unchanged

// ---- not what does not end in a loop over elements
func.func @fill(%x: !q, %y: !q) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !q)
  func.return
}
func.func @main(%x: !q, %y: !q) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !q
  "memref.copy"(%x, %s) : (!q, !q) -> ()
  "lb.call"(%s, %y) {callee = @fill, operandSegmentSizes = array<i32: 1, 1>} : (!q, !q) -> ()
  func.return
}
// unchanged

// ---- not onto what an earlier stage reads too
func.func @twice(%x: !m, %y: !m) attributes {lb.prim} {
  %t = memref.alloc() : !m
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%t : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %t : !m, !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %y) {callee = @twice, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// unchanged

// ---- not onto what a call reads twice
func.func @add(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %w : !m, !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %s, %y) {callee = @add, operandSegmentSizes = array<i32: 2, 1>} : (!m, !m, !m) -> ()
  func.return
}
// unchanged

// ---- not onto a part of a buffer
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m8, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m8
  %p = "lb.view"(%s) {offset = 4 : i64} : (!m8) -> !m
  "memref.copy"(%x, %s) : (!m8, !m8) -> ()
  "lb.call"(%p, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// unchanged

// ---- a buffer that is made after what becomes a view of it is made first
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %t = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %t) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "memref.copy"(%t, %y) : (!m, !m) -> ()
  func.return
}
// becomes
func.func @double_in_place(%x: !m, %y: !m) attributes {lb.prim, lb.in_place} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  %t = "lb.view"(%s) {offset = 0 : i64} : (!m) -> !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %t) {callee = @double_in_place, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "memref.copy"(%t, %y) : (!m, !m) -> ()
  func.return
}

// ---- a buffer stays before what fills it
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  %t = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "lb.call"(%s, %t) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "memref.copy"(%t, %y) : (!m, !m) -> ()
  func.return
}
// becomes
func.func @double_in_place(%x: !m, %y: !m) attributes {lb.prim, lb.in_place} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  %t = "lb.view"(%s) {offset = 0 : i64} : (!m) -> !m
  "lb.call"(%s, %t) {callee = @double_in_place, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "memref.copy"(%t, %y) : (!m, !m) -> ()
  func.return
}

// ---- rows onto rows of one shape
func.func @double(%x: !rows, %y: !rows) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : !rows) outs(%y : !rows) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !rows, %y: !rows) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.vtcm", [1]>} : !rows
  %t = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.vtcm", [1]>} : !rows
  "memref.copy"(%x, %s) : (!rows, !rows) -> ()
  "lb.call"(%s, %t) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!rows, !rows) -> ()
  "memref.copy"(%t, %y) : (!rows, !rows) -> ()
  func.return
}
// becomes
func.func @double_in_place(%x: !rows, %y: !rows) attributes {lb.prim, lb.in_place} {
  linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : !rows) outs(%y : !rows) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !rows, %y: !rows) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.vtcm", [1]>} : !rows
  %t = "lb.view"(%s) {offset = 0 : i64} : (!rows) -> !rows
  "memref.copy"(%x, %s) : (!rows, !rows) -> ()
  "lb.call"(%s, %t) {callee = @double_in_place, operandSegmentSizes = array<i32: 1, 1>} : (!rows, !rows) -> ()
  "memref.copy"(%t, %y) : (!rows, !rows) -> ()
  func.return
}

// ---- not in memory where a launch takes no space twice
// target npu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "none", "coherent": false, "one_tensor_per_space": true}]}
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  %t = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %t) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "memref.copy"(%t, %y) : (!m, !m) -> ()
  func.return
}
// unchanged

// ---- not onto elements of another dtype
func.func @round(%x: !m, %y: memref<4xi32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : memref<4xi32, "global">) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: i32):
    %r = arith.fptosi %a : f32 to i32
    linalg.yield %r : i32
  }
  func.return
}
func.func @main(%x: !m, %y: memref<4xi32, "global">) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %y) {callee = @round, operandSegmentSizes = array<i32: 1, 1>} : (!m, memref<4xi32, "global">) -> ()
  func.return
}
// unchanged
