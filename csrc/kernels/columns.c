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

/* The first row of the next part; NULL: there is none. */
static char *next_column(const dms_stretch *s, uint64_t *part)
{
    dms_stretch_part found;
    return dms_next_part(s, part, &found) ? found.base : NULL;
}

/* Looks at all parts only where it matters whether they are alike. */
static dms_sides sides_of_columns(const dms_stretch *s, bool split, bool streamed)
{
    dms_sides found = {(uintptr_t)s->whole, (uintptr_t)s->step, split ? (uintptr_t)s->step : 0};
    uint64_t part = 0;
    if (!split)
        return found;
    found.first = (uintptr_t)next_column(s, &part);
    found.apart = 0;
    for (const char *at; streamed && (at = next_column(s, &part)) != NULL;)
        found.apart |= (uintptr_t)at - found.first;
    return found;
}

/* A part is a row of the target: as many as a tile has columns, down all rows; then the next ones. */
static void split_columns(dms_tile *tile, const dms_stretch *s)
{
    char *at;
    uint64_t part = 0, column = 0;
    dms_start_rows(tile, s->rows, s->step, s->whole);
    for (;; column += tile->columns) {
        tile->columns = 0;
        while (tile->columns < tile->width && (at = next_column(s, &part)) != NULL)
            tile->to[tile->columns++] = at;
        if (tile->columns == 0)
            return;
        dms_turn_down(tile, s->rows, s->step, column);
    }
}

/* The next parts as rows of a tile. Returns whether there are any. */
static bool take_parts(dms_tile *tile, const dms_stretch *s, uint64_t *part)
{
    const char *at;
    const size_t most = dms_next_rows(tile, tile->height, *part == 0);
    size_t rows = 0;
    while (rows < most && (at = next_column(s, part)) != NULL)
        tile->from[rows++] = at;
    if (rows > 0)                       /* else those of the last tile count still */
        tile->rows = rows;
    return rows > 0;
}

/* The rows of the whole that elements of these parts go to, from one on. */
static void take_rows(dms_tile *tile, const dms_stretch *s, uint64_t row, int64_t place)
{
    tile->columns = dms_smaller(s->rows - row, tile->width);
    tile->from_offset = (int64_t)(row * tile->element_size);
    tile->to_offset = place;
    for (size_t j = 0; j < tile->columns; j++)
        tile->to[j] = s->whole + (int64_t)(row + j) * s->step;
}

/* A part is a row of the source: as many as a tile has rows, along all of their elements; then the next ones. Or, so that what rows of the whole have
 * of a line can be carried on, all parts for as many elements as a tile has columns. */
static void join_columns(dms_tile *tile, const dms_stretch *s)
{
    int64_t place = 0;
    tile->next = (int64_t)(tile->width * tile->element_size);
    for (uint64_t part = 0; !dms_is_carried(tile) && take_parts(tile, s, &part); place += (int64_t)(tile->rows * tile->element_size))
        for (uint64_t row = 0; row < s->rows; row += tile->columns) {
            take_rows(tile, s, row, place);
            tile->turn(tile);
        }
    for (uint64_t row = 0; dms_is_carried(tile) && row < s->rows; row += tile->columns) {
        take_rows(tile, s, row, 0);
        dms_start_columns(tile);
        for (uint64_t part = 0; take_parts(tile, s, &part);)
            tile->turn(tile);
        dms_finish_columns(tile);
    }
}

/* Past the caches: short rows of the whole without gaps between them are whole lines together, by way of memory that is cached. */
static bool is_gathered(const dmlsplit_plan *plan, const dms_stretch *s, const dms_turner *turner)
{
    enum { SHORT = 512 };
    return dms_is_streamed(&plan->turns) && turner->vector > 0 && s->step <= SHORT &&
           s->step == (int64_t)(plan->space.operands[0].length * plan->space.element_size);
}

static void gather_columns(dms_tile *tile, const dms_stretch *s, const dms_turner *turner)
{
    const size_t step = (size_t)s->step;
    uint64_t part = 0;
    dms_lines lines = dms_start_lines(s->whole, tile->turned);
    tile->sink = DMS_STORED;
    tile->height = DMS_TILE_MOST;
    tile->head = 0;
    tile->width = dms_smaller(DMS_TILE_MOST, DMS_MOST_TURNED / 4 / step);
    tile->next = (int64_t)(tile->width * tile->element_size);
    (void)take_parts(tile, s, &part);
    for (uint64_t row = 0; row < s->rows; row += tile->columns) {
        take_rows(tile, s, row, 0);
        for (size_t j = 0; j < tile->columns; j++)
            tile->to[j] = lines.bytes + lines.fill + j * step;
        tile->turn(tile);
        turner->drain(&lines, tile->columns * step);
    }
    dms_finish_lines(&lines);
}

void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, const dms_turner *turner)
{
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    dms_stretch s;
    dms_tile tile;
    while (dms_next_stretch(&s, plan, buffers, &first, last)) {
        const dms_sides found = sides_of_columns(&s, split, dms_is_streamed(&plan->turns));
        dms_start_tiles(&tile, turner, (size_t)plan->space.element_size, split ? s.rows : plan->part_count, &found, &plan->turns);
        if (split)
            split_columns(&tile, &s);
        else if (is_gathered(plan, &s, turner))
            gather_columns(&tile, &s, turner);
        else
            join_columns(&tile, &s);
    }
}

void dms_run_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    dms_transpose_columns(plan, buffers, first, last, &dms_plain_turner);
}
