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

static DMS_ALWAYS_INLINE void turn_elements(const dms_tile *tile, size_t size)
{
    for (size_t j = 0; j < tile->columns; j++) {
        char *to = tile->to[j] + tile->to_offset;
        const char *from = tile->staged + j * size;
        for (size_t i = 0; i < tile->rows; i++)
            memcpy(to + i * size, from + i * DMS_STAGED_PITCH, size);
    }
}

static void turn(dms_tile *tile)
{
    for (size_t i = 0; i < tile->rows; i++)
        dms_copy_short(tile->staged + i * DMS_STAGED_PITCH, tile->from[i] + tile->from_offset, tile->columns * tile->element_size);
    switch (tile->element_size) {
    case 1: turn_elements(tile, 1); break;
    case 2: turn_elements(tile, 2); break;
    case 4: turn_elements(tile, 4); break;
    case 8: turn_elements(tile, 8); break;
    default: turn_elements(tile, 16); break;
    }
    tile->to_offset += (int64_t)(tile->rows * tile->element_size);
}

static const dms_turner plain_turner = {turn, 0};

/* The first tile of these columns: to and to_offset say where they go. */
static void start_columns(dms_tile *tile)
{
    const bool staged = tile->strategy == DMS_STAGED_LINES;
    const size_t pitch = staged ? DMS_STAGED_ROWS * tile->element_size + DMS_LINE : DMS_LINE;
    for (size_t j = 0; dms_is_carried(tile) && j < tile->columns; j++) {
        tile->carries[j] = dms_start_lines(tile->to[j] + tile->to_offset, tile->turned + j * pitch);
        if (staged)
            tile->to[j] = tile->carries[j].bytes + tile->carries[j].fill;
    }
    if (dms_is_carried(tile))
        tile->to_offset = 0;
}

/* Stores what is left of the columns. */
static void finish_columns(const dms_tile *tile)
{
    for (size_t j = 0; dms_is_carried(tile) && j < tile->columns; j++)
        dms_finish_lines(&tile->carries[j]);
}

static bool is_element(size_t size)
{
    return size <= 16 && (size & (size - 1)) == 0;
}

static size_t smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* What matters of where source and target lie. Rows are aliased where they are a multiple of 2 KB apart, as their lines share few sets of the
 * first-level cache. target_places: the bits that the addresses of all rows of the target have between them. */
typedef struct sides {
    bool source_aliased, target_aliased;
    uintptr_t target_places;
} sides;

static bool are_aliased(const char *first, const char *second)
{
    enum { PERIOD = 2048 };
    return ((uintptr_t)second - (uintptr_t)first) % PERIOD == 0;
}

/* Squares are carried on by words: what is streamed to odd addresses is staged. So are elements of 4 bytes and more whose rows are aliased on both
 * sides, where lines would be evicted between the squares that need them: 512 x 512 of 4 bytes took 1.9 times memcpy's time in place of 4.3. */
static dms_strategy choose_strategy(const dms_turner *turner, const sides *s, size_t element_size, const dms_stores *stores)
{
    const bool aliased = s->source_aliased && s->target_aliased;
    if (turner->square == 0)
        return DMS_STAGED;
    if (!dms_is_streamed(stores))
        return aliased && element_size >= 4 ? DMS_STAGED : DMS_SQUARES;
    if (turner->square < DMS_LINE || s->target_places % 2 != 0)
        return DMS_STAGED_LINES;
    return s->target_places % DMS_LINE == 0 ? DMS_SQUARES_STREAMED : DMS_SQUARES_LINES;
}

/* Which tiles to turn one after the other. Squares lead along the side whose rows share sets, line after line of few rows: along the source, with
 * one square's rows of it as far as pointers reach; along the target, with one line of many rows of the source; along both, with a few
 * lines. 1,024 columns of 4 bytes took 1.1 times memcpy's time in place of 1.6 along the other side; a join of these 1.3 in place of 1.8. */
static void start_tiles(dms_tile *tile, const dms_turner *turner, size_t element_size, const sides *s, const dms_stores *stores)
{
    enum { WIDE = 4096, STREAMED = 2048, MEDIUM = 512 };
    size_t bytes = DMS_STAGED_BYTES;
    tile->turn = turner->turn;
    tile->element_size = element_size;
    tile->strategy = choose_strategy(turner, s, element_size, stores);
    tile->claimed = stores->regime == DMS_CLAIMED;
    tile->height = DMS_STAGED_ROWS;
    tile->next = 0;
    if (!dms_is_staged(tile)) {
        bytes = tile->strategy != DMS_SQUARES ? STREAMED : !s->target_aliased ? WIDE : s->source_aliased ? MEDIUM : DMS_LINE;
        tile->height = bytes > DMS_LINE ? DMS_LINE / element_size : DMS_TILE_MOST;
    }
    for (size_t i = 0; dms_is_staged(tile) && i < DMS_STAGED_ROWS; i++)
        tile->staged_rows[i] = tile->staged + i * DMS_STAGED_PITCH;
    tile->width = smaller(bytes / element_size, dms_is_carried(tile) ? DMS_MOST_CARRIED : DMS_TILE_MOST);
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
static void turn_matrix(dms_tile *tile, const dms_loop *rows, const dms_loop *columns, char *target, const char *source)
{
    const size_t size = tile->element_size;
    /* The first tile ends where a line of the target does. */
    const size_t head = tile->strategy > DMS_SQUARES ? 0 : (uintptr_t)(0 - (uintptr_t)target) % DMS_LINE / size;
    tile->next = (int64_t)smaller(rows->size, tile->height) * rows->source_stride;
    for (size_t i = 0; i < tile->height && i < rows->size; i++)
        tile->from[i] = source + (int64_t)i * rows->source_stride;
    for (uint64_t column = 0; column < columns->size; column += tile->columns) {
        tile->columns = smaller(columns->size - column, tile->width);
        tile->to_offset = 0;
        for (size_t j = 0; j < tile->columns; j++)
            tile->to[j] = target + (int64_t)(column + j) * columns->target_stride;
        start_columns(tile);
        for (uint64_t row = 0; row < rows->size; row += tile->rows) {
            tile->rows = smaller(rows->size - row, row == 0 && head > 0 ? head : tile->height);
            tile->from_offset = (int64_t)row * rows->source_stride + (int64_t)(column * size);
            tile->turn(tile);
        }
        finish_columns(tile);
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

static sides sides_of_matrix(const dms_matrix *m, const char *target, const char *source)
{
    sides s;
    s.target_places = (uintptr_t)target | (uintptr_t)m->columns->target_stride;
    for (uint32_t d = 0; d < m->count; d++)
        s.target_places |= (uintptr_t)m->around[d].target_stride;
    s.source_aliased = are_aliased(source, source + m->rows->source_stride);
    s.target_aliased = are_aliased(target, target + m->columns->target_stride);
    return s;
}

void dms_transpose(const dms_nest *nest, char *target, const char *source, const dms_turner *turner)
{
    const dms_matrix m = dms_find_matrix(nest);
    const sides s = sides_of_matrix(&m, target, source);
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_tile tile;
    start_tiles(&tile, turner, nest->run, &s, &nest->stores);
    dms_first(m.count, index);
    do
        turn_matrix(&tile, m.rows, m.columns, target, source);
    while (dms_next(m.around, m.count, index, &target, &source));
}

const char *dms_accept_transpose(const dms_nest *nest)
{
    return dms_refuse_transpose(nest);
}

void dms_run_transpose(const dms_nest *nest, char *target, const char *source)
{
    dms_transpose(nest, target, source, &plain_turner);
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

/* Rows that follow each other in the whole and in every part. */
typedef struct stretch {
    const dmlsplit_plan *plan;
    const dms_buffers *buffers;
    uint64_t index[DMLSPLIT_MAX_RANK];  /* of the first one */
    uint64_t rows;
    char *whole;                        /* its first element */
    int64_t step;                       /* bytes to the next one in the whole */
} stretch;

/* The next part that is not empty, from *part on, at the first row; NULL: there is none. */
static char *next_part(const stretch *s, uint64_t *part)
{
    while (*part < s->plan->part_count && s->plan->parts[*part].shape == NULL)
        ++*part;
    if (*part == s->plan->part_count)
        return NULL;
    const dms_operand *operand = s->plan->parts[*part].shape->operand;
    return dms_part_base(s->buffers, (*part)++) + operand->offset + dms_row_offset(&s->plan->space, operand, s->index);
}

/* Looks at all parts only where it matters whether they are aligned. */
static sides sides_of_columns(const stretch *s, bool split, bool streamed)
{
    uint64_t part = 0;
    const char *const first = next_part(s, &part), *at = next_part(s, &part);
    const bool whole_aliased = are_aliased(s->whole, s->whole + s->step), parts_aliased = at != NULL && are_aliased(first, at);
    sides found;
    found.source_aliased = split ? whole_aliased : parts_aliased;
    found.target_aliased = split ? parts_aliased : whole_aliased;
    found.target_places = split ? (uintptr_t)first : (uintptr_t)s->whole | (uintptr_t)s->step;
    for (; split && streamed && at != NULL; at = next_part(s, &part))
        found.target_places |= (uintptr_t)at;
    return found;
}

/* A part is a row of the target: as many as a tile has columns, down all rows; then the next ones. */
static void split_columns(dms_tile *tile, const stretch *s)
{
    const size_t size = tile->element_size;
    char *at;
    uint64_t part = 0, column = 0;
    for (size_t i = 0; i < tile->height && i < s->rows; i++)
        tile->from[i] = s->whole + (int64_t)i * s->step;
    tile->next = (int64_t)tile->height * s->step;
    for (;; column += tile->columns) {
        tile->columns = 0;
        while (tile->columns < tile->width && (at = next_part(s, &part)) != NULL)
            tile->to[tile->columns++] = at;
        if (tile->columns == 0)
            return;
        tile->to_offset = 0;
        start_columns(tile);
        for (uint64_t row = 0; row < s->rows; row += tile->rows) {
            tile->rows = smaller(s->rows - row, tile->height);
            tile->from_offset = (int64_t)row * s->step + (int64_t)(column * size);
            tile->turn(tile);
        }
        finish_columns(tile);
    }
}

/* The next parts as rows of a tile. Returns whether there are any. */
static bool take_parts(dms_tile *tile, const stretch *s, uint64_t *part)
{
    const char *at;
    size_t rows = 0;
    while (rows < tile->height && (at = next_part(s, part)) != NULL)
        tile->from[rows++] = at;
    if (rows > 0)                       /* else those of the last tile count still */
        tile->rows = rows;
    return rows > 0;
}

/* A part is a row of the source: as many as a tile has rows, along all of their elements; then the next ones. */
static void join_columns(dms_tile *tile, const stretch *s)
{
    const size_t size = tile->element_size;
    int64_t place = 0;
    tile->next = (int64_t)(tile->width * size);
    for (size_t j = 0; j < tile->width && j < s->rows; j++)
        tile->to[j] = s->whole + (int64_t)j * s->step;
    for (uint64_t part = 0; take_parts(tile, s, &part); place += (int64_t)(tile->rows * size))
        for (uint64_t row = 0; row < s->rows; row += tile->columns) {
            tile->columns = smaller(s->rows - row, tile->width);
            tile->from_offset = (int64_t)(row * size);
            tile->to_offset = (int64_t)row * s->step + place;
            tile->turn(tile);
        }
}

/* The same, but all parts for as many elements as a tile has columns, so that what rows of the whole have of a line can be carried on. */
static void join_columns_carried(dms_tile *tile, const stretch *s)
{
    const size_t size = tile->element_size;
    tile->next = (int64_t)(tile->width * size);
    for (uint64_t row = 0; row < s->rows; row += tile->columns) {
        tile->columns = smaller(s->rows - row, tile->width);
        tile->from_offset = (int64_t)(row * size);
        tile->to_offset = 0;
        for (size_t j = 0; j < tile->columns; j++)
            tile->to[j] = s->whole + (int64_t)(row + j) * s->step;
        start_columns(tile);
        for (uint64_t part = 0; take_parts(tile, s, &part);)
            tile->turn(tile);
        finish_columns(tile);
    }
}

void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, const dms_turner *turner)
{
    const dms_space *space = &plan->space;
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    stretch s;
    dms_tile tile;
    s.plan = plan;
    s.buffers = buffers;
    s.step = space->operands[0].strides[space->axis - 1];
    for (uint64_t row = first; row < last; row += s.rows) {
        dms_row_index(space, row, s.index);
        s.rows = space->sizes[space->axis - 1] - s.index[space->axis - 1];
        if (s.rows > last - row)
            s.rows = last - row;
        s.whole = (char *)buffers->whole + space->operands[0].offset + dms_row_offset(space, &space->operands[0], s.index);
        const sides found = sides_of_columns(&s, split, dms_is_streamed(&plan->turns));
        start_tiles(&tile, turner, (size_t)space->element_size, &found, &plan->turns);
        if (split)
            split_columns(&tile, &s);
        else if (dms_is_carried(&tile))
            join_columns_carried(&tile, &s);
        else
            join_columns(&tile, &s);
    }
}

const char *dms_accept_columns(const dmlsplit_plan *plan)
{
    return dms_refuse_columns(plan);
}

void dms_run_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    dms_transpose_columns(plan, buffers, first, last, &plain_turner);
}
