/* dms_stretch.c - the rows of a plan, stretch by stretch */
#include "dms_kernel.h"

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
    s->whole = (char *)buffers->whole + dms_first_row(s, &space->operands[0]);
    s->stride = space->operands[0].strides[line];
    *row += s->rows;
    return true;
}
