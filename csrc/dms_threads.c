/* dms_threads.c - one run on several threads
 *
 * The run is cut into as many slices as there are threads; the caller works on the first one itself. Threads are started for the call and
 * joined before it returns: there is no pool, so there is nothing to shut down, to inherit after a fork or to start beforehand. That
 * costs some 50 us, which is why only copies of tens of megabytes gain from it.
 *
 * Slices are disjoint in what they write, and their bounds fall on cache lines where the outputs start on lines.
 */
#include "dms_kernel.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#endif

enum {
    MOST_THREADS = 64,
    LINE = 64,
    FEWEST_UNITS = 4 * LINE             /* of a loop in one slice: below that the loop is not cut */
};

typedef struct slice {
    const dmlsplit_plan *plan;
    const dms_buffers *buffers;
    uint64_t index, count;
} slice;

/* The bound between slices index - 1 and index of a range of units; rounded so that bounds of tightly packed units share no line. */
static uint64_t bound(uint64_t units, uint64_t index, uint64_t count)
{
    if (index == count)
        return units;
    const uint64_t even = units / count * index;
    return even - even % LINE;
}

static const dms_kernel *kernel_of(const dms_kernel *wanted, const dms_nest *nest)
{
    const dms_kernel *last = &dms_kernel_table[DMS_KERNEL_COUNT - 1];
    return wanted->accept_nest(nest) == NULL ? wanted : last;
}

/* The slice's share of a single run: cut where the target's lines begin. */
static void copy_run(const slice *s, const dms_kernel *kernel, const dms_nest *nest, char *target, const char *source)
{
    const size_t skew = (size_t)((uintptr_t)target % LINE);
    const uint64_t lines = (skew + nest->run + LINE - 1) / LINE;
    const uint64_t first = lines / s->count * s->index * LINE, last = lines / s->count * (s->index + 1) * LINE;
    const size_t begin = s->index == 0 ? 0 : (size_t)first - skew;
    dms_nest share = *nest;
    share.run = (s->index + 1 == s->count ? nest->run : (size_t)last - skew) - begin;
    kernel_of(kernel, &share)->run_nest(&share, target + begin, source + begin);
}

/* The slice's share of the outermost loop. */
static void copy_loops(const slice *s, const dms_kernel *kernel, const dms_nest *nest, char *target, const char *source)
{
    dms_loop loops[DMLSPLIT_MAX_RANK];
    dms_nest share = *nest;
    const uint64_t begin = bound(nest->loops[0].size, s->index, s->count);
    memcpy(loops, nest->loops, nest->rank * sizeof loops[0]);
    loops[0].size = bound(nest->loops[0].size, s->index + 1, s->count) - begin;
    share.loops = loops;
    target += (int64_t)begin * loops[0].target_stride;
    source += (int64_t)begin * loops[0].source_stride;
    kernel_of(kernel, &share)->run_nest(&share, target, source);
}

/* Every slice walks all parts: it takes its share of a large one, and every count-th of the others. */
static void copy_nests(const slice *s)
{
    const dmlsplit_plan *plan = s->plan;
    for (uint64_t i = 0; i < plan->part_count; i++) {
        const dms_part *part = &plan->parts[i];
        if (part->shape == NULL)
            continue;
        const dms_nest *nest = &part->shape->nest;
        char *in_part = dms_part_base(s->buffers, i) + nest->part_offset;
        char *in_whole = (char *)s->buffers->whole + part->place + nest->whole_offset;
        const bool split = plan->direction == DMLSPLIT_SPLIT;
        char *target = split ? in_part : in_whole;
        const char *source = split ? in_whole : in_part;
        if (nest->rank == 0 && nest->run >= s->count * FEWEST_UNITS * LINE)
            copy_run(s, part->shape->kernel, nest, target, source);
        else if (nest->rank > 0 && nest->loops[0].size >= s->count * FEWEST_UNITS)
            copy_loops(s, part->shape->kernel, nest, target, source);
        else if (i % s->count == s->index)
            part->shape->kernel->run_nest(nest, target, source);
    }
}

static void work(const slice *s)
{
    const dmlsplit_plan *plan = s->plan;
    if (plan->group == NULL) {
        copy_nests(s);
        return;
    }
    const uint64_t first = bound(plan->rows, s->index, s->count), last = bound(plan->rows, s->index + 1, s->count);
    if (first < last)
        plan->group->run_group(plan, s->buffers, first, last);
}

#ifdef _WIN32
typedef HANDLE thread;
static DWORD WINAPI enter(LPVOID s)
{
    work(s);
    return 0;
}
static bool start(thread *t, slice *s)
{
    *t = CreateThread(NULL, 0, enter, s, 0, NULL);
    return *t != NULL;
}
static void join(thread t)
{
    WaitForSingleObject(t, INFINITE);
    CloseHandle(t);
}
#else
typedef pthread_t thread;
static void *enter(void *s)
{
    work(s);
    return NULL;
}
static bool start(thread *t, slice *s)
{
    return pthread_create(t, NULL, enter, s) == 0;
}
static void join(thread t)
{
    pthread_join(t, NULL);
}
#endif

void dms_run_on_threads(const dmlsplit_plan *plan, const dms_buffers *buffers, uint32_t threads)
{
    slice slices[MOST_THREADS];
    thread started[MOST_THREADS];
    uint32_t running = 1;               /* the caller counts as the first */
    const uint32_t count = threads < MOST_THREADS ? threads : MOST_THREADS;
    const slice own = {plan, buffers, 0, count};
    for (uint32_t i = 0; i < count; i++) {
        slices[i] = own;
        slices[i].index = i;
    }
    while (running < count && start(&started[running], &slices[running]))
        running++;
    work(&own);
    for (uint32_t i = running; i < count; i++)  /* of threads that could not be had */
        work(&slices[i]);
    for (uint32_t i = 1; i < running; i++)
        join(started[i]);
}
