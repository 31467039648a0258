// fuse.unit_dimensions lets a call read a tensor as it is before a reshape that adds or removes unit dimensions alone.

!t = tensor<64x128xf32, #lb.vdevice<0, "global">>
!m = memref<64x128xf32, "global">
!u = tensor<1x64x128xf32, #lb.vdevice<0, "global">>
!mu = memref<1x64x128xf32, "global">
!h = tensor<128x64xf32, #lb.vdevice<0, "global">>
!mh = memref<128x64xf32, "global">
!s = tensor<1x64xf32, #lb.vdevice<0, "global">>
!n = memref<1x64xf32, "global">
!r = tensor<128xf32, #lb.vdevice<0, "global">>
!mr = memref<128xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// ---- a sum over an image of one channel reads, and doubles, what has no channels
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @sums(%x: !mu, %y: !n) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !n)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mu) outs(%y : !n) attrs = {lb.extents = [1 : i64, 64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !s {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "double", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %u = "lb.view"(%y) {offset = 0 : i64} : (!t) -> !u
  %d_z = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%u, %d_z) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!u, !s) -> !s
  func.return %z : !s
}
// becomes
func.func @double_sums_1(%x: !m, %y: !n) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !n)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !m) outs(%y : !n) attrs = {lb.extents = [1 : i64, 64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    %r_1 = arith.addf %b, %r : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !t) -> !s {
  %d_z = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%x, %d_z) {callee = @double_sums_1, operandSegmentSizes = array<i32: 1, 1>, node = "double+sums"} : (!t, !s) -> !s
  func.return %z : !s
}

// ---- not across a reshape of other dimensions
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @sums(%x: !mh, %y: !mr) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mr)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !mh) outs(%y : !mr) attrs = {lb.extents = [128 : i64, 64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !r {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "double", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %h = "lb.view"(%y) {offset = 0 : i64} : (!t) -> !h
  %d_z = bufferization.alloc_tensor() : !r
  %z = "lb.call"(%h, %d_z) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!h, !r) -> !r
  func.return %z : !r
}
// unchanged
