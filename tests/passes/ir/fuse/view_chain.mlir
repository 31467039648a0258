// fuse.view_chain lets a reshape of a reshape begin at the computed value.

!t = tensor<4x4xf32, #lb.vdevice<0, "global">>
!f = tensor<16xf32, #lb.vdevice<0, "global">>
!g = tensor<2x8xf32, #lb.vdevice<0, "global">>
!b = tensor<8xf32, #lb.vdevice<0, "global">>
!h = tensor<2x4xf32, #lb.vdevice<0, "global">>

// ---- a reshape there and back is no reshape, another one is one
func.func @main(%x: !t) -> (!g, !t) {
  %f = "lb.view"(%x) {offset = 0 : i64} : (!t) -> !f
  %g = "lb.view"(%f) {offset = 0 : i64} : (!f) -> !g
  %t = "lb.view"(%f) {offset = 0 : i64} : (!f) -> !t
  func.return %g, %t : !g, !t
}
// becomes
func.func @main(%x: !t) -> (!g, !t) {
  %g = "lb.view"(%x) {offset = 0 : i64} : (!t) -> !g
  func.return %g, %x : !g, !t
}

// ---- not across a view of a part
func.func @main(%x: !t) -> !h {
  %b = "lb.view"(%x) {offset = 8 : i64} : (!t) -> !b
  %h = "lb.view"(%b) {offset = 0 : i64} : (!b) -> !h
  func.return %h : !h
}
// unchanged
