/* dms_kind.c - classifies a nest of loops: it moves runs, repeats one run, or transposes matrices */
#include "dms_channels.h"
#include "dms_checked.h"
#include "dms_transpose.h"

/* Returns the loop that is contiguous in the source, forwards or backwards; nest->rank if there is none. */
static uint32_t source_loop(const dms_nest *nest)
{
    uint32_t d = 0;
    while (d < nest->rank && dms_abs_i64(nest->loops[d].source_stride) != nest->run)
        d++;
    return d;
}

/* Returns the loop over the columns of a matrix whose rows are the last loop, or DMS_NO_MATRIX. */
static uint32_t find_columns(const dms_nest *nest)
{
    if (!dms_is_element(nest->run) || nest->rank < 2 || nest->loops[nest->rank - 1].target_stride != (int64_t)nest->run)
        return DMS_NO_MATRIX;
    const uint32_t columns = source_loop(nest);
    if (columns + 1 >= nest->rank || nest->loops[columns].size * nest->loops[nest->rank - 1].size < DMS_LEAST_MATRIX)
        return DMS_NO_MATRIX;
    return columns;
}

/* Returns the pixels of a nest whose columns are set; count is 0 if it has none. */
static dms_pixels find_pixels(const dms_nest *nest)
{
    dms_pixels p = {0, false};
    if (nest->columns == DMS_NO_MATRIX)
        return p;
    const dms_loop *const rows = &nest->loops[nest->rank - 1], *const columns = &nest->loops[nest->columns];
    const bool to_pixels = rows->size <= DMS_MOST_CHANNELS && columns->target_stride == (int64_t)(rows->size * nest->run);
    p.split = columns->size <= DMS_MOST_CHANNELS && rows->source_stride == (int64_t)(columns->size * nest->run);
    if (columns->source_stride > 0 && (p.split || to_pixels))
        p.count = (unsigned)(p.split ? columns->size : rows->size);
    return p;
}

bool dms_is_narrow(const dms_nest *nest)
{
    const size_t least = dms_smaller(DMS_LINE / nest->run, nest->run == 1 ? DMS_NARROW_SIDE_OF_BYTES : DMS_NARROW_SIDE);
    return nest->loops[nest->rank - 1].size < least || nest->loops[nest->columns].size < least;
}

/* True if a run is repeated over contiguous memory, because the input is broadcast along that dimension, and over enough of it for a pattern of several
 * runs to pay. A matrix with target rows of up to 512 bytes is transposed instead: within the caches in 0.55 of the time. */
static bool is_fill(const dms_nest *nest)
{
    const dms_loop *last = nest->rank > 0 ? &nest->loops[nest->rank - 1] : NULL;        /* there may be no loops */
    if (last == NULL || last->source_stride != 0 || last->target_stride != (int64_t)nest->run || last->size * nest->run < DMS_LEAST_FILL)
        return false;
    return last->size * nest->run > DMS_TRANSPOSED_FILL || nest->columns == DMS_NO_MATRIX || dms_is_narrow(nest);
}

void dms_classify(dms_nest *nest)
{
    nest->columns = find_columns(nest);
    nest->pixels = find_pixels(nest);
    nest->kind = is_fill(nest) ? DMS_FILL : nest->columns != DMS_NO_MATRIX ? DMS_TRANSPOSE : DMS_MOVE;
}
