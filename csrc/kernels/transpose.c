/* transpose.c - matrices turned tile by tile: what all instruction sets share, and tiles without any
 *
 * Each tile is read row by row and written column by column, so that every line of memory that it touches is used whole while it is cached:
 *
 *     source rows           target rows
 *     from[0]  abcd....     to[0]  aeim....
 *     from[1]  efgh....     to[1]  bfjn....
 *     from[2]  ijkl....     to[2]  cgko....
 */
#include "../dms_channels.h"
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

static const dms_turner plain_turner = {turn, NULL, 0};

/* The first tile of these columns: to and to_offset say where they go. */
static void start_columns(dms_tile *tile)
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

/* How the rows of the target lie: the address of one of them, and all the bits that the distances between them have; and how far those of the source
 * are apart, 0: by no rule. */
typedef struct sides {
    uintptr_t first, apart, from_apart;
} sides;

/* Whether the lines of a square share sets of a first-level cache, in which there is room for 8 each or little more, because rows lie a power of two
 * apart: those that are fetched would drive each other out. */
static bool share_sets(uintptr_t apart, size_t side)
{
    enum { WAY = 4096, WAYS = 8 };      /* bytes after which sets repeat themselves */
    const uintptr_t step = apart & (0 - apart);
    return side * (step < WAY ? step : WAY) > WAYS * WAY;
}

/* Rows of the target that all begin at one place in a line are whole lines after a head; others are carried on, in registers by words. */
static dms_sink choose_sink(const dms_turner *turner, const sides *s, size_t element_size, uint64_t rows, const dms_stores *stores)
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
static void shape_stored(dms_tile *tile, bool stackable, uint64_t rows, const sides *s)
{
    enum { SQUARES = 16, HIGH = 8 };
    const size_t size = tile->element_size, side = DMS_LINE / size;
    const bool together = share_sets(s->from_apart, side), low = size > 1 && together && !share_sets(s->apart, SQUARES * side);
    const bool stacked = stackable && rows >= DMS_STACK * side && share_sets(s->apart, side) && (size == 1 || (size == 2 && !together));
    tile->sink = stacked ? DMS_STACKED : DMS_STORED;
    tile->height = (stacked ? DMS_STACK : low ? 1 : HIGH) * side;
    tile->width = stacked ? side : SQUARES / ((smaller(rows, tile->height) + side - 1) / side) * side;
}

/* Past the caches a tile is wide, and the next one below is fetched meanwhile, unless its lines drove each other out: 8192 x 4096 of four bytes 1.3 in
 * place of 1.8; of two bytes 1.8, and 2.5 in tiles of one square's height. */
static void start_tiles(dms_tile *tile, const dms_turner *turner, size_t element_size, uint64_t rows, const sides *s, const dms_stores *stores)
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
    tile->width = smaller(tile->width, dms_is_carried(tile) ? DMS_MOST_CARRIED : DMS_TILE_MOST);
    tile->head = dms_is_carried(tile) ? 0 : (uintptr_t)(0 - s->first) % DMS_LINE / element_size;
}

/* How many of the rows that are left the next tile takes. */
static size_t next_rows(const dms_tile *tile, uint64_t left, bool first)
{
    return smaller(left, first && tile->head > 0 ? tile->head : tile->height);
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
    const size_t least = smaller(DMS_LINE / nest->run, NARROW);
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

/* Where rows of the source begin. */
static void start_rows(dms_tile *tile, uint64_t rows, int64_t step, const char *source)
{
    tile->next = (int64_t)tile->height * step;
    for (size_t i = 0; i < tile->height && i < rows; i++)
        tile->from[i] = source + (int64_t)i * step;
}

/* The columns that tile->to names, from one on, down all rows. */
static void turn_down(dms_tile *tile, uint64_t rows, int64_t step, uint64_t column)
{
    tile->to_offset = 0;
    start_columns(tile);
    for (uint64_t row = 0; row < rows; row += tile->rows) {
        tile->rows = next_rows(tile, rows - row, row == 0);
        tile->from_offset = (int64_t)row * step + (int64_t)(column * tile->element_size);
        tile->turn(tile);
    }
    finish_columns(tile);
}

/* rows: contiguous in the target, columns: in the source. */
static void turn_matrix(dms_tile *tile, const dms_loop *rows, const dms_loop *columns, char *target, const char *source)
{
    start_rows(tile, rows->size, rows->source_stride, source);
    for (uint64_t column = 0; column < columns->size; column += tile->columns) {
        tile->columns = smaller(columns->size - column, tile->width);
        for (size_t j = 0; j < tile->columns; j++)
            tile->to[j] = target + (int64_t)(column + j) * columns->target_stride;
        turn_down(tile, rows->size, rows->source_stride, column);
    }
}

static sides sides_of_matrix(const dms_matrix *m, const char *target)
{
    sides s = {(uintptr_t)target, (uintptr_t)m->columns->target_stride, (uintptr_t)m->rows->source_stride};
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
    const sides s = sides_of_matrix(&m, target);
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_tile tile;
    start_tiles(&tile, turner, nest->run, m.rows->size, &s, &nest->stores);
    dms_first(m.count, index);
    do
        turn_matrix(&tile, m.rows, &columns, target, source);
    while (dms_next(m.around, m.count, index, &target, &source));
}

void dms_run_transpose(const dms_nest *nest, char *target, const char *source)
{
    dms_transpose(nest, target, source, &plain_turner);
}

/* ---- Columns ---- */

const char *dms_refuse_columns(const dmlsplit_plan *plan)
{
    enum { FEW = 8 };
    const dms_space *space = &plan->space;
    const int64_t size = (int64_t)space->element_size;
    if (plan->rows < 2 || space->operands[0].length < 2)
        return "there is one row or one part only";
    if (!is_element((size_t)size))
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

/* Looks at all parts only where it matters whether they are alike. */
static sides sides_of_columns(const stretch *s, bool split, bool streamed)
{
    sides found = {(uintptr_t)s->whole, (uintptr_t)s->step, split ? (uintptr_t)s->step : 0};
    uint64_t part = 0;
    if (!split)
        return found;
    found.first = (uintptr_t)next_part(s, &part);
    found.apart = 0;
    for (const char *at; streamed && (at = next_part(s, &part)) != NULL;)
        found.apart |= (uintptr_t)at - found.first;
    return found;
}

/* A part is a row of the target: as many as a tile has columns, down all rows; then the next ones. */
static void split_columns(dms_tile *tile, const stretch *s)
{
    char *at;
    uint64_t part = 0, column = 0;
    start_rows(tile, s->rows, s->step, s->whole);
    for (;; column += tile->columns) {
        tile->columns = 0;
        while (tile->columns < tile->width && (at = next_part(s, &part)) != NULL)
            tile->to[tile->columns++] = at;
        if (tile->columns == 0)
            return;
        turn_down(tile, s->rows, s->step, column);
    }
}

/* The next parts as rows of a tile. Returns whether there are any. */
static bool take_parts(dms_tile *tile, const stretch *s, uint64_t *part)
{
    const char *at;
    const size_t most = next_rows(tile, tile->height, *part == 0);
    size_t rows = 0;
    while (rows < most && (at = next_part(s, part)) != NULL)
        tile->from[rows++] = at;
    if (rows > 0)                       /* else those of the last tile count still */
        tile->rows = rows;
    return rows > 0;
}

/* The rows of the whole that elements of these parts go to, from one on. */
static void take_rows(dms_tile *tile, const stretch *s, uint64_t row, int64_t place)
{
    tile->columns = smaller(s->rows - row, tile->width);
    tile->from_offset = (int64_t)(row * tile->element_size);
    tile->to_offset = place;
    for (size_t j = 0; j < tile->columns; j++)
        tile->to[j] = s->whole + (int64_t)(row + j) * s->step;
}

/* A part is a row of the source: as many as a tile has rows, along all of their elements; then the next ones. Or, so that what rows of the whole have
 * of a line can be carried on, all parts for as many elements as a tile has columns. */
static void join_columns(dms_tile *tile, const stretch *s)
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
        start_columns(tile);
        for (uint64_t part = 0; take_parts(tile, s, &part);)
            tile->turn(tile);
        finish_columns(tile);
    }
}

/* Past the caches: short rows of the whole without gaps between them are whole lines together, by way of memory that is cached. */
static bool is_gathered(const dmlsplit_plan *plan, const stretch *s, const dms_turner *turner)
{
    enum { SHORT = 512 };
    return dms_is_streamed(&plan->turns) && turner->vector > 0 && s->step <= SHORT &&
           s->step == (int64_t)(plan->space.operands[0].length * plan->space.element_size);
}

static void gather_columns(dms_tile *tile, const stretch *s, const dms_turner *turner)
{
    const size_t step = (size_t)s->step;
    uint64_t part = 0;
    dms_lines lines = dms_start_lines(s->whole, tile->turned);
    tile->sink = DMS_STORED;
    tile->height = DMS_TILE_MOST;
    tile->head = 0;
    tile->width = smaller(DMS_TILE_MOST, DMS_MOST_TURNED / 4 / step);
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
        start_tiles(&tile, turner, (size_t)space->element_size, split ? s.rows : plan->part_count, &found, &plan->turns);
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
    dms_transpose_columns(plan, buffers, first, last, &plain_turner);
}
