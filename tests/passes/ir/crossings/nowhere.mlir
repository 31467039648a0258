// crossings.nowhere removes a crossing to where a tensor is.

!a = tensor<4xf32, #lb.vdevice<0, "global">>
!b = tensor<4xf32, #lb.vdevice<1, "global">>

// ---- a crossing to where the tensor is
func.func @main(%x: !a) -> !a {
  %c = "lb.to_vdevice"(%x) : (!a) -> !a
  func.return %c : !a
}
// becomes
func.func @main(%x: !a) -> !a {
  func.return %x : !a
}

// ---- not a crossing to another device
// target gpu: {"kind": "opencl", "shares": []}
// target cpu: llvm -mcpu=x86-64-v3
func.func @main(%x: !a) -> !b {
  %c = "lb.to_vdevice"(%x) : (!a) -> !b
  func.return %c : !b
}
// becomes
func.func @main(%x: !a) -> !b {
  %c = "lb.to_vdevice"(%x) {why = "gpu has memory of its own, and it is neither coherent nor pinned: a barrier may be a copy"} : (!a) -> !b
  func.return %c : !b
}
