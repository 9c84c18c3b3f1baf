/* transpose.c - matrices turned tile by tile: what all instruction sets share
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

/* Whether the lines of a square share sets of a first-level cache, in which there is room for 8 each or little more, because rows lie a power of two
 * apart: those that are fetched would drive each other out. */
static bool share_sets(int64_t apart, size_t side)
{
    enum { WAY = 4096, WAYS = 8 };      /* bytes after which sets repeat themselves */
    const uintptr_t step = (uintptr_t)apart & (0 - (uintptr_t)apart);
    return side * (step < WAY ? step : WAY) > WAYS * WAY;
}

/* Rows of the target that all begin at one place in a line are whole lines after a head; short ones may be lines together; others are carried on, in
 * registers by words. */
static dms_sink choose_sink(const dms_turner *turner, size_t element_size, uint64_t rows, const dms_side *to)
{
    enum { LONG = 512, SHORT = 4 * DMS_LINE };  /* bytes of a row; of a short one most lines would be begun and ended one by one */
    const uintptr_t begin = (uintptr_t)to->at[0];
    const bool is_short = rows < SHORT / element_size;
    if (!is_short && to->apart % DMS_LINE == 0 && begin % element_size == 0)
        return DMS_LINES;
    if (rows <= LONG / element_size && to->step == (int64_t)(rows * element_size))
        return DMS_GATHERED;
    if (is_short)
        return DMS_STORED;
    return turner->vector == DMS_LINE && (begin | to->apart) % 2 == 0 ? DMS_CARRIED : DMS_COLLECTED;
}

/* A square has a line in each row and column. A tile is a few of them high, which are turned one below the other: what each row of the target gets
 * at once is worth a stream to the CPU. It is narrow, so that rows of the source do no harm that are a power of two apart, and the CPU fetches what
 * follows. Rows of the target that are a power of two apart wait for each other's lines unless they get several at once: squares are stacked, but not of
 * wide elements, which gained by it in a quiet hour and lost in a busy one. Where rows of the source alone are so, they are followed in tiles of one square's
 * height. Measured (Zen 5, DMLSPLIT_MEASURE=0) as multiples of memcpy's time, in place of tiles eight squares high and two wide: 2048 x 2048 of one byte
 * stacked 2.6, 3.8; 1040 x 1024 of two bytes 2.0, 2.6; 512 long parts of one byte 1.9, 2.25, on AVX-512 alone; 1,024 columns of as many rows of four
 * bytes, low, 1.6, 2.2. */
static void shape_stored(dms_tile *tile, const dms_turner *turner, const dms_side *from, const dms_side *to)
{
    enum { SQUARES = 16, HIGH = 8, LONG = 2048 };       /* squares, squares, rows of a part */
    const size_t size = tile->element_size, side = DMS_LINE / size;
    const bool together = share_sets(from->step, side), low = size > 1 && together && !share_sets(to->step, SQUARES * side);
    const bool crowded = share_sets(to->step, side), many = to->listed && turner->vector == DMS_LINE && from->count >= LONG && to->count >= side;
    const bool stacked = from->count >= DMS_STACK * side && (size == 1 ? crowded || many : size == 2 && crowded && !together);
    tile->sink = stacked ? DMS_STACKED : DMS_STORED;
    tile->height = (stacked ? DMS_STACK : low ? 1 : HIGH) * side;
    tile->width = stacked ? side : SQUARES / ((dms_smaller(from->count, tile->height) + side - 1) / side) * side;
}

/* Past the caches a tile is wide, and the next one is fetched meanwhile, unless its lines drove each other out: 8192 x 4096 of four bytes 1.3 in place
 * of 1.8; of two bytes 1.8, and 2.5 in tiles of one square's height. */
static void shape_streamed(dms_tile *tile, const dms_side *to)
{
    enum { HIGH_LINES = 3, HIGH_UNFETCHED = 2, WIDE = 4096, WIDE_CARRIED = 2048 };
    const size_t size = tile->element_size, side = DMS_LINE / size;
    if (tile->sink == DMS_GATHERED) {
        tile->height = DMS_TILE_MOST;
        tile->width = dms_smaller(DMS_MOST_TURNED / 4 / (uint64_t)to->step, DMS_TILE_MOST);
    } else if (tile->sink == DMS_LINES) {
        tile->height = (tile->fetched ? HIGH_LINES : HIGH_UNFETCHED) * side;
        tile->width = dms_smaller(WIDE / size, DMS_TILE_MOST);
    } else {
        tile->height = side;
        tile->width = dms_smaller(WIDE_CARRIED / size, DMS_MOST_CARRIED);
    }
}

void dms_start_tiles(dms_tile *tile, const dms_turner *turner, size_t element_size, const dms_side *from, const dms_side *to, const dms_stores *stores)
{
    const bool streamed = dms_is_streamed(stores);
    tile->turn = turner->turn;
    tile->element_size = element_size;
    tile->sink = streamed ? choose_sink(turner, element_size, from->count, to) : DMS_STORED;
    tile->claimed = stores->regime == DMS_CLAIMED;
    tile->fetched = streamed && !share_sets(from->step, DMS_LINE / element_size);
    if (tile->sink == DMS_STORED)
        shape_stored(tile, turner, from, to);
    else
        shape_streamed(tile, to);
    const bool aside = from->listed || from->count <= tile->height;     /* the next tile to fetch is, not below */
    tile->next = aside ? (int64_t)(tile->width * element_size) : (int64_t)tile->height * from->step;
    if (aside && to->count <= tile->width)
        tile->fetched = false;          /* there is none, and what lies at no address takes longest to find */
    tile->head = tile->sink >= DMS_CARRIED ? 0 : (uintptr_t)(0 - (uintptr_t)to->at[0]) % DMS_LINE / element_size;
}

/* The tile that begins with this element, as high and wide as there are rows and columns. */
static void turn_tile_at(dms_tile *tile, const dms_side *from, uint64_t row, const dms_side *to, uint64_t column)
{
    const size_t size = tile->element_size, pitch = tile->sink == DMS_COLLECTED ? tile->height * size + DMS_LINE : DMS_LINE;
    tile->rows = dms_smaller(from->count - row, row == 0 && tile->head > 0 ? tile->head : tile->height);
    tile->columns = dms_smaller(to->count - column, tile->width);
    tile->from = from->at + (from->listed ? row : 0);
    tile->from_offset = from->offset + (int64_t)row * from->step + (int64_t)(column * size);
    tile->to = to->at + (to->listed ? column : 0);
    tile->to_offset = to->offset + (int64_t)column * to->step + (int64_t)(row * size);
    for (size_t j = 0; row == 0 && j < dms_streams(tile); j++)
        tile->carries[j] = dms_start_lines(tile->to[j] + tile->to_offset, tile->turned + j * pitch);
    if (tile->sink >= DMS_COLLECTED) {
        for (size_t j = 0; row == 0 && j < tile->columns; j++) {
            const dms_lines *lines = &tile->carries[tile->sink == DMS_GATHERED ? 0 : j];
            tile->places[j] = lines->bytes + lines->fill + (tile->sink == DMS_GATHERED ? j * tile->rows * size : 0);
        }
        tile->to = tile->places;
        tile->to_offset = 0;
    }
    tile->turn(tile);
    for (size_t j = 0; row + tile->rows == from->count && j < dms_streams(tile); j++)
        dms_finish_lines(&tile->carries[j]);
}

/* Rows that are listed, many places in memory, are followed to their ends, unless lines of the target are carried on. */
void dms_turn_tiles(dms_tile *tile, const dms_side *from, const dms_side *to)
{
    const bool along = from->listed && tile->sink < DMS_CARRIED;
    for (uint64_t row = 0, column; along && row < from->count; row += tile->rows)
        for (column = 0; column < to->count; column += tile->columns)
            turn_tile_at(tile, from, row, to, column);
    for (uint64_t row, column = 0; !along && column < to->count; column += tile->columns)
        for (row = 0; row < from->count; row += tile->rows)
            turn_tile_at(tile, from, row, to, column);
}

void dms_space_out(dms_side *side, char *begin, int64_t step, uint64_t count)
{
    side->count = count;
    side->listed = false;
    side->offset = 0;
    side->step = step;
    side->apart = (uintptr_t)step;
    for (size_t i = 0; i < DMS_TILE_MOST && i < count; i++)
        side->at[i] = begin + (int64_t)i * step;
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

void dms_transpose(const dms_nest *nest, char *target, const char *source, const dms_turner *turner)
{
    const dms_matrix m = dms_find_matrix(nest);
    dms_loop columns = *m.columns;
    if (columns.source_stride < 0)
        columns = turn_loop(&columns, &target, &source);
    const char *const begin = source;
    char *const target_begin = target;
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_side from, to;
    dms_tile tile;
    dms_space_out(&from, (char *)(uintptr_t)source, m.rows->source_stride, m.rows->size);
    dms_space_out(&to, target, columns.target_stride, columns.size);
    for (uint32_t d = 0; d < m.count; d++)
        to.apart |= (uintptr_t)m.around[d].target_stride;
    dms_start_tiles(&tile, turner, nest->run, &from, &to, &nest->stores);
    dms_first(m.count, index);
    do {
        from.offset = source - begin;
        to.offset = target - target_begin;
        dms_turn_tiles(&tile, &from, &to);
    } while (dms_next(m.around, m.count, index, &target, &source));
}
