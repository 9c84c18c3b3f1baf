/* transpose_template.h - matrices turned inside registers: the kernels columns and transpose of an instruction set
 *
 * Included after vector_<isa>.h. A square has a vector of bytes in each row, and as many rows as these are elements. Sixteen bytes of a row are n elements;
 * n vectors hold n rows, a group. Interleaving the first half of the vectors with the second half moves the last bit of each element's row number
 * to the front of its column number; as many rounds as n has bits turn a group. Here n = 4, two rounds:
 *
 *     a0 a1 a2 a3        a0 c0 a1 c1        a0 b0 c0 d0
 *     b0 b1 b2 b3   ->   a2 c2 a3 c3   ->   a1 b1 c1 d1
 *     c0 c1 c2 c3        b0 d0 b1 d1        a2 b2 c2 d2
 *     d0 d1 d2 d3        b2 d2 b3 d3        a3 b3 c3 d3
 *
 * Wider vectors do this in each of their lanes of 16 bytes; the lanes of the groups' first vectors are columns 0, n ..., those of their second
 * vectors 1, n + 1 ... Here 16 rows in four groups, vectors of 64 bytes:
 *
 *     a0 b0 c0 d0 | a4 b4 c4 d4 | a8 ... | a12 ...        a0 b0 c0 d0 | e0 f0 g0 h0 | i0 ... | m0 ...       column 0
 *     e0 f0 g0 h0 | e4 ...                           ->   a4 b4 c4 d4 | e4 ...                              column 4
 *     i0 ...                                              a8 ...                                            column 8
 *
 * Past the caches go whole lines only: columns of squares where these are lines, else a turned tile that is collected behind what the tile before it
 * left over, and drained line by line.
 *
 *     row j of turned, before   ..ppp               p: carried, ..: not ours
 *     one tile later            ..pppttt|tttttttt|tt      t: turned; two lines are drained, two bytes carried
 */
#include "../dms_transpose.h"
#include "lines_template.h"

enum { GROUPS = VECTOR / 16 };

static DMS_TARGET DMS_ALWAYS_INLINE vector interleave(vector a, vector b, size_t size, bool high)
{
    switch (size) {
    case 1: return high ? UNPACK(hi, 8, a, b) : UNPACK(lo, 8, a, b);
    case 2: return high ? UNPACK(hi, 16, a, b) : UNPACK(lo, 16, a, b);
    case 4: return high ? UNPACK(hi, 32, a, b) : UNPACK(lo, 32, a, b);
    default: return high ? UNPACK(hi, 64, a, b) : UNPACK(lo, 64, a, b);
    }
}

/* One round: from and to are arrays of n vectors. */
static DMS_TARGET DMS_ALWAYS_INLINE void interleave_all(vector *to, const vector *from, size_t size)
{
    const size_t n = 16 / size;
    for (size_t k = 0; k < n / 2; k++) {
        to[2 * k] = interleave(from[k], from[k + n / 2], size, false);
        to[2 * k + 1] = interleave(from[k], from[k + n / 2], size, true);
    }
}

/* Turns a group in place. size is a constant, and the arrays are registers. */
static DMS_TARGET DMS_ALWAYS_INLINE void turn_group(vector *v, size_t size)
{
    const size_t n = 16 / size;
    vector t[16];
    if (n == 16) {                      /* 4 rounds; 3 for 8, 2 for 4, 1 for 2 */
        interleave_all(t, v, size);
        interleave_all(v, t, size);
    }
    if (n > 2) {
        interleave_all(t, v, size);
        interleave_all(v, t, size);
    }
    if (n == 8 || n == 2) {
        interleave_all(t, v, size);
        for (size_t k = 0; k < n; k++)
            v[k] = t[k];
    }
}

/* Part of a tile: its first rows x columns elements are there, with offsets that are those of its own corner. */
typedef struct square {
    const char *const *from;
    char *const *to;
    int64_t from_offset, to_offset;
    size_t rows, columns;
    int64_t ahead;                      /* how far it is to what is fetched meanwhile */
    dms_lines *carries;                 /* those of its columns, where carried */
} square;

/* What a square's code is made for. All of its rows and columns are there, and go through the caches, past them, or past them by way of what is
 * carried on; or some rows or columns are missing. */
typedef enum square_kind { WHOLE, STREAMED, CARRIED, PARTIAL, PARTIAL_CARRIED } square_kind;

/* What the CPU does not fetch by itself: of many rows of one line, the one so many rows ahead; else the next line of each row. Bytes of 2048 x 2048
 * took 3.5 to 4.6 times memcpy's time in place of 4.8, an NHWC view of bytes 2.9 in place of 4.1 (Zen 5). */
enum { FETCHED = 32 };

#if VECTOR == DMS_LINE

static DMS_TARGET DMS_ALWAYS_INLINE vector load_some(const char *from, size_t size)
{
    return _mm512_maskz_loadu_epi8(first_bytes(size), from);
}

static DMS_TARGET DMS_ALWAYS_INLINE void store_some(char *to, vector v, size_t size)
{
    _mm512_mask_storeu_epi8(to, first_bytes(size), v);
}

/* Adds to the lines of a column. */
static DMS_TARGET DMS_ALWAYS_INLINE void carry_column(dms_lines *lines, vector v, size_t size)
{
    DMS_NAME(put_vector)(lines, v, rotation_by(lines->fill), size, true);
}

#else

static DMS_TARGET DMS_ALWAYS_INLINE vector load_some(const char *from, size_t size)
{
    char bytes[VECTOR] = {0};
    dms_copy_short(bytes, from, size);
    return load(bytes);
}

static DMS_TARGET DMS_ALWAYS_INLINE void store_some(char *to, vector v, size_t size)
{
    char bytes[VECTOR];
    store(bytes, v);
    dms_copy_short(to, bytes, size);
}

#define carry_column(lines, v, size) ((void)(lines))    /* squares are no lines, and never carried */

#endif

static DMS_TARGET DMS_ALWAYS_INLINE vector load_row(const square *s, size_t row, size_t size, square_kind kind)
{
    if (kind >= PARTIAL)
        return row < s->rows ? load_some(s->from[row] + s->from_offset, s->columns * size < VECTOR ? s->columns * size : VECTOR)
                             : load_some(s->from[0] + s->from_offset, 0);
    const char *const from = s->from[row] + s->from_offset;
    if (kind != WHOLE)
        DMS_PREFETCH_AT(from, s->ahead);
    else if (s->rows > FETCHED + VECTOR)    /* no square has more rows than a vector bytes */
        DMS_PREFETCH_AT(s->from[row + FETCHED], s->from_offset);
    else
        DMS_PREFETCH_AT(from, DMS_LINE);
    return load(from);
}

static DMS_TARGET DMS_ALWAYS_INLINE void store_column(const square *s, size_t column, vector v, size_t size, square_kind kind)
{
    const size_t bytes = s->rows * size < VECTOR ? s->rows * size : VECTOR;
    if (kind >= PARTIAL && column >= s->columns)
        return;
    switch (kind) {
    case WHOLE: store(s->to[column] + s->to_offset, v); break;
    case STREAMED: stream(s->to[column] + s->to_offset, v); break;
    case PARTIAL: store_some(s->to[column] + s->to_offset, v, bytes); break;
    default: carry_column(&s->carries[column], v, bytes); break;
    }
}

static DMS_TARGET DMS_ALWAYS_INLINE void turn_square(const square *s, size_t size, square_kind kind)
{
    const size_t n = 16 / size;
    vector v[GROUPS][16], columns[GROUPS];
    for (size_t group = 0; group < GROUPS; group++) {
        for (size_t k = 0; k < n; k++)
            v[group][k] = load_row(s, group * n + k, size, kind);
        turn_group(v[group], size);
    }
    for (size_t k = 0; k < n; k++) {
        for (size_t group = 0; group < GROUPS; group++)
            columns[group] = v[group][k];
        turn_groups(columns);
        for (size_t lane = 0; lane < GROUPS; lane++)
            store_column(s, lane * n + k, columns[lane], size, kind);
    }
}

/* Rows that are a power of two apart share few sets of the cache, where they would evict each other before the last of their bytes is read: so
 * each row is read once, and whole. */
static DMS_TARGET void stage(dms_tile *tile)
{
    const size_t bytes = tile->columns * tile->element_size;
    for (size_t i = 0; i < tile->rows; i++) {
        const char *from = tile->from[i] + tile->from_offset;
        char *to = tile->staged + i * DMS_STAGED_PITCH;
        for (size_t at = 0; tile->strategy == DMS_STAGED_LINES && at < bytes; at += DMS_LINE)
            DMS_PREFETCH_AT(from + at, tile->next);
        if (bytes < VECTOR) {
            dms_copy_short(to, from, bytes);
            continue;
        }
        for (size_t at = 0; at < bytes - VECTOR; at += VECTOR)
            store(to + at, load(from + at));
        store(to + bytes - VECTOR, load(from + bytes - VECTOR));
    }
}

/* What the columns of the turned tile have of whole lines goes to memory, and their rest to the front. */
static DMS_TARGET void drain_columns(dms_tile *tile)
{
    for (size_t j = 0; j < tile->columns; j++) {
        DMS_NAME(drain_lines)(&tile->carries[j], tile->rows * tile->element_size);
        tile->to[j] = tile->carries[j].bytes + tile->carries[j].fill;
    }
}

static DMS_TARGET DMS_ALWAYS_INLINE void turn_at(dms_tile *tile, size_t row, size_t column, size_t size)
{
    const size_t n = VECTOR / size;
    const bool staged = dms_is_staged(tile);
    const square s = {(staged ? tile->staged_rows : tile->from) + row, tile->to + column,
                      (staged ? 0 : tile->from_offset) + (int64_t)(column * size), tile->to_offset + (int64_t)(row * size),
                      tile->rows - row, tile->columns - column, tile->next, tile->carries + column};
    const bool whole = s.rows >= n && s.columns >= n;
    if (VECTOR == DMS_LINE && tile->strategy == DMS_SQUARES_LINES && whole)
        turn_square(&s, size, CARRIED);
    else if (VECTOR == DMS_LINE && tile->strategy == DMS_SQUARES_LINES)
        turn_square(&s, size, PARTIAL_CARRIED);
    else if (!whole)
        turn_square(&s, size, PARTIAL);
    else if (VECTOR == DMS_LINE && tile->strategy == DMS_SQUARES_STREAMED)
        turn_square(&s, size, STREAMED);
    else
        turn_square(&s, size, WHOLE);
    if (tile->claimed)
        for (size_t k = 0; k < n && k < s.columns; k++)
            DMS_CLAIM(s.to[k] + s.to_offset, 2 * DMS_LINE);
}

/* Squares that fill the same lines of the target follow each other; from staged rows, which are cached, all those that fill the same rows. */
static DMS_TARGET DMS_ALWAYS_INLINE void turn_tile(dms_tile *tile, size_t size)
{
    const size_t n = VECTOR / size, block = dms_is_staged(tile) ? DMS_STAGED_ROWS : DMS_LINE / size;
    if (dms_is_staged(tile))
        stage(tile);
    for (size_t first = 0; first < tile->rows; first += block)
        for (size_t column = 0; column < tile->columns; column += n)
            for (size_t row = first; row < first + block && row < tile->rows; row += n)
                turn_at(tile, row, column, size);
    if (tile->strategy == DMS_STAGED_LINES)
        drain_columns(tile);
    else
        tile->to_offset += (int64_t)(tile->rows * size);
}

static DMS_TARGET void DMS_NAME(turn)(dms_tile *tile)
{
    switch (tile->element_size) {
    case 1: turn_tile(tile, 1); break;
    case 2: turn_tile(tile, 2); break;
    case 4: turn_tile(tile, 4); break;
    case 8: turn_tile(tile, 8); break;
    default: turn_tile(tile, 16); break;
    }
}

static const dms_turner turner = {DMS_NAME(turn), VECTOR};

const char *DMS_NAME(dms_accept_transpose)(const dms_nest *nest)
{
    return dms_refuse_transpose(nest);
}

DMS_TARGET void DMS_NAME(dms_run_transpose)(const dms_nest *nest, char *target, const char *source)
{
    dms_transpose(nest, target, source, &turner);
    LEAVE(dms_is_streamed(&nest->stores));
}

const char *DMS_NAME(dms_accept_columns)(const dmlsplit_plan *plan)
{
    return dms_refuse_columns(plan);
}

DMS_TARGET void DMS_NAME(dms_run_columns)(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    dms_transpose_columns(plan, buffers, first, last, &turner);
    LEAVE(dms_is_streamed(&plan->turns));
}
