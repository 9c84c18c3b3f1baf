/* rows.c - which rows are cut into contiguous pieces, and which of them are copied together (rows_template.h) */
#include "../dms_channels.h"

const char *dms_refuse_pieces(const dmlsplit_plan *plan)
{
    const dms_space *space = &plan->space;
    if (plan->rows < 2)
        return "there is one row only";
    if (space->operands[0].strides[space->axis - 1] == 0)
        return "rows are repeated: parts are filled";
    for (uint64_t i = 0; i < space->operand_count; i++)
        if (space->operands[i].length > 1 && space->operands[i].strides[space->axis] != (int64_t)space->element_size)
            return "pieces of a row are not contiguous";
    return NULL;
}

/* With more parts, a row writes to (or reads from) more pages than the second-level TLB of current cores has entries; pieces that are shorter on average
 * cost more to find than to copy. */
const char *dms_refuse_rows(const dmlsplit_plan *plan)
{
    enum { MOST_PARTS = 1024, SHORTEST_PIECE = 16 };
    if (plan->part_count < 2)
        return "there is one part only";
    if (plan->part_count > MOST_PARTS)
        return "there are more than 1024 parts";
    if (plan->space.operands[0].length * plan->space.element_size < SHORTEST_PIECE * dms_full_parts(plan))
        return "pieces of a row are shorter than 16 bytes on average";
    return dms_refuse_pieces(plan);
}
