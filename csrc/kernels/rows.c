/* rows.c - which plans cut rows into contiguous pieces, and which of those rows_template.h copies */
#include "../dms_channels.h"

const char *dms_can_pieces(const dmlsplit_plan *plan)
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

const char *dms_can_rows(const dmlsplit_plan *plan)
{
    return plan->part_count < 2 ? "there is one part only" : dms_can_pieces(plan);
}
