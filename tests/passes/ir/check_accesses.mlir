// check_accesses gives kernels of CPUs a report as one more operand, and lets the host look at it after each call.

!m = memref<4xf32, "global">
#id = affine_map<(d0) -> (d0)>

// ---- two words for each operand, and two for temporaries
func.func @copy(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) attributes {lb.input_names = ["x"], lb.output_names = ["y"]} {
  "lb.call"(%x, %y) {callee = @copy, operandSegmentSizes = array<i32: 1, 1>, node = "copier", lb.vdevice = #lb.vdevice<0, "global">} : (!m, !m) -> ()
  func.return
}
// becomes
func.func @copy(%x: !m, %y: !m, %0: memref<6xi64, "global">) attributes {lb.prim, lb.checked} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs =  {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) attributes {lb.input_names = ["x"], lb.output_names = ["y"]} {
  %0 = "lb.alloc_storage"() {nbytes = 48 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<0, "global">, lb.lower_bound = 48 : i64, lb.proved_optimal = true} : () -> !lb.storage
  %1 = "lb.alloc_tensor"(%0) {offset = 0 : i64, node = "access report"} : (!lb.storage) -> memref<6xi64, "global">
  "lb.host_call"(%1) {builtin = "landbridge.clear_access_report", parameters = {}, operandSegmentSizes = array<i32: 0, 1>} : (memref<6xi64, "global">) -> ()
  "lb.call"(%x, %y, %1) {callee = @copy, operandSegmentSizes = array<i32: 1, 2>, node = "copier", lb.vdevice = #lb.vdevice<0, "global">} : (!m, !m, memref<6xi64, "global">) -> ()
  "lb.host_call"(%1) {builtin = "landbridge.check_accesses", parameters = {node = "copier", kernel = "copy", names = ["argument 'x'", "argument 'y'"], items = [4 : i64, 4 : i64], nbytes = [16 : i64, 16 : i64]}, operandSegmentSizes = array<i32: 0, 1>} : (memref<6xi64, "global">) -> ()
  func.return
}

// ---- a kernel of a device stays as it is
// target npu: opencl
func.func @copy(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) attributes {lb.input_names = ["x"], lb.output_names = ["y"]} {
  "lb.call"(%x, %y) {callee = @copy, operandSegmentSizes = array<i32: 1, 1>, node = "copier", lb.vdevice = #lb.vdevice<0, "global">} : (!m, !m) -> ()
  func.return
}
// becomes
func.func @copy(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs =  {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main(%x: !m, %y: !m) attributes {lb.input_names = ["x"], lb.output_names = ["y"]} {
  "lb.call"(%x, %y) {callee = @copy, operandSegmentSizes = array<i32: 1, 1>, node = "copier", lb.vdevice = #lb.vdevice<0, "global">} : (!m, !m) -> ()
  func.return
}
