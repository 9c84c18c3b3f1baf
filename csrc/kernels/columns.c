/* columns.c - parts of one element per row: a matrix that is transposed tile by tile (transpose.c), with listed rows
 * on one side */
#include "../dms_channels.h"
#include "../dms_transpose.h"

const char *dms_can_columns(const dmlsplit_plan *plan)
{
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
    return NULL;
}

/* Returns the parts as rows of the transposed matrix, or of its source. The distances between them are needed only
 * for streaming. */
static dms_side list_parts(const dms_stretch *s, const dms_stores *stores)
{
    dms_side side = {s->plan->space.operands[0].length, NULL, 0, s, 0, 0, 0};
    dms_stretch_part found;
    uint64_t part = 0;
    while ((side.begin == NULL || dms_is_streamed(stores)) && dms_next_part(s, &part, &found)) {
        side.begin = side.begin == NULL ? found.base : side.begin;
        side.distance_bits |= (uintptr_t)found.base - (uintptr_t)side.begin;
    }
    return side;
}

void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, const dms_transposer *transposer)
{
    const dms_stores *const stores = &plan->stores[DMS_TRANSPOSE];
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    dms_stretch s;
    while (dms_next_stretch(&s, plan, buffers, &first, last)) {
        dms_side parts = list_parts(&s, stores), rows = dms_space_out(s.whole, s.stride, s.rows);
        dms_transpose(transposer, (size_t)plan->space.element_size, split ? &rows : &parts, split ? &parts : &rows, stores, NULL, 0);
    }
}
