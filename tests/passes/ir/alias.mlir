// alias proves which outputs may be the memory of an input, and says so in lb.alias.

!m = memref<8xf32, "global">
#id = affine_map<(d0) -> (d0)>

// ---- an output that is a copy of an input may be its memory: the copy does nothing then
func.func @copy(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) attributes {lb.input_names = ["x"], lb.output_names = ["y"]} {
  "lb.call"(%x, %y) {callee = @copy, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
builtin.module {
  func.func @copy_in_place(%0: memref<8xf32, "global">, %1: memref<8xf32, "global">) attributes {lb.prim, lb.in_place, lb.unless_same} {
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<8xf32, "global">) outs(%1 : memref<8xf32, "global">) attrs =  {lb.extents = [8 : i64]} {
    ^bb0(%2: f32, %3: f32):
      linalg.yield %2 : f32
    }
    func.return
  }
  func.func @main(%0: memref<8xf32, "global">, %1: memref<8xf32, "global">) attributes {lb.input_names = ["x"], lb.output_names = ["y"], lb.alias = {y = "x"}} {
    "lb.call"(%0, %1) {callee = @copy_in_place, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (memref<8xf32, "global">, memref<8xf32, "global">) -> ()
    func.return
  }
}

// ---- not where the input is read later
func.func @copy(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m, %z: !m) attributes {lb.input_names = ["x"], lb.output_names = ["y", "z"]} {
  "lb.call"(%x, %y) {callee = @copy, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%x, %z) {callee = @double, node = "m", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
builtin.module {
  func.func @copy(%0: memref<8xf32, "global">, %1: memref<8xf32, "global">) attributes {lb.prim} {
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<8xf32, "global">) outs(%1 : memref<8xf32, "global">) attrs =  {lb.extents = [8 : i64]} {
    ^bb0(%2: f32, %3: f32):
      linalg.yield %2 : f32
    }
    func.return
  }
  func.func @double(%0: memref<8xf32, "global">, %1: memref<8xf32, "global">) attributes {lb.prim} {
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<8xf32, "global">) outs(%1 : memref<8xf32, "global">) attrs =  {lb.extents = [8 : i64]} {
    ^bb0(%2: f32, %3: f32):
      %4 = arith.addf %2, %2 : f32
      linalg.yield %4 : f32
    }
    func.return
  }
  func.func @main(%0: memref<8xf32, "global">, %1: memref<8xf32, "global">, %2: memref<8xf32, "global">) attributes {lb.input_names = ["x"], lb.output_names = ["y", "z"]} {
    "lb.call"(%0, %1) {callee = @copy, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (memref<8xf32, "global">, memref<8xf32, "global">) -> ()
    "lb.call"(%0, %2) {callee = @double, node = "m", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (memref<8xf32, "global">, memref<8xf32, "global">) -> ()
    func.return
  }
}

// ---- of other kernels it is asked for
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) attributes {lb.input_names = ["x"], lb.output_names = ["y"], lb.alias = {"y" = "x"}} {
  "lb.call"(%x, %y) {callee = @double, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
builtin.module {
  func.func @double_in_place(%0: memref<8xf32, "global">, %1: memref<8xf32, "global">) attributes {lb.prim, lb.in_place} {
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<8xf32, "global">) outs(%1 : memref<8xf32, "global">) attrs =  {lb.extents = [8 : i64]} {
    ^bb0(%2: f32, %3: f32):
      %4 = arith.addf %2, %2 : f32
      linalg.yield %4 : f32
    }
    func.return
  }
  func.func @main(%0: memref<8xf32, "global">, %1: memref<8xf32, "global">) attributes {lb.input_names = ["x"], lb.output_names = ["y"], lb.alias = {y = "x"}} {
    "lb.call"(%0, %1) {callee = @double_in_place, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (memref<8xf32, "global">, memref<8xf32, "global">) -> ()
    func.return
  }
}

// ---- what is written when all of the input has been read needs no kernel of its own
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) attributes {lb.input_names = ["x"], lb.output_names = ["y"], lb.alias = {"y" = "x"}} {
  %t = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "lb.call"(%x, %t) {callee = @double, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%t, %y) {callee = @double, node = "m", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
builtin.module {
  func.func @double(%0: memref<8xf32, "global">, %1: memref<8xf32, "global">) attributes {lb.prim} {
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<8xf32, "global">) outs(%1 : memref<8xf32, "global">) attrs =  {lb.extents = [8 : i64]} {
    ^bb0(%2: f32, %3: f32):
      %4 = arith.addf %2, %2 : f32
      linalg.yield %4 : f32
    }
    func.return
  }
  func.func @main(%0: memref<8xf32, "global">, %1: memref<8xf32, "global">) attributes {lb.input_names = ["x"], lb.output_names = ["y"], lb.alias = {y = "x"}} {
    %2 = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : memref<8xf32, "global">
    "lb.call"(%0, %2) {callee = @double, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (memref<8xf32, "global">, memref<8xf32, "global">) -> ()
    "lb.call"(%2, %1) {callee = @double, node = "m", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 1, 1>} : (memref<8xf32, "global">, memref<8xf32, "global">) -> ()
    func.return
  }
}
