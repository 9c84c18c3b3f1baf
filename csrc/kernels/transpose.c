/* transpose.c - matrices turned tile by tile: what all instruction sets share, and tiles without any
 *
 * Each tile is read row by row and written column by column, so that every line of memory that it touches is used whole while it is cached:
 *
 *     source rows           target rows
 *     from[0]  abcd....     to[0]  aeim....
 *     from[1]  efgh....     to[1]  bfjn....
 *     from[2]  ijkl....     to[2]  cgko....
 */
#include "../dms_checked.h"
#include "../dms_transpose.h"

static DMS_ALWAYS_INLINE void turn_elements(const dms_tile *tile, size_t size)
{
    for (size_t j = 0; j < tile->columns; j++) {
        char *const to = tile->to[j] + tile->to_offset;
        for (size_t i = 0; i < tile->rows; i++)
            memcpy(to + i * size, tile->from[i] + tile->from_offset + (int64_t)(j * size), size);
    }
}

static void turn(dms_tile *tile)
{
    switch (tile->element_size) {
    case 1: turn_elements(tile, 1); break;
    case 2: turn_elements(tile, 2); break;
    case 4: turn_elements(tile, 4); break;
    case 8: turn_elements(tile, 8); break;
    default: turn_elements(tile, 16); break;
    }
    tile->to_offset += (int64_t)(tile->rows * tile->element_size);
}

const dms_turner dms_plain_turner = {turn, NULL, 0};

void dms_start_columns(dms_tile *tile)
{
    const bool collected = tile->sink == DMS_COLLECTED;
    const size_t pitch = collected ? tile->height * tile->element_size + DMS_LINE : DMS_LINE;
    if (!dms_is_carried(tile))
        return;
    for (size_t j = 0; j < tile->columns; j++) {
        tile->carries[j] = dms_start_lines(tile->to[j] + tile->to_offset, tile->turned + j * pitch);
        if (collected)
            tile->to[j] = tile->carries[j].bytes + tile->carries[j].fill;
    }
    tile->to_offset = 0;
}

void dms_finish_columns(const dms_tile *tile)
{
    for (size_t j = 0; dms_is_carried(tile) && j < tile->columns; j++)
        dms_finish_lines(&tile->carries[j]);
}

/* Whether the lines of a square share sets of a first-level cache, in which there is room for 8 each or little more, because rows lie a power of two
 * apart: those that are fetched would drive each other out. */
static bool share_sets(uintptr_t apart, size_t side)
{
    enum { WAY = 4096, WAYS = 8 };      /* bytes after which sets repeat themselves */
    const uintptr_t step = apart & (0 - apart);
    return side * (step < WAY ? step : WAY) > WAYS * WAY;
}

/* Rows of the target that all begin at one place in a line are whole lines after a head; others are carried on, in registers by words. */
static dms_sink choose_sink(const dms_turner *turner, const dms_sides *s, size_t element_size, uint64_t rows, const dms_stores *stores)
{
    enum { SHORT = 4 * DMS_LINE };      /* bytes of a row, most of whose lines would be begun and ended one by one */
    if (turner->vector == 0 || !dms_is_streamed(stores) || rows < SHORT / element_size)
        return DMS_STORED;
    if (s->apart % DMS_LINE == 0 && s->first % element_size == 0)
        return DMS_LINES;
    return turner->vector == DMS_LINE && (s->first | s->apart) % 2 == 0 ? DMS_CARRIED : DMS_COLLECTED;
}

/* A square has a line in each row and column. A tile is a few of them high, which are turned one below the other: what each row of the target gets
 * at once is worth a stream to the CPU. It is narrow, so that rows of the source do no harm that are a power of two apart, and the CPU fetches what
 * follows. Rows of the target that are a power of two apart wait for each other's lines unless they get several at once: squares are stacked, but not of
 * wide elements, which gained by it in a quiet hour and lost in a busy one. Where rows of the source alone are so, they are followed in tiles of one square's
 * height. Measured (Zen 5, DMLSPLIT_MEASURE=0) as multiples of memcpy's time, in place of tiles eight squares high and two wide: 2048 x 2048 of one byte
 * stacked 2.6, 3.8; 1040 x 1024 of two bytes 2.0, 2.6; 1,024 columns of as many rows of four bytes, low, 1.6, 2.2. */
static void shape_stored(dms_tile *tile, bool stackable, uint64_t rows, const dms_sides *s)
{
    enum { SQUARES = 16, HIGH = 8 };
    const size_t size = tile->element_size, side = DMS_LINE / size;
    const bool together = share_sets(s->from_apart, side), low = size > 1 && together && !share_sets(s->apart, SQUARES * side);
    const bool stacked = stackable && rows >= DMS_STACK * side && share_sets(s->apart, side) && (size == 1 || (size == 2 && !together));
    tile->sink = stacked ? DMS_STACKED : DMS_STORED;
    tile->height = (stacked ? DMS_STACK : low ? 1 : HIGH) * side;
    tile->width = stacked ? side : SQUARES / ((dms_smaller(rows, tile->height) + side - 1) / side) * side;
}

/* Past the caches a tile is wide, and the next one below is fetched meanwhile, unless its lines drove each other out: 8192 x 4096 of four bytes 1.3 in
 * place of 1.8; of two bytes 1.8, and 2.5 in tiles of one square's height. */
void dms_start_tiles(dms_tile *tile, const dms_turner *turner, size_t element_size, uint64_t rows, const dms_sides *s, const dms_stores *stores)
{
    enum { HIGH_LINES = 3, HIGH_UNFETCHED = 2, WIDE = 4096, WIDE_CARRIED = 2048 };
    const size_t side = DMS_LINE / element_size;
    tile->turn = turner->turn;
    tile->element_size = element_size;
    tile->sink = choose_sink(turner, s, element_size, rows, stores);
    tile->claimed = stores->regime == DMS_CLAIMED;
    tile->fetched = dms_is_streamed(stores) && !share_sets(s->from_apart, side);
    tile->height = tile->sink != DMS_LINES ? side : (tile->fetched ? HIGH_LINES : HIGH_UNFETCHED) * side;
    tile->width = (tile->sink == DMS_LINES ? WIDE : WIDE_CARRIED) / element_size;
    if (rows <= tile->height)
        tile->fetched = false;          /* there is no next tile, and what lies at no address takes longest to find */
    if (tile->sink == DMS_STORED)
        shape_stored(tile, turner->vector > 0, rows, s);
    tile->width = dms_smaller(tile->width, dms_is_carried(tile) ? DMS_MOST_CARRIED : DMS_TILE_MOST);
    tile->head = dms_is_carried(tile) ? 0 : (uintptr_t)(0 - s->first) % DMS_LINE / element_size;
}

size_t dms_next_rows(const dms_tile *tile, uint64_t left, bool first)
{
    return dms_smaller(left, first && tile->head > 0 ? tile->head : tile->height);
}

void dms_start_rows(dms_tile *tile, uint64_t rows, int64_t step, const char *source)
{
    tile->next = (int64_t)tile->height * step;
    for (size_t i = 0; i < tile->height && i < rows; i++)
        tile->from[i] = source + (int64_t)i * step;
}

void dms_turn_down(dms_tile *tile, uint64_t rows, int64_t step, uint64_t column)
{
    tile->to_offset = 0;
    dms_start_columns(tile);
    for (uint64_t row = 0; row < rows; row += tile->rows) {
        tile->rows = dms_next_rows(tile, rows - row, row == 0);
        tile->from_offset = (int64_t)row * step + (int64_t)(column * tile->element_size);
        tile->turn(tile);
    }
    dms_finish_columns(tile);
}

/* ---- Nests ---- */

/* The loop that is contiguous in the source, forwards or backwards; nest->rank: none. */
static uint32_t source_loop(const dms_nest *nest)
{
    uint32_t d = 0;
    while (d < nest->rank && dms_abs_i64(nest->loops[d].source_stride) != nest->run)
        d++;
    return d;
}

const char *dms_refuse_transpose(const dms_nest *nest)
{
    enum { LEAST = 256 };               /* elements: below, finding the tiles costs more than they save */
    if (!dms_is_element(nest->run))
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

const char *dms_accept_transpose(const dms_nest *nest)
{
    enum { NARROW = 12 };               /* elements of a side: squares of which most is empty take longer than moves */
    const char *refusal = dms_refuse_transpose(nest);
    if (refusal != NULL)
        return refusal;
    const dms_matrix m = dms_find_matrix(nest);
    const size_t least = dms_smaller(DMS_LINE / nest->run, NARROW);
    return m.rows->size >= least && m.columns->size >= least ? NULL : "a side of the matrix has less than a line, or than 12 elements";
}

/* The loop with its steps in the other order, and where it begins. */
static dms_loop turn_loop(const dms_loop *loop, char **target, const char **source)
{
    const dms_loop turned = {loop->size, -loop->target_stride, -loop->source_stride};
    *target += (int64_t)(loop->size - 1) * loop->target_stride;
    *source += (int64_t)(loop->size - 1) * loop->source_stride;
    return turned;
}

/* rows: contiguous in the target, columns: in the source. */
static void turn_matrix(dms_tile *tile, const dms_loop *rows, const dms_loop *columns, char *target, const char *source)
{
    dms_start_rows(tile, rows->size, rows->source_stride, source);
    for (uint64_t column = 0; column < columns->size; column += tile->columns) {
        tile->columns = dms_smaller(columns->size - column, tile->width);
        for (size_t j = 0; j < tile->columns; j++)
            tile->to[j] = target + (int64_t)(column + j) * columns->target_stride;
        dms_turn_down(tile, rows->size, rows->source_stride, column);
    }
}

static dms_sides sides_of_matrix(const dms_matrix *m, const char *target)
{
    dms_sides s = {(uintptr_t)target, (uintptr_t)m->columns->target_stride, (uintptr_t)m->rows->source_stride};
    for (uint32_t d = 0; d < m->count; d++)
        s.apart |= (uintptr_t)m->around[d].target_stride;
    return s;
}

void dms_transpose(const dms_nest *nest, char *target, const char *source, const dms_turner *turner)
{
    const dms_matrix m = dms_find_matrix(nest);
    dms_loop columns = *m.columns;
    if (columns.source_stride < 0)
        columns = turn_loop(&columns, &target, &source);
    const dms_sides s = sides_of_matrix(&m, target);
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_tile tile;
    dms_start_tiles(&tile, turner, nest->run, m.rows->size, &s, &nest->stores);
    dms_first(m.count, index);
    do
        turn_matrix(&tile, m.rows, &columns, target, source);
    while (dms_next(m.around, m.count, index, &target, &source));
}

void dms_run_transpose(const dms_nest *nest, char *target, const char *source)
{
    dms_transpose(nest, target, source, &dms_plain_turner);
}
