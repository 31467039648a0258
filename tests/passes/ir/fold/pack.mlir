// fold.pack packs constants at compile time.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!p = tensor<2x2xf32, #lb.vdevice<0, "global">>

// ---- a constant is packed now, not by runs
func.func @main() -> !p {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %p = "lb.pack"(%w) {axes = [0 : i64], tiles = [2 : i64]} : (!t) -> !p
  func.return %p : !p
}
// becomes
func.func @main() -> !p {
  %p = "lb.constant"() {symbol = @w_1} : () -> !p
  func.return %p : !p
}

// ---- not an input
func.func @main(%x: !t) -> !p {
  %p = "lb.pack"(%x) {axes = [0 : i64], tiles = [2 : i64]} : (!t) -> !p
  func.return %p : !p
}
// unchanged
