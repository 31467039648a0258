// crossings.there_and_back removes a crossing back to where a tensor came from.

!a = tensor<4xf32, #lb.vdevice<0, "global">>
!b = tensor<4xf32, #lb.vdevice<1, "global">>
!c = tensor<4xf32, #lb.vdevice<2, "global">>

// ---- what comes back is what went
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

// ---- not a crossing to a third place
// target gpu: {"kind": "opencl", "shares": []}
// target cpu: llvm -mcpu=x86-64-v3
// target npu: {"kind": "opencl", "shares": []}
func.func @main(%x: !a) -> !c {
  %c = "lb.to_vdevice"(%x) : (!a) -> !b
  %f = "lb.to_vdevice"(%c) : (!b) -> !c
  func.return %f : !c
}
// becomes
func.func @main(%x: !a) -> !c {
  %c = "lb.to_vdevice"(%x) {why = "gpu has memory of its own, and it is neither coherent nor pinned: a barrier may be a copy"} : (!a) -> !b
  %f = "lb.to_vdevice"(%c) {why = "npu has memory of its own, and it is neither coherent nor pinned: a barrier may be a copy"} : (!b) -> !c
  func.return %f : !c
}
