/* dms_stretch.c - the rows of a plan as stretches that are equally far apart */
#include "dms_kernel.h"

/* Bytes from an operand's base pointer to the first row. */
static int64_t first_row(const dms_stretch *s, const dms_operand *operand)
{
    int64_t offset = operand->offset;
    for (uint32_t d = 0; d < s->plan->space.axis; d++)
        offset += (int64_t)s->index[d] * operand->strides[d];
    return offset;
}

bool dms_next_stretch(dms_stretch *s, const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t *row, uint64_t last)
{
    const dms_space *space = &plan->space;
    const uint32_t line = space->axis - 1;
    uint64_t left = *row;
    if (*row >= last)
        return false;
    s->plan = plan;
    s->buffers = buffers;
    for (uint32_t d = space->axis; d-- > 0; left /= space->sizes[d])
        s->index[d] = left % space->sizes[d];
    s->rows = space->sizes[line] - s->index[line];
    if (s->rows > last - *row)
        s->rows = last - *row;
    s->whole = (char *)buffers->whole + first_row(s, &space->operands[0]);
    s->step = space->operands[0].strides[line];
    *row += s->rows;
    return true;
}

bool dms_next_part(const dms_stretch *s, uint64_t *part, dms_stretch_part *found)
{
    const dmlsplit_plan *plan = s->plan;
    while (*part < plan->part_count && plan->parts[*part].shape == NULL)
        ++*part;
    if (*part == plan->part_count)
        return false;
    const dms_operand *operand = plan->parts[*part].shape->operand;
    found->base = dms_part_base(s->buffers, *part) + first_row(s, operand);
    found->step = operand->strides[plan->space.axis - 1];
    found->size = (size_t)(operand->length * plan->space.element_size);
    found->place = plan->parts[*part].place - plan->space.operands[0].offset;
    ++*part;
    return true;
}
