; The runtime of CPU images; runtime_ir.py explains it and replaces the words in [BRACKETS]. Of C's types, size_t, long
; and pthread_t are [LONG]; words of programs are i64, of which a pointer of 32 bits is the first half.
declare noalias ptr @aligned_alloc([LONG], [LONG])
declare void @free(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join([LONG], ptr)
declare [LONG] @syscall([LONG], ...)
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define i64 @landbridge_run_v3(ptr %pool, ptr %workspace, ptr %records, i64 %count) #0 {
entry:
  %callers = call i64 @"landbridge.float_control"()
  %has_pool = icmp ne ptr %pool, null
  br i1 %has_pool, label %parallel, label %alone
parallel:
  %workers_at = getelementptr i8, ptr %pool, i64 [WORKERS]
  %workers = load i64, ptr %workers_at, align 8
  %has_workers = icmp ne i64 %workers, 0
  br i1 %has_workers, label %take, label %alone
take:
  %busy_at = getelementptr i8, ptr %pool, i64 [BUSY]
  %taking = cmpxchg ptr %busy_at, i32 0, i32 1 acquire monotonic
  %taken = extractvalue { i32, i1 } %taking, 1
  br i1 %taken, label %loop, label %alone
alone:
  br label %loop
loop:
  %owned = phi i1 [ true, %take ], [ false, %alone ]
  br label %next
next:
  %i = phi i64 [ 0, %loop ], [ %after_call, %called ], [ %after_branch, %branch ], [ %target, %jump ]
  ; What the register of floats was set to; what it never is, before the first call.
  %control = phi i64 [ [UNSET], %loop ], [ %wanted, %called ], [ %control, %branch ], [ %control, %jump ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %record, label %end
record:
  %words = shl i64 %i, 2
  %at = getelementptr i64, ptr %records, i64 %words
  %at1 = getelementptr i64, ptr %at, i64 1
  %at2 = getelementptr i64, ptr %at, i64 2
  %at3 = getelementptr i64, ptr %at, i64 3
  %kind = load i64, ptr %at, align 8
  %address = load ptr, ptr %at1, align 8
  %target = load i64, ptr %at2, align 8
  %flushing = icmp eq i64 %kind, 3
  %wanted = select i1 %flushing, i64 [FLUSH], i64 [KEEP]
  switch i64 %kind, label %jump [ i64 0, label %call i64 1, label %branch i64 3, label %call ]
call:
  %is_set = icmp eq i64 %wanted, %control
  br i1 %is_set, label %ready, label %set
set:
  call void @"landbridge.set_float_control"(i64 %wanted)
  br label %ready
ready:
  %args = inttoptr i64 %target to ptr
  %tasks = load i64, ptr %at3, align 8
  %many = icmp sgt i64 %tasks, 1
  %spread = and i1 %many, %owned
  br i1 %spread, label %share, label %inline
inline:
  call void %address(ptr %args, i64 0, i64 %tasks, ptr %workspace)
  br label %called
share:
  call void @"landbridge.share"(ptr %pool, ptr %address, ptr %args, i64 %tasks, i64 %wanted, ptr %workspace)
  br label %called
called:
  %after_call = add i64 %i, 1
  br label %next
branch:
  %byte = load i8, ptr %address, align 1
  %is_zero = icmp eq i8 %byte, 0
  %following = add i64 %i, 1
  %after_branch = select i1 %is_zero, i64 %target, i64 %following
  br label %next
jump:
  br label %next
end:
  %untouched = icmp eq i64 %control, [UNSET]
  br i1 %untouched, label %leave, label %restore
restore:
  call void @"landbridge.set_float_control"(i64 %callers)
  br label %leave
leave:
  br i1 %owned, label %release, label %done
release:
  %busy_end = getelementptr i8, ptr %pool, i64 [BUSY]
  store atomic i32 0, ptr %busy_end release, align 4
  br label %done
done:
  ret i64 0
}

define internal void @"landbridge.share"(ptr %pool, ptr %kernel, ptr %args, i64 %tasks, i64 %control, ptr %workspace) noinline #0 {
entry:
  %threads_at = getelementptr i8, ptr %pool, i64 [THREADS]
  %threads = load i64, ptr %threads_at, align 8
  %parts = mul i64 %threads, [CHUNKS]
  %even = udiv i64 %tasks, %parts
  %chunk = call i64 @llvm.umax.i64(i64 %even, i64 1)
  %sum = add i64 %tasks, %chunk
  %sum1 = sub i64 %sum, 1
  %chunks = udiv i64 %sum1, %chunk
  %job = getelementptr i8, ptr %pool, i64 [JOB]
  %job1 = getelementptr i64, ptr %job, i64 1
  %job2 = getelementptr i64, ptr %job, i64 2
  %job3 = getelementptr i64, ptr %job, i64 3
  %job4 = getelementptr i64, ptr %job, i64 4
  store ptr %kernel, ptr %job, align 8
  store ptr %args, ptr %job1, align 8
  store i64 %tasks, ptr %job2, align 8
  store i64 %chunk, ptr %job3, align 8
  store i64 %control, ptr %job4, align 8
  %pending = getelementptr i8, ptr %pool, i64 [PENDING]
  %chunks32 = trunc i64 %chunks to i32
  store atomic i32 %chunks32, ptr %pending monotonic, align 4
  %left = getelementptr i8, ptr %pool, i64 [LEFT]
  store atomic i64 %chunks, ptr %left seq_cst, align 8
  %sleepers = getelementptr i8, ptr %pool, i64 [SLEEPERS]
  %sleeping = load atomic i32, ptr %sleepers seq_cst, align 4
  %none = icmp eq i32 %sleeping, 0
  br i1 %none, label %work, label %rouse
rouse:
  store atomic i32 0, ptr %sleepers seq_cst, align 4
  call void @"landbridge.rouse"(ptr %pool)
  br label %work
work:
  %did = call i32 @"landbridge.work"(ptr %pool, ptr %workspace)
  %before = atomicrmw sub ptr %pending, i32 %did seq_cst
  %rest = sub i32 %before, %did
  %all = icmp eq i32 %rest, 0
  br i1 %all, label %done, label %wait
wait:
  call void @"landbridge.wait"(ptr %pool)
  br label %done
done:
  ret void
}

; Wakes every worker that sleeps.
define internal void @"landbridge.rouse"(ptr %pool) noinline #0 {
  %wake = getelementptr i8, ptr %pool, i64 [WAKE]
  %old = atomicrmw add ptr %wake, i32 1 seq_cst
  %r = call [LONG] ([LONG], ...) @syscall([LONG] [SYSCALL], ptr %wake, [LONG] [FUTEX_WAKE], [LONG] 2147483647)
  ret void
}

; Claims and does chunks until none is left, in the workspace of the thread; the number done.
define internal i32 @"landbridge.work"(ptr %pool, ptr %workspace) noinline #0 {
entry:
  %left = getelementptr i8, ptr %pool, i64 [LEFT]
  %job = getelementptr i8, ptr %pool, i64 [JOB]
  %job1 = getelementptr i64, ptr %job, i64 1
  %job2 = getelementptr i64, ptr %job, i64 2
  %job3 = getelementptr i64, ptr %job, i64 3
  %job4 = getelementptr i64, ptr %job, i64 4
  br label %look
look:
  %did = phi i32 [ 0, %entry ], [ %did1, %ready ]
  %control = phi i64 [ [UNSET], %entry ], [ %wanted, %ready ]
  %first = load atomic i64, ptr %left monotonic, align 8
  br label %claim
claim:
  %n = phi i64 [ %first, %look ], [ %seen, %try ]
  %none = icmp eq i64 %n, 0
  br i1 %none, label %done, label %try
try:
  %n1 = sub i64 %n, 1
  %exchange = cmpxchg ptr %left, i64 %n, i64 %n1 acquire monotonic
  %seen = extractvalue { i64, i1 } %exchange, 0
  %won = extractvalue { i64, i1 } %exchange, 1
  br i1 %won, label %claimed, label %claim
claimed:
  %kernel = load ptr, ptr %job, align 8
  %args = load ptr, ptr %job1, align 8
  %tasks = load i64, ptr %job2, align 8
  %chunk = load i64, ptr %job3, align 8
  %wanted = load i64, ptr %job4, align 8
  %is_set = icmp eq i64 %wanted, %control
  br i1 %is_set, label %ready, label %set
set:
  call void @"landbridge.set_float_control"(i64 %wanted)
  br label %ready
ready:
  %begin = mul i64 %n1, %chunk
  %stop = add i64 %begin, %chunk
  %over = icmp sgt i64 %stop, %tasks
  %end = select i1 %over, i64 %tasks, i64 %stop
  call void %kernel(ptr %args, i64 %begin, i64 %end, ptr %workspace)
  %did1 = add i32 %did, 1
  br label %look
done:
  ret i32 %did
}

; The caller waits until no chunk is pending.
define internal void @"landbridge.wait"(ptr %pool) noinline #0 {
entry:
  %pending = getelementptr i8, ptr %pool, i64 [PENDING]
  %waiting = getelementptr i8, ptr %pool, i64 [WAITING]
  %start = call i64 @"landbridge.spent"(i64 0)
  br label %spin
spin:
  %iterations = phi i64 [ 0, %entry ], [ %iterations1, %pause ]
  %n = load atomic i32, ptr %pending acquire, align 4
  %ready = icmp eq i32 %n, 0
  br i1 %ready, label %done, label %pause
pause:
  call void @"landbridge.pause"()
  %iterations1 = add i64 %iterations, 1
  %now = call i64 @"landbridge.spent"(i64 %iterations1)
  %spent = sub i64 %now, %start
  %go_on = icmp ult i64 %spent, [SPIN]
  br i1 %go_on, label %spin, label %doze
doze:
  store atomic i32 1, ptr %waiting seq_cst, align 4
  br label %again
again:
  %m = load atomic i32, ptr %pending seq_cst, align 4
  %over = icmp eq i32 %m, 0
  br i1 %over, label %woken, label %sleep
sleep:
  %r = call [LONG] ([LONG], ...) @syscall([LONG] [SYSCALL], ptr %pending, [LONG] [FUTEX_WAIT], i32 %m, ptr null)
  br label %again
woken:
  store atomic i32 0, ptr %waiting monotonic, align 4
  br label %done
done:
  ret void
}

; The life of a worker.
define internal ptr @"landbridge.worker"(ptr %pool) noinline #0 {
entry:
  %left = getelementptr i8, ptr %pool, i64 [LEFT]
  %stop_at = getelementptr i8, ptr %pool, i64 [STOP]
  %wake = getelementptr i8, ptr %pool, i64 [WAKE]
  %sleepers = getelementptr i8, ptr %pool, i64 [SLEEPERS]
  %pending = getelementptr i8, ptr %pool, i64 [PENDING]
  %waiting = getelementptr i8, ptr %pool, i64 [WAITING]
  %started = getelementptr i8, ptr %pool, i64 [STARTED]
  %bytes_at = getelementptr i8, ptr %pool, i64 [WORKSPACE_BYTES]
  %first_at = getelementptr i8, ptr %pool, i64 [WORKSPACES]
  %number = atomicrmw add ptr %started, i64 1 monotonic
  %bytes = load i64, ptr %bytes_at, align 8
  %first = load ptr, ptr %first_at, align 8
  %offset = mul i64 %number, %bytes
  %workspace = getelementptr i8, ptr %first, i64 %offset
  br label %idle
idle:
  %start = call i64 @"landbridge.spent"(i64 0)
  br label %spin
spin:
  %iterations = phi i64 [ 0, %idle ], [ %iterations1, %rest ]
  %n = load atomic i64, ptr %left monotonic, align 8
  %any = icmp ne i64 %n, 0
  br i1 %any, label %work, label %pause
pause:
  %stop = load atomic i32, ptr %stop_at acquire, align 4
  %stopping = icmp ne i32 %stop, 0
  br i1 %stopping, label %quit, label %rest
rest:
  call void @"landbridge.pause"()
  %iterations1 = add i64 %iterations, 1
  %now = call i64 @"landbridge.spent"(i64 %iterations1)
  %spent = sub i64 %now, %start
  %go_on = icmp ult i64 %spent, [SPIN]
  br i1 %go_on, label %spin, label %doze
doze:
  %ticket = load atomic i32, ptr %wake seq_cst, align 4
  %counted = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %m = load atomic i64, ptr %left seq_cst, align 8
  %some = icmp ne i64 %m, 0
  %stop2 = load atomic i32, ptr %stop_at seq_cst, align 4
  %stopping2 = icmp ne i32 %stop2, 0
  %up = or i1 %some, %stopping2
  br i1 %up, label %idle, label %sleep
sleep:
  %r = call [LONG] ([LONG], ...) @syscall([LONG] [SYSCALL], ptr %wake, [LONG] [FUTEX_WAIT], i32 %ticket, ptr null)
  br label %idle
work:
  %did = call i32 @"landbridge.work"(ptr %pool, ptr %workspace)
  %nothing = icmp eq i32 %did, 0
  br i1 %nothing, label %idle, label %report
report:
  %before = atomicrmw sub ptr %pending, i32 %did seq_cst
  %last = icmp eq i32 %before, %did
  %awaited = load atomic i32, ptr %waiting seq_cst, align 4
  %asleep = icmp ne i32 %awaited, 0
  %signal = and i1 %last, %asleep
  br i1 %signal, label %tell, label %idle
tell:
  %s = call [LONG] ([LONG], ...) @syscall([LONG] [SYSCALL], ptr %pending, [LONG] [FUTEX_WAKE], [LONG] 1)
  br label %idle
quit:
  ret ptr null
}

define ptr @landbridge_pool_create_v2(i64 %threads, i64 %workspace_bytes) #0 {
entry:
  %others = sub i64 %threads, 1
  %sane = icmp ult i64 %others, 2147483647
  br i1 %sane, label %reserve, label %fail
reserve:
  %tail = mul i64 %threads, 8
  %raw = add i64 %tail, [HANDLES_ROUNDED]
  %size = and i64 %raw, -64
  %more_bytes = add i64 %workspace_bytes, 63
  %bytes = and i64 %more_bytes, -64
  %workspaces = mul i64 %others, %bytes
  %whole = add i64 %size, %workspaces
  %whole_long = [TO_LONG] i64 %whole to [LONG]
  %pool = call ptr @aligned_alloc([LONG] 64, [LONG] %whole_long)
  %got = icmp ne ptr %pool, null
  br i1 %got, label %fill, label %fail
fill:
  call void @llvm.memset.p0.i64(ptr align 64 %pool, i8 0, i64 %size, i1 false)
  %threads_at = getelementptr i8, ptr %pool, i64 [THREADS]
  store i64 %threads, ptr %threads_at, align 8
  %bytes_at = getelementptr i8, ptr %pool, i64 [WORKSPACE_BYTES]
  store i64 %bytes, ptr %bytes_at, align 8
  %first_at = getelementptr i8, ptr %pool, i64 [WORKSPACES]
  %first = getelementptr i8, ptr %pool, i64 %size
  store ptr %first, ptr %first_at, align 8
  %workers_at = getelementptr i8, ptr %pool, i64 [WORKERS]
  %handles = getelementptr i8, ptr %pool, i64 [HANDLES]
  br label %next
next:
  %i = phi i64 [ 0, %fill ], [ %i1, %started ]
  store i64 %i, ptr %workers_at, align 8
  %more = icmp slt i64 %i, %others
  br i1 %more, label %start, label %done
start:
  %handle = getelementptr i64, ptr %handles, i64 %i
  %error = call i32 @pthread_create(ptr %handle, ptr null, ptr @"landbridge.worker", ptr %pool)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %started, label %undo
started:
  %i1 = add i64 %i, 1
  br label %next
undo:
  call void @landbridge_pool_destroy_v1(ptr %pool)
  br label %fail
done:
  ret ptr %pool
fail:
  ret ptr null
}

define void @landbridge_pool_destroy_v1(ptr %pool) #0 {
entry:
  %given = icmp ne ptr %pool, null
  br i1 %given, label %stop, label %done
stop:
  %stop_at = getelementptr i8, ptr %pool, i64 [STOP]
  store atomic i32 1, ptr %stop_at seq_cst, align 4
  call void @"landbridge.rouse"(ptr %pool)
  %workers_at = getelementptr i8, ptr %pool, i64 [WORKERS]
  %handles = getelementptr i8, ptr %pool, i64 [HANDLES]
  %workers = load i64, ptr %workers_at, align 8
  br label %next
next:
  %i = phi i64 [ 0, %stop ], [ %i1, %join ]
  %more = icmp slt i64 %i, %workers
  br i1 %more, label %join, label %release
join:
  %at = getelementptr i64, ptr %handles, i64 %i
  %handle = load i64, ptr %at, align 8
  %handle_long = [TO_LONG] i64 %handle to [LONG]
  %joined = call i32 @pthread_join([LONG] %handle_long, ptr null)
  %i1 = add i64 %i, 1
  br label %next
release:
  call void @free(ptr %pool)
  br label %done
done:
  ret void
}

attributes #0 = { nounwind }
