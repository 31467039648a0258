// prepare moves what depends on parameters alone to the front of @main, before lb.prepared: a Session computes it when
// they are set.

!m = memref<4xf32, "global">

// ---- a packed weight is prepared once, what reads the input runs each time
func.func @pack(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @mul(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !m, %w: !m, %y: !m) attributes {lb.input_names = ["x", "w"], lb.output_names = ["y"], lb.parameter_names = ["w"]} {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  %p = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "lb.call"(%x, %s) {callee = @pack, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%w, %p) {callee = @pack, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%s, %p, %y) {callee = @mul, operandSegmentSizes = array<i32: 2, 1>} : (!m, !m, !m) -> ()
  func.return
}
// becomes
func.func @pack(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @mul(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !m, %w: !m, %y: !m) attributes {lb.input_names = ["x", "w"], lb.output_names = ["y"], lb.parameter_names = ["w"]} {
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  %p = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "lb.call"(%w, %p) {callee = @pack, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.prepared"(%p) : (!m) -> ()
  "lb.call"(%x, %s) {callee = @pack, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%s, %p, %y) {callee = @mul, operandSegmentSizes = array<i32: 2, 1>} : (!m, !m, !m) -> ()
  func.return
}
