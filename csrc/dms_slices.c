/* dms_slices.c - how a run is cut into shares that threads can take: equal ones, of the kernel that was chosen for the whole
 *
 * What is written is cut at addresses that are multiples of a block of 128 bytes, wherever tensors begin, so that no two slices write one block and
 * nothing is left over. There are three ways:
 *
 *     CUT_ROWS    group kernels: every slice takes rows of all parts
 *     CUT_LINES   transposes of few, long lines: every slice takes a stretch of all lines of the target
 *     CUT_BYTES   all else: bytes in the order of the target's addresses, part after part; in a join, of the whole's addresses
 *
 * Where rows are cut, blocks that reach over the cut are copied piece by piece: what lies before the block's end by the slice before.
 *
 *     |    block    |    block    |        rows:  aaaa bbbb cccc dddd ...   the cut is before b
 *     ..aaaabbbbccccddddeeee....           slice 0 writes a, b, c and half of d; slice 1 the other half, then the kernel goes on
 */
#include "dms_slices.h"

/* Bytes of a slice: what takes less is done before another thread has heard of it. */
#ifdef DMS_TESTING
uint64_t dms_least_slice = 65536, dms_fallback_bytes;
#define LEAST_BYTES dms_least_slice
#else
#define LEAST_BYTES 65536
#endif

/* ---- Which way ---- */

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

static uint64_t line_count(const dms_nest *nest)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d + 1 < nest->rank; d++)
        count *= nest->loops[d].size;
    return count;
}

/* Rows that hold a block in everything that is written; 0: rows do not follow each other. */
static uint64_t gap_of_rows(const dmlsplit_plan *plan)
{
    const dms_space *space = &plan->space;
    uint64_t shortest = BLOCK;
    for (uint64_t i = is_split(plan) ? 1 : 0; i < (is_split(plan) ? space->operand_count : 1); i++)
        shortest = lower(shortest, row_bytes(space, &space->operands[i]));
    return shortest == 0 ? 0 : (BLOCK + shortest - 1) / shortest;
}

/* Steps of the loop that is contiguous in the target, where all parts are turned and have the same; 0: they have not. */
static uint64_t length_of_lines(const dmlsplit_plan *plan)
{
    uint64_t length = 0;
    for (uint64_t i = 0; i < plan->shape_count; i++) {
        const dms_shape *shape = &plan->shapes[i];
        const uint64_t size = turns(shape->kernel) ? shape->nest.loops[shape->nest.rank - 1].size : 0;
        if (i > 0 && size != length)
            return 0;
        length = size;
    }
    return length;
}

/* Which way matrices are turned: by bytes, which is between lines of the target, if these are many; then along lines, if these are long enough. */
static void choose_for_turns(slice *s, uint64_t length, uint64_t *count)
{
    enum { MANY_LINES = 384, LEAST_LINES = 96 };    /* in each slice; kernels turn up to 64 together, and one is cut at either end */
    const uint64_t run = s->plan->shapes[0].nest.run, lines = s->plan->bytes / run / length;
    s->gap = (BLOCK + run - 1) / run;
    const uint64_t most = length / (LEAST_GAPS * s->gap);
    if (lines / MANY_LINES < *count && (most >= *count || most > lines / LEAST_LINES)) {
        s->method = CUT_LINES;
        s->rows = length;
        *count = lower(*count, most);
    } else {
        *count = lower(*count, lines / LEAST_LINES);
    }
}

enum { LONG_PIECE = 4096 };             /* rows of such pieces are as well copied by bytes, part after part */

static slice choose(const dmlsplit_plan *plan, uint64_t count)
{
    slice s = {plan, NULL, 0, 1, plan->rows, 0, CUT_NOT};
    count = lower(count, plan->bytes / LEAST_BYTES);
    if (count < 2)
        return s;
    s.method = CUT_BYTES;
    if (plan->group != NULL) {
        const bool is_long = plan->shapes[0].kernel != NULL && plan->bytes / plan->rows / plan->part_count >= LONG_PIECE;
        s.gap = gap_of_rows(plan);
        const uint64_t most = s.gap == 0 ? 1 : s.rows / (LEAST_GAPS * s.gap);
        if (most >= count || !is_long || !dms_cuts_bytes(plan)) {
            s.method = CUT_ROWS;
            count = lower(count, most);
        }
    } else if (!dms_cuts_bytes(plan)) {
        count = 1;
    } else if (length_of_lines(plan) > 0) {
        choose_for_turns(&s, length_of_lines(plan), &count);
    }
    s.count = count > 1 ? count : 1;
    if (s.count == 1)
        s.method = CUT_NOT;
    return s;
}

/* ---- Rows and lines ---- */

copy dms_find_copy(const slice *s, uint64_t number)
{
    const dms_part *part = &s->plan->parts[number];
    const dms_nest *nest = &part->shape->nest;
    char *const in_part = dms_part_base(s->buffers, number) + nest->part_offset;
    char *const in_whole = (char *)s->buffers->whole + part->place + nest->whole_offset;
    const bool split = is_split(s->plan);
    const copy c = {part->shape->kernel, nest, split ? in_part : in_whole, split ? in_whole : in_part};
    return c;
}

/* A contiguous piece of a row. */
typedef struct piece {
    char *to;
    const char *from;
    size_t size;
    uintptr_t row;                      /* address at which the row begins in what is written */
} piece;

static piece find_piece(const slice *s, uint64_t number, uint64_t line, uint64_t row)
{
    const dms_part *part = &s->plan->parts[number];
    const dms_space *space = &s->plan->space;
    const dms_operand *operand = part->shape->operand;
    const bool split = is_split(s->plan);
    piece p;
    if (s->method == CUT_LINES) {
        const copy c = dms_find_copy(s, number);
        const dms_loop *last = &c.nest->loops[c.nest->rank - 1];
        p.to = c.target + (int64_t)row * last->target_stride;
        p.from = c.source + (int64_t)row * last->source_stride;
        p.size = c.nest->run;
        find_run(c.nest->loops, c.nest->rank - 1, line, &p.to, &p.from);
        p.row = (uintptr_t)p.to;
        return p;
    }
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_row_index(space, row, index);
    char *const in_part = dms_part_base(s->buffers, number) + operand->offset + dms_row_offset(space, operand, index);
    char *const whole_row = (char *)s->buffers->whole + dms_row_offset(space, &space->operands[0], index);
    p.to = split ? in_part : whole_row + part->place;
    p.from = split ? whole_row + part->place : in_part;
    p.size = (size_t)(operand->length * space->element_size);
    p.row = (uintptr_t)(split ? in_part : whole_row + space->operands[0].offset);
    return p;
}

static uint64_t lines_of(const slice *s, uint64_t number)
{
    const dms_shape *shape = s->plan->parts[number].shape;
    return shape == NULL ? 0 : s->method == CUT_LINES ? line_count(&shape->nest) : 1;
}

/* Copies of a piece what lies below an address, or the rest. */
static void copy_side(const piece *p, uintptr_t bound, bool below)
{
    const size_t low = (uintptr_t)p->to >= bound ? 0 : (size_t)lower(bound - (uintptr_t)p->to, p->size);
    if (below)
        dms_copy_short(p->to, p->from, low);
    else
        dms_copy_short(p->to + low, p->from + low, p->size - low);
}

/* Copies of rows [first, first + gap) what lies below the end of the block that the cut is in, or the rest. Where the cut is behind the last row, it
 * is the begin of that block that counts. */
static void copy_edge(const slice *s, uint64_t first, uint64_t cut, bool below)
{
    const dms_space *space = &s->plan->space;
    const uint64_t stretch = s->method == CUT_LINES ? s->rows : space->sizes[space->axis - 1];   /* rows of one distance */
    const bool steady = first % stretch + s->gap <= stretch;
    for (uint64_t i = 0; i < s->plan->part_count; i++)
        for (uint64_t line = 0; line < lines_of(s, i); line++) {
            const piece at = find_piece(s, i, line, cut < s->rows ? cut : cut - 1);
            const uintptr_t bound = cut < s->rows ? block_end(at.row) : (at.row + at.size) / BLOCK * BLOCK;
            piece p = find_piece(s, i, line, first);
            const piece next = find_piece(s, i, line, first + (s->gap > 1));
            const ptrdiff_t to_step = next.to - p.to, from_step = next.from - p.from;
            for (uint64_t row = first; row < first + s->gap; row++) {
                if (!steady)
                    p = find_piece(s, i, line, row);
                copy_side(&p, bound, below);
                p.to += row + 1 < first + s->gap ? to_step : 0;
                p.from += row + 1 < first + s->gap ? from_step : 0;
            }
        }
}

static void run_rows(const slice *s, uint64_t first, uint64_t last)
{
    const dmlsplit_plan *plan = s->plan;
    if (s->method == CUT_ROWS) {
        plan->group->run_group(plan, s->buffers, first, last);
        return;
    }
    for (uint64_t i = 0; i < plan->part_count; i++) {
        dms_loop loops[DMLSPLIT_MAX_RANK];
        if (plan->parts[i].shape == NULL)
            continue;
        dms_nest nest = plan->parts[i].shape->nest;
        const piece p = find_piece(s, i, 0, first);
        memcpy(loops, nest.loops, nest.rank * sizeof loops[0]);
        loops[nest.rank - 1].size = last - first;
        nest.loops = loops;
        plan->parts[i].shape->kernel->run_nest(&nest, p.to, p.from);
    }
}

/* Where parts, or lines of a part, may begin in the block in which others end, the first slice has the ends of all, too. */
static void copy_rows(const slice *s)
{
    const bool wraps = s->method == CUT_LINES || (is_split(s->plan) && s->plan->part_count > 1);
    const bool is_first = s->index == 0, is_last = s->index + 1 == s->count;
    const uint64_t begin = share(s->rows, s->index, s->count), end = share(s->rows, s->index + 1, s->count);
    const uint64_t stop = is_last && wraps ? end - s->gap : end;
    run_rows(s, is_first ? begin : begin + s->gap, stop);
    if (!is_first)
        copy_edge(s, begin, begin, false);
    if (!is_last || wraps)
        copy_edge(s, stop, end, true);
    if (is_first && wraps)
        copy_edge(s, s->rows - s->gap, s->rows, false);
}

/* ---- Runs ---- */

uint32_t dms_slices(const dmlsplit_plan *plan, uint32_t most)
{
    return (uint32_t)choose(plan, most).count;
}

void dms_run_slice(const dmlsplit_plan *plan, const dms_buffers *buffers, uint32_t index, uint32_t count)
{
    slice s = choose(plan, count);
    s.buffers = buffers;
    s.index = index;
    if (index >= s.count)
        return;                         /* fewer slices than that have something to do */
    if (s.method == CUT_NOT)
        dms_run_all(plan, buffers);
    else if (s.method == CUT_BYTES)
        dms_copy_bytes(&s);
    else
        copy_rows(&s);
}
