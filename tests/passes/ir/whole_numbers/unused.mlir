// whole_numbers.unused removes operations whose results nothing reads.

!t = tensor<8xf32, #lb.vdevice<0, "global">>
!m = memref<8xf32, "global">
!i = tensor<8xi8, #lb.vdevice<0, "global">>
!mi = memref<8xi8, "global">
#id = affine_map<(d0) -> (d0)>

// ---- nothing reads a conversion
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    %j = arith.fptosi %n : f32 to i32
    %r = arith.addf %n, %n : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !i) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!i, !t) -> !t
  func.return %y : !t
}
// becomes
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    %r = arith.addf %n, %n : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !i) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!i, !t) -> !t
  func.return %y : !t
}

// ---- not what is yielded
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    %r = arith.addf %n, %n : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !i) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!i, !t) -> !t
  func.return %y : !t
}
// unchanged
