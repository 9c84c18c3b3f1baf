/* dms_threads.c - one run on several threads
 *
 * The run is cut into as many slices as there are threads; the caller works on the first one itself. Threads are started for the call and
 * joined before it returns: there is no pool, so there is nothing to shut down, to inherit after a fork or to start beforehand. That
 * costs some 50 us, which is why only copies of tens of megabytes gain from it.
 *
 * No two threads write one line of memory, wherever outputs begin: where a slice does not begin on a line in everything that is written, the
 * units at its begin, a line of memory of each output at least, are left over, and the caller copies them when all others are done. So
 * are the ends of each part, which may share a line with another part.
 *
 *     units     |.ssssssssss|.ssssssssss|.sssssssss.|     s: slices 0, 1, 2   .: left over
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
    SHARED_LINE = 128,                  /* bytes that two threads should not write together: a line on Apple's Arm, two neighbours on x86 */
    FEWEST_UNITS = 8,                   /* of a loop in one slice: below that the loop is not cut */
    FEWEST_BYTES = 1024                 /* of a run or a nest in one slice */
};

/* What one thread does; index == count: what the slices leave over. */
typedef struct slice {
    const dmlsplit_plan *plan;
    const dms_buffers *buffers;
    uint64_t index, count;
} slice;

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bytes between the first and the last element of a loop of so many steps. */
static uint64_t reach_of(int64_t stride, uint64_t size)
{
    return (size - 1) * (uint64_t)(stride < 0 ? -stride : stride);
}

/* The bound between slices index - 1 and index; rounded, because outputs that begin on a line then have all bounds on lines. */
static uint64_t bound(uint64_t units, uint64_t index, uint64_t count)
{
    const uint64_t even = units / count * index;
    if (index == count)
        return units;
    return units / count >= 4 * SHARED_LINE ? even - even % SHARED_LINE : even;
}

/* Units that are left over at a bound, given those that hold a line, and whether the bound and the end are on lines. */
typedef struct cut {
    uint64_t units, gap, last_gap;
    const slice *s;
    bool (*is_line)(const struct cut *cut, uint64_t unit);
    char *target;                       /* of a loop */
    int64_t step;
} cut;

static uint64_t gap_at(const cut *c, uint64_t unit)
{
    return c->is_line(c, unit) ? 0 : c->gap;
}

/* Calls run with the units of the slice, or with all that are left over. */
typedef void run_units(const cut *c, const void *what, uint64_t first, uint64_t last);

static void run_slice(const cut *c, run_units *run, const void *what)
{
    const uint64_t count = c->s->count, end = c->units - lower(c->units, c->last_gap);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t begin = bound(end, i, count), next = bound(end, i + 1, count);
        const uint64_t first = lower(begin + (begin < next ? gap_at(c, begin) : 0), next);
        if (c->s->index == i && first < next)
            run(c, what, first, next);
        if (c->s->index == count && begin < first)
            run(c, what, begin, first);
    }
    if (c->s->index == count && end < c->units)
        run(c, what, end, c->units);
}

/* ---- Group kernels: rows ---- */

/* Bytes of a row of an operand, 0 where not every row lies behind the rows before it. */
static uint64_t row_bytes(const dms_space *space, const dms_operand *operand)
{
    const uint64_t row = space->element_size + (operand->length > 1 ? reach_of(operand->strides[space->axis], operand->length) : 0);
    uint64_t extent = row;
    for (uint32_t d = space->axis; d-- > 0;) {
        if (operand->strides[d] < 0 || (uint64_t)operand->strides[d] < extent)
            return 0;
        extent += reach_of(operand->strides[d], space->sizes[d]);
    }
    return row;
}

static bool row_is_line(const cut *c, uint64_t row)
{
    const dmlsplit_plan *plan = c->s->plan;
    const dms_space *space = &plan->space;
    uint64_t index[DMLSPLIT_MAX_RANK];
    uintptr_t bits = 0;
    dms_row_index(space, row, index);
    if (plan->direction == DMLSPLIT_JOIN)
        return ((uintptr_t)c->s->buffers->whole + (uintptr_t)(space->operands[0].offset + dms_row_offset(space, &space->operands[0], index))) %
               SHARED_LINE == 0;
    for (uint64_t i = 0; i < plan->part_count; i++)
        if (plan->parts[i].shape != NULL) {
            const dms_operand *operand = plan->parts[i].shape->operand;
            bits |= (uintptr_t)dms_part_base(c->s->buffers, i) + (uintptr_t)(operand->offset + dms_row_offset(space, operand, index));
        }
    return bits % SHARED_LINE == 0;
}

static void run_rows(const cut *c, const void *unused, uint64_t first, uint64_t last)
{
    (void)unused;
    c->s->plan->group->run_group(c->s->plan, c->s->buffers, first, last);
}

static void copy_group(const slice *s)
{
    const dms_space *space = &s->plan->space;
    const bool split = s->plan->direction == DMLSPLIT_SPLIT;
    uint64_t shortest = SHARED_LINE;
    for (uint64_t i = split ? 1 : 0; i < (split ? space->operand_count : 1); i++)
        shortest = lower(shortest, row_bytes(space, &space->operands[i]));
    if (shortest == 0) {                /* slices would lie between each other */
        if (s->index == s->count)
            s->plan->group->run_group(s->plan, s->buffers, 0, s->plan->rows);
        return;
    }
    const uint64_t gap = (SHARED_LINE + shortest - 1) / shortest;
    const cut c = {s->plan->rows, gap, gap, s, row_is_line, NULL, 0};
    run_slice(&c, run_rows, NULL);
}

/* ---- Nests ---- */

static const dms_kernel *kernel_of(const dms_kernel *wanted, const dms_nest *nest)
{
    const dms_kernel *last = &dms_kernel_table[DMS_KERNEL_COUNT - 1];
    return wanted->accept_nest(nest) == NULL ? wanted : last;
}

typedef struct copy {
    const dms_kernel *kernel;
    const dms_nest *nest;
    const char *source;
} copy;

static bool address_is_line(const cut *c, uint64_t unit)
{
    return ((uintptr_t)c->target + (uintptr_t)((int64_t)unit * c->step)) % SHARED_LINE == 0;
}

static void run_bytes(const cut *c, const void *what, uint64_t first, uint64_t last)
{
    const copy *y = what;
    dms_nest share = *y->nest;
    share.run = (size_t)(last - first);
    kernel_of(y->kernel, &share)->run_nest(&share, c->target + first, y->source + first);
}

static void run_steps(const cut *c, const void *what, uint64_t first, uint64_t last)
{
    const copy *y = what;
    dms_loop loops[DMLSPLIT_MAX_RANK];
    dms_nest share = *y->nest;
    memcpy(loops, y->nest->loops, y->nest->rank * sizeof loops[0]);
    loops[0].size = last - first;
    share.loops = loops;
    kernel_of(y->kernel, &share)->run_nest(&share, c->target + (int64_t)first * c->step, y->source + (int64_t)first * loops[0].source_stride);
}

/* Cuts the outermost loop that is long enough, or the runs inside all of them. turn: who copies a run that is too short to be cut. */
static void copy_nest(const slice *s, const dms_kernel *kernel, const dms_nest *nest, char *target, const char *source, uint64_t turn)
{
    const copy y = {kernel, nest, source};
    if (nest->rank == 0) {
        const uint64_t head = (0 - (uintptr_t)target) % SHARED_LINE, tail = ((uintptr_t)target + nest->run) % SHARED_LINE;
        const bool is_long = nest->run >= s->count * FEWEST_BYTES;
        const slice alone = {s->plan, s->buffers, s->index == s->count ? 1 : s->index == turn ? 0 : 2, 1};
        const cut c = {nest->run, head, tail, is_long ? s : &alone, address_is_line, target, 1};
        run_slice(&c, run_bytes, &y);
        return;
    }
    const dms_loop *outer = &nest->loops[0];
    uint64_t extent = nest->run, bytes = nest->run * outer->size;
    for (uint32_t d = 1; d < nest->rank; d++) {
        extent += reach_of(nest->loops[d].target_stride, nest->loops[d].size);
        bytes *= nest->loops[d].size;
    }
    /* Slices would lie between each other, or be too short. */
    if (outer->target_stride < 0 || (uint64_t)outer->target_stride < extent || bytes < s->count * FEWEST_BYTES) {
        if (s->index == s->count)
            kernel->run_nest(nest, target, source);
    } else if (outer->size >= s->count * FEWEST_UNITS) {
        const uint64_t gap = (SHARED_LINE + (uint64_t)outer->target_stride - 1) / (uint64_t)outer->target_stride;
        const cut c = {outer->size, gap, gap, s, address_is_line, target, outer->target_stride};
        run_slice(&c, run_steps, &y);
    } else {
        dms_nest inner = *nest;
        inner.rank--;
        inner.loops++;
        for (uint64_t i = 0; i < outer->size; i++)
            copy_nest(s, kernel_of(kernel, &inner), &inner, target + (int64_t)i * outer->target_stride,
                      source + (int64_t)i * outer->source_stride, turn);
    }
}

static void copy_parts(const slice *s)
{
    const dmlsplit_plan *plan = s->plan;
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    for (uint64_t i = 0; i < plan->part_count; i++) {
        const dms_part *part = &plan->parts[i];
        if (part->shape == NULL)
            continue;
        const dms_nest *nest = &part->shape->nest;
        char *in_part = dms_part_base(s->buffers, i) + nest->part_offset;
        char *in_whole = (char *)s->buffers->whole + part->place + nest->whole_offset;
        copy_nest(s, part->shape->kernel, nest, split ? in_part : in_whole, split ? in_whole : in_part, i % s->count);
    }
}

static void work(const slice *s)
{
    if (s->plan->group != NULL)
        copy_group(s);
    else
        copy_parts(s);
}

void dms_run_slice(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t index, uint64_t count)
{
    const slice s = {plan, buffers, index, count};
    work(&s);
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
    dms_run_slice(plan, buffers, count, count);
}
