// fuse.interleaved_concat makes a concatenation of scalars one of planes, which are written in place, and a transpose.

!p = tensor<256x1xf32, #lb.vdevice<0, "global">>
!t = tensor<256x2xf32, #lb.vdevice<0, "global">>
!q = tensor<255x1xf32, #lb.vdevice<0, "global">>
!u = tensor<255x2xf32, #lb.vdevice<0, "global">>

// ---- pairs of scalars are two planes, transposed
func.func @main(%x: !p, %w: !p) -> !t {
  %z = "lb.concat"(%x, %w) {axis = 1 : i64, node = "pairs"} : (!p, !p) -> !t
  func.return %z : !t
}
// becomes
func.func @main(%x: !p, %w: !p) -> !t {
  %0 = "lb.view"(%x) {offset = 0 : i64} : (!p) -> tensor<1x256xf32, #lb.vdevice<0, "global">>
  %1 = "lb.view"(%w) {offset = 0 : i64} : (!p) -> tensor<1x256xf32, #lb.vdevice<0, "global">>
  %2 = "lb.concat"(%0, %1) {axis = 0 : i64} : (tensor<1x256xf32, #lb.vdevice<0, "global">>, tensor<1x256xf32, #lb.vdevice<0, "global">>) -> tensor<2x256xf32, #lb.vdevice<0, "global">>
  %3 = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%2, %3) {callee = @transpose_1, node = "pairs", operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x256xf32, #lb.vdevice<0, "global">>, !t) -> !t
  func.return %z : !t
}
func.func @transpose_1(%0: memref<2x256xf32, "global">, %1: memref<256x2xf32, "global">) attributes {lb.prim, lb.target = 0 : i64} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0 : memref<2x256xf32, "global">) outs(%1 : memref<256x2xf32, "global">) attrs = {lb.extents = [256 : i64, 2 : i64]} {
  ^bb0(%2: f32, %3: f32):
    linalg.yield %2 : f32
  }
  func.return
}

// ---- not of so few elements that another kernel costs more
func.func @main(%x: !q, %w: !q) -> !u {
  %z = "lb.concat"(%x, %w) {axis = 1 : i64, node = "pairs"} : (!q, !q) -> !u
  func.return %z : !u
}
// unchanged

// ---- not of parts with two elements
func.func @main(%x: !t, %w: !t) -> tensor<256x4xf32, #lb.vdevice<0, "global">> {
  %z = "lb.concat"(%x, %w) {axis = 1 : i64, node = "pairs"} : (!t, !t) -> tensor<256x4xf32, #lb.vdevice<0, "global">>
  func.return %z : tensor<256x4xf32, #lb.vdevice<0, "global">>
}
// unchanged

// ---- not where a GPU computes, which has no vectors of a CPU
// target gpu: opencl
func.func @main(%x: !p, %w: !p) -> !t {
  %z = "lb.concat"(%x, %w) {axis = 1 : i64, node = "pairs"} : (!p, !p) -> !t
  func.return %z : !t
}
// unchanged
