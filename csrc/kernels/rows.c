/* rows.c - which rows are cut into contiguous pieces that are copied together (rows_template.h) */
#include "../dms_channels.h"

#if DMS_SSSE3 || DMS_NEON                /* or nobody asks */

/* Above this many parts, a row writes to (or reads from) more pages than the second-level TLB of current cores has entries. */
#define MOST_PARTS 1024

/* Pieces that are shorter on average cost more to find than to copy. */
#define SHORTEST_PIECE 16

const char *dms_refuse_rows(const dmlsplit_plan *plan)
{
    const dms_space *space = &plan->space;
    if (plan->rows < 2)
        return "there is one row only";
    if (plan->part_count < 2)
        return "there is one part only";
    if (plan->part_count > MOST_PARTS)
        return "there are more than 1024 parts";
    if (space->operands[0].strides[space->axis - 1] == 0)
        return "rows are repeated: one part after the other stays in a register or the first-level cache";
    for (uint64_t i = 0; i < space->operand_count; i++) {
        const dms_operand *operand = &space->operands[i];
        if (operand->length > 1 && operand->strides[space->axis] != (int64_t)space->element_size)
            return "pieces of a row are not contiguous";
    }
    if (space->operands[0].length * space->element_size < SHORTEST_PIECE * dms_full_parts(plan))
        return "pieces of a row are shorter than 16 bytes on average";
    return NULL;
}

#endif
