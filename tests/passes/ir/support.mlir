// support moves kernels that their target cannot run to a CPU, which joins the vdevices where there is none.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!cpu = tensor<4xf32, #lb.vdevice<1, "global">>
!d = tensor<4xf64, #lb.vdevice<0, "global">>
!dcpu = tensor<4xf64, #lb.vdevice<1, "global">>
!m = memref<4xf32, "global">
!md = memref<4xf64, "global">
#id = affine_map<(d0) -> (d0)>

// ---- of_the_host: a host builtin
// target gpu: opencl
func.func @main(%x: !t) -> !t {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.host_call"(%x, %d) {builtin = "check", parameters = {}, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y : !t
}
// becomes
func.func @main(%x: !t) -> !t {
  %d = bufferization.alloc_tensor() : !cpu
  %0 = "lb.to_vdevice"(%x) {node = "input 0 to cpu"} : (!t) -> !cpu
  %y = "lb.host_call"(%0, %d) {builtin = "check", parameters = {}, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %1 = "lb.to_vdevice"(%y) {node = "a to gpu"} : (!cpu) -> !t
  func.return %1 : !t
}

// ---- unsupported: float64 on a device without it
// target gpu: opencl -fp64=0
func.func @widen(%x: !md, %y: !md) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !md) outs(%y : !md) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %a : f64
    linalg.yield %c : f64
  }
  func.return
}
func.func @main(%x: !d) -> !d {
  %d = bufferization.alloc_tensor() : !d
  %y = "lb.call"(%x, %d) {callee = @widen, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!d, !d) -> !d
  func.return %y : !d
}
// becomes
func.func @widen(%x: !md, %y: !md) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !md) outs(%y : !md) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %a : f64
    linalg.yield %c : f64
  }
  func.return
}
func.func @main(%x: !d) -> !d {
  %d = bufferization.alloc_tensor() : !dcpu
  %0 = "lb.to_vdevice"(%x) {node = "input 0 to cpu"} : (!d) -> !dcpu
  %y = "lb.call"(%0, %d) {callee = @widen, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!dcpu, !dcpu) -> !dcpu
  %1 = "lb.to_vdevice"(%y) {node = "a to gpu"} : (!dcpu) -> !d
  func.return %1 : !d
}

// ---- in_a_branch: branches are taken on the host: vdevice 0 is the CPU then, and what is inside is there
// target gpu: opencl
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%c: tensor<i1, #lb.vdevice<0, "global">>, %x: !t) -> !t {
  %r = "lb.if"(%c) ({
    %d = bufferization.alloc_tensor() : !t
    %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
    "lb.yield"(%y) : (!t) -> ()
  }, {
    "lb.yield"(%x) : (!t) -> ()
  }) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<i1, #lb.vdevice<0, "global">>) -> !t
  %e = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%r, %e) {callee = @k, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%c: tensor<i1, #lb.vdevice<0, "global">>, %x: !t) -> !t {
  %x_1 = "lb.to_vdevice"(%x) {node = "host memory"} : (!t) -> !cpu
  %c_1 = "lb.to_vdevice"(%c) {node = "host memory"} : (tensor<i1, #lb.vdevice<0, "global">>) -> tensor<i1, #lb.vdevice<1, "global">>
  %0 = "lb.to_vdevice"(%c_1) {node = "host memory to cpu"} : (tensor<i1, #lb.vdevice<1, "global">>) -> tensor<i1, #lb.vdevice<0, "global">>
  %1 = "lb.to_vdevice"(%x_1) {node = "host memory to cpu"} : (!cpu) -> !t
  %r = "lb.if"(%0) ({
    %d = bufferization.alloc_tensor() : !t
    %y = "lb.call"(%1, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
    "lb.yield"(%y) : (!t) -> ()
  }, {
    "lb.yield"(%1) : (!t) -> ()
  }) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<i1, #lb.vdevice<0, "global">>) -> !t
  %e = bufferization.alloc_tensor() : !cpu
  %2 = "lb.to_vdevice"(%r) {node = "a tensor to gpu"} : (!t) -> !cpu
  %z = "lb.call"(%2, %e) {callee = @k, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %3 = "lb.to_vdevice"(%z) {node = "host memory"} : (!cpu) -> !t
  func.return %3 : !t
}

// ---- what moves reads and writes no scope of its device any more
// target gpu: {"kind": "opencl", "fp64": false, "memory": [{"scope": "global", "host_access": "none", "coherent": false}, {"scope": "global.fast", "host_access": "none", "coherent": false}]}
func.func @k(%x: !md, %y: memref<4xf64, "global.fast">) attributes {lb.prim} {
  func.return
}
func.func @widen(%x: memref<4xf64, "global.fast">, %y: !md) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<4xf64, "global.fast">) outs(%y : !md) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %a : f64
    linalg.yield %c : f64
  }
  func.return
}
func.func @main(%x: !d) -> !d {
  %d = bufferization.alloc_tensor() : tensor<4xf64, #lb.vdevice<0, "global.fast">>
  %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!d, tensor<4xf64, #lb.vdevice<0, "global.fast">>) -> tensor<4xf64, #lb.vdevice<0, "global.fast">>
  %e = bufferization.alloc_tensor() : !d
  %z = "lb.call"(%y, %e) {callee = @widen, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xf64, #lb.vdevice<0, "global.fast">>, !d) -> !d
  func.return %z : !d
}
// becomes
func.func @k(%x: !md, %y: !md) attributes {lb.prim} {
  func.return
}
func.func @widen(%x: !md, %y: !md) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !md) outs(%y : !md) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %a : f64
    linalg.yield %c : f64
  }
  func.return
}
func.func @main(%x: !d) -> !d {
  %d = bufferization.alloc_tensor() : !dcpu
  %0 = "lb.to_vdevice"(%x) {node = "input 0 to cpu"} : (!d) -> !dcpu
  %y = "lb.call"(%0, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!dcpu, !dcpu) -> !dcpu
  %e = bufferization.alloc_tensor() : !dcpu
  %z = "lb.call"(%y, %e) {callee = @widen, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!dcpu, !dcpu) -> !dcpu
  %1 = "lb.to_vdevice"(%z) {node = "b to gpu"} : (!dcpu) -> !d
  func.return %1 : !d
}
