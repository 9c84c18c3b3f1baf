/* columns.c - parts of one element a row: the columns of a matrix, turned tile by tile as in transpose.c */
#include "../dms_channels.h"
#include "../dms_transpose.h"

const char *dms_refuse_columns(const dmlsplit_plan *plan)
{
    enum { FEW = 8 };
    const dms_space *space = &plan->space;
    const int64_t size = (int64_t)space->element_size;
    if (plan->rows < 2 || space->operands[0].length < 2)
        return "there is one row or one part only";
    if (!dms_is_element((size_t)size))
        return "elements are not of 1, 2, 4, 8 or 16 bytes";
    if (space->operands[0].strides[space->axis] != size)
        return "rows of the whole are not contiguous";
    if (space->operands[0].strides[space->axis - 1] == 0)
        return "rows are repeated: parts are filled";
    for (uint64_t i = 1; i < space->operand_count; i++)
        if (space->operands[i].length != 1 || space->operands[i].strides[space->axis - 1] != size)
            return "parts are not contiguous columns of one element";
    if ((size >= 8 || space->operands[0].length < FEW) && dms_refuse_moves(plan) == NULL)
        return "few elements a row, or of 8 bytes and more: moves are faster";
    return NULL;
}

/* The next parts from *part on, as they lie in the first row. */
static void list_parts(dms_side *side, const dms_stretch *s, uint64_t *part)
{
    dms_stretch_part found;
    size_t count = 0;
    uintptr_t apart = 0;
    for (; count < DMS_TILE_MOST && dms_next_part(s, part, &found); count++) {
        side->at[count] = found.base;
        apart |= (uintptr_t)found.base - (uintptr_t)side->at[0];
    }
    side->count = count;
    side->listed = true;
    side->offset = side->step = 0;
    side->apart = apart;
}

/* Parts are rows of the matrix that is turned, or of its source. */
void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, const dms_turner *turner)
{
    const size_t size = (size_t)plan->space.element_size;
    dms_side parts, rows, *const from = plan->direction == DMLSPLIT_SPLIT ? &rows : &parts, *const to = from == &rows ? &parts : &rows;
    dms_stretch s;
    dms_tile tile;
    while (dms_next_stretch(&s, plan, buffers, &first, last)) {
        uint64_t part = 0;
        for (list_parts(&parts, &s, &part); parts.count > 0; list_parts(&parts, &s, &part)) {
            dms_space_out(&rows, s.whole, s.step, s.rows);
            dms_start_tiles(&tile, turner, size, from, to, &plan->turns);
            dms_turn_tiles(&tile, from, to);
            s.whole += parts.count * size;
        }
    }
}
