// support.of_the_host lets functions of the host run on a CPU.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!cpu = tensor<4xf32, #lb.vdevice<1, "global">>

// ---- a function of the host in a program for a GPU
// target gpu: opencl
func.func @main(%x: !t) -> !t {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.host_call"(%x, %d) {builtin = "check", parameters = {}, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y : !t
}
// becomes
func.func @main(%x: !t) -> !t {
  %d = bufferization.alloc_tensor() : !cpu
  %0 = "lb.to_vdevice"(%x) {node = "input 0 to cpu"} : (!t) -> !cpu
  %y = "lb.host_call"(%0, %d) {builtin = "check", parameters = {}, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %1 = "lb.to_vdevice"(%y) {node = "a to gpu"} : (!cpu) -> !t
  func.return %1 : !t
}

// ---- not where a CPU computes already
func.func @main(%x: !t) -> !t {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.host_call"(%x, %d) {builtin = "check", parameters = {}, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y : !t
}
// unchanged
