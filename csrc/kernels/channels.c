/* channels.c - small rows deinterleaved by moves: a block of rows at a time, part by part, so that the whole stays in the first-level cache
 *
 *     whole  abbbabbbabbb    part a: all a of the block, by moves of constant size; then part b
 */
#include "../dms_channels.h"
#include "../dms_transpose.h"

uint64_t dms_full_parts(const dmlsplit_plan *plan)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < plan->part_count; i++)
        count += plan->parts[i].shape != NULL;
    return count;
}

bool dms_are_packed(const dmlsplit_plan *plan)
{
    const dms_space *space = &plan->space;
    for (uint64_t i = 0; i < space->operand_count; i++)
        if (space->operands[i].strides[space->axis - 1] != (int64_t)(space->operands[i].length * space->element_size))
            return false;
    return true;
}

const char *dms_can_small_rows(const dmlsplit_plan *plan)
{
    const uint64_t parts = dms_full_parts(plan);
    const char *refusal = dms_can_pieces(plan);
    if (refusal != NULL)
        return refusal;
    if (parts < 2 || parts > DMS_MOST_CHANNELS)
        return "there are not 2 to 16 parts";
    return plan->space.operands[0].length * plan->space.element_size > DMS_SMALL_BLOCK ? "rows are longer than 2048 bytes" : NULL;
}

const char *dms_can_packed_rows(const dmlsplit_plan *plan)
{
    const char *refusal = dms_can_small_rows(plan);
    return refusal != NULL || dms_are_packed(plan) ? refusal : "rows do not follow each other without gaps";
}

size_t dms_equal_width(const dmlsplit_plan *plan)
{
    const dms_space *space = &plan->space;
    for (uint64_t i = 2; i < space->operand_count; i++)
        if (space->operands[i].length != space->operands[1].length)
            return 0;
    return (size_t)(space->operands[1].length * space->element_size);
}

const char *dms_can_equal(const dmlsplit_plan *plan)
{
    const char *refusal = dms_can_packed_rows(plan);
    if (refusal != NULL)
        return refusal;
    const size_t width = dms_equal_width(plan);
    if (width == 0 || width > 8 || (width & (width - 1)) != 0 || dms_full_parts(plan) > 4)
        return "there are not 2 to 4 parts of 1, 2, 4 or 8 bytes";
    return NULL;
}

void dms_lay_out_channels(const dmlsplit_plan *plan, dms_channels *channels)
{
    channels->count = channels->row = 0;
    for (uint64_t i = 0; i < plan->part_count; i++) {
        if (plan->parts[i].shape == NULL)
            continue;
        channels->row_begins[channels->count] = channels->row;
        channels->widths[channels->count] = (size_t)(plan->parts[i].shape->operand->length * plan->space.element_size);
        channels->row += channels->widths[channels->count++];
    }
}

void dms_run_small_rows(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    dms_stretch stretch;
    dms_stretch_part part;
    dms_channels channels;
    dms_lay_out_channels(plan, &channels);
    while (dms_next_stretch(&stretch, plan, buffers, &first, last)) {
        channels.rows = stretch.rows;
        channels.whole = stretch.whole;
        channels.stride = stretch.stride;
        for (uint64_t i = 0, c = 0; dms_next_part(&stretch, &i, &part); c++) {
            channels.parts[c] = part.base;
            channels.strides[c] = part.stride;
        }
        plan->group->copy_stretch(&channels, plan->tables, plan->direction == DMLSPLIT_SPLIT, &plan->stores[DMS_MOVE]);
    }
}

/* Copies the rows from `first` on. claimed: before a part of a block is copied, or the block of a join, the lines that the next block writes there are claimed: 60
 * shapes of 1.1 to 6 MB took 0.93 of the time of claiming the lines of all parts at once, by AVX2 and SSSE3, and 0.77 to 1.02 each; plain ones 1.05 (Intel). */
static void move_channels(const dms_channels *c, bool split, uint64_t first, bool claimed)
{
    const uint64_t block = DMS_SMALL_BLOCK / c->row;
    for (uint64_t row = first, rows; row < c->rows; row += rows) {
        rows = c->rows - row < block ? c->rows - row : block;
        for (size_t i = 0; i < c->count; i++) {
            char *const in_whole = c->whole + (int64_t)row * c->stride + c->row_begins[i];
            char *const in_part = c->parts[i] + (int64_t)row * c->strides[i];
            const size_t written = (size_t)rows * (split ? c->widths[i] : c->row);
            for (size_t line = 0; claimed && (split || i == 0) && line < written; line += DMS_LINE)
                DMS_CLAIM((split ? in_part : in_whole) + written, line);
            dms_copy_runs(split ? in_part : in_whole, split ? in_whole : in_part, split ? c->strides[i] : c->stride, split ? c->stride : c->strides[i],
                          rows, c->widths[i]);
        }
    }
}

void dms_move_channels(const dms_channels *c, bool split, uint64_t first)
{
    move_channels(c, split, first, false);
}

void dms_copy_channels(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    (void)tables;
    move_channels(c, split, 0, stores->regime == DMS_CLAIMED);
}

/* ---- Planes ---- */

const char dms_no_pixels[] = "it moves no pixels of 2 to 16 elements to planes or back";

void dms_copy_planes(const dms_nest *nest, char *target, const char *source, dms_stretch_copier *copy, const void *tables)
{
    const dms_matrix m = dms_find_matrix(nest);
    const dms_pixels *const p = &nest->pixels;
    const dms_loop *const planes = p->split ? m.columns : m.rows, *const pixels = p->split ? m.rows : m.columns;
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_channels c;
    c.count = p->count;
    c.row = p->count * nest->run;
    c.stride = (int64_t)c.row;
    c.rows = pixels->size;
    for (unsigned i = 0; i < p->count; i++) {
        c.widths[i] = nest->run;
        c.strides[i] = (int64_t)nest->run;
        c.row_begins[i] = i * nest->run;
    }
    dms_first(m.count, index);
    do {
        c.whole = p->split ? (char *)(uintptr_t)source : target;     /* const is dropped, as in dms_buffers */
        for (unsigned i = 0; i < p->count; i++)
            c.parts[i] = p->split ? target + (int64_t)i * planes->target_stride : (char *)(uintptr_t)source + (int64_t)i * planes->source_stride;
        copy(&c, tables, p->split, &nest->stores);
    } while (dms_next(m.around, m.count, index, &target, &source));
}
