// fold.unpack unpacks constants at compile time.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!p = tensor<2x2xf32, #lb.vdevice<0, "global">>

// ---- a packed constant is unpacked now, not by runs
func.func @main() -> !t {
  %w = "lb.constant"() {symbol = @w} : () -> !p
  %t = "lb.unpack"(%w) {axes = [0 : i64], tiles = [2 : i64]} : (!p) -> !t
  func.return %t : !t
}
// becomes
func.func @main() -> !t {
  %t = "lb.constant"() {symbol = @w_1} : () -> !t
  func.return %t : !t
}

// ---- not an input
func.func @main(%x: !p) -> !t {
  %t = "lb.unpack"(%x) {axes = [0 : i64], tiles = [2 : i64]} : (!p) -> !t
  func.return %t : !t
}
// unchanged
