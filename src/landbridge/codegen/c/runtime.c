/* The runtime of CPU images, as landbridge.executable.abi describes it: running records, on one thread or a pool.
 *
 * The caller cuts the tasks of a call into chunks, writes down the job, sets `pending` to the number of chunks and
 * then publishes it in `left`. Every thread claims a chunk by lowering `left` and reads the job after the claim,
 * which succeeds only while chunks are left: the caller cannot write another job before each claimed chunk is
 * subtracted from `pending`. Whoever waits spins for about 20 us, then sleeps on a futex: it announces itself and
 * looks again, the other side changes what is looked at and then looks for sleepers. All state lies in the pool.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define CACHE_LINE 64
#define SPIN_NS 20000
#define CHUNKS_PER_THREAD 4

typedef void (*kernel_t)(void **args, int64_t begin, int64_t end);

/* What different threads write stands in different cache lines. */
typedef struct {
  _Alignas(CACHE_LINE) _Atomic uint32_t busy;
  _Alignas(CACHE_LINE) _Atomic int64_t left;
  _Alignas(CACHE_LINE) _Atomic uint32_t pending;
  _Atomic uint32_t waiting;
  _Alignas(CACHE_LINE) _Atomic uint32_t wake;
  _Atomic uint32_t sleepers;
  _Atomic uint32_t stop;
  _Alignas(CACHE_LINE) kernel_t kernel;
  void **args;
  int64_t tasks;
  int64_t chunk;
  _Alignas(CACHE_LINE) int64_t threads;
  int64_t workers;
  pthread_t handles[];
} pool_t;

enum { RECORD_CALL, RECORD_BRANCH_IF_ZERO, RECORD_JUMP };

static void futex_wait(_Atomic uint32_t *word, uint32_t expected) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL);
}

static void futex_wake(_Atomic uint32_t *word, int count) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count); }

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void rest(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void rouse(pool_t *pool) {
  atomic_fetch_add(&pool->wake, 1);
  futex_wake(&pool->wake, INT32_MAX);
}

/* Claims and does chunks until none is left; the number done. */
static uint32_t work(pool_t *pool) {
  uint32_t did = 0;
  for (;;) {
    int64_t n = atomic_load_explicit(&pool->left, memory_order_relaxed);
    do {
      if (n == 0) return did;
    } while (!atomic_compare_exchange_weak_explicit(&pool->left, &n, n - 1, memory_order_acquire, memory_order_relaxed));
    const int64_t begin = (n - 1) * pool->chunk, end = begin + pool->chunk;
    pool->kernel(pool->args, begin, end < pool->tasks ? end : pool->tasks);
    ++did;
  }
}

/* The caller waits until no chunk is pending. */
static void wait_for_all(pool_t *pool) {
  const int64_t start = now_ns();
  while (atomic_load_explicit(&pool->pending, memory_order_acquire) != 0) {
    rest();
    if (now_ns() - start < SPIN_NS) continue;
    atomic_store(&pool->waiting, 1);
    for (uint32_t left; (left = atomic_load(&pool->pending)) != 0;) futex_wait(&pool->pending, left);
    atomic_store_explicit(&pool->waiting, 0, memory_order_relaxed);
  }
}

static void share(pool_t *pool, kernel_t kernel, void **args, int64_t tasks) {
  const int64_t even = tasks / (pool->threads * CHUNKS_PER_THREAD), chunk = even > 1 ? even : 1;
  const int64_t chunks = (tasks + chunk - 1) / chunk;
  pool->kernel = kernel;
  pool->args = args;
  pool->tasks = tasks;
  pool->chunk = chunk;
  atomic_store_explicit(&pool->pending, (uint32_t)chunks, memory_order_relaxed);
  atomic_store(&pool->left, chunks);
  if (atomic_load(&pool->sleepers) != 0) {
    atomic_store(&pool->sleepers, 0);
    rouse(pool);
  }
  const uint32_t did = work(pool);
  if (atomic_fetch_sub(&pool->pending, did) != did) wait_for_all(pool);
}

/* Spins, then sleeps, until there may be work; 0 when the pool ends. */
static int idle(pool_t *pool) {
  const int64_t start = now_ns();
  do {
    if (atomic_load_explicit(&pool->left, memory_order_relaxed) != 0) return 1;
    if (atomic_load_explicit(&pool->stop, memory_order_acquire)) return 0;
    rest();
  } while (now_ns() - start < SPIN_NS);
  const uint32_t ticket = atomic_load(&pool->wake);
  atomic_fetch_add(&pool->sleepers, 1);
  if (atomic_load(&pool->left) == 0 && !atomic_load(&pool->stop)) futex_wait(&pool->wake, ticket);
  return 1;
}

static void *worker(void *argument) {
  pool_t *pool = argument;
  while (idle(pool)) {
    const uint32_t did = work(pool);
    if (did == 0) continue;
    const uint32_t before = atomic_fetch_sub(&pool->pending, did);
    if (before == did && atomic_load(&pool->waiting)) futex_wake(&pool->pending, 1);
  }
  return NULL;
}

EXPORT int64_t landbridge_run_v1(pool_t *pool, const int64_t *records, int64_t count) {
  uint32_t free = 0;
  const int owned = pool && pool->workers > 0 &&
                    atomic_compare_exchange_strong_explicit(&pool->busy, &free, 1, memory_order_acquire, memory_order_relaxed);
  for (int64_t i = 0; i < count;) {
    const int64_t *record = records + 4 * i;
    if (record[0] == RECORD_CALL) {
      const kernel_t kernel = (kernel_t)(intptr_t)record[1];
      void **args = (void **)(intptr_t)record[2];
      if (owned && record[3] > 1)
        share(pool, kernel, args, record[3]);
      else
        kernel(args, 0, record[3]);
      ++i;
    } else if (record[0] == RECORD_BRANCH_IF_ZERO) {
      i = *(const uint8_t *)(intptr_t)record[1] == 0 ? record[2] : i + 1;
    } else {
      i = record[2];
    }
  }
  if (owned) atomic_store_explicit(&pool->busy, 0, memory_order_release);
  return 0;
}

EXPORT void landbridge_pool_destroy_v1(pool_t *pool) {
  if (!pool) return;
  atomic_store(&pool->stop, 1);
  rouse(pool);
  for (int64_t i = 0; i < pool->workers; ++i) pthread_join(pool->handles[i], NULL);
  free(pool);
}

EXPORT pool_t *landbridge_pool_create_v1(int64_t threads) {
  if (threads < 1 || threads > INT32_MAX) return NULL;
  const size_t size = (sizeof(pool_t) + (size_t)threads * sizeof(pthread_t) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
  pool_t *pool = aligned_alloc(CACHE_LINE, size);
  if (!pool) return NULL;
  memset(pool, 0, size);
  pool->threads = threads;
  for (; pool->workers < threads - 1; ++pool->workers) {
    if (pthread_create(&pool->handles[pool->workers], NULL, worker, pool) != 0) {
      landbridge_pool_destroy_v1(pool);
      return NULL;
    }
  }
  return pool;
}
