; The checker of packed functions; landbridge.executable.packed describes descriptors and reasons to refuse.
; Of a DLTensor it reads data at byte 0; runtime_ir.py says where its other fields are. 7 and 70 are tvm-ffi's types of
; tensor pointers and objects (header: 24 bytes). Arguments of kernels are words of 64 bits.
declare ptr @dlsym(ptr, ptr)
declare i32 @snprintf(ptr, [LONG], ptr, ...)

@landbridge.raise = private unnamed_addr constant [29 x i8] c"TVMFFIErrorSetRaisedFromCStr\00"
@landbridge.empty = private unnamed_addr constant [1 x i8] zeroinitializer

define internal i32 @landbridge.refuse(ptr %d, i64 %reason, i64 %number, i64 %text, i64 %a, i64 %b) noinline #0 {
entry:
  %line = alloca [512 x i8], align 16
  %twice = shl i64 %reason, 1
  %messages = getelementptr i64, ptr %d, i64 6
  %kind_word = getelementptr i64, ptr %messages, i64 %twice
  %form_word = getelementptr i64, ptr %kind_word, i64 1
  %name_word = getelementptr i64, ptr %d, i64 3
  %kind_at = load i64, ptr %kind_word, align 8
  %form_at = load i64, ptr %form_word, align 8
  %name_at = load i64, ptr %name_word, align 8
  %kind = getelementptr i8, ptr %d, i64 %kind_at
  %form = getelementptr i8, ptr %d, i64 %form_at
  %name = getelementptr i8, ptr %d, i64 %name_at
  %stated = getelementptr i8, ptr %d, i64 %text
  %has_text = icmp ne i64 %text, 0
  %words = select i1 %has_text, ptr %stated, ptr @landbridge.empty
  %n = call i32 (ptr, [LONG], ptr, ...) @snprintf(ptr %line, [LONG] 512, ptr %form, ptr %name, i64 %number, ptr %words, i64 %a, i64 %b)
  ; Whoever calls a packed function has loaded tvm-ffi; the image itself does not need it.
  %raise = call ptr @dlsym(ptr null, ptr @landbridge.raise)
  %known = icmp ne ptr %raise, null
  br i1 %known, label %tell, label %done
tell:
  call void %raise(ptr %kind, ptr %line)
  br label %done
done:
  ret i32 -1
}

define i32 @landbridge_packed_v3(ptr %d, ptr %given, i32 %count) #0 {
entry:
  %tasks_at = getelementptr i64, ptr %d, i64 1
  %operands_at = getelementptr i64, ptr %d, i64 2
  %first = getelementptr i64, ptr %d, i64 24
  %operands = load i64, ptr %operands_at, align 8
  %n = sext i32 %count to i64
  %all = icmp eq i64 %n, %operands
  br i1 %all, label %begin, label %wrong_count
begin:
  %args = alloca i64, i64 %n, align 16
  br label %next
next:
  %i = phi i64 [ 0, %begin ], [ %following, %fits ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %look, label %run
look:
  %any = getelementptr { i32, i32, i64 }, ptr %given, i64 %i
  %pointer_at = getelementptr i8, ptr %any, i64 8
  %five = mul i64 %i, 5
  %operand = getelementptr i64, ptr %first, i64 %five
  %alignment_at = getelementptr i64, ptr %operand, i64 1
  %rank_at = getelementptr i64, ptr %operand, i64 2
  %extents_at = getelementptr i64, ptr %operand, i64 3
  %text_at = getelementptr i64, ptr %operand, i64 4
  %element = load i64, ptr %operand, align 8
  %alignment = load i64, ptr %alignment_at, align 8
  %rank = load i64, ptr %rank_at, align 8
  %extents_offset = load i64, ptr %extents_at, align 8
  %text = load i64, ptr %text_at, align 8
  %shape = getelementptr i8, ptr %d, i64 %extents_offset
  %strides = getelementptr i64, ptr %shape, i64 %rank
  %type = load i32, ptr %any, align 8
  %pointer = load ptr, ptr %pointer_at, align 8
  %behind = getelementptr i8, ptr %pointer, i64 24
  switch i32 %type, label %no_tensor [ i32 7, label %plain i32 70, label %object ]
plain:
  br label %described
object:
  br label %described
described:
  %t = phi ptr [ %pointer, %plain ], [ %behind, %object ]
  %device_at = getelementptr i8, ptr %t, i64 [DEVICE_AT]
  %t_rank_at = getelementptr i8, ptr %t, i64 [RANK_AT]
  %t_type_at = getelementptr i8, ptr %t, i64 [TYPE_AT]
  %t_shape_at = getelementptr i8, ptr %t, i64 [SHAPE_AT]
  %t_strides_at = getelementptr i8, ptr %t, i64 [STRIDES_AT]
  %t_offset_at = getelementptr i8, ptr %t, i64 [OFFSET_AT]
  %device = load i32, ptr %device_at, align 4
  %on_cpu = icmp eq i32 %device, 1
  br i1 %on_cpu, label %look_type, label %wrong_device
look_type:
  %t_type = load i32, ptr %t_type_at, align 4
  %t_element = zext i32 %t_type to i64
  %same_type = icmp eq i64 %t_element, %element
  br i1 %same_type, label %look_rank, label %wrong_type
look_rank:
  %t_rank32 = load i32, ptr %t_rank_at, align 4
  %t_rank = sext i32 %t_rank32 to i64
  %same_rank = icmp eq i64 %t_rank, %rank
  br i1 %same_rank, label %look_shape, label %wrong_rank
look_shape:
  %t_shape = load ptr, ptr %t_shape_at, align 4
  br label %extent
extent:
  %k = phi i64 [ 0, %look_shape ], [ %k1, %same_extent ]
  %size = phi i64 [ 1, %look_shape ], [ %size1, %same_extent ]
  %another = icmp slt i64 %k, %rank
  br i1 %another, label %compare_extent, label %look_strides
compare_extent:
  %want_at = getelementptr i64, ptr %shape, i64 %k
  %have_at = getelementptr i64, ptr %t_shape, i64 %k
  %want = load i64, ptr %want_at, align 8
  %have = load i64, ptr %have_at, align 8
  %extents_equal = icmp eq i64 %want, %have
  br i1 %extents_equal, label %same_extent, label %wrong_extent
same_extent:
  %k1 = add i64 %k, 1
  %size1 = mul i64 %size, %want
  br label %extent
look_strides:
  %t_strides = load ptr, ptr %t_strides_at, align 4
  %no_strides = icmp eq ptr %t_strides, null
  %nothing = icmp eq i64 %size, 0
  %dense = or i1 %no_strides, %nothing
  br i1 %dense, label %look_address, label %stride
stride:
  %m = phi i64 [ 0, %look_strides ], [ %m1, %same_stride ]
  %one_more = icmp slt i64 %m, %rank
  br i1 %one_more, label %compare_stride, label %look_address
compare_stride:
  %extent_at = getelementptr i64, ptr %shape, i64 %m
  %step_want_at = getelementptr i64, ptr %strides, i64 %m
  %step_have_at = getelementptr i64, ptr %t_strides, i64 %m
  %own_extent = load i64, ptr %extent_at, align 8
  %step_want = load i64, ptr %step_want_at, align 8
  %step_have = load i64, ptr %step_have_at, align 8
  %single = icmp eq i64 %own_extent, 1
  %equal_steps = icmp eq i64 %step_want, %step_have
  %step_fits = or i1 %single, %equal_steps
  br i1 %step_fits, label %same_stride, label %wrong_stride
same_stride:
  %m1 = add i64 %m, 1
  br label %stride
look_address:
  %data = load ptr, ptr %t, align 8
  %offset = load i64, ptr %t_offset_at, align 8
  %address = getelementptr i8, ptr %data, i64 %offset
  %number = ptrtoint ptr %address to i64
  %mask = sub i64 %alignment, 1
  %over = and i64 %number, %mask
  %aligned = icmp eq i64 %over, 0
  br i1 %aligned, label %fits, label %wrong_alignment
fits:
  %slot = getelementptr i64, ptr %args, i64 %i
  store ptr %address, ptr %slot, align 8
  %following = add i64 %i, 1
  br label %next
run:
  %kernel_offset = load i64, ptr %d, align 8
  %tasks = load i64, ptr %tasks_at, align 8
  %kernel = getelementptr i8, ptr %d, i64 %kernel_offset
  %flushes_at = getelementptr i64, ptr %d, i64 4
  %flushes = load i64, ptr %flushes_at, align 8
  %keeps = icmp eq i64 %flushes, 0
  %control = select i1 %keeps, i64 [KEEP], i64 [FLUSH]
  %workspace_at = getelementptr i64, ptr %d, i64 5
  %workspace_bytes = load i64, ptr %workspace_at, align 8
  %on_stack = icmp eq i64 %workspace_bytes, 0
  br i1 %on_stack, label %call, label %reserve
reserve:
  %long_bytes = [TO_LONG] i64 %workspace_bytes to [LONG]
  %reserved = call ptr @aligned_alloc([LONG] 64, [LONG] %long_bytes)
  %got = icmp ne ptr %reserved, null
  br i1 %got, label %call, label %no_memory
call:
  %workspace = phi ptr [ null, %run ], [ %reserved, %reserve ]
  %callers = call i64 @"landbridge.float_control"()
  call void @"landbridge.set_float_control"(i64 %control)
  call void %kernel(ptr %args, i64 0, i64 %tasks, ptr %workspace)
  call void @"landbridge.set_float_control"(i64 %callers)
  call void @free(ptr %workspace)
  ret i32 0
no_memory:
  %r8 = call i32 @landbridge.refuse(ptr %d, i64 8, i64 %workspace_bytes, i64 0, i64 0, i64 0)
  ret i32 %r8
wrong_count:
  %r0 = call i32 @landbridge.refuse(ptr %d, i64 0, i64 %operands, i64 0, i64 %n, i64 0)
  ret i32 %r0
no_tensor:
  %r1 = call i32 @landbridge.refuse(ptr %d, i64 1, i64 %i, i64 %text, i64 0, i64 0)
  ret i32 %r1
wrong_device:
  %where = sext i32 %device to i64
  %r2 = call i32 @landbridge.refuse(ptr %d, i64 2, i64 %i, i64 %text, i64 %where, i64 0)
  ret i32 %r2
wrong_type:
  %code = and i64 %t_element, 255
  %shifted = lshr i64 %t_element, 8
  %bits = and i64 %shifted, 255
  %r3 = call i32 @landbridge.refuse(ptr %d, i64 3, i64 %i, i64 %text, i64 %code, i64 %bits)
  ret i32 %r3
wrong_rank:
  %r4 = call i32 @landbridge.refuse(ptr %d, i64 4, i64 %i, i64 %text, i64 %t_rank, i64 0)
  ret i32 %r4
wrong_extent:
  %r5 = call i32 @landbridge.refuse(ptr %d, i64 5, i64 %i, i64 %text, i64 %k, i64 %have)
  ret i32 %r5
wrong_stride:
  %r6 = call i32 @landbridge.refuse(ptr %d, i64 6, i64 %i, i64 %text, i64 %m, i64 %step_have)
  ret i32 %r6
wrong_alignment:
  %r7 = call i32 @landbridge.refuse(ptr %d, i64 7, i64 %i, i64 %text, i64 %alignment, i64 0)
  ret i32 %r7
}
