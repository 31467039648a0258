// support.in_a_branch lets what is in a branch or a loop run on the CPU, which controls it.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!cpu = tensor<4xf32, #lb.vdevice<1, "global">>
!m = memref<4xf32, "global">
!c = tensor<i1, #lb.vdevice<0, "global">>
!ccpu = tensor<i1, #lb.vdevice<1, "global">>
#id = affine_map<(d0) -> (d0)>

// ---- what a branch doubles is doubled by the CPU, which is the first vdevice then
// target gpu: opencl
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%c: !c, %x: !t) -> !t {
  %r = "lb.if"(%c) ({
    %d = bufferization.alloc_tensor() : !t
    %y = "lb.call"(%x, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
    "lb.yield"(%y) : (!t) -> ()
  }, {
    "lb.yield"(%x) : (!t) -> ()
  }) {operandSegmentSizes = array<i32: 1, 0>} : (!c) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%r, %d_z) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%c: !c, %x: !t) -> !t {
  %x_1 = "lb.to_vdevice"(%x) {node = "host memory"} : (!t) -> !cpu
  %c_1 = "lb.to_vdevice"(%c) {node = "host memory"} : (!c) -> !ccpu
  %0 = "lb.to_vdevice"(%c_1) {node = "host memory to cpu"} : (!ccpu) -> !c
  %1 = "lb.to_vdevice"(%x_1) {node = "host memory to cpu"} : (!cpu) -> !t
  %r = "lb.if"(%0) ({
    %d = bufferization.alloc_tensor() : !t
    %y = "lb.call"(%1, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
    "lb.yield"(%y) : (!t) -> ()
  }, {
    "lb.yield"(%1) : (!t) -> ()
  }) {operandSegmentSizes = array<i32: 1, 0>} : (!c) -> !t
  %d_z = bufferization.alloc_tensor() : !cpu
  %2 = "lb.to_vdevice"(%r) {node = "a tensor to gpu"} : (!t) -> !cpu
  %z = "lb.call"(%2, %d_z) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %3 = "lb.to_vdevice"(%z) {node = "host memory"} : (!cpu) -> !t
  func.return %3 : !t
}

// ---- not where a CPU computes already
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%c: !c, %x: !t) -> !t {
  %r = "lb.if"(%c) ({
    %d = bufferization.alloc_tensor() : !t
    %y = "lb.call"(%x, %d) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
    "lb.yield"(%y) : (!t) -> ()
  }, {
    "lb.yield"(%x) : (!t) -> ()
  }) {operandSegmentSizes = array<i32: 1, 0>} : (!c) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%r, %d_z) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %z : !t
}
// unchanged
