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

#include <string.h>

enum { MOST_THREADS = 64 };

/* Bytes that a thread copies, or what takes as long: with less, starting it takes longer than it gains (6 MB of pixels to planes: 149 us by one thread,
 * 171 by two). */
static uint64_t least_share(const dmlsplit_plan *plan)
{
#ifdef DMS_TESTING
    return plan->bytes > 0;             /* tests have little to copy */
#else
    const char *const name = plan->group != NULL ? plan->group->name : plan->shapes[0].kernel->name;
    return strncmp(name, "transpose", 9) == 0 || strncmp(name, "columns", 7) == 0 ? 2 << 20 : 6 << 20;
#endif
}

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
    const uint64_t shares = plan->bytes / least_share(plan);
    uint32_t most = threads < MOST_THREADS ? threads : MOST_THREADS;
    if (shares < most)
        most = (uint32_t)shares;
    const uint32_t count = dms_slices(plan, most);
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
