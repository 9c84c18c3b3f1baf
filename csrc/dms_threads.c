/* dms_threads.c - one run on several threads, which take its slices one after the other
 *
 * Threads are started for the call and joined before it returns: there is no pool, so there is nothing to shut down, to inherit after a fork or to
 * start beforehand. That costs some 50 us, which is why only copies of tens of megabytes gain from it. Meanwhile the caller takes slices: there are
 * several for each thread.
 */
#include "dms_transpose.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
typedef HANDLE thread;
typedef volatile LONG counter;
#define NEXT(counter) ((uint32_t)InterlockedIncrement(counter) - 1)
#else
#include <pthread.h>
#include <stdatomic.h>
typedef pthread_t thread;
typedef atomic_uint counter;
#define NEXT(counter) atomic_fetch_add_explicit(counter, 1, memory_order_relaxed)
#endif

enum { MOST_THREADS = 64, SLICES = 4 };

/* Bytes that a thread copies: with less, starting it may take longer than it gains. On a Zen 5 two threads took 0.65 to 0.95 times as long as one for
 * matrices of 8 to 17 MB; for other copies of that size 0.65 to 0.8 times while the cores had a bus to themselves, and 1.05 to 1.2 while they had not. From
 * 24 MB on it was 0.55 to 0.75 and 0.9 to 1.0 times. Tests have less to copy. */
static uint64_t least_share(const dmlsplit_plan *plan)
{
#if defined(DMS_TESTING) || defined(__SANITIZE_THREAD__)
    return plan->bytes > 0;
#else
    return plan->group == NULL && dms_refuse_transpose(&plan->shapes[0].nest) == NULL ? 4 << 20 : 10 << 20;
#endif
}

typedef struct task {
    const dmlsplit_plan *plan;
    const dms_buffers *buffers;
    uint32_t count;                     /* slices, */
    counter taken;                      /* of which so many are somebody's */
} task;

static void work(task *t)
{
    for (uint32_t i; (i = NEXT(&t->taken)) < t->count;)
        dms_run_slice(t->plan, t->buffers, i, t->count);
}

#ifdef _WIN32
static DWORD WINAPI enter(LPVOID t)
{
    work(t);
    return 0;
}
static bool start(thread *made, task *t)
{
    *made = CreateThread(NULL, 0, enter, t, 0, NULL);
    return *made != NULL;
}
static void join(thread t)
{
    WaitForSingleObject(t, INFINITE);
    CloseHandle(t);
}
#else
static void *enter(void *t)
{
    work(t);
    return NULL;
}
static bool start(thread *made, task *t)
{
    return pthread_create(made, NULL, enter, t) == 0;
}
static void join(thread t)
{
    pthread_join(t, NULL);
}
#endif

void dms_run_on_threads(const dmlsplit_plan *plan, const dms_buffers *buffers, uint32_t threads)
{
    thread started[MOST_THREADS];
    const uint64_t shares = plan->bytes / least_share(plan);
    uint32_t most = threads < MOST_THREADS ? threads : MOST_THREADS, running = 0;
    if (shares < most)
        most = (uint32_t)shares;
    task t = {plan, buffers, dms_slices(plan, most > 1 ? most * SLICES : 1), 0};
    while (running + 1 < most && running + 1 < t.count && start(&started[running], &t))    /* the caller is one of them */
        running++;
    work(&t);
    while (running > 0)
        join(started[--running]);
}
