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

// ---- memory that begins where no kernel can be given it is copied to where it can, an empty view is not
// target gpu: opencl
func.func @k(%x: memref<1xf32, "global">, %y: memref<1xf32, "global">) attributes {lb.prim} {
  func.return
}
func.func @none(%x: memref<0xf32, "global">, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !t) -> (tensor<1xf32, #lb.vdevice<0, "global">>, !t) {
  %v = "lb.view"(%x) {offset = 1 : i64, node = "slice"} : (!t) -> tensor<1xf32, #lb.vdevice<0, "global">>
  %d = bufferization.alloc_tensor() : tensor<1xf32, #lb.vdevice<0, "global">>
  %y = "lb.call"(%v, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (tensor<1xf32, #lb.vdevice<0, "global">>, tensor<1xf32, #lb.vdevice<0, "global">>) -> tensor<1xf32, #lb.vdevice<0, "global">>
  %w = "lb.view"(%x) {offset = 3 : i64, node = "empty"} : (!t) -> tensor<0xf32, #lb.vdevice<0, "global">>
  %e = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%w, %e) {callee = @none, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (tensor<0xf32, #lb.vdevice<0, "global">>, !t) -> !t
  func.return %y, %z : tensor<1xf32, #lb.vdevice<0, "global">>, !t
}
// becomes
func.func @k(%0: memref<1xf32, "global">, %1: memref<1xf32, "global">) attributes {lb.prim} {
  func.return
}
func.func @none(%0: memref<0xf32, "global">, %1: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%0: !m, %1: memref<1xf32, "global">, %2: !m) attributes {lb.input_names = ["input_0"], lb.output_names = ["output_0", "output_1"]} {
  %3 = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "slice"} : memref<1xf32, "global">
  "lb.call"(%0, %3) {callee = @copy_part_1, node = "slice", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<0, "global">} : (!m, memref<1xf32, "global">) -> ()
  "lb.call"(%3, %1) {callee = @k, node = "a", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (memref<1xf32, "global">, memref<1xf32, "global">) -> ()
  %4 = "lb.view"(%0) {offset = 3 : i64} : (!m) -> memref<0xf32, "global">
  "lb.call"(%4, %2) {callee = @none, node = "b", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (memref<0xf32, "global">, !m) -> ()
  func.return
}
func.func @copy_part_1(%0: !m, %1: memref<1xf32, "global">) attributes {lb.prim, lb.target = 0 : i64} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> ((d0 + 1))>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : !m) outs(%1 : memref<1xf32, "global">) attrs = {lb.extents = [1 : i64]} {
  ^bb0(%2: f32, %3: f32):
    linalg.yield %2 : f32
  }
  func.return
}

// ---- a part that may not begin where it is in a concatenation is copied column by column, an empty one not at all
// target gpu: opencl
func.func @main(%x: !t, %n: tensor<0xf32, #lb.vdevice<0, "global">>, %y: tensor<1xf32, #lb.vdevice<0, "global">>) -> tensor<5xf32, #lb.vdevice<0, "global">> {
  %z = "lb.concat"(%x, %n, %y) {axis = 0 : i64, node = "cat"} : (!t, tensor<0xf32, #lb.vdevice<0, "global">>, tensor<1xf32, #lb.vdevice<0, "global">>) -> tensor<5xf32, #lb.vdevice<0, "global">>
  func.return %z : tensor<5xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @main(%0: !m, %1: memref<0xf32, "global">, %2: memref<1xf32, "global">, %3: memref<5xf32, "global">) attributes {lb.input_names = ["input_0", "input_1", "input_2"], lb.output_names = ["output_0"]} {
  %4 = "lb.view"(%3) {offset = 0 : i64} : (memref<5xf32, "global">) -> !m
  "lb.call"(%0, %4) {callee = @copy_1, node = "cat", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<0, "global">} : (!m, !m) -> ()
  %5 = "lb.view"(%2) {offset = 0 : i64} : (memref<1xf32, "global">) -> memref<1x1xf32, "global">
  "lb.call"(%5, %3) {callee = @copy_columns_2, node = "cat", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<0, "global">} : (memref<1x1xf32, "global">, memref<5xf32, "global">) -> ()
  func.return
}
func.func @copy_1(%0: !m, %1: !m) attributes {lb.prim, lb.target = 0 : i64} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : !m) outs(%1 : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%2: f32, %3: f32):
    linalg.yield %2 : f32
  }
  func.return
}
func.func @copy_columns_2(%0: memref<1x1xf32, "global">, %1: memref<5xf32, "global">) attributes {lb.prim, lb.target = 0 : i64} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ((((d0 * 5) + d1) + 4))>], iterator_types = ["parallel", "parallel"]} ins(%0 : memref<1x1xf32, "global">) outs(%1 : memref<5xf32, "global">) attrs = {lb.extents = [1 : i64, 1 : i64]} {
  ^bb0(%2: f32, %3: f32):
    linalg.yield %2 : f32
  }
  func.return
}

// ---- an output of one element is copied, an empty one is not
func.func @main(%x: tensor<f32, #lb.vdevice<0, "global">>, %y: tensor<0xf32, #lb.vdevice<0, "global">>) -> (tensor<f32, #lb.vdevice<0, "global">>, tensor<0xf32, #lb.vdevice<0, "global">>) {
  func.return %x, %y : tensor<f32, #lb.vdevice<0, "global">>, tensor<0xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @main(%0: memref<f32, "global">, %1: memref<0xf32, "global">, %2: memref<f32, "global">, %3: memref<0xf32, "global">) attributes {lb.input_names = ["input_0", "input_1"], lb.output_names = ["output_0", "output_1"]} {
  %4 = "lb.view"(%0) {offset = 0 : i64} : (memref<f32, "global">) -> memref<1xf32, "global">
  %5 = "lb.view"(%2) {offset = 0 : i64} : (memref<f32, "global">) -> memref<1xf32, "global">
  "lb.call"(%4, %5) {callee = @copy_1, node = "output 'output_0'", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<0, "global">} : (memref<1xf32, "global">, memref<1xf32, "global">) -> ()
  func.return
}
func.func @copy_1(%0: memref<1xf32, "global">, %1: memref<1xf32, "global">) attributes {lb.prim, lb.target = 0 : i64} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<1xf32, "global">) outs(%1 : memref<1xf32, "global">) attrs = {lb.extents = [1 : i64]} {
  ^bb0(%2: f32, %3: f32):
    linalg.yield %2 : f32
  }
  func.return
}

// ---- a constant is loaded once; a part of a part of an output is one view of it; @main keeps its attributes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !t) -> tensor<12xf32, #lb.vdevice<0, "global">> attributes {lb.spill = {"local" = "global"}} {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %v = "lb.constant"() {symbol = @w} : () -> !t
  %d = bufferization.alloc_tensor() : !t
  %a = "lb.call"(%w, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %e = bufferization.alloc_tensor() : !t
  %b = "lb.call"(%v, %e) {callee = @k, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %c = "lb.concat"(%a, %b) {axis = 0 : i64} : (!t, !t) -> tensor<8xf32, #lb.vdevice<0, "global">>
  %z = "lb.concat"(%x, %c) {axis = 0 : i64} : (!t, tensor<8xf32, #lb.vdevice<0, "global">>) -> tensor<12xf32, #lb.vdevice<0, "global">>
  func.return %z : tensor<12xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @k(%0: !m, %1: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%0: !m, %1: memref<12xf32, "global">) attributes {lb.spill = {local = "global"}, lb.input_names = ["input_0"], lb.output_names = ["output_0"]} {
  %2 = "lb.constant"() {symbol = @w, lb.vdevice = #lb.vdevice<0, "global">} : () -> !m
  %3 = "lb.view"(%1) {offset = 4 : i64} : (memref<12xf32, "global">) -> memref<8xf32, "global">
  %4 = "lb.view"(%1) {offset = 4 : i64} : (memref<12xf32, "global">) -> !m
  %5 = "lb.view"(%1) {offset = 8 : i64} : (memref<12xf32, "global">) -> !m
  "lb.call"(%2, %4) {callee = @k, node = "a", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%2, %5) {callee = @k, node = "b", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  %6 = "lb.view"(%1) {offset = 0 : i64} : (memref<12xf32, "global">) -> !m
  "lb.call"(%0, %6) {callee = @copy_1, node = "concat", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<0, "global">} : (!m, !m) -> ()
  func.return
}
func.func @copy_1(%0: !m, %1: !m) attributes {lb.prim, lb.target = 0 : i64} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : !m) outs(%1 : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%2: f32, %3: f32):
    linalg.yield %2 : f32
  }
  func.return
}

// ---- a branch writes its result where that is wanted, and copies what is not its own
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%c: tensor<i1, #lb.vdevice<0, "global">>, %x: !t) -> !t {
  %z = "lb.if"(%c) ({
    %d = bufferization.alloc_tensor() : !t
    %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
    "lb.yield"(%y) : (!t) -> ()
  }, {
    "lb.yield"(%x) : (!t) -> ()
  }) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<i1, #lb.vdevice<0, "global">>) -> !t
  func.return %z : !t
}
// becomes
func.func @k(%0: !m, %1: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%0: memref<i1, "global">, %1: !m, %2: !m) attributes {lb.input_names = ["input_0", "input_1"], lb.output_names = ["output_0"]} {
  "lb.if"(%0, %2) ({
    "lb.call"(%1, %2) {callee = @k, node = "a", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
    "lb.yield"() : () -> ()
  }, {
    "lb.call"(%1, %2) {callee = @copy_1, node = "branch", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<0, "global">} : (!m, !m) -> ()
    "lb.yield"() : () -> ()
  }) : (memref<i1, "global">, !m) -> ()
  func.return
}
func.func @copy_1(%0: !m, %1: !m) attributes {lb.prim, lb.target = 0 : i64} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : !m) outs(%1 : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%2: f32, %3: f32):
    linalg.yield %2 : f32
  }
  func.return
}

// ---- the copy of a crossing says why it is one
// target cpu: llvm -mcpu=x86-64-v3
// target npu: llvm -mcpu=x86-64-v4
func.func @main(%x: !t) -> tensor<4xf32, #lb.vdevice<1, "global">> {
  %a = "lb.to_vdevice"(%x) {node = "a", why = "they share no memory"} : (!t) -> tensor<4xf32, #lb.vdevice<1, "global">>
  func.return %a : tensor<4xf32, #lb.vdevice<1, "global">>
}
// becomes
func.func @main(%0: !m, %1: !m) attributes {lb.input_names = ["input_0"], lb.output_names = ["output_0"]} {
  "memref.copy"(%0, %1) {node = "a", why = "they share no memory"} : (!m, !m) -> ()
  func.return
}

// ---- what a loop carries is replaced by the last that reads it, and a row is written where it belongs; a value that is
// both is copied, and so is one that is carried on and still read
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !t, %s: tensor<9x4xf32, #lb.vdevice<0, "global">>) -> (!t, !t, tensor<9x4xf32, #lb.vdevice<0, "global">>) {
  %a, %b, %c = "lb.loop"(%x, %x, %s) ({
  ^bb0(%p: !t, %q: !t, %e: !t, %row: !t):
    %d = bufferization.alloc_tensor() : !t
    %y = "lb.call"(%p, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
    %f = bufferization.alloc_tensor() : !t
    %z = "lb.call"(%e, %f) {callee = @k, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
    "lb.yield"(%z, %y, %z) : (!t, !t, !t) -> ()
  }) {trips = 9 : i64, back = [0, 1], node = "l", operandSegmentSizes = array<i32: 0, 2, 1, 0>} : (!t, !t, tensor<9x4xf32, #lb.vdevice<0, "global">>) -> (!t, !t, tensor<9x4xf32, #lb.vdevice<0, "global">>)
  func.return %a, %b, %c : !t, !t, tensor<9x4xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%0: !m, %1: memref<9x4xf32, "global">, %2: !m, %3: !m, %4: memref<9x4xf32, "global">) attributes {lb.input_names = ["input_0", "input_1"], lb.output_names = ["output_0", "output_1", "output_2"]} {
  "lb.call"(%0, %2) {callee = @copy_1, node = "l", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<0, "global">} : (!m, !m) -> ()
  "lb.call"(%0, %3) {callee = @copy_1, node = "l", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<0, "global">} : (!m, !m) -> ()
  "lb.loop"(%1, %2, %3, %4) ({
  ^bb0(%5: !m, %6: !m):
    "lb.call"(%2, %3) {callee = @k, node = "a", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
    "lb.call"(%5, %2) {callee = @k, node = "b", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
    "lb.call"(%2, %6) {callee = @copy_1, node = "l", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<0, "global">} : (!m, !m) -> ()
    "lb.yield"() : () -> ()
  }) {trips = 9 : i64, back = [0 : i64, 1 : i64], node = "l", operandSegmentSizes = array<i32: 0, 0, 1, 3>} : (memref<9x4xf32, "global">, !m, !m, memref<9x4xf32, "global">) -> ()
  func.return
}
func.func @copy_1(%0: !m, %1: !m) attributes {lb.prim, lb.target = 0 : i64} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : !m) outs(%1 : !m) attrs =  {lb.extents = [4 : i64]} {
  ^bb0(%2: f32, %3: f32):
    linalg.yield %2 : f32
  }
  func.return
}
