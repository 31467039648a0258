// fold.concat makes concatenations of constants constants.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!w = tensor<8xf32, #lb.vdevice<0, "global">>

// ---- two constants are one
func.func @main() -> !w {
  %v = "lb.constant"() {symbol = @v} : () -> !t
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %c = "lb.concat"(%v, %w) {axis = 0 : i64} : (!t, !t) -> !w
  func.return %c : !w
}
// becomes
func.func @main() -> !w {
  %c = "lb.constant"() {symbol = @v_1} : () -> !w
  func.return %c : !w
}

// ---- not a constant and an input
func.func @main(%x: !t) -> !w {
  %v = "lb.constant"() {symbol = @v} : () -> !t
  %c = "lb.concat"(%v, %x) {axis = 0 : i64} : (!t, !t) -> !w
  func.return %c : !w
}
// unchanged
