/* dms_slices_bytes.c - bytes in the order of the target's addresses, part after part; in a join, of the whole's addresses */
#include "dms_checked.h"
#include "dms_slices.h"

/* The loops of the whole in descending order of its strides, from its lowest address on. */
static uint32_t whole_loops(const dmlsplit_plan *plan, dms_loop *loops)
{
    const dms_space *space = &plan->space;
    const dms_operand *whole = &space->operands[0];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < space->rank; d++) {
        const dms_loop loop = {d == space->axis ? whole->length : space->sizes[d], (int64_t)dms_abs_i64(whole->strides[d]), 0};
        uint32_t at = rank;
        if (loop.size < 2)
            continue;
        for (; at > 0 && loops[at - 1].target_stride < loop.target_stride; at--)
            loops[at] = loops[at - 1];
        loops[at] = loop;
        rank++;
    }
    return rank;
}

/* Whether the runs of a nest follow each other in the order of its loops. */
static bool ascends(const dms_loop *loops, uint32_t rank, uint64_t run)
{
    uint64_t extent = run;
    for (uint32_t d = rank; d-- > 0;) {
        if (loops[d].target_stride < 0 || (uint64_t)loops[d].target_stride < extent)
            return false;
        extent += reach_of(loops[d].target_stride, loops[d].size);
    }
    return true;
}

bool dms_cuts_bytes(const dmlsplit_plan *plan)
{
    dms_loop loops[DMLSPLIT_MAX_RANK];
    if (!is_split(plan))
        return ascends(loops, whole_loops(plan, loops), plan->space.element_size);
    for (uint64_t i = 0; i < plan->shape_count; i++)
        if (!ascends(plan->shapes[i].nest.loops, plan->shapes[i].nest.rank, plan->shapes[i].nest.run))
            return false;
    return true;
}

/* How many bytes of a nest lie below an address. */
static uint64_t bytes_below(const dms_loop *loops, uint32_t rank, uint64_t run, uintptr_t begin, uintptr_t address)
{
    uint64_t runs = 0, rest = address > begin ? address - begin : 0;
    for (uint32_t d = 0; d < rank; d++) {
        const uint64_t stride = (uint64_t)loops[d].target_stride, index = lower(rest / stride, loops[d].size);
        runs = runs * loops[d].size + index;
        rest = index == loops[d].size ? 0 : rest - index * stride;  /* beyond the last step: none of the next one's */
    }
    return runs * run + lower(rest, run);
}

/* The address of a byte of a nest by its number in the order of the loops. */
static uintptr_t address_of(const dms_loop *loops, uint32_t rank, uint64_t run, uintptr_t begin, uint64_t byte)
{
    uint64_t unit = byte / run;
    begin += (uintptr_t)(byte % run);
    for (uint32_t d = rank; d-- > 0; unit /= loops[d].size)
        begin += (uintptr_t)((d > 0 ? unit % loops[d].size : unit) * (uint64_t)loops[d].target_stride);
    return begin;
}

/* The kernel that was chosen, but for what is left of a matrix that is too small for it. */
static void run_box(const copy *c, dms_loop *loops, uint32_t rank, size_t run, char *target, const char *source)
{
    const dms_kernel *const last = &dms_kernel_table[DMS_KERNEL_COUNT - 1];
    dms_nest box = *c->nest;
    box.loops = loops;
    box.rank = rank;
    box.run = run;
    const dms_kernel *const kernel = c->kernel->accept_nest(&box) == NULL ? c->kernel : last;
#ifdef DMS_TESTING
    uint64_t bytes = kernel == c->kernel ? 0 : run;
    for (uint32_t d = 0; d < rank; d++)
        bytes *= loops[d].size;
    dms_fallback_bytes += bytes;
#endif
    kernel->run_nest(&box, target, source);
}

/* Runs [first, last) of the loops from depth on; those before take one step. */
static void run_boxes(const copy *c, dms_loop *loops, uint32_t depth, uint64_t first, uint64_t last, char *target, const char *source)
{
    if (first >= last)
        return;
    if (depth == c->nest->rank) {
        run_box(c, loops, depth, c->nest->run, target, source);
        return;
    }
    const dms_loop *loop = &c->nest->loops[depth];
    uint64_t inner = 1;
    for (uint32_t d = depth + 1; d < c->nest->rank; d++)
        inner *= c->nest->loops[d].size;
    while (first < last) {              /* at most the end of one step, whole steps, the begin of another */
        const uint64_t step = first / inner, begin = first % inner, whole = begin == 0 ? (last - first) / inner : 0;
        const uint64_t end = whole > 0 ? first + whole * inner : lower(last, (step + 1) * inner);
        char *const to = target + (int64_t)step * loop->target_stride;
        const char *const from = source + (int64_t)step * loop->source_stride;
        loops[depth].size = whole > 0 ? whole : 1;
        memcpy(loops + depth + 1, loop + 1, (c->nest->rank - depth - 1) * sizeof *loops);
        if (whole > 0)
            run_box(c, loops, c->nest->rank, c->nest->run, to, from);
        else
            run_boxes(c, loops, depth + 1, begin, end - step * inner, to, from);
        first = end;
    }
}

/* Bytes [begin, end) of one run. */
static void run_some(const copy *c, uint64_t number, size_t begin, size_t end)
{
    char *to = c->target;
    const char *from = c->source;
    find_run(c->nest->loops, c->nest->rank, number, &to, &from);
    run_box(c, NULL, 0, end - begin, to + begin, from + begin);
}

static void copy_some(const copy *c, uint64_t first, uint64_t last)
{
    const size_t run = c->nest->run;
    dms_loop loops[DMLSPLIT_MAX_RANK];
    if (first < last && first / run == (last - 1) / run && last - first < run) {
        run_some(c, first / run, (size_t)(first % run), (size_t)(last - first / run * run));
        return;
    }
    if (first < last && first % run > 0)
        run_some(c, first / run, (size_t)(first % run), run);
    memcpy(loops, c->nest->loops, c->nest->rank * sizeof loops[0]);
    run_boxes(c, loops, 0, (first + run - 1) / run, last / run, c->target, c->source);
    if (first < last && last % run > 0)
        run_some(c, last / run, 0, (size_t)(last % run));
}

/* A byte of what is written, first in a block: everything that is written before it belongs to the slices before. */
typedef struct place {
    uint64_t part;                      /* that it is in, of a split */
    uintptr_t address;
} place;

static uint64_t part_bytes(const dmlsplit_plan *plan, const dms_part *part)
{
    return part->shape == NULL ? 0 : plan->bytes / plan->space.operands[0].length * part->shape->operand->length;
}

/* Lines are turned together: a cut among many of them is between two. */
static uint64_t round_to_lines(const copy *c, uint64_t byte, uint64_t least)
{
    if (!turns(c->kernel))
        return byte;
    const uint64_t line = c->nest->run * c->nest->loops[c->nest->rank - 1].size;
    for (uint64_t lines = 64; lines > 0; lines /= 2)
        if (lines * line <= least / LEAST_GAPS)
            return byte / (lines * line) * (lines * line);
    return byte;
}

/* Where the slice with this index begins. */
static place find_place(const slice *s, uint64_t index)
{
    const dmlsplit_plan *plan = s->plan;
    place at = {0, 0};
    uint64_t byte = share(plan->bytes, index, s->count);
    if (index == 0)
        return at;
    if (index == s->count) {
        at.part = plan->part_count;
        at.address = UINTPTR_MAX;
        return at;
    }
    if (!is_split(plan)) {
        dms_loop loops[DMLSPLIT_MAX_RANK];
        const uint32_t rank = whole_loops(plan, loops);
        const uintptr_t begin = (uintptr_t)s->buffers->whole + (uintptr_t)plan->begin;
        at.address = block_end(address_of(loops, rank, plan->space.element_size, begin, byte));
        return at;
    }
    for (; at.part < plan->part_count; at.part++) {
        const uint64_t size = part_bytes(plan, &plan->parts[at.part]);
        if (byte < size) {
            const copy c = dms_find_copy(s, at.part);
            const dms_nest *const nest = c.nest;
            const uint64_t rounded = round_to_lines(&c, byte, plan->bytes / s->count);
            at.address = block_end(address_of(nest->loops, nest->rank, nest->run, (uintptr_t)c.target, rounded));
            if (bytes_below(nest->loops, nest->rank, nest->run, (uintptr_t)c.target, at.address) < size)
                break;
            byte = size;                /* the block reaches beyond the part: the next one begins in it, perhaps */
        }
        byte -= size;
    }
    return at;
}

static uint64_t bytes_before(const slice *s, const copy *c, uint64_t part, place at)
{
    if (is_split(s->plan) && part != at.part)
        return part < at.part ? UINT64_MAX : 0;
    return bytes_below(c->nest->loops, c->nest->rank, c->nest->run, (uintptr_t)c->target, at.address);
}

void dms_copy_bytes(const slice *s)
{
    const place begin = find_place(s, s->index), end = find_place(s, s->index + 1);
    for (uint64_t i = 0; i < s->plan->part_count; i++) {
        const uint64_t size = part_bytes(s->plan, &s->plan->parts[i]);
        if (size == 0 || (is_split(s->plan) && (i < begin.part || i > end.part)))
            continue;
        const copy c = dms_find_copy(s, i);
        const uint64_t first = s->index == 0 ? 0 : lower(bytes_before(s, &c, i, begin), size);
        copy_some(&c, first, s->index + 1 == s->count ? size : lower(bytes_before(s, &c, i, end), size));
    }
}
