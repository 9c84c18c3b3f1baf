/* rows.c - rows that are cut into contiguous pieces, on any machine */
#include "../dms_channels.h"

/* Above this many parts, a row writes to (or reads from) more pages than the second-level TLB of current cores has entries. */
#define MOST_PARTS 1024

/* Pieces that are shorter on average cost more to find than to copy. */
#define SHORTEST_PIECE 16

/* Below this many bytes a call of memcpy costs more than the copy. */
#define SHORTEST_CALL 64

/* All parts advance together, so that the whole is read (or written) once and in order. */

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

static void copy_piece(char *to, const char *from, size_t size)
{
    if (size < SHORTEST_CALL)
        dms_copy_short(to, from, size);
    else
        memcpy(to, from, size);
}

void dms_run_rows(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    const dms_space *space = &plan->space;
    const dms_operand *whole = &space->operands[0];
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_row_index(space, first, index);
    for (uint64_t row = first; row < last; row++) {
        char *whole_row = (char *)buffers->whole + dms_row_offset(space, whole, index);
        const dms_shape *shape = NULL;
        int64_t offset = 0;
        size_t size = 0;
        for (uint64_t i = 0; i < plan->part_count; i++) {
            const dms_part *part = &plan->parts[i];
            if (part->shape == NULL)
                continue;
            if (part->shape != shape) {
                shape = part->shape;
                offset = shape->operand->offset + dms_row_offset(space, shape->operand, index);
                size = (size_t)(shape->operand->length * space->element_size);
            }
            char *in_part = dms_part_base(buffers, i) + offset;
            char *in_whole = whole_row + part->place;
            if (plan->direction == DMLSPLIT_SPLIT)
                copy_piece(in_part, in_whole, size);
            else
                copy_piece(in_whole, in_part, size);
        }
        dms_next_row(space, index);
    }
}
