/* transpose.c - matrices turned tile by tile: what all instruction sets share, and tiles without any
 *
 * Each tile is read row by row and written column by column, so that every line of memory that it touches is used whole while it is cached:
 *
 *     source rows                staged tile          target rows
 *     from[0]  abcd....          abcd                 to[0]  aeim....
 *     from[1]  efgh....    ->    efgh        ->       to[1]  bfjn....
 *     from[2]  ijkl....          ijkl                 to[2]  cgko....
 */
#include "../dms_channels.h"
#include "../dms_transpose.h"

void dms_stage(dms_tile *tile)
{
    const size_t bytes = tile->columns * tile->element_size;
    for (size_t i = 0; i < tile->rows; i++) {
        char *to = tile->staged + i * DMS_TILE_PITCH;
        if (bytes == DMS_TILE_BYTES)
            memcpy(to, tile->from[i], DMS_TILE_BYTES);
        else
            dms_copy_short(to, tile->from[i], bytes);
    }
}

static DMS_ALWAYS_INLINE void turn_elements(const dms_tile *tile, size_t size)
{
    for (size_t j = 0; j < tile->columns; j++) {
        char *to = tile->to[j];
        const char *from = tile->staged + j * size;
        for (size_t i = 0; i < tile->rows; i++)
            memcpy(to + i * size, from + i * DMS_TILE_PITCH, size);
    }
}

static void turn(dms_tile *tile)
{
    dms_stage(tile);
    switch (tile->element_size) {
    case 1: turn_elements(tile, 1); break;
    case 2: turn_elements(tile, 2); break;
    case 4: turn_elements(tile, 4); break;
    case 8: turn_elements(tile, 8); break;
    default: turn_elements(tile, 16); break;
    }
}

static bool is_element(size_t size)
{
    return size <= 16 && (size & (size - 1)) == 0;
}

static size_t smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* ---- Nests ---- */

/* The loop that is contiguous in the source; nest->rank: none. */
static uint32_t source_loop(const dms_nest *nest)
{
    uint32_t d = 0;
    while (d < nest->rank && nest->loops[d].source_stride != (int64_t)nest->run)
        d++;
    return d;
}

const char *dms_refuse_transpose(const dms_nest *nest)
{
    enum { LEAST = 256 };               /* elements: below, finding the tiles costs more than they save */
    if (!is_element(nest->run))
        return "elements are not of 1, 2, 4, 8 or 16 bytes";
    if (nest->rank < 2 || nest->loops[nest->rank - 1].target_stride != (int64_t)nest->run)
        return "no loop is contiguous in the target";
    const uint32_t columns = source_loop(nest);
    if (columns + 1 >= nest->rank)
        return "no other loop is contiguous in the source";
    if (nest->loops[columns].size * nest->loops[nest->rank - 1].size < LEAST)
        return "the matrix that is turned has less than 256 elements";
    return NULL;
}

/* rows: contiguous in the target, columns: in the source. */
static void turn_matrix(dms_tile *tile, const dms_loop *rows, const dms_loop *columns, char *target, const char *source, dms_turn *turn_tile,
                        bool stream)
{
    const size_t size = tile->element_size, width = DMS_TILE_BYTES / size;
    const size_t shift = (uintptr_t)target % DMS_LINE;
    tile->next = (int64_t)smaller(rows->size, DMS_TILE_ROWS) * rows->source_stride;
    const bool streamed = stream && columns->target_stride % DMS_LINE == 0 && shift % size == 0;
    for (uint64_t column = 0; column < columns->size; column += tile->columns) {
        tile->columns = smaller(columns->size - column, width);
        for (uint64_t row = 0; row < rows->size; row += tile->rows) {
            /* The first tile ends where a line of the target does. */
            tile->rows = smaller(rows->size - row, row == 0 ? DMS_TILE_ROWS - shift / size % DMS_TILE_ROWS : DMS_TILE_ROWS);
            tile->streamed = streamed && (row > 0 || shift == 0);
            const char *from = source + (int64_t)row * rows->source_stride + (int64_t)(column * size);
            char *to = target + (int64_t)column * columns->target_stride + (int64_t)(row * size);
            for (size_t i = 0; i < tile->rows; i++)
                tile->from[i] = from + (int64_t)i * rows->source_stride;
            for (size_t j = 0; j < tile->columns; j++)
                tile->to[j] = to + (int64_t)j * columns->target_stride;
            turn_tile(tile);
        }
    }
}

dms_matrix dms_find_matrix(const dms_nest *nest)
{
    const uint32_t columns = source_loop(nest);
    dms_matrix m;
    m.rows = &nest->loops[nest->rank - 1];
    m.columns = &nest->loops[columns];
    m.count = 0;
    for (uint32_t d = 0; d + 1 < nest->rank; d++)
        if (d != columns)
            m.around[m.count++] = nest->loops[d];
    return m;
}

void dms_transpose(const dms_nest *nest, char *target, const char *source, dms_turn *turn_tile)
{
    const dms_matrix m = dms_find_matrix(nest);
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_tile tile;
    tile.element_size = nest->run;
    dms_first(m.count, index);
    do
        turn_matrix(&tile, m.rows, m.columns, target, source, turn_tile, nest->stream);
    while (dms_next(m.around, m.count, index, &target, &source));
}

const char *dms_accept_transpose(const dms_nest *nest)
{
    return dms_refuse_transpose(nest);
}

void dms_run_transpose(const dms_nest *nest, char *target, const char *source)
{
    dms_transpose(nest, target, source, turn);
}

/* ---- Columns ---- */

const char *dms_refuse_columns(const dmlsplit_plan *plan)
{
    const dms_space *space = &plan->space;
    const int64_t size = (int64_t)space->element_size;
    if (plan->rows < 2 || space->operands[0].length < 2)
        return "there is one row or one part only";
    if (!is_element((size_t)size))
        return "elements are not of 1, 2, 4, 8 or 16 bytes";
    if (space->operands[0].strides[space->axis] != size)
        return "rows of the whole are not contiguous";
    for (uint64_t i = 1; i < space->operand_count; i++)
        if (space->operands[i].length != 1 || space->operands[i].strides[space->axis - 1] != size)
            return "parts are not contiguous columns of one element";
    if (size >= 8 && dms_refuse_channels(plan) == NULL)
        return "few elements of 8 bytes or more a row: moves are faster";
    return NULL;
}

/* A tile of the rows that follow each other from index on, with the parts [part, part + count), all of one element. */
static void turn_columns(dms_tile *tile, const dmlsplit_plan *plan, char *whole, char *const *parts, size_t count, uint64_t rows, dms_turn *turn_tile)
{
    const dms_space *space = &plan->space;
    const size_t size = tile->element_size;
    const int64_t step = space->operands[0].strides[space->axis - 1];
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    const size_t most = split ? DMS_TILE_ROWS : DMS_TILE_BYTES / size;
    uint64_t row = 0;
    while (row < rows) {
        const size_t some = smaller(rows - row, most);
        for (size_t i = 0; i < some; i++) {
            char *at = whole + (int64_t)(row + i) * step;
            if (split)
                tile->from[i] = at;
            else
                tile->to[i] = at;
        }
        for (size_t i = 0; i < count; i++) {
            char *at = parts[i] + row * size;
            if (split)
                tile->to[i] = at;
            else
                tile->from[i] = at;
        }
        tile->rows = split ? some : count;
        tile->columns = split ? count : some;
        turn_tile(tile);
        row += some;
    }
}

void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, dms_turn *turn_tile)
{
    const dms_space *space = &plan->space;
    const size_t most = plan->direction == DMLSPLIT_SPLIT ? DMS_TILE_BYTES / (size_t)space->element_size : DMS_TILE_ROWS;
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_tile tile;
    tile.element_size = (size_t)space->element_size;
    tile.next = DMS_TILE_BYTES;
    tile.streamed = false;              /* parts begin anywhere */
    for (uint64_t row = first, rows; row < last; row += rows) {
        dms_row_index(space, row, index);
        rows = space->sizes[space->axis - 1] - index[space->axis - 1];
        if (rows > last - row)
            rows = last - row;
        const int64_t in_whole = dms_row_offset(space, &space->operands[0], index);
        for (uint64_t part = 0; part < plan->part_count;) {
            char *parts[DMS_TILE_BYTES];
            size_t count = 0;
            char *whole = NULL;
            for (; part < plan->part_count && count < most; part++) {
                if (plan->parts[part].shape == NULL)
                    continue;
                const dms_operand *operand = plan->parts[part].shape->operand;
                if (count == 0)
                    whole = (char *)buffers->whole + in_whole + plan->parts[part].place;
                parts[count++] = dms_part_base(buffers, part) + operand->offset + dms_row_offset(space, operand, index);
            }
            turn_columns(&tile, plan, whole, parts, count, rows, turn_tile);
        }
    }
}

const char *dms_accept_columns(const dmlsplit_plan *plan)
{
    return dms_refuse_columns(plan);
}

void dms_run_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    dms_transpose_columns(plan, buffers, first, last, turn);
}
