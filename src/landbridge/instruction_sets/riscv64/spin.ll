; How long a spin took: its iterations, as Linux lets programs read no counter of cycles, and that of time has another
; frequency on each board. The pause is a hint, which processors that do not know it take for a fence of nothing.
declare void @llvm.riscv.pause()

define internal i64 @"landbridge.spent"(i64 %iterations) #0 {
  ret i64 %iterations
}

define internal void @"landbridge.pause"() nounwind "target-features"="+m,+a,+f,+d,+c,+zihintpause" {
  call void @llvm.riscv.pause()
  fence seq_cst
  ret void
}
