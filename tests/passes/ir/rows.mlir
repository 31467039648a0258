// rows gives tensors in scopes of several dimensions their axis separators, by their physical shapes, and PrimFuncs the
// memory spaces that follow.

// ---- a block of channels is a row; the reader takes it there
// target npu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.rows", "host_access": "read_write", "coherent": true, "ndim": 2, "row_alignment": 32}]}
func.func @k(%x: memref<1x2x4x4x8xf32, "global">, %y: memref<1x2x4x4x8xf32, "global.rows">) attributes {lb.prim} {
  func.return
}
func.func @l(%x: memref<1x2x4x4x8xf32, "global.rows">, %y: memref<1x2x4x4x8xf32, "global">) attributes {lb.prim} {
  func.return
}
func.func @main(%x: tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>) -> tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">> {
  %d = bufferization.alloc_tensor() : tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global.rows">>
  %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>, tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global.rows">>) -> tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global.rows">>
  %e = bufferization.alloc_tensor() : tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>
  %z = "lb.call"(%y, %e) {callee = @l, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global.rows">>, tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>) -> tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>
  func.return %z : tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @k(%x: memref<1x2x4x4x8xf32, "global">, %y: memref<1x2x4x4x8xf32, #lb.space<"global.rows", [2]>>) attributes {lb.prim} {
  func.return
}
func.func @l(%x: memref<1x2x4x4x8xf32, #lb.space<"global.rows", [2]>>, %y: memref<1x2x4x4x8xf32, "global">) attributes {lb.prim} {
  func.return
}
func.func @main(%x: tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>) -> tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">> {
  %d = bufferization.alloc_tensor() : tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global.rows", [2]>>
  %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>, tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global.rows", [2]>>) -> tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global.rows", [2]>>
  %e = bufferization.alloc_tensor() : tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>
  %z = "lb.call"(%y, %e) {callee = @l, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global.rows", [2]>>, tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>) -> tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>
  func.return %z : tensor<1x2x4x4x8xf32, #lb.vdevice<0, "global">>
}
