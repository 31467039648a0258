// fuse.row_begin_into_contraction lets a contraction read the first elements of longer lines, as many as a run
// decides, instead of a copy.

!x = tensor<64x512xf32, #lb.vdevice<0, "global">>
!mx = memref<64x512xf32, "global">
!b = tensor<64x[n]xf32, #lb.vdevice<0, "global">>
!mb = memref<64x[n]xf32, "global">
!w = tensor<[n]x64xf32, #lb.vdevice<0, "global">>
!mw = memref<[n]x64xf32, "global">
!y = tensor<64x64xf32, #lb.vdevice<0, "global">>
!my = memref<64x64xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#v = affine_map<(d0, d1, d2) -> (d2, d1)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
!bs = tensor<64x256xf32, #lb.vdevice<0, "global">>
!mbs = memref<64x256xf32, "global">
!ws = tensor<256x64xf32, #lb.vdevice<0, "global">>
!mws = memref<256x64xf32, "global">

// ---- a product reads the first n elements of lines of 512
builtin.module attributes {lb.dimensions = {n = "1..512@64"}} {
func.func @begin(%x: !mx, %y: !mb) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mx) outs(%y : !mb) attrs = {lb.extents = [64 : i64, #lb.size<[n]>]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @product(%x: !mb, %w: !mw, %y: !my) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my)
  linalg.generic {indexing_maps = [#x, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !mb, !mw) outs(%y : !my) attrs = {lb.extents = [64 : i64, 64 : i64, #lb.size<[n]>]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !w) -> !y {
  %d_b = bufferization.alloc_tensor() : !b
  %b = "lb.call"(%x, %d_b) {callee = @begin, node = "begin", operandSegmentSizes = array<i32: 1, 1>} : (!x, !b) -> !b
  %d_y = bufferization.alloc_tensor() : !y
  %y = "lb.call"(%b, %w, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!b, !w, !y) -> !y
  func.return %y : !y
}
}
// becomes
builtin.module attributes {lb.dimensions = {n = "1..512@64"}} {
func.func @begin_product_1(%x: !mx, %w: !mw, %y: !my) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my)
  linalg.generic {indexing_maps = [#v, #x, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %x : !mw, !mx) outs(%y : !my) attrs = {lb.extents = [64 : i64, 64 : i64, #lb.size<[n]>]} {
  ^bb0(%b: f32, %a: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !w) -> !y {
  %d_y = bufferization.alloc_tensor() : !y
  %y = "lb.call"(%x, %w, %d_y) {callee = @begin_product_1, operandSegmentSizes = array<i32: 2, 1>, node = "begin+product"} : (!x, !w, !y) -> !y
  func.return %y : !y
}
}

// ---- not a number of them that is known: rows of another stride may pay
builtin.module attributes {lb.dimensions = {n = "1..512@64"}} {
func.func @begin(%x: !mx, %y: !mbs) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mx) outs(%y : !mbs) attrs = {lb.extents = [64 : i64, 256 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @product(%x: !mbs, %w: !mws, %y: !my) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my)
  linalg.generic {indexing_maps = [#x, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !mbs, !mws) outs(%y : !my) attrs = {lb.extents = [64 : i64, 64 : i64, 256 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !ws) -> !y {
  %d_b = bufferization.alloc_tensor() : !bs
  %b = "lb.call"(%x, %d_b) {callee = @begin, node = "begin", operandSegmentSizes = array<i32: 1, 1>} : (!x, !bs) -> !bs
  %d_y = bufferization.alloc_tensor() : !y
  %y = "lb.call"(%b, %w, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!bs, !ws, !y) -> !y
  func.return %y : !y
}
}
// unchanged
