// fold.view makes views of constants constants.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!h = tensor<2xf32, #lb.vdevice<0, "global">>

// ---- a part of a constant is a constant
func.func @main() -> !h {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %v = "lb.view"(%w) {offset = 2 : i64} : (!t) -> !h
  func.return %v : !h
}
// becomes
func.func @main() -> !h {
  %v = "lb.constant"() {symbol = @w_1} : () -> !h
  func.return %v : !h
}

// ---- not a part of an input
func.func @main(%x: !t) -> !h {
  %v = "lb.view"(%x) {offset = 2 : i64} : (!t) -> !h
  func.return %v : !h
}
// unchanged
