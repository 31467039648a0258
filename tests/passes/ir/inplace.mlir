// inplace lets kernels that may write onto an input whose last use they are do so; they carry lb.in_place then.

!m = memref<4xf32, "global">
#id = affine_map<(d0) -> (d0)>

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
// becomes
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
// becomes
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
func.func @across(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x4xf32, "global">) outs(%y : memref<4x4xf32, "global">) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : memref<4x4xf32, "global">
  "memref.copy"(%x, %s) : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  "lb.call"(%s, %y) {callee = @across, operandSegmentSizes = array<i32: 1, 1>} : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  func.return
}
// becomes
func.func @across(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x4xf32, "global">) outs(%y : memref<4x4xf32, "global">) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : memref<4x4xf32, "global">
  "memref.copy"(%x, %s) : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  "lb.call"(%s, %y) {callee = @across, operandSegmentSizes = array<i32: 1, 1>} : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  func.return
}

// ---- not where elements are read elsewhere than they are written
func.func @down(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x4xf32, "global">) outs(%y : memref<4x4xf32, "global">) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : memref<4x4xf32, "global">
  "memref.copy"(%x, %s) : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  "lb.call"(%s, %y) {callee = @down, operandSegmentSizes = array<i32: 1, 1>} : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  func.return
}
// becomes
func.func @down(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x4xf32, "global">) outs(%y : memref<4x4xf32, "global">) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : memref<4x4xf32, "global">
  "memref.copy"(%x, %s) : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  "lb.call"(%s, %y) {callee = @down, operandSegmentSizes = array<i32: 1, 1>} : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  func.return
}

// ---- not what does not end in a loop over elements
func.func @fill(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<4x4xf32, "global">)
  func.return
}
func.func @main(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : memref<4x4xf32, "global">
  "memref.copy"(%x, %s) : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  "lb.call"(%s, %y) {callee = @fill, operandSegmentSizes = array<i32: 1, 1>} : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  func.return
}
// becomes
func.func @fill(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<4x4xf32, "global">)
  func.return
}
func.func @main(%x: memref<4x4xf32, "global">, %y: memref<4x4xf32, "global">) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : memref<4x4xf32, "global">
  "memref.copy"(%x, %s) : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  "lb.call"(%s, %y) {callee = @fill, operandSegmentSizes = array<i32: 1, 1>} : (memref<4x4xf32, "global">, memref<4x4xf32, "global">) -> ()
  func.return
}

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
// becomes
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
// becomes
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

// ---- not onto a part of a buffer
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: memref<8xf32, "global">, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : memref<8xf32, "global">
  %p = "lb.view"(%s) {offset = 4 : i64} : (memref<8xf32, "global">) -> !m
  "memref.copy"(%x, %s) : (memref<8xf32, "global">, memref<8xf32, "global">) -> ()
  "lb.call"(%p, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
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
func.func @main(%x: memref<8xf32, "global">, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : memref<8xf32, "global">
  %p = "lb.view"(%s) {offset = 4 : i64} : (memref<8xf32, "global">) -> !m
  "memref.copy"(%x, %s) : (memref<8xf32, "global">, memref<8xf32, "global">) -> ()
  "lb.call"(%p, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}

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
func.func @double(%x: memref<4x4xf32, #lb.space<"global.vtcm", [1]>>, %y: memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) outs(%y : memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: memref<4x4xf32, #lb.space<"global.vtcm", [1]>>, %y: memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.vtcm", [1]>} : memref<4x4xf32, #lb.space<"global.vtcm", [1]>>
  %t = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.vtcm", [1]>} : memref<4x4xf32, #lb.space<"global.vtcm", [1]>>
  "memref.copy"(%x, %s) : (memref<4x4xf32, #lb.space<"global.vtcm", [1]>>, memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) -> ()
  "lb.call"(%s, %t) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (memref<4x4xf32, #lb.space<"global.vtcm", [1]>>, memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) -> ()
  "memref.copy"(%t, %y) : (memref<4x4xf32, #lb.space<"global.vtcm", [1]>>, memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) -> ()
  func.return
}
// becomes
func.func @double_in_place(%x: memref<4x4xf32, #lb.space<"global.vtcm", [1]>>, %y: memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) attributes {lb.prim, lb.in_place} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) outs(%y : memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: memref<4x4xf32, #lb.space<"global.vtcm", [1]>>, %y: memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.vtcm", [1]>} : memref<4x4xf32, #lb.space<"global.vtcm", [1]>>
  %t = "lb.view"(%s) {offset = 0 : i64} : (memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) -> memref<4x4xf32, #lb.space<"global.vtcm", [1]>>
  "memref.copy"(%x, %s) : (memref<4x4xf32, #lb.space<"global.vtcm", [1]>>, memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) -> ()
  "lb.call"(%s, %t) {callee = @double_in_place, operandSegmentSizes = array<i32: 1, 1>} : (memref<4x4xf32, #lb.space<"global.vtcm", [1]>>, memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) -> ()
  "memref.copy"(%t, %y) : (memref<4x4xf32, #lb.space<"global.vtcm", [1]>>, memref<4x4xf32, #lb.space<"global.vtcm", [1]>>) -> ()
  func.return
}
