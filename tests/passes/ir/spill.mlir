// spill moves buffers that do not fit their scope to the scope that lb.spill names for it.

!fast = memref<16xf32, "global.fast">
!m = memref<16xf32, "global">

// ---- of three buffers two fit at a time: the one with the fewest uses goes
// target cpu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.fast", "host_access": "read_write", "coherent": true, "capacity": 128}]}
func.func @k(%x: !m, %a: !fast, %b: !fast, %c: !fast) attributes {lb.prim} {
  func.return
}
func.func @l(%a: !fast, %b: !fast) attributes {lb.prim} {
  func.return
}
func.func @m(%a: !fast, %b: !fast, %c: !fast, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !m, %y: !m) attributes {lb.spill = {"global.fast" = "global"}} {
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.fast">, node = "a"} : !fast
  %b = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.fast">, node = "b"} : !fast
  %c = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.fast">, node = "c"} : !fast
  "lb.call"(%x, %a, %b, %c) {callee = @k, operandSegmentSizes = array<i32: 1, 3>} : (!m, !fast, !fast, !fast) -> ()
  "lb.call"(%a, %b) {callee = @l, operandSegmentSizes = array<i32: 1, 1>} : (!fast, !fast) -> ()
  "lb.call"(%a, %b, %c, %y) {callee = @m, operandSegmentSizes = array<i32: 3, 1>} : (!fast, !fast, !fast, !m) -> ()
  func.return
}
// becomes
func.func @k(%x: !m, %a: !fast, %b: !fast, %c: !m) attributes {lb.prim} {
  func.return
}
func.func @l(%a: !fast, %b: !fast) attributes {lb.prim} {
  func.return
}
func.func @m(%a: !fast, %b: !fast, %c: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.fast">, node = "a"} : !fast
  %b = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global.fast">, node = "b"} : !fast
  %c = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "c"} : !m
  "lb.call"(%x, %a, %b, %c) {callee = @k, operandSegmentSizes = array<i32: 1, 3>} : (!m, !fast, !fast, !m) -> ()
  "lb.call"(%a, %b) {callee = @l, operandSegmentSizes = array<i32: 1, 1>} : (!fast, !fast) -> ()
  "lb.call"(%a, %b, %c, %y) {callee = @m, operandSegmentSizes = array<i32: 3, 1>} : (!fast, !fast, !m, !m) -> ()
  func.return
}
