// bufferize gives every tensor of @main a place in memory: its results are arguments, and kernels write where results
// are wanted.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!m = memref<4xf32, "global">

// ---- the last kernel writes the output itself
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !t) -> !t {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %e = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %e) {callee = @k, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%0: !m, %1: !m) attributes {lb.input_names = ["input_0"], lb.output_names = ["output_0"]} {
  %2 = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "a"} : !m
  "lb.call"(%0, %2) {callee = @k, node = "a", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%2, %1) {callee = @k, node = "b", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}

// ---- parts of a concatenation are produced in it; an input has to be copied
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !t) -> tensor<8xf32, #lb.vdevice<0, "global">> {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %z = "lb.concat"(%y, %x) {axis = 0 : i64} : (!t, !t) -> tensor<8xf32, #lb.vdevice<0, "global">>
  func.return %z : tensor<8xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%0: !m, %1: memref<8xf32, "global">) attributes {lb.input_names = ["input_0"], lb.output_names = ["output_0"]} {
  %2 = "lb.view"(%1) {offset = 0 : i64} : (memref<8xf32, "global">) -> !m
  "lb.call"(%0, %2) {callee = @k, node = "a", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  %3 = "lb.view"(%1) {offset = 4 : i64} : (memref<8xf32, "global">) -> !m
  "lb.call"(%0, %3) {callee = @copy_1, node = "concat", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<0, "global">} : (!m, !m) -> ()
  func.return
}
func.func @copy_1(%0: !m, %1: !m) attributes {lb.prim, lb.target = 0 : i64} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : !m) outs(%1 : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%2: f32, %3: f32):
    linalg.yield %2 : f32
  }
  func.return
}

// ---- a crossing is a copy, unless it is a view
// target cpu: llvm -mcpu=x86-64-v3
// target npu: llvm -mcpu=x86-64-v4
func.func @main(%x: !t, %y: !t) -> (tensor<4xf32, #lb.vdevice<1, "global">>, tensor<4xf32, #lb.vdevice<1, "global">>) {
  %a = "lb.to_vdevice"(%x) {node = "a"} : (!t) -> tensor<4xf32, #lb.vdevice<1, "global">>
  %b = "lb.to_vdevice"(%y) {node = "b", view} : (!t) -> tensor<4xf32, #lb.vdevice<1, "global">>
  func.return %a, %b : tensor<4xf32, #lb.vdevice<1, "global">>, tensor<4xf32, #lb.vdevice<1, "global">>
}
// becomes
func.func @main(%0: !m, %1: !m, %2: !m, %3: !m) attributes {lb.input_names = ["input_0", "input_1"], lb.output_names = ["output_0", "output_1"]} {
  "memref.copy"(%0, %2) {node = "a"} : (!m, !m) -> ()
  %4 = "lb.to_vdevice"(%1) {node = "b", view, lb.vdevice = #lb.vdevice<1, "global">} : (!m) -> !m
  "lb.call"(%4, %3) {callee = @copy_1, node = "output 'output_1'", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<1, "global">} : (!m, !m) -> ()
  func.return
}
func.func @copy_1(%0: !m, %1: !m) attributes {lb.prim, lb.target = 1 : i64} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : !m) outs(%1 : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%2: f32, %3: f32):
    linalg.yield %2 : f32
  }
  func.return
}
