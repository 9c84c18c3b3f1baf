/* dms_threads.c - one run on several threads, each of which takes a slice
 *
 * Threads are started for the call and joined before it returns: there is no pool, so there is nothing to shut down, to inherit after a fork or to
 * start beforehand. That costs some 50 us, which is why only copies of tens of megabytes gain from it.
 */
#include "dms_internal.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#endif

/* Bytes that a thread copies: with less, starting it takes longer than it gains. On a Zen 5, two threads took as long as one for 8 MB, of copies, pixels,
 * columns and transposes alike, and 0.6 to 0.9 times as long for 12 to 24 MB. Tests have less to copy. */
#if defined(DMS_TESTING) || defined(__SANITIZE_THREAD__)
enum { MOST_THREADS = 64, LEAST_SHARE = 1 };
#else
enum { MOST_THREADS = 64, LEAST_SHARE = 6 << 20 };
#endif

typedef struct task {
    const dmlsplit_plan *plan;
    const dms_buffers *buffers;
    uint32_t index, count;
} task;

static void work(const task *t)
{
    dms_run_slice(t->plan, t->buffers, t->index, t->count);
}

#ifdef _WIN32
typedef HANDLE thread;
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
typedef pthread_t thread;
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
    task tasks[MOST_THREADS];
    thread started[MOST_THREADS];
    uint32_t running = 1;               /* the caller counts as the first */
    const uint64_t most = threads < MOST_THREADS ? threads : MOST_THREADS, shares = plan->bytes / LEAST_SHARE;
    const uint32_t count = dms_slices(plan, (uint32_t)(shares < most ? shares : most));
    for (uint32_t i = 0; i < count; i++) {
        const task t = {plan, buffers, i, count};
        tasks[i] = t;
    }
    while (running < count && start(&started[running], &tasks[running]))
        running++;
    work(&tasks[0]);
    for (uint32_t i = running; i < count; i++)  /* of threads that could not be had */
        work(&tasks[i]);
    for (uint32_t i = 1; i < running; i++)
        join(started[i]);
}
