/* dms_costs.c - where kernels are slow: the numbers that decide between kernels which can copy the same plan
 *
 * Each number was measured against the kernel that is next by cost, on AMD Zen 5 (family 26), gcc 12, in November 2026, by benchmarks/kernels.py and
 * benchmarks/sweep.py; where another machine is named, there. Sizes are bytes unless said otherwise.
 */
#include "dms_costs.h"
#include "dms_shuffle.h"
#include "dms_transpose.h"

static const dms_slow fast = {0, NULL};

static dms_slow slow(unsigned cost, const char *why)
{
    const dms_slow s = {cost, why};
    return s;
}

static uint64_t row_of(const dmlsplit_plan *plan)
{
    return plan->space.operands[0].length * plan->space.element_size;
}

/* ---- Small rows ---- */

enum {
    LEAST_ROWS = 8,                     /* rows of a stretch: with fewer, finding it takes longer than copying them */
    SMALL_ROW = 64,                     /* rows, */
    SMALL_PIECE = 80,                   /* and pieces on average, that are as well copied by moves as row by row */
    WIDEST_STREAMED = 128               /* pieces; past the caches rows would have to collect lines between moves */
};

/* Whether pieces are moved to memory that is cached, and streamed from there as whole lines (stretch_template.h). */
static bool are_staged(const dmlsplit_plan *plan)
{
    uint64_t widest = 0;
    for (uint64_t i = 1; i < plan->space.operand_count; i++)
        widest = plan->space.operands[i].length > widest ? plan->space.operands[i].length : widest;
    return dms_is_streamed(&plan->copies) && widest * plan->space.element_size <= WIDEST_STREAMED && dms_are_packed(plan);
}

dms_slow dms_slow_small_rows(const dmlsplit_plan *plan)
{
    const uint64_t row = row_of(plan);
    if (plan->rows >= LEAST_ROWS && plan->space.sizes[plan->space.axis - 1] < LEAST_ROWS)
        return slow(DMS_AFTER_PARTS, "fewer than 8 rows are equally far apart");
    if (row > SMALL_ROW && row > dms_full_parts(plan) * SMALL_PIECE && !are_staged(plan))
        return slow(DMS_AFTER_PARTS, "rows are longer than 64 bytes, and pieces than 80 on average, or 128 bytes at the most past the caches");
    return fast;
}

enum { MOST_WIDE = 10 };                /* parts of 4 bytes or more, as many as 512-bit permutes gather in one step */

dms_slow dms_slow_channels_avx512vbmi(const dmlsplit_plan *plan)
{
    const dms_slow rows = dms_slow_small_rows(plan);
    const uint64_t count = dms_full_parts(plan);
    const size_t width = dms_equal_width(plan);
    if (rows.why != NULL || count <= MOST_WIDE)
        return rows;
    if (width == 4 && plan->direction == DMLSPLIT_SPLIT)
        return slow(DMS_AFTER_SLOW_COLUMNS, "more than 10 parts of 4 bytes in a split");
    return width > 4 && count % 2 != 0 ? slow(DMS_AFTER_SLOW_COLUMNS, "11, 13 or 15 parts of 8 bytes or more") : fast;
}

dms_slow dms_slow_columns(const dmlsplit_plan *plan)
{
    enum { FEW = 8, WIDE = 8 };         /* elements of a row; bytes of an element */
    return plan->space.element_size >= WIDE || plan->space.operands[0].length < FEW
               ? slow(DMS_AFTER_MOVES, "few elements a row, or of 8 bytes and more")
               : fast;
}

dms_slow dms_slow_shuffle(const dmlsplit_plan *plan, size_t unit)
{
    enum {
        LEAST_BLOCKS = 8,               /* of rows that follow each other: what remains of them is copied one by one */
        MOST_STEPS = 8,                 /* a vector on average, */
        FEW_STEPS = 3,                  /* where pieces are wide: with more, moves are faster */
        WIDE = 8,                       /* a piece on average */
        WIDEST = 12, WIDEST_OF_64 = 20, /* with vectors of 16 and of 64 bytes */
        STREAMED_BLOCK = 512,           /* of a longer one, too few are staged at once for the tables to pay */
        MANY = 8, LONG = 16             /* elements and bytes of a row whose columns are sooner transposed */
    };
    const dms_slow small = dms_slow_small_rows(plan);
    const uint64_t row = row_of(plan), parts = dms_full_parts(plan);
    const bool wide = row >= WIDE * parts;
    if (small.why != NULL)
        return small;
    if (row > (unit < DMS_WIDEST_UNIT ? WIDEST : WIDEST_OF_64) * parts)
        return slow(DMS_AFTER_PARTS, "pieces of a row are of 12 bytes or more on average, with 64-byte vectors of 20");
    const uint64_t rows = dms_shuffle_rows(plan, unit);
    if (plan->space.sizes[plan->space.axis - 1] < LEAST_BLOCKS * rows)
        return slow(DMS_AFTER_PARTS, "there are too few rows for the tables to pay");
    if (!dms_shuffle_takes(plan, unit, wide ? FEW_STEPS : MOST_STEPS))
        return slow(DMS_AFTER_PARTS, "too many vectors have to be looked at for one");
    if (wide && dms_is_streamed(&plan->copies) && (plan->direction == DMLSPLIT_JOIN || row > WIDE * parts || rows > unit / 4 || rows * row > STREAMED_BLOCK))
        return slow(DMS_AFTER_PARTS, "wide pieces had to be staged, and are not the parts of a split, of 8 bytes on average and a multiple of 4");
    if (plan->space.operands[0].length >= MANY && row >= LONG)
        return slow(DMS_AFTER_COLUMNS, "8 elements and 16 bytes a row or more");
    return fast;
}

/* ---- Rows ---- */

/* With more parts, a row writes to (or reads from) more pages than the second-level TLB of current cores has entries; pieces that are shorter on average
 * cost more to find than to copy. */
dms_slow dms_slow_rows(const dmlsplit_plan *plan)
{
    enum { MOST_PARTS = 1024, SHORTEST_PIECE = 16 };
    if (plan->part_count > MOST_PARTS)
        return slow(DMS_AFTER_PARTS, "there are more than 1024 parts");
    if (row_of(plan) < SHORTEST_PIECE * dms_full_parts(plan))
        return slow(DMS_AFTER_PARTS, "pieces of a row are shorter than 16 bytes on average");
    return fast;
}

/* ---- Nests ---- */

dms_slow dms_never_slow(const dms_nest *nest)
{
    (void)nest;
    return fast;
}

dms_slow dms_slow_runs(const dms_nest *nest)
{
    enum { LEAST = 16, SHORTEST_STREAM = 1024, MOVED = 2 * DMS_LINE, LONGEST = 4096 };
    if (nest->kind == DMS_FILL)
        return fast;
    if (nest->run <= LEAST)
        return slow(DMS_AFTER_SCALAR, "contiguous runs are not longer than 16 bytes");
    const dms_loop *last = nest->rank > 0 ? &nest->loops[nest->rank - 1] : NULL;
    const bool gaps = last != NULL && last->size > 1 && last->target_stride != (int64_t)nest->run;
    if (dms_is_streamed(&nest->stores))
        return gaps && nest->run < SHORTEST_STREAM
                   ? slow(DMS_AFTER_SCALAR, "past the caches, runs of less than 1024 bytes with gaps between them make no whole lines")
                   : fast;
    return nest->run > MOVED && nest->run < LONGEST ? fast : slow(DMS_AFTER_SCALAR, "runs of up to 128 bytes, or of 4096 and more");
}

dms_slow dms_slow_transpose(const dms_nest *nest)
{
    return dms_is_narrow(nest) ? slow(DMS_AFTER_SCALAR, "a side of the matrix has less than a line, or than 12 elements") : fast;
}

dms_slow dms_slow_planes_avx512vbmi(const dms_nest *nest)
{
#ifdef DMS_TESTING
    enum { LEAST = 1 };                 /* tests have less to copy */
#else
    enum { LEAST = 8192 };              /* elements: 300 pixels of 7 took 3 to 6 times as long as by moves */
#endif
    const dms_pixels p = dms_find_pixels(nest);
    uint64_t elements = 1;
    for (uint32_t d = 0; d < nest->rank; d++)
        elements *= nest->loops[d].size;
    if (elements < LEAST)
        return slow(DMS_AFTER_SCALAR, "fewer than 8192 elements: to fill the tables takes longer than moves");
    if (p.count > MOST_WIDE && nest->run >= 4 && (p.count % 2 != 0 || p.count == DMS_MOST_CHANNELS || (nest->run == 4 && p.split)))
        return slow(DMS_AFTER_SCALAR, "pixels of more than 10 elements of 4 bytes or more");
    return fast;
}

dms_slow dms_slow_reverse(const dms_nest *nest)
{
    enum { SHORTEST = 16 };             /* steps: fewer are taken in blocks of another loop, five times as fast */
    return nest->loops[nest->rank - 1].size < SHORTEST ? slow(DMS_AFTER_SCALAR, "the loop that goes backwards has less than 16 steps") : fast;
}

dms_slow dms_slow_strided(const dms_nest *nest)
{
    return nest->run > 16 ? slow(DMS_AFTER_SCALAR, "elements are longer than 16 bytes") : fast;
}
