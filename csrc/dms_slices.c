/* dms_slices.c - how a run is cut into shares that threads can take: equal ones, of the kernel that was chosen for the whole
 *
 * Group kernels are given rows of all parts. All else is cut by bytes, part after part, and within a part at steps of its loops, so that what a slice
 * gets are boxes that the same kernel takes. Slices may meet within a line of memory, of which each writes its own bytes.
 *
 *     | part 0              | part 1              | part 2              |      slice 0: part 0 and steps of part 1
 *     | slice 0                      | slice 1                          |      slice 1: the other steps and part 2
 */
#include "dms_kernel.h"
#include "dms_transpose.h"

/* Bytes of a slice: what takes less is done before another thread has heard of it. */
#ifdef DMS_TESTING
uint64_t dms_least_slice = 65536, dms_fallback_bytes;
#define LEAST_BYTES dms_least_slice
#else
#define LEAST_BYTES 65536
#endif

enum {
    LEAST_STEPS = 16,                   /* of a slice, which keep shares equal within a tenth where both ends are rounded */
    LONG_PIECE = 4096                   /* bytes: rows of such pieces are as well copied part after part */
};

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* value * index / count for what may not be multiplied. */
static uint64_t share(uint64_t value, uint64_t index, uint64_t count)
{
    return value / count * index + value % count * index / count;
}

/* ---- Nests ---- */

/* A part, whose nest is at its place. */
typedef struct copy {
    const dms_shape *shape;
    char *target;
    const char *source;
} copy;

static copy find_copy(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t number)
{
    const dms_part *part = &plan->parts[number];
    const dms_nest *nest = &part->shape->nest;
    char *const in_part = dms_part_base(buffers, number) + nest->part_offset;
    char *const in_whole = (char *)buffers->whole + part->place + nest->whole_offset;
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    return (copy){part->shape, split ? in_part : in_whole, split ? in_whole : in_part};
}

/* The loops in the order in which a nest is cut: as they are, but the sides of a matrix that is turned come last, the longer one before the other, so
 * that a cut leaves matrices. */
static void order_loops(const dms_nest *nest, uint32_t *order)
{
    uint32_t count = 0, last[2];
    for (uint32_t d = 0; d < nest->rank; d++)
        order[d] = d;
    if (dms_refuse_transpose(nest) != NULL)
        return;
    const dms_matrix m = dms_find_matrix(nest);
    last[m.columns->size < m.rows->size] = (uint32_t)(m.columns - nest->loops);
    last[m.columns->size >= m.rows->size] = (uint32_t)(m.rows - nest->loops);
    for (uint32_t d = 0; d < nest->rank; d++)
        if (d != last[0] && d != last[1])
            order[count++] = d;
    memcpy(order + count, last, sizeof last);
}

/* Bytes between places at which a slice of so many may begin in a part. */
static uint64_t unit_of(const dms_shape *shape, uint64_t slice)
{
    const dms_nest *nest = &shape->nest;
    const bool turns = dms_refuse_transpose(nest) == NULL;
    uint32_t order[DMLSPLIT_MAX_RANK];
    uint64_t step = shape->bytes, lines = DMS_LINE;   /* lines of a matrix are turned together */
    order_loops(nest, order);
    for (uint32_t i = 0; i + turns < nest->rank && step > slice / LEAST_STEPS; i++)
        step /= nest->loops[order[i]].size;
    if (!turns)
        return step > slice / LEAST_STEPS ? DMS_LINE : step;
    while (lines > 1 && lines * step > slice / LEAST_STEPS)
        lines /= 2;
    return lines * step;
}

/* The kernel that was chosen, or the next one after it that takes what is left of a matrix. */
static const dms_kernel *find_kernel(const dms_kernel *chosen, const dms_nest *box)
{
    while (!dmlsplit_kernel_available((uint32_t)(chosen - dms_kernel_table)) || chosen->accept_nest(box) != NULL)
        chosen++;                       /* the last one takes all */
    return chosen;
}

/* Bytes [first, last) of a part in the order of its loops, by the largest boxes from first on. */
static void copy_some(const copy *c, uint64_t first, uint64_t last)
{
    const dms_nest *const nest = &c->shape->nest;
    dms_loop loops[DMLSPLIT_MAX_RANK];
    uint32_t order[DMLSPLIT_MAX_RANK];
    dms_nest box = *nest;
    order_loops(nest, order);
    box.loops = loops;
    for (uint64_t bytes; first < last; first += bytes) {
        uint64_t step = nest->run;      /* of a loop; as long as everything within it is whole, that is what the box has so far */
        char *to = c->target + first % step;
        const char *from = c->source + first % step;
        bytes = lower(step - first % step, last - first);
        box.run = (size_t)bytes;
        for (uint32_t i = box.rank; i-- > 0;) {
            const dms_loop loop = nest->loops[order[i]];
            const uint64_t index = first / step % loop.size;
            to += (int64_t)index * loop.target_stride;
            from += (int64_t)index * loop.source_stride;
            loops[order[i]] = loop;
            loops[order[i]].size = bytes == step ? lower(loop.size - index, (last - first) / step) : 1;
            bytes *= loops[order[i]].size;
            step *= loop.size;
        }
        const dms_kernel *kernel = find_kernel(c->shape->kernel, &box);
#ifdef DMS_TESTING
        dms_fallback_bytes += kernel != c->shape->kernel && kernel == &dms_kernel_table[DMS_KERNEL_COUNT - 1] ? bytes : 0;
#endif
        kernel->run_nest(&box, to, from);
    }
}

/* ---- Runs ---- */

typedef struct slices {
    uint64_t count;
    bool by_rows;                       /* of a group kernel; otherwise by bytes of all nests */
} slices;

static bool is_even(uint64_t rows, uint64_t count)
{
    return count < 2 || rows % count == 0 || rows / count >= LEAST_STEPS;
}

/* Into how many slices a plan is cut, at most so many. */
static slices choose(const dmlsplit_plan *plan, uint64_t most)
{
    slices s = {lower(most, plan->bytes / LEAST_BYTES), plan->group != NULL};
    if (s.by_rows && !is_even(plan->rows, s.count))
        s.by_rows = plan->shapes[0].kernel == NULL || plan->bytes / plan->rows / plan->part_count < LONG_PIECE;
    while (s.by_rows && !is_even(plan->rows, s.count))
        s.count--;
    for (uint64_t i = 0; i < plan->shape_count && !s.by_rows && s.count > 1; i++) {
        const uint64_t unit = unit_of(&plan->shapes[i], plan->bytes / s.count);
        s.count = lower(s.count, plan->bytes / LEAST_STEPS / unit);
    }
    if (s.count < 1)
        s.count = 1;
    return s;
}

static void copy_rows(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t index, uint64_t count)
{
    const uint64_t unit = plan->rows / count >= LEAST_STEPS * DMS_LINE ? DMS_LINE : 1, units = plan->rows / unit;  /* whole lines, if parts have them */
    const uint64_t last = index + 1 == count ? plan->rows : share(units, index + 1, count) * unit;
    plan->group->run_group(plan, buffers, share(units, index, count) * unit, last);
}

/* Where slices of so many bytes meet in a part, near this byte of it. */
static uint64_t cut(const dms_shape *shape, uint64_t byte, uint64_t slice)
{
    const uint64_t unit = byte < shape->bytes ? unit_of(shape, slice) : 1;
    return lower(byte, shape->bytes) / unit * unit;
}

static void copy_bytes(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t index, uint64_t count)
{
    const uint64_t first = share(plan->bytes, index, count), last = share(plan->bytes, index + 1, count), slice = plan->bytes / count;
    uint64_t before = 0, size;
    for (uint64_t i = 0; i < plan->part_count && before < last; i++, before += size) {
        const dms_shape *shape = plan->parts[i].shape;
        size = shape == NULL ? 0 : shape->bytes;
        if (size > 0 && before + size > first) {
            const copy c = find_copy(plan, buffers, i);
            copy_some(&c, first > before ? cut(shape, first - before, slice) : 0, cut(shape, last - before, slice));
        }
    }
}

/* What is done last: non-temporal stores become visible before those after them, as ordinary ones would; after many parts once, as each
 * such fence waits for memory (1,024 parts of 4 KB took 2.4 times memcpy's time, and 1.1). And MSVC leaves it to the program to clear the upper halves of
 * the registers, without which older instructions run slowly. */
static void leave(const dmlsplit_plan *plan)
{
#if DMS_X86
    if (dms_is_streamed(&plan->copies) || dms_is_streamed(&plan->turns))
        _mm_sfence();
#if DMS_MSVC && DMS_AVX2
    if ((dms_cpu_isa() & DMS_ISA_AVX2) != 0)
        _mm256_zeroupper();
#endif
#else
    (void)plan;
#endif
}

uint32_t dmlsplit_plan_slices(const dmlsplit_plan *plan, uint32_t most)
{
    return plan == NULL || plan->bytes == 0 ? 1 : (uint32_t)choose(plan, most).count;
}

void dms_run_slice(const dmlsplit_plan *plan, const dms_buffers *buffers, uint32_t index, uint32_t count)
{
    const slices s = choose(plan, count);
    if (index >= s.count)
        return;                         /* fewer slices than that have something to do */
    if (s.count == 1) {
        dms_run_all(plan, buffers);
        return;
    }
    if (s.by_rows)
        copy_rows(plan, buffers, index, s.count);
    else
        copy_bytes(plan, buffers, index, s.count);
    leave(plan);
}

void dms_run_all(const dmlsplit_plan *plan, const dms_buffers *buffers)
{
    if (plan->group != NULL) {
        DMS_COUNT_RUN(plan->group);
        plan->group->run_group(plan, buffers, 0, plan->rows);
    }
    for (uint64_t i = 0; i < plan->part_count && plan->group == NULL; i++)
        if (plan->parts[i].shape != NULL) {
            const copy c = find_copy(plan, buffers, i);
            DMS_COUNT_RUN(c.shape->kernel);
            c.shape->kernel->run_nest(&c.shape->nest, c.target, c.source);
        }
    leave(plan);
}
