// fold.shared_memory makes constants that are the same memory one, as layers have that share weights.

!t = tensor<4xf32, #lb.vdevice<0, "global">>

// ---- two names of one array are one constant
// same memory: v, w
func.func @main() -> (!t, !t) {
  %v = "lb.constant"() {symbol = @v} : () -> !t
  %w = "lb.constant"() {symbol = @w} : () -> !t
  func.return %v, %w : !t, !t
}
// becomes
func.func @main() -> (!t, !t) {
  %v = "lb.constant"() {symbol = @v} : () -> !t
  func.return %v, %v : !t, !t
}

// ---- not two arrays
func.func @main() -> (!t, !t) {
  %v = "lb.constant"() {symbol = @v} : () -> !t
  %w = "lb.constant"() {symbol = @w} : () -> !t
  func.return %v, %w : !t, !t
}
// unchanged
