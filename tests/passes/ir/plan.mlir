// plan puts every buffer at a place in a storage, one for each vdevice and scope.

!m = memref<16xf32, "global">

// ---- buffers that are not in use together share bytes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "a"} : !m
  %b = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "b"} : !m
  %c = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">, node = "c"} : !m
  "lb.call"(%x, %a) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%a, %b) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%b, %c) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%c, %y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %0 = "lb.alloc_storage"() {nbytes = 128 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global">, lb.lower_bound = 128 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %a = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "a"} : (!lb.storage) -> !m
  %b = "lb.alloc_tensor"(%0) {offset = 64 : i64, node = "b"} : (!lb.storage) -> !m
  %c = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "c"} : (!lb.storage) -> !m
  "lb.call"(%x, %a) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%a, %b) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%b, %c) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%c, %y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
