/* dms_costs.c - where kernels are slow, which decides between kernels that can copy the same plan
 *
 * Each bound was measured against the kernel that is next by cost. dms_tuning.h has the numbers and the machines that
 * they were measured on.
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

/* True if pieces are staged in cached memory and streamed from there as whole cache lines (stretch_template.h). */
static bool are_staged(const dmlsplit_plan *plan)
{
    uint64_t widest = 0;
    for (uint64_t i = 1; i < plan->space.operand_count; i++)
        widest = plan->space.operands[i].length > widest ? plan->space.operands[i].length : widest;
    return dms_is_streamed(&plan->stores[DMS_MOVE]) && widest * plan->space.element_size <= DMS_SMALL_STREAMED && dms_are_packed(plan);
}

dms_slow dms_slow_small_rows(const dmlsplit_plan *plan)
{
    const uint64_t row = row_of(plan);
    if (plan->rows >= DMS_SMALL_LEAST_ROWS && plan->space.sizes[plan->space.axis - 1] < DMS_SMALL_LEAST_ROWS)
        return slow(DMS_AFTER_PARTS, "fewer than 8 rows are equally far apart");
    if (row > DMS_SMALL_ROW && row > dms_full_parts(plan) * DMS_SMALL_PIECE && !are_staged(plan))
        return slow(DMS_AFTER_PARTS, "rows are longer than 64 bytes, and pieces than 80 on average, or 128 bytes at the most past the caches");
    return fast;
}

dms_slow dms_slow_channels_avx512vbmi(const dmlsplit_plan *plan)
{
    const dms_slow rows = dms_slow_small_rows(plan);
    const uint64_t count = dms_full_parts(plan);
    const size_t width = dms_equal_width(plan);
    if (rows.why != NULL || count <= DMS_MOST_WIDE_PARTS)
        return rows;
    if (width == 4 && plan->direction == DMLSPLIT_SPLIT)
        return slow(DMS_AFTER_SLOW_COLUMNS, "more than 10 parts of 4 bytes in a split");
    if (width > 4 && count % 2 != 0)
        return slow(DMS_AFTER_SLOW_COLUMNS, "11, 13 or 15 parts of 8 bytes or more");
    /* Where 512-bit permutes of bytes take two cycles: 0.58 to 0.95 of the time, past the caches 1.26 to 2.35 (Zen 4). 12 and 16 parts are joined by few. */
    const dms_stores *const stores = &plan->stores[DMS_MOVE];
    const bool slow_permutes = stores->cached_height < DMS_TILE_HIGH && !dms_is_streamed(stores);
    if (width == 8 && slow_permutes && (plan->direction == DMLSPLIT_SPLIT || count == 14))
        return slow(DMS_AFTER_SLOW_COLUMNS, "12, 14 or 16 parts of 8 bytes in a split, or 14 in a join, on this CPU");
    return fast;
}

dms_slow dms_slow_columns(const dmlsplit_plan *plan)
{
    return plan->space.element_size >= DMS_COLUMNS_WIDE || plan->space.operands[0].length < DMS_COLUMNS_FEW
               ? slow(DMS_AFTER_MOVES, "few elements a row, or of 8 bytes and more")
               : fast;
}

dms_slow dms_slow_shuffle(const dmlsplit_plan *plan, size_t vector_size)
{
    const dms_slow small = dms_slow_small_rows(plan);
    const uint64_t row = row_of(plan), parts = dms_full_parts(plan);
    const bool wide = row >= DMS_SHUFFLE_WIDE * parts;
    if (small.why != NULL)
        return small;
    if (row > (vector_size < DMS_WIDEST_VECTOR ? DMS_SHUFFLE_WIDEST : DMS_SHUFFLE_WIDEST_OF_64) * parts)
        return slow(DMS_AFTER_PARTS, "pieces of a row are of 12 bytes or more on average, with 64-byte vectors of 20");
    const uint64_t rows = dms_shuffle_rows(plan, vector_size);
    if (plan->space.sizes[plan->space.axis - 1] < DMS_SHUFFLE_LEAST_BLOCKS * rows)
        return slow(DMS_AFTER_PARTS, "there are too few rows for the tables to pay");
    if (!dms_shuffle_takes(plan, vector_size, wide ? DMS_SHUFFLE_FEW_STEPS : DMS_SHUFFLE_MOST_PICKS))
        return slow(DMS_AFTER_PARTS, "too many vectors have to be looked at for one");
    if (wide && dms_is_streamed(&plan->stores[DMS_MOVE]) &&
        (plan->direction == DMLSPLIT_JOIN || row > DMS_SHUFFLE_WIDE * parts || rows > vector_size / 4 || rows * row > DMS_SHUFFLE_STREAMED_BLOCK))
        return slow(DMS_AFTER_PARTS, "wide pieces had to be staged, and are not the parts of a split, of 8 bytes on average and a multiple of 4");
    if (plan->space.operands[0].length >= DMS_SHUFFLE_COLUMNS && row >= DMS_SHUFFLE_COLUMN_ROW)
        return slow(DMS_AFTER_COLUMNS, "8 elements and 16 bytes a row or more");
    return fast;
}

/* ---- Rows ---- */

/* With more parts, a row touches more pages than the second-level TLB of current cores has entries. Looking up a
 * shorter piece costs more than copying it. */
dms_slow dms_slow_rows(const dmlsplit_plan *plan)
{
    if (plan->part_count > DMS_MOST_ROW_PARTS)
        return slow(DMS_AFTER_PARTS, "there are more than 1024 parts");
    if (row_of(plan) < DMS_SHORTEST_PIECE * dms_full_parts(plan))
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
    if (nest->kind == DMS_FILL)
        return fast;
    if (nest->run <= DMS_SHORTEST_RUN)
        return slow(DMS_AFTER_SCALAR, "contiguous runs are not longer than 16 bytes");
    const dms_loop *last = nest->rank > 0 ? &nest->loops[nest->rank - 1] : NULL;
    const bool gaps = last != NULL && last->size > 1 && last->target_stride != (int64_t)nest->run;
    if (dms_is_streamed(&nest->stores))
        return gaps && nest->run < DMS_SHORTEST_STREAM
                   ? slow(DMS_AFTER_SCALAR, "past the caches, runs of less than 1024 bytes with gaps between them make no whole lines")
                   : fast;
    const bool is_moved = nest->rank > 0 && nest->run <= DMS_MOVED_RUN;
    return !is_moved && nest->run < nest->stores.call / 2 ? fast : slow(DMS_AFTER_SCALAR, "runs of up to 128 bytes in a loop, or of half as many as are left to memcpy");
}

dms_slow dms_slow_transpose(const dms_nest *nest)
{
    return dms_is_narrow(nest) ? slow(DMS_AFTER_SCALAR, "a side of the matrix has less than a line, and than 8 elements, of 1 byte than 12") : fast;
}

dms_slow dms_slow_planes_avx512vbmi(const dms_nest *nest)
{
#ifdef DMS_TESTING
    enum { LEAST_ELEMENTS = 1 };        /* tests copy less */
#else
    enum { LEAST_ELEMENTS = DMS_PLANES_LEAST };
#endif
    const dms_pixels p = nest->pixels;
    uint64_t elements = 1;
    for (uint32_t d = 0; d < nest->rank; d++)
        elements *= nest->loops[d].size;
    if (elements < LEAST_ELEMENTS)
        return slow(DMS_AFTER_SCALAR, "fewer than 8192 elements: to fill the tables takes longer than moves");
    if (p.count > DMS_MOST_WIDE_PARTS && nest->run >= 4 && (p.count % 2 != 0 || p.count == DMS_MOST_CHANNELS || (nest->run == 4 && p.split)))
        return slow(DMS_AFTER_SCALAR, "pixels of more than 10 elements of 4 bytes or more");
    return fast;
}

dms_slow dms_slow_reverse(const dms_nest *nest)
{
    return nest->loops[nest->rank - 1].size < DMS_REVERSED_LEAST ? slow(DMS_AFTER_SCALAR, "the loop that goes backwards has less than 16 steps") : fast;
}

dms_slow dms_slow_strided(const dms_nest *nest)
{
    return nest->run > DMS_LONGEST_STRIDED ? slow(DMS_AFTER_SCALAR, "elements are longer than 16 bytes") : fast;
}
