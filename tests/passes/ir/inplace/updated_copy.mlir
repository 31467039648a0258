// inplace.updated_copy lets a kernel that copies an operand, and then updates parts of the copy, update the operand
// itself, if that is its last use.

!m8 = memref<8xf32, "global">
!i = memref<2xi64, "global">
!u = memref<2xf32, "global">
!d = memref<2xi1, "global">
#id = affine_map<(d0) -> (d0)>

// ---- two elements are put where the operand is
func.func @put(%x: !m8, %i: !i, %u: !u, %y: !m8, %d: !d) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m8) outs(%y : !m8) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  "lb.steps"(%i, %u, %y, %d) ({
  ^bb0(%n: !i, %v: !u, %t: !m8, %s: !d):
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%s : !d) attrs = {lb.extents = [2 : i64]} {
    ^bb0(%e: i1):
      %k = linalg.index 0 : index
      %w = memref.load %n[%k] : !i
      %c = arith.index_cast %w : i64 to index
      %f = memref.load %v[%k] : !u
      memref.store %f, %t[%c] : !m8
      %o = arith.constant true
      linalg.yield %o : i1
    }
  }) {count = 2 : i64} : (!i, !u, !m8, !d) -> ()
  func.return
}
func.func @main(%x: !m8, %i: !i, %u: !u, %y: !m8) {
  %d = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !d
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m8
  "memref.copy"(%x, %s) : (!m8, !m8) -> ()
  "lb.call"(%s, %i, %u, %y, %d) {callee = @put, node = "n", operandSegmentSizes = array<i32: 3, 2>} : (!m8, !i, !u, !m8, !d) -> ()
  func.return
}
// becomes
func.func @put_in_place(%x: !m8, %i: !i, %u: !u, %y: !m8, %d: !d) attributes {lb.prim, lb.in_place} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m8) outs(%y : !m8) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  "lb.steps"(%i, %u, %y, %d) ({
  ^bb0(%n: !i, %v: !u, %t: !m8, %s: !d):
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%s : !d) attrs = {lb.extents = [2 : i64]} {
    ^bb0(%e: i1):
      %k = linalg.index 0 : index
      %w = memref.load %n[%k] : !i
      %c = arith.index_cast %w : i64 to index
      %f = memref.load %v[%k] : !u
      memref.store %f, %t[%c] : !m8
      %o = arith.constant true
      linalg.yield %o : i1
    }
  }) {count = 2 : i64} : (!i, !u, !m8, !d) -> ()
  func.return
}
func.func @main(%x: !m8, %i: !i, %u: !u, %y: !m8) {
  %d = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !d
  %s = "lb.view"(%y) {offset = 0 : i64} : (!m8) -> !m8
  "memref.copy"(%x, %s) : (!m8, !m8) -> ()
  "lb.call"(%s, %i, %u, %y, %d) {callee = @put_in_place, node = "n", operandSegmentSizes = array<i32: 3, 2>} : (!m8, !i, !u, !m8, !d) -> ()
  func.return
}

// ---- not onto an input of the model, which is the caller's
func.func @put(%x: !m8, %i: !i, %u: !u, %y: !m8, %d: !d) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m8) outs(%y : !m8) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  "lb.steps"(%i, %u, %y, %d) ({
  ^bb0(%n: !i, %v: !u, %t: !m8, %s: !d):
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%s : !d) attrs = {lb.extents = [2 : i64]} {
    ^bb0(%e: i1):
      %k = linalg.index 0 : index
      %w = memref.load %n[%k] : !i
      %c = arith.index_cast %w : i64 to index
      %f = memref.load %v[%k] : !u
      memref.store %f, %t[%c] : !m8
      %o = arith.constant true
      linalg.yield %o : i1
    }
  }) {count = 2 : i64} : (!i, !u, !m8, !d) -> ()
  func.return
}
func.func @main(%x: !m8, %i: !i, %u: !u, %y: !m8) {
  %d = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !d
  "lb.call"(%x, %i, %u, %y, %d) {callee = @put, node = "n", operandSegmentSizes = array<i32: 3, 2>} : (!m8, !i, !u, !m8, !d) -> ()
  func.return
}
// unchanged

// ---- not onto what is read later
func.func @put(%x: !m8, %i: !i, %u: !u, %y: !m8, %d: !d) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m8) outs(%y : !m8) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  "lb.steps"(%i, %u, %y, %d) ({
  ^bb0(%n: !i, %v: !u, %t: !m8, %s: !d):
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%s : !d) attrs = {lb.extents = [2 : i64]} {
    ^bb0(%e: i1):
      %k = linalg.index 0 : index
      %w = memref.load %n[%k] : !i
      %c = arith.index_cast %w : i64 to index
      %f = memref.load %v[%k] : !u
      memref.store %f, %t[%c] : !m8
      %o = arith.constant true
      linalg.yield %o : i1
    }
  }) {count = 2 : i64} : (!i, !u, !m8, !d) -> ()
  func.return
}
func.func @main(%x: !m8, %i: !i, %u: !u, %y: !m8, %z: !m8) {
  %d = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !d
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m8
  "memref.copy"(%x, %s) : (!m8, !m8) -> ()
  "lb.call"(%s, %i, %u, %y, %d) {callee = @put, node = "n", operandSegmentSizes = array<i32: 3, 2>} : (!m8, !i, !u, !m8, !d) -> ()
  "memref.copy"(%s, %z) : (!m8, !m8) -> ()
  func.return
}
// unchanged

// ---- not where the updates read the operand too
func.func @put(%x: !m8, %i: !i, %u: !u, %y: !m8, %d: !d) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m8) outs(%y : !m8) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  "lb.steps"(%i, %u, %x, %y, %d) ({
  ^bb0(%n: !i, %v: !u, %g: !m8, %t: !m8, %s: !d):
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%s : !d) attrs = {lb.extents = [2 : i64]} {
    ^bb0(%e: i1):
      %k = linalg.index 0 : index
      %w = memref.load %n[%k] : !i
      %c = arith.index_cast %w : i64 to index
      %f = memref.load %g[%k] : !m8
      memref.store %f, %t[%c] : !m8
      %o = arith.constant true
      linalg.yield %o : i1
    }
  }) {count = 2 : i64} : (!i, !u, !m8, !m8, !d) -> ()
  func.return
}
func.func @main(%x: !m8, %i: !i, %u: !u, %y: !m8) {
  %d = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !d
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m8
  "memref.copy"(%x, %s) : (!m8, !m8) -> ()
  "lb.call"(%s, %i, %u, %y, %d) {callee = @put, node = "n", operandSegmentSizes = array<i32: 3, 2>} : (!m8, !i, !u, !m8, !d) -> ()
  func.return
}
// unchanged
