/* dms_fold.c - fewer loops for the same bytes */
#include "dms_internal.h"

#include "dms_checked.h"

static void remove_dimension(dms_space *space, uint32_t dimension)
{
    for (uint32_t d = dimension; d + 1 < space->rank; d++)
        space->sizes[d] = space->sizes[d + 1];
    for (uint64_t i = 0; i < space->operand_count; i++) {
        int64_t *strides = space->operands[i].strides;
        for (uint32_t d = dimension; d + 1 < space->rank; d++)
            strides[d] = strides[d + 1];
    }
    space->rank--;
    if (space->axis != DMS_NO_AXIS && space->axis > dimension)
        space->axis--;
}

static void drop_ones(dms_space *space)
{
    for (uint32_t d = space->rank; d-- > 0;)
        if (d != space->axis && space->sizes[d] == 1)
            remove_dimension(space, d);
}

/* True where, in every operand, one step of outer goes as far as all the steps of inner. The axis can be outer, which scales all lengths;
 * it cannot be inner, because the operands' parts of it do not fill it. */
static bool continues(const dms_space *space, uint32_t outer, uint32_t inner)
{
    if (inner == space->axis)
        return false;
    for (uint64_t i = 0; i < space->operand_count; i++) {
        const dms_operand *operand = &space->operands[i];
        int64_t span;
        if (outer == space->axis && operand->length == 1)
            continue;
        if (!dms_mul_i64(operand->strides[inner], space->sizes[inner], &span) || span != operand->strides[outer])
            return false;
    }
    return true;
}

static void merge(dms_space *space, uint32_t outer, uint32_t inner)
{
    for (uint64_t i = 0; i < space->operand_count; i++) {
        dms_operand *operand = &space->operands[i];
        operand->strides[outer] = operand->strides[inner];
        if (outer == space->axis)
            operand->length *= space->sizes[inner];
    }
    space->sizes[outer] *= space->sizes[inner];
    remove_dimension(space, inner);
}

static bool merge_one_pair(dms_space *space)
{
    for (uint32_t outer = 0; outer < space->rank; outer++)
        for (uint32_t inner = 0; inner < space->rank; inner++)
            if (outer != inner && continues(space, outer, inner)) {
                merge(space, outer, inner);
                return true;
            }
    return false;
}

/* Any pair may merge, wherever its dimensions stand: a transposed tensor folds as well as a packed one. */
static void merge_all(dms_space *space)
{
    while (merge_one_pair(space))
        ;
}

/* Walking a dimension backwards in every operand changes no address. Not for the axis, whose direction is the order of the parts. */
static void turn_signs(dms_space *space)
{
    for (uint32_t d = 0; d < space->rank; d++) {
        if (d == space->axis || space->operands[0].strides[d] >= 0)
            continue;
        for (uint64_t i = 0; i < space->operand_count; i++) {
            dms_operand *operand = &space->operands[i];
            operand->offset += (int64_t)(space->sizes[d] - 1) * operand->strides[d];
            operand->strides[d] = -operand->strides[d];
        }
    }
}

static bool is_contiguous(const dms_space *space, uint32_t dimension)
{
    for (uint64_t i = 0; i < space->operand_count; i++)
        if (space->operands[i].strides[dimension] != (int64_t)space->element_size)
            return false;
    return true;
}

static void absorb_contiguous(dms_space *space)
{
    for (uint32_t d = 0; d < space->rank; d++)
        if (d != space->axis && is_contiguous(space, d)) {
            space->element_size *= space->sizes[d];
            remove_dimension(space, d);
            return;                     /* a second one would have been merged with the first */
        }
}

/* Whether dimension a belongs before (outside of) b. The second operand decides between equal strides of the first. */
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

static void swap_dimensions(dms_space *space, uint32_t a, uint32_t b)
{
    const uint64_t size = space->sizes[a];
    space->sizes[a] = space->sizes[b];
    space->sizes[b] = size;
    for (uint64_t i = 0; i < space->operand_count; i++) {
        int64_t *strides = space->operands[i].strides;
        const int64_t stride = strides[a];
        strides[a] = strides[b];
        strides[b] = stride;
    }
    if (space->axis == a)
        space->axis = b;
    else if (space->axis == b)
        space->axis = a;
}

static void sort_dimensions(dms_space *space)
{
    for (uint32_t i = 1; i < space->rank; i++)
        for (uint32_t d = i; d > 0 && goes_before(space, d, d - 1); d--)
            swap_dimensions(space, d - 1, d);
}

void dms_fold(dms_space *space)
{
    drop_ones(space);
    merge_all(space);
    turn_signs(space);
    merge_all(space);                   /* equal signs may let more pairs continue each other */
    absorb_contiguous(space);
    sort_dimensions(space);
}
