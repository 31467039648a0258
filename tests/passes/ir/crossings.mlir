// crossings makes a crossing a view where both sides use the same memory, and puts inputs and outputs there.

!a = tensor<4xf32, #lb.vdevice<0, "global">>
!b = tensor<4xf32, #lb.vdevice<1, "global">>
!c = tensor<4xf32, #lb.vdevice<2, "global">>
!m = memref<4xf32, "global">

// ---- a GPU that uses the CPU's memory: no copy, and inputs and outputs are the CPU's
// target gpu: {"kind": "opencl", "shares": [["cpu", "global"]]}
// target cpu: llvm -mcpu=x86-64-v3
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %d = bufferization.alloc_tensor() : !a
  %y = "lb.call"(%x, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %c = "lb.to_vdevice"(%y) : (!a) -> !b
  %e = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %back = "lb.to_vdevice"(%z) : (!b) -> !a
  func.return %back : !a
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %x_1 = "lb.to_vdevice"(%x) {node = "host memory", view, why = "both sides use memory of the host"} : (!a) -> !b
  %d = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%x_1, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) {view, why = "both sides use memory of the host"} : (!b) -> !a
  %e = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  func.return %z : !a
}

// ---- there_and_back: with memory of its own a crossing copies, but not there and back again
// target gpu: {"kind": "opencl", "shares": []}
// target cpu: llvm -mcpu=x86-64-v3
func.func @main(%x: !a) -> (!a, !b) {
  %c = "lb.to_vdevice"(%x) : (!a) -> !b
  %back = "lb.to_vdevice"(%c) : (!b) -> !a
  func.return %back, %c : !a, !b
}
// becomes
func.func @main(%x: !a) -> (!a, !b) {
  %c = "lb.to_vdevice"(%x) {why = "gpu has memory of its own, and it is neither coherent nor pinned: a barrier may be a copy"} : (!a) -> !b
  func.return %x, %c : !a, !b
}

// ---- nowhere: a crossing to where the tensor is
func.func @main(%x: !a) -> !a {
  %c = "lb.to_vdevice"(%x) : (!a) -> !a
  func.return %c : !a
}
// becomes
func.func @main(%x: !a) -> !a {
  func.return %x : !a
}

// ---- a CPU that works in a device's memory, which is not coherent: all lies there
// target npu: {"kind": "opencl", "shares": [], "memory": [{"scope": "global", "host_access": "read_write", "coherent": false, "coherence_granule": 64, "pinned": true}]}
// target cpu: llvm -mcpu=x86-64-v3
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %b = "lb.to_vdevice"(%x) : (!a) -> !b
  %d = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) : (!b) -> !a
  %e = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) : (!a) -> !b
  %g = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %g) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) : (!b) -> !a
  func.return %h : !a
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %b = "lb.to_vdevice"(%x) {view, why = "the CPU works in memory of npu"} : (!a) -> !b
  %d = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) {view, why = "the CPU works in memory of npu"} : (!b) -> !a
  %e = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) {view, why = "the CPU works in memory of npu"} : (!a) -> !b
  %g = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %g) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) {view, why = "the CPU works in memory of npu"} : (!b) -> !a
  func.return %h : !a
}

// ---- the same where inputs and outputs are the CPU's: these are copied, as they are where the caller has them
// target cpu: llvm -mcpu=x86-64-v3
// target npu: {"kind": "opencl", "shares": [], "memory": [{"scope": "global", "host_access": "read_write", "coherent": false, "coherence_granule": 64, "pinned": true}]}
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %b = "lb.to_vdevice"(%x) : (!a) -> !b
  %d = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) : (!b) -> !a
  %e = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) : (!a) -> !b
  %g = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %g) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) : (!b) -> !a
  func.return %h : !a
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %b = "lb.to_vdevice"(%x) {why = "its place is on the other side: an input"} : (!a) -> !b
  %d = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) {view, why = "the CPU works in memory of npu"} : (!b) -> !a
  %e = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) {view, why = "the CPU works in memory of npu"} : (!a) -> !b
  %g = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %g) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) {why = "its place is on the other side: an output"} : (!b) -> !a
  func.return %h : !a
}

// ---- memory past the host's caches is copied
// target npu: {"kind": "opencl", "shares": [], "memory": [{"scope": "global", "host_access": "read_write", "coherent": false, "coherence_granule": 64, "pinned": true, "cached": false}]}
// target cpu: llvm -mcpu=x86-64-v3
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %b = "lb.to_vdevice"(%x) : (!a) -> !b
  %d = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) : (!b) -> !a
  %e = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) : (!a) -> !b
  %g = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %g) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) : (!b) -> !a
  func.return %h : !a
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %b = "lb.to_vdevice"(%x) {why = "npu has memory of its own, and it is past the host's caches: a copy costs less"} : (!a) -> !b
  %d = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) {why = "npu has memory of its own, and it is past the host's caches: a copy costs less"} : (!b) -> !a
  %e = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) {why = "npu has memory of its own, and it is past the host's caches: a copy costs less"} : (!a) -> !b
  %g = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %g) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) {why = "npu has memory of its own, and it is past the host's caches: a copy costs less"} : (!b) -> !a
  func.return %h : !a
}

// ---- inputs and outputs stay the GPU's where it alone uses them
// target gpu: {"kind": "opencl", "shares": [["cpu", "global"]]}
// target cpu: llvm -mcpu=x86-64-v3
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %d = bufferization.alloc_tensor() : !a
  %y = "lb.call"(%x, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %c = "lb.to_vdevice"(%y) : (!a) -> !b
  %e = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %back = "lb.to_vdevice"(%z) : (!b) -> !a
  %f = bufferization.alloc_tensor() : !a
  %w = "lb.call"(%back, %f) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  func.return %w : !a
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %d = bufferization.alloc_tensor() : !a
  %y = "lb.call"(%x, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %c = "lb.to_vdevice"(%y) {view, why = "both sides use memory of the host"} : (!a) -> !b
  %e = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %back = "lb.to_vdevice"(%z) {view, why = "both sides use memory of the host"} : (!b) -> !a
  %f = bufferization.alloc_tensor() : !a
  %w = "lb.call"(%back, %f) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  func.return %w : !a
}

// ---- memory shared with what is no host is copied, and inputs and outputs stay
// target gpu: {"kind": "opencl", "shares": [["opencl", "global"]]}
// target npu: {"kind": "opencl", "shares": []}
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %c = "lb.to_vdevice"(%x) : (!a) -> !b
  %e = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %back = "lb.to_vdevice"(%z) : (!b) -> !a
  func.return %back : !a
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %c = "lb.to_vdevice"(%x) {why = "neither side is a CPU that works in the other's memory"} : (!a) -> !b
  %e = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %back = "lb.to_vdevice"(%z) {why = "neither side is a CPU that works in the other's memory"} : (!b) -> !a
  func.return %back : !a
}

// ---- a crossing of a crossing to a third place stays
// target cpu: llvm -mcpu=x86-64-v3
// target gpu: {"kind": "opencl", "shares": []}
// target npu: {"kind": "opencl", "shares": []}
func.func @main(%x: !a) -> !c {
  %1 = "lb.to_vdevice"(%x) : (!a) -> !b
  %2 = "lb.to_vdevice"(%1) : (!b) -> !c
  func.return %2 : !c
}
// becomes
func.func @main(%x: !a) -> !c {
  %1 = "lb.to_vdevice"(%x) {why = "gpu has memory of its own, and it is neither coherent nor pinned: a barrier may be a copy"} : (!a) -> !b
  %2 = "lb.to_vdevice"(%1) {why = "neither side is a CPU that works in the other's memory"} : (!b) -> !c
  func.return %2 : !c
}
