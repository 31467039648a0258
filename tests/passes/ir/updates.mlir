// updates parts the updates of a tensor from the copy that they are made in.

!m = memref<8xf32, "global">
!i = memref<2xi64, "global">
!u = memref<2xf32, "global">
!d = memref<2xi1, "global">
#id = affine_map<(d0) -> (d0)>

// ---- a copy of other memory runs as a kernel of its own, and what is put in follows
func.func @put(%x: !m, %i: !i, %u: !u, %y: !m, %d: !d) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  "lb.steps"(%i, %u, %y, %d) ({
  ^bb0(%n: !i, %v: !u, %t: !m, %s: !d):
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%s : !d) attrs = {lb.extents = [2 : i64]} {
    ^bb0(%e: i1):
      %k = linalg.index 0 : index
      %w = memref.load %n[%k] : !i
      %c = arith.index_cast %w : i64 to index
      %f = memref.load %v[%k] : !u
      memref.store %f, %t[%c] : !m
      %o = arith.constant true
      linalg.yield %o : i1
    }
  }) {count = 2 : i64} : (!i, !u, !m, !d) -> ()
  func.return
}
func.func @main(%x: !m, %i: !i, %u: !u, %y: !m) {
  %d = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !d
  "lb.call"(%x, %i, %u, %y, %d) {callee = @put, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 3, 2>} : (!m, !i, !u, !m, !d) -> ()
  func.return
}
// becomes
builtin.module {
  func.func @put_update(%0: memref<2xi64, "global">, %1: memref<2xf32, "global">, %2: memref<8xf32, "global">, %3: memref<2xi1, "global">) attributes {lb.prim} {
    "lb.steps"(%0, %1, %2, %3) ({
    ^bb0(%4: memref<2xi64, "global">, %5: memref<2xf32, "global">, %6: memref<8xf32, "global">, %7: memref<2xi1, "global">):
      linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%7 : memref<2xi1, "global">) attrs =  {lb.extents = [2 : i64]} {
      ^bb0(%8: i1):
        %9 = linalg.index 0 : index
        %10 = memref.load %4[%9] : memref<2xi64, "global">
        %11 = arith.index_cast %10 : i64 to index
        %12 = memref.load %5[%9] : memref<2xf32, "global">
        memref.store %12, %6[%11] : memref<8xf32, "global">
        %13 = arith.constant true
        linalg.yield %13 : i1
      }
    }) {count = 2 : i64} : (memref<2xi64, "global">, memref<2xf32, "global">, memref<8xf32, "global">, memref<2xi1, "global">) -> ()
    func.return
  }
  func.func @main(%0: memref<8xf32, "global">, %1: memref<2xi64, "global">, %2: memref<2xf32, "global">, %3: memref<8xf32, "global">) {
    %4 = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : memref<2xi1, "global">
    %5 = "lb.view"(%0) {offset = 0 : i64} : (memref<8xf32, "global">) -> memref<8xf32, "global">
    %6 = "lb.view"(%3) {offset = 0 : i64} : (memref<8xf32, "global">) -> memref<8xf32, "global">
    "lb.call"(%5, %6) {callee = @copy_1, node = "n", operandSegmentSizes = array<i32: 1, 1>, lb.vdevice = #lb.vdevice<0, "global">} : (memref<8xf32, "global">, memref<8xf32, "global">) -> ()
    "lb.call"(%1, %2, %3, %4) {callee = @put_update, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 2, 2>} : (memref<2xi64, "global">, memref<2xf32, "global">, memref<8xf32, "global">, memref<2xi1, "global">) -> ()
    func.return
  }
  func.func @copy_1(%0: memref<8xf32, "global">, %1: memref<8xf32, "global">) attributes {lb.prim, lb.target = 0 : i64} {
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<8xf32, "global">) outs(%1 : memref<8xf32, "global">) attrs =  {lb.extents = [8 : i64]} {
    ^bb0(%2: f32, %3: f32):
      linalg.yield %2 : f32
    }
    func.return
  }
}

// ---- nothing is copied onto itself
func.func @put(%x: !m, %i: !i, %u: !u, %y: !m, %d: !d) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  "lb.steps"(%i, %u, %y, %d) ({
  ^bb0(%n: !i, %v: !u, %t: !m, %s: !d):
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%s : !d) attrs = {lb.extents = [2 : i64]} {
    ^bb0(%e: i1):
      %k = linalg.index 0 : index
      %w = memref.load %n[%k] : !i
      %c = arith.index_cast %w : i64 to index
      %f = memref.load %v[%k] : !u
      memref.store %f, %t[%c] : !m
      %o = arith.constant true
      linalg.yield %o : i1
    }
  }) {count = 2 : i64} : (!i, !u, !m, !d) -> ()
  func.return
}
func.func @main(%i: !i, %u: !u, %y: !m) {
  %d = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !d
  %x = "lb.view"(%y) {offset = 0 : i64} : (!m) -> !m
  "lb.call"(%x, %i, %u, %y, %d) {callee = @put, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 3, 2>} : (!m, !i, !u, !m, !d) -> ()
  func.return
}
// becomes
builtin.module {
  func.func @put_update(%0: memref<2xi64, "global">, %1: memref<2xf32, "global">, %2: memref<8xf32, "global">, %3: memref<2xi1, "global">) attributes {lb.prim} {
    "lb.steps"(%0, %1, %2, %3) ({
    ^bb0(%4: memref<2xi64, "global">, %5: memref<2xf32, "global">, %6: memref<8xf32, "global">, %7: memref<2xi1, "global">):
      linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%7 : memref<2xi1, "global">) attrs =  {lb.extents = [2 : i64]} {
      ^bb0(%8: i1):
        %9 = linalg.index 0 : index
        %10 = memref.load %4[%9] : memref<2xi64, "global">
        %11 = arith.index_cast %10 : i64 to index
        %12 = memref.load %5[%9] : memref<2xf32, "global">
        memref.store %12, %6[%11] : memref<8xf32, "global">
        %13 = arith.constant true
        linalg.yield %13 : i1
      }
    }) {count = 2 : i64} : (memref<2xi64, "global">, memref<2xf32, "global">, memref<8xf32, "global">, memref<2xi1, "global">) -> ()
    func.return
  }
  func.func @main(%0: memref<2xi64, "global">, %1: memref<2xf32, "global">, %2: memref<8xf32, "global">) {
    %3 = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : memref<2xi1, "global">
    %4 = "lb.view"(%2) {offset = 0 : i64} : (memref<8xf32, "global">) -> memref<8xf32, "global">
    "lb.call"(%0, %1, %2, %3) {callee = @put_update, node = "n", lb.vdevice = #lb.vdevice<0, "global">, operandSegmentSizes = array<i32: 2, 2>} : (memref<2xi64, "global">, memref<2xf32, "global">, memref<8xf32, "global">, memref<2xi1, "global">) -> ()
    func.return
  }
}
