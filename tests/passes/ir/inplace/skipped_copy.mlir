// inplace.skipped_copy marks a kernel that only copies: where its output is its input, it does nothing.

!m = memref<4xf32, "global">
#id = affine_map<(d0) -> (d0)>

// ---- a copy in place is no work
func.func @copy(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %y) {callee = @copy, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
func.func @copy_in_place(%x: !m, %y: !m) attributes {lb.prim, lb.in_place, lb.unless_same} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = "lb.view"(%y) {offset = 0 : i64} : (!m) -> !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %y) {callee = @copy_in_place, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}

// ---- not a kernel that computes
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
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
func.func @double_in_place(%x: !m, %y: !m) attributes {lb.prim, lb.in_place} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %s = "lb.view"(%y) {offset = 0 : i64} : (!m) -> !m
  "memref.copy"(%x, %s) : (!m, !m) -> ()
  "lb.call"(%s, %y) {callee = @double_in_place, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
