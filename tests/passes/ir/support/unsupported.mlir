// support.unsupported lets kernels that their target cannot run run on a CPU.

!d = tensor<4xf64, #lb.vdevice<0, "global">>
!dcpu = tensor<4xf64, #lb.vdevice<1, "global">>
!dfast = tensor<4xf64, #lb.vdevice<0, "global.fast">>
!md = memref<4xf64, "global">
!mdfast = memref<4xf64, "global.fast">
#id = affine_map<(d0) -> (d0)>

// ---- float64 on a GPU without it
// target gpu: opencl -fp64=0
func.func @double(%x: !md, %y: !md) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !md) outs(%y : !md) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f64, %b: f64):
    %r = arith.addf %a, %a : f64
    linalg.yield %r : f64
  }
  func.return
}
func.func @main(%x: !d) -> !d {
  %d_y = bufferization.alloc_tensor() : !d
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!d, !d) -> !d
  func.return %y : !d
}
// becomes
func.func @double(%x: !md, %y: !md) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !md) outs(%y : !md) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f64, %b: f64):
    %r = arith.addf %a, %a : f64
    linalg.yield %r : f64
  }
  func.return
}
func.func @main(%x: !d) -> !d {
  %d_y = bufferization.alloc_tensor() : !dcpu
  %0 = "lb.to_vdevice"(%x) {node = "input 0 to cpu"} : (!d) -> !dcpu
  %y = "lb.call"(%0, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!dcpu, !dcpu) -> !dcpu
  %1 = "lb.to_vdevice"(%y) {node = "a to gpu"} : (!dcpu) -> !d
  func.return %1 : !d
}

// ---- a kernel that moves to the CPU uses no scope of its device any more
// target gpu: {"kind": "opencl", "fp64": false, "memory": [{"scope": "global", "host_access": "none", "coherent": false}, {"scope": "global.fast", "host_access": "none", "coherent": false}]}
func.func @load(%x: !md, %y: !mdfast) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !md) outs(%y : !mdfast) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f64, %b: f64):
    linalg.yield %a : f64
  }
  func.return
}
func.func @double(%x: !mdfast, %y: !md) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mdfast) outs(%y : !md) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f64, %b: f64):
    %r = arith.addf %a, %a : f64
    linalg.yield %r : f64
  }
  func.return
}
func.func @main(%x: !d) -> !d {
  %d_y = bufferization.alloc_tensor() : !dfast
  %y = "lb.call"(%x, %d_y) {callee = @load, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!d, !dfast) -> !dfast
  %d_z = bufferization.alloc_tensor() : !d
  %z = "lb.call"(%y, %d_z) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!dfast, !d) -> !d
  func.return %z : !d
}
// becomes
func.func @load(%x: !md, %y: !md) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !md) outs(%y : !md) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f64, %b: f64):
    linalg.yield %a : f64
  }
  func.return
}
func.func @double(%x: !md, %y: !md) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !md) outs(%y : !md) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f64, %b: f64):
    %r = arith.addf %a, %a : f64
    linalg.yield %r : f64
  }
  func.return
}
func.func @main(%x: !d) -> !d {
  %d_y = bufferization.alloc_tensor() : !dcpu
  %0 = "lb.to_vdevice"(%x) {node = "input 0 to cpu"} : (!d) -> !dcpu
  %y = "lb.call"(%0, %d_y) {callee = @load, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!dcpu, !dcpu) -> !dcpu
  %d_z = bufferization.alloc_tensor() : !dcpu
  %z = "lb.call"(%y, %d_z) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!dcpu, !dcpu) -> !dcpu
  %1 = "lb.to_vdevice"(%z) {node = "b to gpu"} : (!dcpu) -> !d
  func.return %1 : !d
}

// ---- not on a GPU with float64
// target gpu: opencl -fp64=1
func.func @double(%x: !md, %y: !md) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !md) outs(%y : !md) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f64, %b: f64):
    %r = arith.addf %a, %a : f64
    linalg.yield %r : f64
  }
  func.return
}
func.func @main(%x: !d) -> !d {
  %d_y = bufferization.alloc_tensor() : !d
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!d, !d) -> !d
  func.return %y : !d
}
// unchanged
