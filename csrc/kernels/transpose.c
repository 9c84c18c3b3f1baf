/* transpose.c - transposes matrices tile by tile: the code that all instruction sets share
 *
 * A tile is read row by row and written column by column, so that each cache line that it touches is used whole while it is cached:
 *
 *     source rows           target rows
 *     from[0]  abcd....     to[0]  aeim....
 *     from[1]  efgh....     to[1]  bfjn....
 *     from[2]  ijkl....     to[2]  cgko....
 */
#include "../dms_checked.h"
#include "../dms_transpose.h"

/* Returns the largest power of two that divides a distance. */
static uintptr_t power_of(int64_t apart)
{
    return (uintptr_t)apart & (0 - (uintptr_t)apart);
}

/* True if rows are so far apart that the cache lines of a square share sets of the first-level cache and evict each other: a set has as many lines as the
 * cache has ways. The largest power of two that divides the distance decides. */
static bool share_sets(int64_t apart, size_t side, const dms_stores *stores)
{
    const uintptr_t power = power_of(apart);
    return side * (power < stores->way ? power : stores->way) > (size_t)stores->ways * stores->way;
}

static uint64_t distance(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* True if lines of `rows` rows share sets of the second-level cache such that they fill half of it or more. */
static bool fill_level2(int64_t apart, size_t rows, const dms_stores *stores)
{
    return stores->level2 > 0 && rows * power_of(apart) >= stores->level2 / 2;
}

/* True if tiles of listed rows of the target, and of rows that conflict, are low although the machine prefers high ones: with vectors wider than 16 bytes.
 * With those of 16 bytes columns took 0.8 to 1.13 of the time of high tiles (Zen 5). */
static bool gains_by_low(const dms_transposer *transposer, bool is_high)
{
    return is_high && transposer->vector > 16;
}

/* True if tiles that are stored through the caches are copied first, because twice as many lines of the source as the sets of the first-level cache hold share
 * them: each is then read once and whole. Vectors of 64 bytes read a line at once anyway. On machines that prefer high tiles; on others it was not measured.
 * Matrices and columns of 1 and 2 bytes took 0.5 to 0.95 of the time, from memory 0.6 to 1.15; those whose lines barely share sets, and those of 4 and 8 bytes,
 * from memory 1.1 to 1.9 (AVX2 and SSSE3, Zen 5). If rows of the target share more sets than those of the source, stacked squares are better: 0.7 to 0.95 of
 * the time. */
static bool gains_by_staging(const dms_tile *tile, const dms_transposer *transposer, const dms_side *from, const dms_side *to, const dms_stores *stores)
{
    const bool together = tile->element_size <= 2 && share_sets(from->stride, tile->side / 2, stores);
    return together && transposer->vector < DMS_LINE && stores->cached_height >= DMS_TILE_HIGH && power_of(from->stride) >= power_of(to->stride);
}

/* Returns the sink of a streamed matrix. Rows of the target that begin at the same offset in a line are whole lines after a head; so are short rows without a
 * head or a rest (0.3 to 0.6 of the time, Zen 4); other short adjacent rows fill lines together; others carry partial lines, in registers if they begin at
 * even addresses. early: these are stored plainly. */
static dms_sink choose_sink(const dms_transposer *transposer, size_t element_size, uint64_t rows, const dms_side *to, bool early)
{
    const uintptr_t begin = (uintptr_t)to->begin;
    const bool are_lines = (begin | rows * element_size) % DMS_LINE == 0;
    const bool is_short = rows < DMS_SHORT_TARGET_ROW / element_size && !are_lines;
    if (!is_short && to->distance_bits % DMS_LINE == 0 && begin % element_size == 0)
        return DMS_LINES;
    if (rows <= DMS_LONG_TARGET_ROW / element_size && to->stride == (int64_t)(rows * element_size))
        return DMS_COALESCED;
    if (is_short)
        return DMS_STORED;
    if (early)
        return DMS_STORED;
    return transposer->vector == DMS_LINE && (begin | to->distance_bits) % 2 == 0 ? DMS_CARRIED : DMS_COLLECTED;
}

/* Sets the shape of tiles that are stored through the caches. A square has a cache line in each row and column. A tile is several squares high, so that each
 * row of the target gets several lines, which the hardware sees as a stream; it is narrow, so that rows of the source do not conflict in the cache and the
 * hardware prefetches what follows. If rows of the target conflict, each gets several lines at once from stacked squares; not of wide elements, which gained by
 * it on an idle machine and lost on a busy one. If rows of the source alone conflict, tiles are one square high: rows of one square or, with wider vectors on
 * machines that do not prefer lower tiles, of two (512 columns of 8 bytes took 0.84 of the time, by AVX2 0.51), and of a whole tile if rows of the target are
 * listed (columns whose rows are multiples of 512 bytes apart: 0.76 to 1.02 of the time, Zen 5). On machines that prefer lower tiles, so they are where rows of
 * the target are much nearer to each other than those of the source. If rows of the source conflict, low tiles are wider on those machines, and of listed rows
 * on all: splits into 1,024 columns of 4 bytes took 0.9 to 0.97 of the time (Zen 4), 0.95 (Zen 5).
 *
 * Listed rows of the source are at unrelated addresses, which hardware does not prefetch. On machines that prefer lower tiles, a tile is one line of as many
 * of them as it may have, each prefetched some rows ahead, and rows of the target are written one line after the other: joins of 256 to 2,048 columns of 4
 * and 8 bytes took 0.76 to 0.96 of the time within the caches, 0.65 to 0.9 from memory; without the prefetches up to 1.05 times as long (Zen 4).
 *
 * Multiples of memcpy's time (Zen 5, DMLSPLIT_MEASURE=0), and those of tiles 8 squares high and 2 wide: 2048 x 2048 of one byte, stacked, 2.6 and 3.8; 1040 x
 * 1024 of two bytes 2.0 and 2.6; 512 long parts of one byte 1.9 and 2.25, with AVX-512 only; 1,024 columns of 1,024 rows of four bytes, low, 1.6 and 2.2. */
static void shape_stored(dms_tile *tile, const dms_transposer *transposer, const dms_side *from, const dms_side *to, const dms_stores *stores)
{
    const size_t size = tile->element_size, side = tile->side;
    const bool together = share_sets(from->stride, side, stores), lower = stores->cached_height < DMS_TILE_HIGH;
    const bool is_near = to->listed == NULL && distance(to->stride) <= distance(from->stride) / DMS_NEAR_SHARE;
    const bool crowded = tile->crowded;
    const bool higher = gains_by_low(transposer, stores->cached_height >= DMS_TILE_HIGH);
    const size_t squares = !higher ? 1 : to->listed == NULL ? 2 : DMS_TILE_HIGH;
    const bool conflict = share_sets(from->stride, squares * side, stores);
    const bool low = size > 1 && ((lower && is_near) || (conflict && !share_sets(to->stride, DMS_TILE_SQUARES * side, stores)));
    const bool many = to->listed != NULL && transposer->vector == DMS_LINE && from->count >= DMS_LONG_COLUMN && to->count >= side;
    const bool stacked = from->count >= DMS_STACK * side && (size == 1 ? crowded || many : size == 2 && crowded && !together);
    const bool tall = lower && from->listed != NULL && size > 2;
    tile->sink = stacked ? DMS_STACKED : DMS_STORED;
    tile->height = (stacked ? DMS_STACK : low ? 1 : stores->cached_height) * side;
    size_t high = 1;                    /* in squares, rounded up to a power of two: all tiles have about as many squares */
    while (high * side < tile->height && high * side < from->count)
        high *= 2;
    tile->width = stacked ? side : DMS_TILE_SQUARES / high * side;
    if (low && conflict && (lower || (higher && to->listed != NULL)))
        tile->width = dms_smaller(DMS_LOW_WIDE / size, DMS_TILE_COLUMNS);
    if (gains_by_staging(tile, transposer, from, to, stores)) {
        tile->staged = true;
        tile->sink = DMS_STORED;
        tile->height = DMS_LINE;
        tile->width = DMS_STAGED_WIDE / size;
    }
    if (tall) {
        tile->height = DMS_TILE_ROWS;
        tile->width = side;
        tile->below = DMS_LISTED_AHEAD;
    }
}

/* Sets the shape of streamed tiles: wide, and the next one is prefetched meanwhile: 8192 x 4096 of four bytes took 1.3 times memcpy's time instead of 1.8; of
 * two bytes 1.8, in tiles one square high 2.5 (Zen 5). Prefetched into the second-level cache and two squares high, NHWC views of 4 bytes took 0.5 to 0.7 of
 * the time, 2048 x 2048 of 4 and 8 bytes 0.75 to 0.85; of rows that are at most a line apart 1.1 to 1.3 (Zen 4). With wider vectors, listed rows of
 * the target get one line at a time on machines that do not prefer lower tiles: 48 MB in 32 to 500 columns of 4 and 8 bytes took 0.62 to 1.17 of the time, at
 * the median 0.93; 13 columns, whose rows are at most a line apart, 1.19 (Zen 5).
 *
 * Lines that are stored past the caches one by one, each to another row of the target, wait for each other if their addresses share sets of the first-level
 * cache. With vectors of 32 bytes, on machines that prefer lower tiles, they are gathered: matrices and NHWC views of 5 to 34 MB took 0.45 to 0.95 of the time,
 * those whose lines do not share sets up to 1.5, and with vectors of 16 bytes all 0.65 to 1.9 (Zen 3). Where the profile lets single lines take turns, rows of
 * the source that share sets cost a high tile more than gathering gains: matrices of 4 and 8 bytes took 1.05 to 1.6 of the time, NHWC views 0.8 to 1 (Zen 4). */
static void shape_streamed(dms_tile *tile, const dms_transposer *transposer, const dms_side *from, const dms_side *to, const dms_stores *stores)
{
    const size_t size = tile->element_size, side = tile->side;
    const size_t highest = share_sets(from->stride, side, stores) || stores->page_mask > 0 ? DMS_STREAMED_LOWER : DMS_STREAMED_HIGH;
    const bool apart = distance(from->stride) > DMS_LINE, higher = gains_by_low(transposer, stores->streamed_height >= DMS_STREAMED_HIGH);
    const bool alone = to->listed != NULL && apart && higher;
    tile->height = side;
    if (tile->sink == DMS_COALESCED) {
        tile->height = DMS_TILE_ROWS;
        tile->width = dms_smaller(DMS_MOST_COALESCED / (uint64_t)to->stride, DMS_TILE_COLUMNS);
    } else if (tile->sink == DMS_LINES) {
        const int64_t between = to->listed != NULL ? (int64_t)to->distance_bits : to->stride;
        const int64_t read = from->listed != NULL ? (int64_t)from->distance_bits : from->stride;
        const bool gains = to->count >= side && (stores->gathered > DMS_LINE || !share_sets(read, DMS_GATHERED_HIGH * side, stores));
        tile->gathered = gains && transposer->vector == DMS_LINE / 2 && dms_fetches_far(stores) && share_sets(between, DMS_GATHERED_SQUARES * side, stores);
        tile->height = (alone ? 1 : tile->gathered ? DMS_GATHERED_HIGH : dms_smaller(stores->streamed_height, highest)) * side;
        tile->width = dms_smaller((tile->gathered ? DMS_GATHERED_WIDE : DMS_STREAMED_WIDE) / size, DMS_TILE_COLUMNS);
    } else {
        tile->width = dms_smaller(DMS_CARRIED_WIDE / size, DMS_MOST_CARRIED);
    }
}

/* True if rows that are at most a line apart are prefetched on machines that prefer lower tiles: those that fill lines, and those of bytes that are a
 * line or half of one apart, unless their columns are carried in vectors of 64 bytes. Squares read lines in an order that hardware takes for no stream. NHWC
 * views of 6 to 23 MB took by AVX2 0.5 to 0.9 of the time, by SSSE3 0.55 to 0.98 (32 bytes, of which half are used, 1.09), by AVX-512 0.45 to 0.7; rows of 24, 40, 48 and 52
 * bytes 0.85 to 1.23 (Zen 4). Where single lines may not take turns, it was not measured. */
static bool gains_nearby(const dms_tile *tile, const dms_transposer *transposer, uint64_t between, uint64_t columns, const dms_stores *stores)
{
    const bool whole = between == DMS_LINE && columns * tile->element_size == DMS_LINE, even = between == DMS_LINE || 2 * between == DMS_LINE;
    const bool bytes = tile->element_size == 1 && even && (transposer->vector < DMS_LINE || tile->sink == DMS_LINES);
    return (whole || bytes) && stores->gathered <= DMS_LINE;
}

/* True if the hardware reads rows of the next tile early enough: where pages are fetched, unless elements are wide and rows near each other, or vectors of 16 bytes
 * collect lines. Without prefetches, and by tiles two squares high, 67 NHWC views and matrices of 2 to 42 MB took 0.90 of the time by AVX-512, 0.93 by AVX2 and 0.96
 * by SSSE3; but rows of 4-byte elements up to 2 KiB apart 1.15 to 1.55 if memory is read before each call (AVX2), of 8-byte ones within a page 1 to 1.25, and
 * those that SSSE3 collects 0.75 to 1.5 (Intel). */
static bool is_left_to_hardware(const dms_tile *tile, const dms_transposer *transposer, const dms_side *from, const dms_stores *stores)
{
    const size_t within = tile->element_size >= 8 ? DMS_FETCHED_WITHIN : tile->element_size == 4 ? DMS_FETCHED_WITHIN_OF_4 : 0;
    const bool near = from->listed == NULL && distance(from->stride) <= within;
    return stores->page_mask > 0 && !near && !(transposer->vector == 16 && tile->sink == DMS_COLLECTED);
}

/* Sets whether the next tile is prefetched, and into which cache. On machines that prefer lower tiles, into the second-level one, unless rows are at most a
 * line apart: these are one stream, which hardware prefetches (Zen 4), and with vectors of 16 and 32 bytes unless two tiles fill half of that cache: 2048 x 2048
 * and 8192 x 4096 of 4 bytes took 0.8 and 0.6 of the time (Zen 3). On others into the first-level one, unless rows of a square evict each other, or into
 * the second-level one if rows of a tile do: NHWC views of 4 bytes took 0.75 to 1 of the time, rows at most a line apart 0.5 to 0.9, but 1.28 of it with
 * squares of 32 bytes (Zen 5). */
static void choose_fetches(dms_tile *tile, const dms_transposer *transposer, const dms_side *from, const dms_side *to, const dms_stores *stores, bool streamed)
{
    const bool lower = dms_fetches_far(stores), apart = from->listed != NULL || distance(from->stride) > DMS_LINE;
    const bool worth = apart || transposer->vector == DMS_LINE;
    const bool past = streamed && !(stores->early && tile->sink == DMS_STORED);
    const bool fits = transposer->vector == DMS_LINE || !fill_level2(from->stride, 2 * tile->height, stores);
    const bool nearby = !apart && gains_nearby(tile, transposer, distance(from->stride), to->count, stores);
    tile->fetched = past && !is_left_to_hardware(tile, transposer, from, stores) && (lower ? (apart && fits) || nearby : worth && !share_sets(from->stride, tile->side, stores));
    tile->every = nearby ? (size_t)(DMS_LINE / distance(from->stride)) : 1;
    tile->near = !lower && !share_sets(from->stride, tile->height, stores);
    tile->behind = tile->near && tile->fetched && share_sets(from->stride, 2 * tile->height, stores);
}

/* Returns log2 of an element's size; a division would take as long as a copy of a hundred bytes. */
static int shift_of(size_t element_size)
{
    return (element_size > 1) + (element_size > 2) + (element_size > 4) + (element_size > 8);
}

/* True if squares are partial because the matrix has fewer columns than they, and vectors have less than a line. Past the caches these took 1.4 to 2.3 times as
 * long as stored plainly, of 2 bytes 1.9 to 3.5 (9 to 15 columns of 4 bytes, 11 to 20 of 2, 13 MB), where single lines may not take turns (Zen 3). Elsewhere
 * they take 0.58 to 1.25 of it, at the median 0.95 (Zen 4). */
static bool is_slow_past(const dms_transposer *transposer, size_t side, const dms_side *to, const dms_stores *stores)
{
    return transposer->vector < DMS_LINE && to->count < side && stores->gathered > DMS_LINE;
}

static void shape_tile(dms_tile *tile, const dms_transposer *transposer, size_t element_size, const dms_side *from, const dms_side *to,
                       const dms_stores *stores)
{
    const int shift = shift_of(element_size);
    const bool streamed = dms_is_streamed(stores) && !is_slow_past(transposer, (size_t)DMS_LINE >> shift, to, stores);
    tile->transpose = transposer->transpose;
    tile->element_size = element_size;
    tile->side = (size_t)DMS_LINE >> shift;
    tile->sink = streamed ? choose_sink(transposer, element_size, from->count, to, stores->early) : DMS_STORED;
    tile->claimed = stores->regime == DMS_CLAIMED;
    tile->below = 0;
    tile->gathered = tile->staged = false;
    tile->crowded = share_sets(to->stride, tile->side, stores);
    if (tile->sink == DMS_STORED)
        shape_stored(tile, transposer, from, to, stores);
    else
        shape_streamed(tile, transposer, from, to, stores);
    choose_fetches(tile, transposer, from, to, stores, streamed);
    const bool aside = from->listed != NULL || from->count <= tile->height;     /* the next tile is beside this one, not below */
    tile->next = aside ? (int64_t)(tile->width * element_size) : (int64_t)tile->height * from->stride;
    if (aside && to->count <= tile->width)
        tile->fetched = false;          /* there is no next tile, and prefetches of unmapped addresses are slow */
    if (tile->gathered && element_size >= DMS_GATHERED_WIDE_ELEMENT && (from->listed != NULL || distance(from->stride) >= DMS_GATHERED_WIDE)) {
        tile->fetched = tile->near = true;
        tile->next = DMS_GATHERED_AHEAD;
    }
    tile->head = tile->sink >= DMS_CARRIED ? 0 : (uintptr_t)(0 - (uintptr_t)to->begin) % DMS_LINE >> shift;
    tile->to_offset = 0;
    tile->carries = NULL;
}

/* ---- Tiles ---- */

dms_side dms_space_out(char *begin, int64_t stride, uint64_t count)
{
    const dms_side side = {count, begin, stride, NULL, 0, 0, (uintptr_t)stride};
    return side;
}

/* Sets at[i] to the address of row first + i, minus offset_of(side, first). */
static void list_rows(dms_side *side, uint64_t first, size_t count, char **at)
{
    dms_stretch_part part;
    for (size_t i = 0; i < count && side->listed == NULL; i++)
        at[i] = side->begin + (int64_t)i * side->stride;
    if (side->listed == NULL)
        return;
    if (first < side->row)
        side->row = side->part = 0;
    for (; side->row < first && dms_next_part(side->listed, &side->part, &part); side->row++)
        continue;
    for (size_t i = 0; i < count && dms_next_part(side->listed, &side->part, &part); i++, side->row++)
        at[i] = part.base;
}

static int64_t offset_of(const dms_side *side, uint64_t first)
{
    return side->listed == NULL ? (int64_t)first * side->stride : 0;
}

/* Addresses of as many rows of a side as fit: for listed rows those from `first` on, otherwise those of the first rows. */
typedef struct addresses {
    char **at;
    size_t count;
    uint64_t first;
} addresses;

static addresses list_addresses(dms_side *side, char **at, size_t most)
{
    const addresses a = {at, dms_smaller(side->count, most), 0};
    list_rows(side, 0, a.count, at);
    return a;
}

/* Returns the addresses of rows [first, first + count), minus offset_of(side, first). */
static char **find_addresses(addresses *a, dms_side *side, uint64_t first, size_t count)
{
    if (side->listed == NULL)
        return a->at;
    if (first < a->first || first + count > a->first + a->count) {
        a->first = first;
        list_rows(side, first, a->count, a->at);
    }
    return a->at + (first - a->first);
}

/* A matrix, and all matrices that the loops around it reach: they share one list of addresses, and each has an offset. */
typedef struct matrices {
    dms_tile *tile;
    dms_side *from, *to;
    addresses from_rows, to_rows;       /* to_rows is not used if columns are carried, collected or coalesced */
    const dms_loop *around;
    uint32_t around_count;
    int64_t from_moved, to_moved;       /* bytes from the first matrix to this one */
} matrices;

/* Sets the tile's rows, starting at `row`. */
static void take_rows(matrices *m, uint64_t row)
{
    dms_tile *const tile = m->tile;
    tile->rows = dms_smaller(m->from->count - row, row == 0 && tile->head > 0 ? tile->head : tile->height);
    tile->from = find_addresses(&m->from_rows, m->from, row, tile->rows);
}

/* Sets the tile's columns, starting at `column`. */
static void take_columns(matrices *m, uint64_t column)
{
    dms_tile *const tile = m->tile;
    tile->columns = dms_smaller(m->to->count - column, tile->width);
    tile->to = find_addresses(&m->to_rows, m->to, column, tile->columns);
}

static void transpose_at(matrices *m, uint64_t row, uint64_t column)
{
    dms_tile *const tile = m->tile;
    tile->from_offset = m->from_moved + offset_of(m->from, row) + (int64_t)(column * tile->element_size);
    if (tile->sink < DMS_CARRIED)
        tile->to_offset = m->to_moved + offset_of(m->to, column) + (int64_t)(row * tile->element_size);
    tile->transpose(tile);
}

/* Returns the bytes from each row of a stacked tile to that of the next one, which is beside it, or, after the last columns, below it; 0 if there is none, or
 * its rows are listed. */
static int64_t find_next(const matrices *m, uint64_t row, uint64_t column)
{
    const dms_tile *const tile = m->tile;
    if (column + tile->columns < m->to->count)
        return (int64_t)(tile->columns * tile->element_size);
    const bool is_last = m->from->listed != NULL || row + tile->rows >= m->from->count;
    return is_last ? 0 : (int64_t)tile->rows * m->from->stride - (int64_t)(column * tile->element_size);
}

/* Listed rows are at unrelated addresses, so each is read to its end before the next ones. So are rows of stacked tiles of bytes, whose next tile is
 * prefetched: in the same pages. */
static void transpose_stored(matrices *m)
{
    dms_tile *const tile = m->tile;
    const bool fetched = tile->sink == DMS_STACKED && tile->element_size == 1, along = fetched || m->from->listed != NULL;
    for (uint64_t row = 0; along && row < m->from->count; row += tile->rows) {
        take_rows(m, row);
        for (uint64_t column = 0; column < m->to->count; column += tile->columns) {
            take_columns(m, column);
            if (fetched)
                tile->next = find_next(m, row, column);
            transpose_at(m, row, column);
        }
    }
    for (uint64_t column = 0; !along && column < m->to->count; column += tile->columns) {
        take_columns(m, column);
        for (uint64_t row = 0; row < m->from->count; row += tile->rows) {
            take_rows(m, row);
            transpose_at(m, row, column);
        }
    }
}

/* Transposes columns [column, column + m->tile->columns) from the first row to the last. Each column has its carry. */
static void transpose_carried_columns(matrices *m, uint64_t column)
{
    enum { LISTED = 64 };
    dms_tile *const tile = m->tile;
    char *to[LISTED];
    for (size_t j = 0, count; j < tile->columns; j += count) {
        count = dms_smaller(tile->columns - j, LISTED);
        list_rows(m->to, column + j, count, to);
        for (size_t i = 0; i < count; i++)
            tile->carries[j + i] = dms_start_lines(to[i] + m->to_moved + offset_of(m->to, column + j), tile->carries[j + i].bytes);
    }
    for (uint64_t row = 0; row < m->from->count; row += tile->rows) {
        take_rows(m, row);
        tile->begun = row > 0;
        transpose_at(m, row, column);
    }
    for (size_t j = 0; j < tile->columns; j++) {
        dms_lines last = tile->carries[j];
        last.bytes += tile->sink == DMS_CARRIED ? DMS_LINE - last.fill : 0;     /* the end of a vector is pending */
        dms_finish_lines(&last);
    }
}

static void transpose_carried(matrices *m)
{
    for (uint64_t column = 0; column < m->to->count; column += m->tile->columns) {
        m->tile->columns = dms_smaller(m->to->count - column, m->tile->width);
        transpose_carried_columns(m, column);
    }
}

/* A tile has all rows. Columns are adjacent both in the target and in the staging memory. */
static void transpose_coalesced(matrices *m)
{
    dms_tile *const tile = m->tile;
    take_rows(m, 0);
    tile->carries[0] = dms_start_lines(m->to->begin + m->to_moved, tile->carries[0].bytes);
    for (uint64_t column = 0; column < m->to->count; column += tile->columns) {
        tile->columns = dms_smaller(m->to->count - column, tile->width);
        tile->to_offset = tile->carries[0].fill;
        transpose_at(m, 0, column);
    }
    dms_finish_lines(&tile->carries[0]);
}

static void transpose_all(matrices *m, void (*transpose_matrix)(matrices *m))
{
    uint64_t index[DMLSPLIT_MAX_RANK];
    const char *source = m->from->begin;
    char *target = m->to->begin;
    dms_first(m->around_count, index);
    do {
        m->from_moved = source - m->from->begin;
        m->to_moved = target - m->to->begin;
        transpose_matrix(m);
    } while (dms_next(m->around, m->around_count, index, &target, &source));
}

/* ---- One function for each kind of sink, so that no stack frame has the buffers of all ---- */

static DMS_NEVER_INLINE void store_all(matrices *m)
{
    char *from[DMS_TILE_ROWS], *to[DMS_TILE_COLUMNS];
    m->from_rows = list_addresses(m->from, from, DMS_TILE_ROWS);
    m->to_rows = list_addresses(m->to, to, DMS_TILE_COLUMNS);
    transpose_all(m, transpose_stored);
}

static DMS_NEVER_INLINE void coalesce_all(matrices *m)
{
    char *from[DMS_TILE_ROWS], *to[DMS_TILE_COLUMNS];
    _Alignas(DMS_LINE) char coalesced[DMS_MOST_COALESCED + 2 * DMS_LINE];
    dms_lines carry = {NULL, coalesced, 0, 0};
    dms_side columns = dms_space_out(coalesced, m->to->stride, m->to->count);
    m->from_rows = list_addresses(m->from, from, DMS_TILE_ROWS);
    m->tile->to = to;
    m->tile->carries = &carry;
    list_rows(&columns, 0, dms_smaller(m->to->count, m->tile->width), to);
    transpose_all(m, transpose_coalesced);
}

static DMS_NEVER_INLINE void carry_all(matrices *m)
{
    _Alignas(DMS_LINE) char lines[DMS_MOST_CARRIED * DMS_LINE];
    dms_lines carries[DMS_MOST_CARRIED];
    char *from[DMS_LINE];
    m->tile->carries = carries;
    memset(lines, 0, m->tile->width * DMS_LINE);        /* the first square loads these bytes, but does not store them */
    for (size_t j = 0; j < m->tile->width; j++)
        carries[j].bytes = lines + j * DMS_LINE;
    m->from_rows = list_addresses(m->from, from, DMS_LINE);
    transpose_all(m, transpose_carried);
}

void dms_transpose(const dms_transposer *transposer, size_t element_size, dms_side *from, dms_side *to, const dms_stores *stores, const dms_loop *around,
                   uint32_t around_count)
{
    dms_tile tile;
    shape_tile(&tile, transposer, element_size, from, to, stores);
    matrices m = {&tile, from, to, {NULL, 0, 0}, {NULL, 0, 0}, around, around_count, 0, 0};
    switch (tile.sink) {
    case DMS_CARRIED:
    case DMS_COLLECTED: carry_all(&m); break;
    case DMS_COALESCED: coalesce_all(&m); break;
    default: store_all(&m); break;
    }
}

/* ---- Nests ---- */

dms_matrix dms_find_matrix(const dms_nest *nest)
{
    dms_matrix m;
    m.rows = &nest->loops[nest->rank - 1];
    m.columns = &nest->loops[nest->columns];
    m.count = 0;
    for (uint32_t d = 0; d + 1 < nest->rank; d++)
        if (d != nest->columns)
            m.around[m.count++] = nest->loops[d];
    return m;
}

const char *dms_can_transpose(const dms_nest *nest)
{
    return nest->columns == DMS_NO_MATRIX ? "no matrix of 256 elements or more, of 1, 2, 4, 8 or 16 bytes each, is transposed" : NULL;
}

/* Returns the loop with its steps in reverse order, and moves both pointers to its new begin. */
static dms_loop reverse_loop(const dms_loop *loop, char **target, const char **source)
{
    const dms_loop reversed = {loop->size, -loop->target_stride, -loop->source_stride};
    *target += (int64_t)(loop->size - 1) * loop->target_stride;
    *source += (int64_t)(loop->size - 1) * loop->source_stride;
    return reversed;
}

void dms_transpose_nest(const dms_nest *nest, char *target, const char *source, const dms_transposer *transposer)
{
    const dms_matrix m = dms_find_matrix(nest);
    dms_loop columns = *m.columns;
    if (columns.source_stride < 0)
        columns = reverse_loop(&columns, &target, &source);
    dms_side from = dms_space_out((char *)(uintptr_t)source, m.rows->source_stride, m.rows->size);
    dms_side to = dms_space_out(target, columns.target_stride, columns.size);
    for (uint32_t d = 0; d < m.count; d++)
        to.distance_bits |= (uintptr_t)m.around[d].target_stride;
    dms_transpose(transposer, nest->run, &from, &to, &nest->stores, m.around, m.count);
}
