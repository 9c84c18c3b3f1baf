/* dms_slices.c - how a run is cut into equal slices for threads, which the kernel of the whole run copies
 *
 * Group kernels are given rows of all parts. All else is cut by bytes, part after part, and within a part at steps of its loops, so that what a slice
 * gets are boxes that the same kernel takes. Two slices may meet within a cache line: each writes its own bytes of it.
 *
 *     | part 0              | part 1              | part 2              |      slice 0: part 0 and steps of part 1
 *     | slice 0                      | slice 1                          |      slice 1: the other steps and part 2
 */
#include "dms_kernel.h"
#include "dms_transpose.h"

/* Least size of a slice: a smaller copy ends before another thread has woken up. */
#ifdef DMS_TESTING
uint64_t dms_least_slice = DMS_LEAST_SLICE, dms_fallback_bytes, dms_fences;
#define LEAST_BYTES dms_least_slice
#define COUNT_FENCE() ((void)dms_fences++)
#else
#define LEAST_BYTES DMS_LEAST_SLICE
#define COUNT_FENCE() ((void)0)
#endif

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns value * index / count without overflow. */
static uint64_t share(uint64_t value, uint64_t index, uint64_t count)
{
    return value / count * index + value % count * index / count;
}

/* ---- Nests ---- */

/* A part whose nest is already offset to the part's origin in the whole. */
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
    char *const in_whole = (char *)buffers->whole + part->origin + nest->whole_offset;
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    return (copy){part->shape, split ? in_part : in_whole, split ? in_whole : in_part};
}

/* Sets the order in which a nest's loops are cut: outermost first, but the sides of a transposed matrix last, the longer one before the other, so that
 * cuts leave matrices. */
static void order_loops(const dms_nest *nest, uint32_t *order)
{
    uint32_t count = 0, last[2];
    for (uint32_t d = 0; d < nest->rank; d++)
        order[d] = d;
    if (nest->kind != DMS_TRANSPOSE)
        return;
    const dms_matrix m = dms_find_matrix(nest);
    last[m.columns->size < m.rows->size] = (uint32_t)(m.columns - nest->loops);
    last[m.columns->size >= m.rows->size] = (uint32_t)(m.rows - nest->loops);
    for (uint32_t d = 0; d < nest->rank; d++)
        if (d != last[0] && d != last[1])
            order[count++] = d;
    memcpy(order + count, last, sizeof last);
}

/* Returns the bytes between places where slices of `slice` bytes may begin in a part. A slice has DMS_SLICE_STEPS of the part's least unit at least
 * (dms_choose_slices), so one line of a matrix always fits. */
static uint64_t unit_of(const dms_shape *shape, uint64_t slice)
{
    const dms_nest *nest = &shape->nest;
    const bool transposes = nest->kind == DMS_TRANSPOSE;
    uint32_t order[DMLSPLIT_MAX_RANK];
    uint64_t step = shape->bytes, lines = DMS_LINE;   /* of a matrix, that are transposed together */
    order_loops(nest, order);
    for (uint32_t i = 0; i + transposes < nest->rank && step > slice / DMS_SLICE_STEPS; i++)
        step /= nest->loops[order[i]].size;
    if (!transposes)
        return step > slice / DMS_SLICE_STEPS ? DMS_LINE : step;
    while (lines * step > slice / DMS_SLICE_STEPS)
        lines /= 2;
    return lines * step;
}

uint64_t dms_least_unit(const dms_shape *shape)
{
    const dms_nest *nest = &shape->nest;
    if (nest->kind != DMS_TRANSPOSE)
        return lower(nest->run, DMS_LINE);
    const dms_matrix m = dms_find_matrix(nest);
    return lower(m.rows->size, m.columns->size) * nest->run;
}

/* Copies bytes [first, last) of a part in the order of its loops, by the largest possible boxes from first on. */
static void copy_some(const copy *c, uint64_t first, uint64_t last)
{
    const dms_nest *const nest = &c->shape->nest;
    dms_loop loops[DMLSPLIT_MAX_RANK];
    uint32_t order[DMLSPLIT_MAX_RANK];
    dms_nest box = *nest;
    if (first == 0 && last == c->shape->bytes) {        /* the usual case among many parts: there is no box to find */
        c->shape->kernel->run_nest(nest, c->target, c->source);
        return;                                         /* one box covers everything */
    }
    order_loops(nest, order);
    box.loops = loops;
    for (uint64_t bytes; first < last; first += bytes) {
        uint64_t step = nest->run;      /* bytes of one step of the loop; equal to the box's bytes as long as all inner loops are whole */
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
        dms_classify(&box);
        const dms_kernel *kernel = dms_kernel_for(c->shape->kernel, &box);
#ifdef DMS_TESTING
        dms_fallback_bytes += kernel != c->shape->kernel && kernel == &dms_kernel_table[DMS_KERNEL_COUNT - 1] ? bytes : 0;
#endif
        kernel->run_nest(&box, to, from);
    }
}

/* ---- Slices ---- */

/* Returns the largest number of slices, up to `most`, that have equally many rows each, or DMS_SLICE_STEPS or more. */
static uint64_t even_count(uint64_t rows, uint64_t most)
{
    if (most <= rows / DMS_SLICE_STEPS)
        return most;
    for (uint64_t each = 1; each < DMS_SLICE_STEPS; each++)
        if (rows % each == 0 && rows / each <= most)
            return rows / each;
    return rows / DMS_SLICE_STEPS;
}

dms_slices dms_choose_slices(const dmlsplit_plan *plan, uint64_t most)
{
    dms_slices s = {lower(most, plan->bytes / LEAST_BYTES), plan->group != NULL};
    if (s.by_rows) {
        const uint64_t even = even_count(plan->rows, s.count);
        s.by_rows = even == s.count || plan->shapes[0].kernel == NULL || plan->bytes / plan->rows / plan->part_count < DMS_SLICE_LONG_PIECE;
        s.count = s.by_rows ? even : s.count;
    }
    if (!s.by_rows)
        s.count = lower(s.count, plan->bytes / DMS_SLICE_STEPS / plan->unit);
    if (s.count < 1)
        s.count = 1;
    return s;
}

/* Returns the part that contains this byte, counted over all parts. */
static uint64_t find_part(const dmlsplit_plan *plan, uint64_t byte)
{
    uint64_t first = 0, last = plan->part_count;        /* parts[first].before is at most byte, parts[last].before is not */
    while (last - first > 1) {
        const uint64_t middle = first + (last - first) / 2;
        DMS_COUNT_STEPS(1);
        *(plan->parts[middle].before <= byte ? &first : &last) = middle;
    }
    return first;
}

dms_slice dms_find_slice(const dmlsplit_plan *plan, const dms_slices *cut, uint64_t index)
{
    dms_slice s = {0, plan->bytes, 0, plan->part_count};
    if (index >= cut->count)
        s.last = s.last_part = 0;       /* there are fewer slices */
    if (index >= cut->count || cut->count == 1)
        return s;
    if (cut->by_rows) {                 /* 64 rows are whole cache lines of every part */
        const uint64_t grain = plan->rows / cut->count >= DMS_SLICE_STEPS * DMS_LINE ? DMS_LINE : 1, grains = plan->rows / grain;
        s.first = share(grains, index, cut->count) * grain;
        s.last = index + 1 == cut->count ? plan->rows : share(grains, index + 1, cut->count) * grain;
    } else {
        s.first = share(plan->bytes, index, cut->count);
        s.last = share(plan->bytes, index + 1, cut->count);
        s.first_part = find_part(plan, s.first);
        s.last_part = find_part(plan, s.last - 1) + 1;
    }
    return s;
}

/* Returns the boundary between two slices of `slice` bytes in a part: at this byte or shortly before it. */
static uint64_t cut_at(const dms_shape *shape, uint64_t byte, uint64_t slice)
{
    if (byte >= shape->bytes)
        return shape->bytes;
    const uint64_t unit = unit_of(shape, slice);
    DMS_ASSERT(unit > 0);
    DMS_ASSERT(shape->nest.kind != DMS_TRANSPOSE || unit % dms_least_unit(shape) == 0);   /* the shorter side of a matrix stays whole */
    return byte / unit * unit;
}

static void copy_bytes(const dmlsplit_plan *plan, const dms_buffers *buffers, const dms_slice *s, uint64_t slice)
{
    for (uint64_t i = s->first_part; i < s->last_part; i++) {
        const dms_part *part = &plan->parts[i];
        DMS_COUNT_STEPS(1);
        if (part->shape == NULL)
            continue;
        const copy c = find_copy(plan, buffers, i);
        copy_some(&c, s->first > part->before ? cut_at(part->shape, s->first - part->before, slice) : 0,
                  cut_at(part->shape, s->last - part->before, slice));
    }
}

/* ---- Runs ---- */

#if DMS_SSSE3
/* Kernels that stream require at least SSSE3; the base architecture of this build may not even have the fence. */
static DMS_TARGET_SSSE3 void fence(void)
{
    COUNT_FENCE();
    _mm_sfence();
}
#else
static void fence(void)
{
}
#endif

/* Ends a run: a fence makes its non-temporal stores visible before later stores, as plain ones would be. One for the run, not one for each part, because
 * each waits for memory (1,024 parts of 4 KB took 2.4 times memcpy's time by a fence for each, 1.1 by one). MSVC does not emit vzeroupper by itself, and
 * SSE code is slow without it. */
static void finish_stores(const dmlsplit_plan *plan)
{
    bool streamed = false;
    for (int kind = 0; kind < DMS_KINDS; kind++)
        streamed = streamed || dms_is_streamed(&plan->stores[kind]);
    if (streamed && (dms_cpu_isa() & DMS_ISA_SSSE3) != 0)
        fence();
#if DMS_MSVC && DMS_AVX2
    if ((dms_cpu_isa() & DMS_ISA_AVX2) != 0)
        _mm256_zeroupper();
#endif
}

uint32_t dmlsplit_plan_slices(const dmlsplit_plan *plan, uint32_t most)
{
    return plan == NULL || plan->bytes == 0 ? 1 : (uint32_t)dms_choose_slices(plan, most).count;
}

void dms_run_slice(const dmlsplit_plan *plan, const dms_buffers *buffers, const dms_slices *cut, const dms_slice *s)
{
    if (s->last == 0)
        return;
    if (cut->count == 1) {
        dms_run_all(plan, buffers);
        return;
    }
    if (cut->by_rows)
        plan->group->run_group(plan, buffers, s->first, s->last);
    else
        copy_bytes(plan, buffers, s, plan->bytes / cut->count);
    finish_stores(plan);
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
    finish_stores(plan);
}
