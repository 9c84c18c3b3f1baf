/* dms_fold.c - folds loops: fewer loops for the same bytes */
#include "dms_internal.h"

#include "dms_checked.h"

#include <string.h>

static bool is_loop(const dms_space *space, uint32_t dimension)
{
    return dimension == space->axis || space->sizes[dimension] != 1;
}

/* Returns the new step, for the caller to fill in its order; NULL if steps are not recorded. */
static dms_rewriting *note(const dms_space *space, dms_rewriting_kind kind, uint32_t outer, uint32_t inner)
{
    if (space->trace == NULL)
        return NULL;
    DMS_ASSERT(space->trace->count < DMS_MOST_REWRITINGS);
    dms_rewriting *const step = &space->trace->rewritings[space->trace->count++];
    step->kind = (uint8_t)kind;
    step->outer = (uint8_t)outer;
    step->inner = (uint8_t)inner;
    step->count = 0;
    return step;
}

/* Dimension order[d] becomes dimension d; dimensions that order does not name are dropped. */
static void move_dimensions(dms_space *space, const uint32_t *order, uint32_t count)
{
    uint64_t sizes[DMLSPLIT_MAX_RANK];
    int64_t strides[DMLSPLIT_MAX_RANK];
    uint32_t axis = DMS_NO_AXIS, same = 0;
    while (same < count && order[same] == same)
        same++;
    if (same == space->rank)
        return;
    dms_rewriting *const step = note(space, DMS_REORDER, 0, 0);
    for (uint32_t d = 0; step != NULL && d < count; d++)
        step->order[step->count++] = (uint8_t)order[d];
    for (uint32_t d = 0; d < count; d++) {
        sizes[d] = space->sizes[order[d]];
        if (order[d] == space->axis)
            axis = d;
    }
    memcpy(space->sizes, sizes, count * sizeof sizes[0]);
    for (uint64_t i = 0; i < space->operand_count; i++) {
        for (uint32_t d = 0; d < count; d++)
            strides[d] = space->operands[i].strides[order[d]];
        memcpy(space->operands[i].strides, strides, count * sizeof strides[0]);
    }
    DMS_COUNT_STEPS(space->operand_count * count);
    space->rank = count;
    space->axis = axis;
}

/* True if dimension a belongs outside b. If the first operand's strides are equal, the second operand decides. */
static bool goes_before(const dms_space *space, uint32_t a, uint32_t b)
{
    if (a == space->axis || b == space->axis)
        return b == space->axis;
    for (uint64_t i = 0; i < space->operand_count && i < 2; i++) {
        const uint64_t stride_a = dms_abs_i64(space->operands[i].strides[a]);
        const uint64_t stride_b = dms_abs_i64(space->operands[i].strides[b]);
        if (stride_a != stride_b)
            return stride_a > stride_b;
    }
    return false;
}

/* Drops the dimensions of size 1 and sorts the others, in one pass over the operands: there may be a million. */
static void arrange(dms_space *space)
{
    uint32_t order[DMLSPLIT_MAX_RANK], count = 0;
    for (uint32_t d = 0; d < space->rank; d++) {
        if (!is_loop(space, d))
            continue;
        uint32_t at = count++;
        for (; at > 0 && goes_before(space, d, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    move_dimensions(space, order, count);
}

/* True if, in every operand, one step of outer goes as far as all the steps of inner. The axis can be outer, which
 * scales all lengths; it cannot be inner, because the lengths of the parts differ. */
static bool continues(const dms_space *space, uint32_t outer, uint32_t inner)
{
    for (uint64_t i = 0; i < space->operand_count; i++) {
        const dms_operand *operand = &space->operands[i];
        int64_t span;
        DMS_COUNT_STEPS(1);
        if (outer == space->axis && operand->length == 1)
            continue;
        if (!dms_mul_i64(operand->strides[inner], space->sizes[inner], &span) || span != operand->strides[outer])
            return false;
    }
    return true;
}

/* Merges inner into outer; inner is left with size 1. */
static void merge(dms_space *space, uint32_t outer, uint32_t inner)
{
    DMS_COUNT_STEPS(space->operand_count);
    (void)note(space, DMS_MERGE, outer, inner);
    for (uint64_t i = 0; i < space->operand_count; i++) {
        dms_operand *operand = &space->operands[i];
        operand->strides[outer] = operand->strides[inner];
        if (outer == space->axis)
            operand->length *= space->sizes[inner];
    }
    space->sizes[outer] *= space->sizes[inner];
    space->sizes[inner] = 1;
}

/* Merges all pairs that can be merged, in any order of dimensions, so that a transposed tensor folds as well as a
 * packed one. */
static void merge_all(dms_space *space)
{
    for (uint32_t outer = 0; outer < space->rank; outer++)
        for (uint32_t inner = 0; inner < space->rank; inner++)
            if (is_loop(space, outer) && is_loop(space, inner) && inner != outer && inner != space->axis && continues(space, outer, inner)) {
                merge(space, outer, inner);
                inner = UINT32_MAX;     /* start again: an earlier dimension may continue the merged one */
            }
    arrange(space);
}

/* Makes the first operand's strides positive by reversing each dimension with a negative one in all operands, which
 * changes no address. The axis is not reversed, because its direction is the order of the parts. */
static void reverse_negative(dms_space *space)
{
    for (uint32_t d = 0; d < space->rank; d++) {
        if (d == space->axis || space->operands[0].strides[d] >= 0)
            continue;
        (void)note(space, DMS_REVERSE, d, 0);
        for (uint64_t i = 0; i < space->operand_count; i++) {
            dms_operand *operand = &space->operands[i];
            operand->offset += (int64_t)(space->sizes[d] - 1) * operand->strides[d];
            operand->strides[d] = -operand->strides[d];
        }
    }
}

static bool is_contiguous(const dms_space *space, uint32_t dimension)
{
    for (uint64_t i = 0; i < space->operand_count; i++) {
        DMS_COUNT_STEPS(1);
        if (space->operands[i].strides[dimension] != (int64_t)space->element_size)
            return false;
    }
    return true;
}

static void absorb_contiguous(dms_space *space)
{
    for (uint32_t d = 0; d < space->rank; d++)
        if (d != space->axis && is_contiguous(space, d)) {
            (void)note(space, DMS_ABSORB, d, 0);
            space->element_size *= space->sizes[d];
            space->sizes[d] = 1;
            arrange(space);
            return;                     /* there is only one: a second would have been merged with it */
        }
}

/* Doubles the element size while all pieces have an even number of contiguous elements, up to the size that kernels
 * move at once. So a FLOAT64 stored as a pair of UINT32 is copied as 8 bytes. */
static void widen_axis(dms_space *space)
{
    enum { WIDEST = 16 };
    uint64_t odd = 0;                   /* OR of all lengths */
    const bool is_power = (space->element_size & (space->element_size - 1)) == 0;
    if (!is_power || space->axis == DMS_NO_AXIS || !is_contiguous(space, space->axis))
        return;
    for (uint64_t i = 0; i < space->operand_count; i++)
        odd |= space->operands[i].length;
    for (; odd % 2 == 0 && space->element_size < WIDEST; odd /= 2) {
        (void)note(space, DMS_WIDEN, 0, 0);
        space->element_size *= 2;
        DMS_COUNT_STEPS(space->operand_count);
        for (uint64_t i = 0; i < space->operand_count; i++) {
            space->operands[i].length /= 2;
            space->operands[i].strides[space->axis] = (int64_t)space->element_size;
        }
    }
}

void dms_fold(dms_space *space)
{
    merge_all(space);
    reverse_negative(space);
    merge_all(space);                   /* with equal signs more pairs may be mergeable */
    absorb_contiguous(space);
    widen_axis(space);
}
