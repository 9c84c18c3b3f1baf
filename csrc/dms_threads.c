/* dms_threads.c - one run on several threads, each taking slice after slice
 *
 * Threads stay for the next run and sleep until then: to start one and see it end cost 250 us in the midst of large copies, to wake one costs 50 (Zen 5,
 * a virtual machine). A run posts its task and takes slices itself, so it never depends on a thread that comes late or cannot be had. A process that
 * was forked begins without threads, and a library that is unloaded ends them.
 *
 *     tasks --> task (helpers wanted) --> task ...      caller: post, take slices, wait for the last one
 *                                                       thread: find a task that wants helpers, take slices, sleep
 */
#define _POSIX_C_SOURCE 200809L         /* signal masks, in C11 without extensions */
#include "dms_internal.h"
#include "dms_memory.h"

#include <string.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
typedef HANDLE thread;
typedef SRWLOCK mutex;
typedef CONDITION_VARIABLE condition;
#define MUTEX SRWLOCK_INIT
#define CONDITION CONDITION_VARIABLE_INIT
#define lock(m) AcquireSRWLockExclusive(m)
#define unlock(m) ReleaseSRWLockExclusive(m)
#define await(c, m) (void)SleepConditionVariableSRW(c, m, INFINITE, 0)
#define wake(c) WakeConditionVariable(c)
#define wake_all(c) WakeAllConditionVariable(c)
#define yield() (void)SwitchToThread()
#define ENTRY DWORD WINAPI
#else
#include <pthread.h>
#include <sched.h>
#include <signal.h>
typedef pthread_t thread;
typedef pthread_mutex_t mutex;
typedef pthread_cond_t condition;
#define MUTEX PTHREAD_MUTEX_INITIALIZER
#define CONDITION PTHREAD_COND_INITIALIZER
#define lock(m) (void)pthread_mutex_lock(m)
#define unlock(m) (void)pthread_mutex_unlock(m)
#define await(c, m) (void)pthread_cond_wait(c, m)
#define wake(c) (void)pthread_cond_signal(c)
#define wake_all(c) (void)pthread_cond_broadcast(c)
#define yield() (void)sched_yield()
#define ENTRY void *
#endif

enum { MOST_THREADS = 64 };

/* Bytes of a thread's stack. Copies use less than 48 KB; the system keeps thread-local variables and more there. The default may be too small (128 KB in
 * musl) or too large to reserve for 64 threads (8 MB in glibc). */
#define STACK_BYTES ((size_t)512 << 10)

/* Returns the least bytes for a thread: below it, waking a thread may cost more than it saves. On a Zen 5 two threads took 0.65 to 0.95 times as long as one
 * for transposes of 8 to 17 MB; for other copies of that size 0.65 to 0.8 times while others left memory alone, 1.05 to 1.2 while they did not. From 24 MB on
 * it was 0.55 to 0.75 and 0.9 to 1.0 times. Tests copy less. */
static uint64_t least_share(const dmlsplit_plan *plan)
{
#if defined(DMS_TESTING) || DMS_SANITIZED
    return plan->bytes > 0;
#else
    return plan->group == NULL && plan->shapes[0].nest.kind == DMS_TRANSPOSE ? DMS_THREAD_LEAST_TRANSPOSED : DMS_THREAD_LEAST;
#endif
}

typedef struct task {
    const dmlsplit_plan *plan;
    const dms_buffers *buffers;
    dms_slices cut;
    uint64_t taken, done;               /* slices that were begun, and slices that are copied */
    uint32_t helpers;                   /* threads that may still join */
    struct task *next;
} task;

static struct pool {
    mutex guard;                        /* protects the pool and all tasks */
    condition posted, finished;         /* a task was posted; its last slice was copied */
    task *tasks;
    uint32_t hired, needed;             /* threads that exist, and threads that all current runs want in total */
    bool ending;
    thread threads[MOST_THREADS];
} pool = {MUTEX, CONDITION, CONDITION, NULL, 0, 0, false, {0}};

#ifdef DMS_TESTING
void (*dms_before_slice)(void);
#endif

/* Copies slices until all are taken. The caller holds the guard; it is released while a slice is copied. */
static void work(task *t)
{
    while (t->taken < t->cut.count) {
        const uint64_t index = t->taken++;
        unlock(&pool.guard);
#ifdef DMS_TESTING
        if (dms_before_slice != NULL)
            dms_before_slice();
#endif
        const dms_slice slice = dms_find_slice(t->plan, &t->cut, index);
        dms_run_slice(t->plan, t->buffers, &t->cut, &slice);
        lock(&pool.guard);
        if (++t->done == t->cut.count)
            wake_all(&pool.finished);
    }
}

static ENTRY serve(void *unused)
{
    (void)unused;
    lock(&pool.guard);
    while (!pool.ending) {
        task *t = pool.tasks;
        while (t != NULL && t->helpers == 0)
            t = t->next;
        if (t == NULL) {
            await(&pool.posted, &pool.guard);
            continue;
        }
        t->helpers--;
        work(t);
    }
    unlock(&pool.guard);
    return 0;
}

#ifdef _WIN32
/* Threads cannot be joined while a library is unloaded, so a library that has threads stays loaded. */
static bool start(thread *made)
{
    HMODULE module;
    const DWORD pin = GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS;
    if (!GetModuleHandleExA(pin, (LPCSTR)&pool, &module))
        return false;
    *made = dms_fails() ? NULL : CreateThread(NULL, STACK_BYTES, serve, NULL, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    return *made != NULL;
}
#else
/* Empties the pool in the child of a fork, which does not inherit its threads. */
static void forget(void)
{
    static const struct pool fresh = {MUTEX, CONDITION, CONDITION, NULL, 0, 0, false, {0}};
    memcpy(&pool, &fresh, sizeof pool);
}

/* Sanitizers need more stack than copies do, so they get the default. */
static bool create(thread *made)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    const bool sized = DMS_SANITIZED || pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0;
    const bool created = sized && !dms_fails() && pthread_create(made, &attributes, serve, NULL) == 0;
    (void)pthread_attr_destroy(&attributes);
    return created;
}

/* Starts a thread with all signals blocked, because signals are for the host's threads. */
static bool start(thread *made)
{
    static bool registered;             /* in this process or its parent, whose handlers it inherits */
    sigset_t all, before;
    if (!registered && (dms_fails() || pthread_atfork(NULL, NULL, forget) != 0))
        return false;
    registered = true;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = create(made);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Ends the threads when the library is unloaded or the process exits. */
__attribute__((destructor)) static void dismiss(void)
{
    lock(&pool.guard);
    pool.ending = true;
    wake_all(&pool.posted);
    unlock(&pool.guard);
    for (uint32_t i = 0; i < pool.hired; i++)
        (void)pthread_join(pool.threads[i], NULL);
}
#endif

/* A cancelled thread would unwind with the guard locked and its task, which is on its stack, in the list. So
 * cancellation is deferred to the end of the run. */
#ifdef PTHREAD_CANCEL_DISABLE
static void defer_cancellation(int *before)
{
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, before);
}

static void allow_cancellation(int before)
{
    (void)pthread_setcancelstate(before, &before);
    pthread_testcancel();
}
#else
static void defer_cancellation(int *before)
{
    *before = 0;
}

static void allow_cancellation(int before)
{
    (void)before;
}
#endif

/* Runs a task of several slices. The caller holds the guard. */
static void run_task(task *t, uint32_t helpers)
{
    t->helpers = helpers;
    t->next = pool.tasks;
    pool.tasks = t;
    pool.needed += helpers;
    while (!pool.ending && pool.hired < pool.needed && pool.hired < MOST_THREADS && start(&pool.threads[pool.hired]))
        pool.hired++;
    for (uint32_t i = 0; i < helpers; i++)
        wake(&pool.posted);
    work(t);
    /* The last slices end at about the same time, so yielding is faster than sleeping and being woken. */
    for (int i = 0; i < DMS_THREAD_YIELDS && t->done < t->cut.count; i++) {
        unlock(&pool.guard);
        yield();
        lock(&pool.guard);
    }
    while (t->done < t->cut.count)
        await(&pool.finished, &pool.guard);
    pool.needed -= helpers;
    task **link = &pool.tasks;
    while (*link != t)
        link = &(*link)->next;
    *link = t->next;
}

void dms_run_on_threads(const dmlsplit_plan *plan, const dms_buffers *buffers, uint32_t threads)
{
    const uint64_t shares = plan->bytes / least_share(plan);
    const uint32_t limit = threads < MOST_THREADS ? threads : MOST_THREADS, most = shares < limit ? (uint32_t)shares : limit;
    task t = {plan, buffers, dms_choose_slices(plan, most > 1 ? most * DMS_THREAD_SLICES : 1), 0, 0, 0, NULL};
    int cancellable;
    if (t.cut.count == 1) {
        dms_run_all(plan, buffers);
        return;
    }
    defer_cancellation(&cancellable);
    lock(&pool.guard);
    run_task(&t, (most < t.cut.count ? most : (uint32_t)t.cut.count) - 1);      /* the caller works as well */
    unlock(&pool.guard);
    allow_cancellation(cancellable);
}
