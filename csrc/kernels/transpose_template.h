/* transpose_template.h - transposes in registers: the kernels columns and transpose of an instruction set
 *
 * Included after vector_<isa>.h. A square has one cache line in each row, and as many rows as a line has elements. Sixteen bytes hold n elements of a row; n
 * vectors hold n rows, a panel. Interleaving the first half of the vectors with the second half moves the last bit of each element's row number to the front
 * of its column number, so log2(n) rounds transpose a panel. Here n = 4, two rounds:
 *
 *     a0 a1 a2 a3        a0 c0 a1 c1        a0 b0 c0 d0
 *     b0 b1 b2 b3   ->   a2 c2 a3 c3   ->   a1 b1 c1 d1
 *     c0 c1 c2 c3        b0 d0 b1 d1        a2 b2 c2 d2
 *     d0 d1 d2 d3        b2 d2 b3 d3        a3 b3 c3 d3
 *
 * Wider vectors do this in each lane of 16 bytes: the lanes of the first vectors of all panels are columns 0, n ..., those of the second ones columns 1,
 * n + 1 ... Here 16 rows in four panels, with vectors of 64 bytes:
 *
 *     a0 b0 c0 d0 | a4 b4 c4 d4 | a8 ... | a12 ...        a0 b0 c0 d0 | e0 f0 g0 h0 | i0 ... | m0 ...       column 0
 *     e0 f0 g0 h0 | e4 ...                           ->   a4 b4 c4 d4 | e4 ...                              column 4
 *     i0 ...                                              a8 ...                                            column 8
 *
 * Shorter vectors are combined, so that each row of the target gets whole lines. When streaming, squares that are not whole cache lines of the target are
 * staged in slots, after the pending bytes of the square above; a line of each slot is streamed:
 *
 *     slot j   ..pppttt|tt                          p: pending, t: transposed, ..: not ours; a line is streamed, two bytes are pending
 */
#pragma once

#include "../dms_transpose.h"
#include "lines_template.h"

enum { PANELS = VECTOR / 16, LINE_VECTORS = DMS_LINE / VECTOR, FEW_LANES = 2, WIDE = 4 };

static DMS_TARGET DMS_ALWAYS_INLINE vector interleave(vector a, vector b, size_t size, bool high)
{
    switch (size) {
    case 1: return high ? UNPACK(hi, 8, a, b) : UNPACK(lo, 8, a, b);
    case 2: return high ? UNPACK(hi, 16, a, b) : UNPACK(lo, 16, a, b);
    case 4: return high ? UNPACK(hi, 32, a, b) : UNPACK(lo, 32, a, b);
    default: return high ? UNPACK(hi, 64, a, b) : UNPACK(lo, 64, a, b);
    }
}

/* Performs one round. from and to have n vectors. */
static DMS_TARGET DMS_ALWAYS_INLINE void interleave_all(vector *to, const vector *from, size_t size)
{
    const size_t n = 16 / size;
    DMS_UNROLLED
    for (size_t k = 0; k < n / 2; k++) {
        to[2 * k] = interleave(from[k], from[k + n / 2], size, false);
        to[2 * k + 1] = interleave(from[k], from[k + n / 2], size, true);
    }
}

/* Transposes a panel in place. size is a constant, so that the arrays are registers. */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_panel(vector *v, size_t size)
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
        for (size_t k = 0; k < n; k += 2) {     /* two per iteration: clang turns single copies into a call, which puts the arrays into memory */
            v[k] = t[k];
            v[k + 1] = t[k + 1];
        }
    }
}

typedef struct square {
    char *const *from, *const *to;
    int64_t from_offset, to_offset;
    size_t rows, columns;               /* in the tile, from the square's corner on */
    dms_lines *carries;
    int64_t next;                       /* of stacked squares of bytes: from each row to that of the next tile */
} square;

static DMS_TARGET DMS_ALWAYS_INLINE void store_lines(char *to, const vector *lines, size_t count, bool streamed)
{
    for (size_t i = 0; i < count * LINE_VECTORS; i++)
        if (streamed)
            stream(to + i * VECTOR, lines[i]);
        else
            store(to + i * VECTOR, lines[i]);
}

#if VECTOR == DMS_LINE

/* Loads less than a line. */
static DMS_TARGET DMS_ALWAYS_INLINE vector load_some(const char *from, size_t size)
{
    return _mm512_maskz_loadu_epi8(first_bytes(size), from);
}

static DMS_TARGET DMS_ALWAYS_INLINE void store_some(char *to, const vector *line, size_t size)
{
    _mm512_mask_storeu_epi8(to, first_bytes(size), *line);
}

#else

#define load_some(from, size) load(from)                /* squares are whole; see transpose_some */
#define store_some(to, line, size) store_lines(to, line, 1, false)

#endif

static DMS_TARGET DMS_ALWAYS_INLINE vector load_row(const square *s, size_t row, size_t first, size_t size, bool whole)
{
    const size_t there = whole || row < s->rows ? row : 0;      /* the bytes of other rows are not used */
    const char *const from = s->from[there] + s->from_offset + (int64_t)(first * size);
    return whole ? load(from) : load_some(from, s->columns * size);
}

#if VECTOR == DMS_LINE

/* Adds a whole column of a square to its stream, whose first line is stored: the end of the previous vector is pending. Pending vectors are adjacent and no
 * branch depends on them, so that gcc unrolls the loops around this: 0.8 to 0.9 of the time (Zen 5). */
static DMS_TARGET DMS_ALWAYS_INLINE void put_column(const square *s, size_t column, vector v)
{
    dms_lines *const w = &s->carries[column];
    char *const waiting = s->carries[0].bytes + column * DMS_LINE;
    const vector line = follow(load(waiting), v, w->fill);
    store(waiting, v);
    stream(w->line, line);
    w->line += DMS_LINE;
}

/* Adds the first size bytes of a column. Only the last ones of a stream are less than a vector; afterwards nothing is pending. */
static DMS_TARGET DMS_ALWAYS_INLINE void put_some(dms_lines *w, vector column, size_t size)
{
    const size_t end = w->fill + size;
    const vector line = follow(load(w->bytes), column, w->fill);
    if (w->begin == 0 && end >= DMS_LINE)
        stream(w->line, line);
    else
        _mm512_mask_storeu_epi8((void *)w->line, first_bytes(end) & ~first_bytes(w->begin), line);
    if (size == DMS_LINE) {
        store(w->bytes, column);
        w->begin = 0;
        w->line += DMS_LINE;
        return;
    }
    if (end > DMS_LINE)
        _mm512_mask_storeu_epi8((void *)(w->line + DMS_LINE), first_bytes(end - DMS_LINE), follow(column, column, w->fill));
    w->begin = w->fill = 0;
}

#endif

/* Stores a column: a line of each of `squares` squares, or a part of one line. */
static DMS_TARGET DMS_ALWAYS_INLINE void store_column(const square *s, size_t column, const vector *lines, size_t size, size_t squares, bool whole,
                                                      dms_sink sink)
{
    const size_t bytes = whole ? DMS_LINE : s->rows * size;
    if (!whole && column >= s->columns)
        return;
#if VECTOR == DMS_LINE
    if (sink == DMS_CARRIED && whole)
        put_column(s, column, *lines);
    else if (sink == DMS_CARRIED)
        put_some(&s->carries[column], *lines, bytes);
    else
#endif
    if (bytes == DMS_LINE)
        store_lines(s->to[column] + s->to_offset, lines, squares, sink == DMS_LINES);
    else
        store_some(s->to[column] + s->to_offset, lines, bytes);
}

/* Stores columns first + k, first + n + k ... of squares whose panels are transposed: the lanes of these columns are in vector k of each panel. */
static DMS_TARGET DMS_ALWAYS_INLINE void store_columns(const square *s, const vector *v, size_t k, size_t first, size_t size, size_t squares, bool whole,
                                                       dms_sink sink)
{
    const size_t n = 16 / size, vectors = squares * LINE_VECTORS;
    vector columns[PANELS], lines[PANELS][DMS_STACK * LINE_VECTORS];
    for (size_t i = 0; i < vectors; i++) {
        for (size_t panel = 0; panel < PANELS; panel++)
            columns[panel] = v[(i * PANELS + panel) * n + k];
        transpose_lanes(columns);
        for (size_t lane = 0; lane < PANELS; lane++)
            lines[lane][i] = columns[lane];
    }
    for (size_t lane = 0; lane < PANELS; lane++)
        store_column(s, first + lane * n + k, lines[lane], size, squares, whole, sink);
}

/* Transposes columns [first, first + VECTOR / size) of squares one below the other. v: registers for them, or memory if the loop over them is rolled. Stacked
 * squares have more rows than the hardware prefetches. The next tile of bytes is prefetched panel by panel: 0.75 to 0.95 of the time, all at once 0.95 to 1.1;
 * of 2 bytes 0.95 to 1.05 (Zen 4). */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_columns(const square *s, vector *v, size_t first, size_t size, size_t squares, bool whole, dms_sink sink,
                                                           bool rolled)
{
    const size_t n = 16 / size, vectors = squares * LINE_VECTORS;
    DMS_UNROLLED
    for (size_t i = 0; i < vectors * PANELS; i++) {
        for (size_t k = 0; k < n; k++)
            v[i * n + k] = load_row(s, i * n + k, first, size, whole);
        for (size_t k = 0; k < n && size == 1 && squares > 1 && (LINE_VECTORS == 1 || first == 0); k++)     /* first alone is no constant */
            DMS_PREFETCH_FAR((uintptr_t)s->from[i * n + k] + (uintptr_t)(s->from_offset + s->next));
        transpose_panel(v + i * n, size);
    }
    if ((sink == DMS_CARRIED) == whole) {       /* unrolled: 0.7 of the time; other whole squares up to 1.05 (Zen 5) */
        DMS_UNROLLED_LONG
        for (size_t k = 0; k < n; k++)
            store_columns(s, v, k, first, size, squares, whole, sink);
    } else if (rolled) {
        DMS_KEPT_ROLLED
        for (size_t k = 0; k < n; k++)
            store_columns(s, v, k, first, size, squares, whole, sink);
    } else {
        DMS_UNROLLED
        for (size_t k = 0; k < n; k++)
            store_columns(s, v, k, first, size, squares, whole, sink);
    }
}

/* Transposes columns [first, first + 16 / size) of a square with all rows, and stores those from `begin` on: the lanes of a vector are rows of as many panels. */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_lane(const square *s, size_t first, size_t begin, size_t size, dms_sink sink)
{
    const size_t n = 16 / size;
    vector v[LINE_VECTORS][16], line[LINE_VECTORS];
    for (size_t i = 0; i < LINE_VECTORS; i++) {
        for (size_t k = 0; k < n; k++) {
            const char *from[PANELS];
            for (size_t lane = 0; lane < PANELS; lane++)
                from[lane] = s->from[(i * PANELS + lane) * n + k] + s->from_offset + (int64_t)(first * size);
            v[i][k] = load_each(from);
        }
        transpose_panel(v[i], size);
    }
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < LINE_VECTORS; i++)
            line[i] = v[i][k];
        if (first + k >= begin)
            store_column(s, first + k, line, size, 1, true, sink);
    }
}

/* Transposes all columns of a square with all rows. */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_whole(const square *s, size_t size, dms_sink sink, bool rolled)
{
    if (VECTOR == 32 && size == 2 && sink == DMS_STORED) {    /* 16 vectors, which registers hold, rather than 32: 0.65 to 0.9 of the time (Zen 5) */
        for (size_t first = 0; first < DMS_LINE / size && first < s->columns; first += 16 / size)
            transpose_lane(s, first, first, size, sink);
        return;
    }
    vector v[DMS_LINE];
    for (size_t first = 0; first < DMS_LINE / size && first < s->columns; first += VECTOR / size)
        transpose_columns(s, v, first, size, 1, true, sink, rolled);
}

/* Copies a square of few rows or columns element by element, which is faster. Returns false if it has more. */
static DMS_ALWAYS_INLINE bool move_few(const square *s, size_t size)
{
    const size_t few = size == 1 ? 2 : 4;
    if (s->rows > few && s->columns > few)
        return false;
    for (size_t i = 0; i < s->rows; i++)
        for (size_t j = 0; j < s->columns; j++)
            memcpy(s->to[j] + s->to_offset + i * size, s->from[i] + s->from_offset + j * size, size);
    return true;
}

/* Transposes columns [first, first + VECTOR / size) of a square with fewer rows, but at least a panel. The last panel overlaps the one before. */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_panels(const square *s, size_t first, size_t size)
{
    const size_t n = 16 / size;
    for (size_t row = 0; row < s->rows; row += n) {
        const size_t top = s->rows - row < n ? s->rows - n : row;
        vector v[16];
        for (size_t k = 0; k < n; k++)
            v[k] = load(s->from[top + k] + s->from_offset + (int64_t)(first * size));
        transpose_panel(v, size);
        for (size_t k = 0; k < n; k++) {
            char *to[PANELS];
            for (size_t lane = 0; lane < PANELS; lane++)
                to[lane] = s->to[first + lane * n + k] + s->to_offset + (int64_t)(top * size);
            store_each(to, v[k]);
        }
    }
}

/* Transposes a square panel by panel, each of which the registers hold. */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_in_panels(const square *s, size_t size)
{
    for (size_t first = 0; first < DMS_LINE / size; first += VECTOR / size)
        transpose_panels(s, first, size);
}

/* True if a partial square consists of whole vectors and lanes, and masks are not faster: 50 rows of bytes took 1.25 times as long by lanes, 40 columns 1.3
 * times (AVX-512, Zen 5). Without masks the last lane of columns may overlap the one before: NHWC views of 34 to 70 columns of 1 byte, 24 to 50 of 2 and 26 of
 * 4 took 0.23 to 0.8 of the time (AVX2 and SSSE3, Zen 5). */
static DMS_ALWAYS_INLINE bool is_direct(const square *s, size_t size)
{
    const size_t side = DMS_LINE / size, lane = 16 / size;
    const bool masked = VECTOR == DMS_LINE;
    if (s->rows == side && !masked)
        return s->columns >= lane;
    if (s->rows == side)
        return s->columns % lane == 0 && s->columns <= FEW_LANES * lane;
    return s->rows >= lane && s->columns % (VECTOR / size) == 0 && !(masked && s->rows > 3 * lane);
}

/* Transposes a square that is_direct. */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_directly(const square *s, size_t size, dms_sink sink)
{
    square vectors = *s;
    vectors.columns -= s->columns % (VECTOR / size);
    if (s->rows < DMS_LINE / size) {
        for (size_t first = 0; first < s->columns; first += VECTOR / size)
            transpose_panels(s, first, size);
        return;
    }
    if (LINE_VECTORS > 1)               /* otherwise there are none */
        transpose_whole(&vectors, size, sink, false);
    for (size_t first = vectors.columns; first < s->columns; first += 16 / size)
        transpose_lane(s, first + 16 / size <= s->columns ? first : s->columns - 16 / size, first, size, sink);
}

#if VECTOR == DMS_LINE

/* Transposes a square with masks. A separate function, so that without optimization only one array at a time is on the stack. */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_masked(const square *s, size_t size, dms_sink sink)
{
    vector v[DMS_LINE];
    transpose_columns(s, v, 0, size, 1, false, sink, false);
}

/* Transposes a square whose lines are carried, or one that is_direct. */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_seldom(const square *s, size_t size, dms_sink sink)
{
    if (sink == DMS_CARRIED)
        transpose_masked(s, size, DMS_CARRIED);
    else
        transpose_directly(s, size, sink);
}

/* Not inlined: its stack frame made other squares slower. */
static DMS_TARGET DMS_NEVER_INLINE void transpose_aside(const square *s, size_t size, dms_sink sink)
{
    switch (size) {
    case 1: transpose_seldom(s, 1, sink); break;
    case 2: transpose_seldom(s, 2, sink); break;
    case 4: transpose_seldom(s, 4, sink); break;
    case 8: transpose_seldom(s, 8, sink); break;
    default: transpose_seldom(s, 16, sink); break;
    }
}

/* Transposes a partial square, or a whole one whose lines are carried. Masks took 1.1 to 1.7 times as long when this was not inlined, and 1.3 times when
 * the loops for carried lines were. */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_some(const square *s, size_t size, dms_sink sink)
{
    const square passed = *s;           /* a copy, so that the caller's stays in registers */
    if (sink == DMS_CARRIED || is_direct(s, size))
        transpose_aside(&passed, size, sink);
    else if (!move_few(s, size))
        transpose_masked(s, size, sink == DMS_LINES ? DMS_LINES : DMS_STORED);
}

#else

/* Transposes a partial square: whole lanes directly, other lanes through a whole square in memory. */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_part(const square *s, size_t size, dms_sink sink)
{
    _Alignas(DMS_LINE) char staged[DMS_LINE * VECTOR];      /* its rows, later its columns */
    char *from[DMS_LINE], *to[VECTOR];
    vector v[DMS_LINE];
    if (is_direct(s, size)) {
        transpose_directly(s, size, sink);
        return;
    }
    if (move_few(s, size))
        return;
    for (size_t i = 0; i < DMS_LINE / size; i++)
        from[i] = staged + i * VECTOR;
    for (size_t j = 0; j < VECTOR / size; j++)
        to[j] = staged + j * DMS_LINE;
    for (size_t first = 0, count; first < s->columns; first += count) {         /* as many columns as a vector has elements */
        const square whole = {from, to, 0, 0, DMS_LINE / size, VECTOR / size, NULL, 0};
        count = s->columns - first < VECTOR / size ? s->columns - first : VECTOR / size;
        for (size_t i = 0; i < s->rows; i++)
            dms_copy_short(from[i], s->from[i] + s->from_offset + first * size, count * size);
        transpose_columns(&whole, v, 0, size, 1, true, DMS_STORED, false);
        for (size_t j = 0; j < count; j++)
            if (s->rows * size == DMS_LINE && sink == DMS_LINES)
                DMS_NAME(stream_line)(s->to[first + j] + s->to_offset, to[j]);
            else
                dms_copy_short(s->to[first + j] + s->to_offset, to[j], s->rows * size);
    }
}

/* Not inlined: its stack frame made whole squares slower. */
static DMS_TARGET DMS_NEVER_INLINE void transpose_some(const square *s, size_t size, dms_sink sink)
{
    switch (size) {
    case 1: transpose_part(s, 1, sink); break;
    case 2: transpose_part(s, 2, sink); break;
    case 4: transpose_part(s, 4, sink); break;
    case 8: transpose_part(s, 8, sink); break;
    default: transpose_part(s, 16, sink); break;
    }
}

#endif

/* Prefetches the source rows of the next square, and the next target lines for writing. In the second-level cache, rows at power-of-two distances do not
 * evict each other. */
static DMS_ALWAYS_INLINE void prepare_lines(const dms_tile *tile, const square *s)
{
    const uintptr_t next = (uintptr_t)s->from_offset + (uintptr_t)tile->next;
    const size_t rows = tile->fetched ? s->rows : 0;
    if (tile->near)                     /* tested once: 0.95 of the time for 8 bytes */
        for (size_t i = 0; i < rows; i++)
            DMS_PREFETCH_NEAR((uintptr_t)s->from[i] + next);
    else
        for (size_t i = 0; i < rows; i += tile->every)
            DMS_PREFETCH_FAR((uintptr_t)s->from[i] + next);
    for (size_t j = 0; tile->claimed && j < s->columns; j++)
        DMS_CLAIM(s->to[j] + s->to_offset, DMS_LINE);
}

static DMS_TARGET DMS_ALWAYS_INLINE void transpose_square(dms_tile *tile, size_t row, size_t column, size_t columns, size_t size)
{
    const size_t side = DMS_LINE / size, rows = tile->rows - row;
    const square s = {tile->from + row, tile->to + column, tile->from_offset + (int64_t)(column * size), tile->to_offset + (int64_t)(row * size),
                      rows < side ? rows : side, columns, tile->sink == DMS_CARRIED ? tile->carries + column : NULL, 0};
    prepare_lines(tile, &s);
    if (s.rows < side || s.columns != side || tile->sink == DMS_CARRIED)        /* a constant number of columns: 0.77 of the time for bytes (SSSE3, Zen 5) */
        transpose_some(&s, size, tile->sink);
    else if (VECTOR == 16 && size < WIDE && !tile->crowded)
        transpose_in_panels(&s, size);
    else if (size < WIDE || VECTOR < DMS_LINE)
        transpose_whole(&s, size, DMS_STORED, false);
}

/* Prefetches the lines of the square at this row and offset of the tile or, if the row is past its end, of the next tile. */
static DMS_ALWAYS_INLINE void prefetch_below(const dms_tile *tile, size_t row, int64_t offset, size_t side)
{
    const bool is_next = row >= tile->rows;
    const size_t first = is_next ? row - tile->rows : row;
    const uintptr_t at = (uintptr_t)offset + (is_next ? (uintptr_t)tile->next : 0);
    for (size_t i = first; first + side <= tile->rows && i < first + side; i++)
        DMS_PREFETCH_NEAR((uintptr_t)tile->from[i] + at);
}

/* Transposes the whole squares of rows [0, rows) and columns [0, columns); the last ones overlap earlier ones if these are not multiples. A loop that does
 * nothing else: 0.75 to 0.9 of the time of small matrices of 4 and 8 bytes; of 2 bytes 1.1 (AVX-512, Zen 4).
 *
 * behind: each square is transposed before lines of the next tile are prefetched, which would evict those that it loads, and vectors of 64 bytes of wide
 * elements are stored by a rolled loop: NHWC views of 256, 768 and 1280 channels took 0.77 to 1.02 of the time, by AVX2 0.78 to 1.06, by SSSE3 0.83 to 1.02
 * (Zen 5). */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_inside(const dms_tile *tile, size_t rows, size_t columns, size_t size, dms_sink sink, bool behind)
{
    const size_t side = DMS_LINE / size;
    const bool rolled = behind && size >= WIDE && VECTOR == DMS_LINE;
    for (size_t column = 0; column < columns; column += side) {
        const size_t first = column + side <= columns ? column : columns - side;
        for (size_t row = 0; row < rows; row += side) {
            const size_t top = row + side <= rows ? row : rows - side;
            const square s = {tile->from + top, tile->to + first, tile->from_offset + (int64_t)(first * size), tile->to_offset + (int64_t)(top * size),
                              side, side, sink == DMS_CARRIED ? tile->carries + first : NULL, 0};
            if (sink == DMS_STORED && tile->below > 0)
                prefetch_below(tile, top + tile->below, s.from_offset, side);
            if (!behind)
                prepare_lines(tile, &s);
            transpose_whole(&s, size, sink, rolled);
            if (behind)
                prepare_lines(tile, &s);
        }
    }
}

#if VECTOR == DMS_LINE / 2

/* Where lines are gathered: one half of the memory waits while the other one is filled. */
typedef struct gatherer {
    _Alignas(DMS_LINE) char memory[2][DMS_LINE / 2 * (DMS_GATHERED_HIGH + 1) * DMS_LINE];    /* of 2 bytes; others need less */
    char *to[2][DMS_LINE];
} gatherer;

/* Gathered lines: `bytes` of each row of `to`, at to[j] + offset, wait at from + j * pitch. */
typedef struct gathered_lines {
    char *const *to;
    int64_t offset;
    const char *from;
    size_t pitch, bytes;
} gathered_lines;

/* Streams rows [first, last) of gathered lines. */
static DMS_TARGET DMS_ALWAYS_INLINE void stream_gathered(const gathered_lines *g, size_t first, size_t last)
{
    for (size_t j = first; j < last; j++) {
        char *const to = g->to[j] + g->offset;
        const char *const from = g->from + j * g->pitch;
        for (size_t k = 0; k < g->bytes; k += DMS_LINE)
            DMS_NAME(stream_line)(to + k, from + k);
    }
}

/* Transposes the whole squares of rows [0, rows) and columns [0, columns). The lines of some squares, one below the other, are gathered while those of the
 * squares before them are streamed: lines that are streamed all at once keep stores of the next squares waiting. */
static DMS_TARGET DMS_ALWAYS_INLINE void gather_squares(gatherer *g, const dms_tile *tile, size_t rows, size_t columns, size_t size)
{
    const size_t side = DMS_LINE / size, lines = size == 1 ? DMS_GATHERED_OF_BYTES : DMS_GATHERED_HIGH, high = lines * side, pitch = (lines + (size > 1)) * DMS_LINE;
    gathered_lines waiting = {NULL, 0, NULL, pitch, 0};
    for (size_t j = 0; j < 2 * side; j++)
        g->to[j / side][j % side] = g->memory[j / side] + j % side * pitch;
    for (size_t column = 0, now = 0; column < columns; column += side)
        for (size_t top = 0; top < rows; top += high, now = 1 - now) {
            const size_t count = (rows - top < high ? rows - top : high) / side, left = waiting.bytes > 0 ? side : 0;
            for (size_t i = 0; i < count; i++) {
                const square s = {tile->from + top + i * side, g->to[now], tile->from_offset + (int64_t)(column * size), (int64_t)(i * DMS_LINE), side, side,
                                  NULL, 0};
                prepare_lines(tile, &s);
                transpose_whole(&s, size, DMS_STORED, false);
                stream_gathered(&waiting, left * i / count, left * (i + 1) / count);
            }
            waiting = (gathered_lines){tile->to + column, tile->to_offset + (int64_t)(top * size), g->memory[now], pitch, count * DMS_LINE};
        }
    stream_gathered(&waiting, 0, waiting.bytes > 0 ? side : 0);
}

/* Not inlined: other tiles have smaller stack frames. */
static DMS_TARGET DMS_NEVER_INLINE void transpose_gathered(const dms_tile *tile, size_t rows, size_t columns)
{
    gatherer g;
    switch (tile->element_size) {
    case 1: gather_squares(&g, tile, rows, columns, 1); break;
    case 2: gather_squares(&g, tile, rows, columns, 2); break;
    case 4: gather_squares(&g, tile, rows, columns, 4); break;
    case 8: gather_squares(&g, tile, rows, columns, 8); break;
    default: gather_squares(&g, tile, rows, columns, 16); break;
    }
}

#else

#define transpose_gathered(tile, rows, columns) ((void)0)      /* lines are not gathered: see shape_streamed */

#endif

/* `count` rows or columns at the end of a tile, from `begin` on, which may overlap rows or columns that are already transposed; begin is SIZE_MAX if there are
 * none. */
typedef struct last_part {
    size_t begin, count;
} last_part;

/* Returns a whole square or vector at the end, or a lane if that is enough; begin is SIZE_MAX if there is none. Fewer remaining rows or columns than `least` are
 * copied by element; more than FEW_LANES lanes of a partial square use masks. */
static DMS_ALWAYS_INLINE last_part find_last(size_t count, size_t whole, size_t lane, size_t least)
{
    const bool masked = count < whole && count > FEW_LANES * lane;
    const size_t left = count % whole, part = masked || (left > lane && count >= whole) ? whole : lane;
    const last_part last = {count >= part && left % part >= least ? count - part : SIZE_MAX, part};
    return last;
}

/* True if a whole square ends where the tile does, and overlaps the one before. */
static DMS_ALWAYS_INLINE bool is_whole(const last_part *last, size_t side)
{
    return last->begin != SIZE_MAX && last->count == side;
}

/* Transposes a tile, column by column of squares. Streamed squares never overlap: each line is written once. */
static DMS_TARGET DMS_ALWAYS_INLINE void transpose_tile(dms_tile *tile, size_t size)
{
    const size_t side = DMS_LINE / size, narrow = VECTOR / size, lane = 16 / size;
    const bool overlap = tile->sink <= DMS_STACKED;
    const last_part none = {SIZE_MAX, LINE_VECTORS > 1 ? lane : side};
    const last_part last_rows = overlap && tile->rows > side ? find_last(tile->rows, side, lane, 2) : none;
    /* A single column by a lane: NHWC views of 9 columns of 2 and 4 bytes took 0.6 to 0.75 of the time (AVX2 and SSSE3, Zen 5). */
    const last_part last_columns = overlap ? find_last(tile->columns, narrow, lane, VECTOR == DMS_LINE ? 2 : 1) : none;
    const bool past = tile->sink == DMS_LINES || tile->sink == DMS_CARRIED;
    const bool wide = size >= WIDE && (VECTOR == DMS_LINE || tile->below > 0);
    const size_t inside = (!wide && !past) || (tile->sink == DMS_CARRIED && !tile->begun) ? 0 : is_whole(&last_rows, side) ? tile->rows : tile->rows / side * side;
    const size_t inside_columns = is_whole(&last_columns, side) ? tile->columns : tile->columns / side * side;
    if (tile->sink == DMS_LINES && tile->gathered)
        transpose_gathered(tile, inside, inside_columns);
    else if (tile->sink == DMS_LINES && tile->behind)
        transpose_inside(tile, inside, inside_columns, size, DMS_LINES, true);
    else if (tile->sink == DMS_LINES)
        transpose_inside(tile, inside, inside_columns, size, DMS_LINES, false);
    else if (tile->sink == DMS_CARRIED)
        transpose_inside(tile, inside, inside_columns, size, DMS_CARRIED, false);
    else if (wide)
        transpose_inside(tile, inside, inside_columns, size, DMS_STORED, false);
    for (size_t column = 0, columns; column < tile->columns; column += columns) {
        const size_t left = tile->columns - column;
        columns = left >= side ? side : overlap && left >= last_columns.count ? left / last_columns.count * last_columns.count : left;
        if (column > last_columns.begin) {
            column = last_columns.begin;
            columns = last_columns.count;
        }
        for (size_t row = column + columns <= inside_columns ? inside : 0; row < tile->rows; row += side)
            transpose_square(tile, row < last_rows.begin ? row : last_rows.begin, column, columns, size);
    }
}

/* Transposes a whole stacked tile. Not inlined: its stack frame made other tiles slower. */
static DMS_TARGET DMS_NEVER_INLINE void transpose_stack(dms_tile *tile)
{
    const square s = {tile->from, tile->to, tile->from_offset, tile->to_offset, tile->rows, tile->columns, NULL, tile->next};
    vector v[DMS_STACK * DMS_LINE];
    for (size_t first = 0; first < tile->columns; first += VECTOR / tile->element_size)
        if (tile->element_size == 1)
            transpose_columns(&s, v, first, 1, DMS_STACK, true, DMS_STORED, false);
        else
            transpose_columns(&s, v, first, 2, DMS_STACK, true, DMS_STORED, false);
}

static DMS_TARGET DMS_NEVER_INLINE void transpose_squares(dms_tile *tile)
{
    const bool stacked = tile->sink == DMS_STACKED && tile->rows == tile->height && tile->columns == tile->width;
    switch (stacked ? 0 : tile->element_size) {
    case 0: transpose_stack(tile); break;
    case 1: transpose_tile(tile, 1); break;
    case 2: transpose_tile(tile, 2); break;
    case 4: transpose_tile(tile, 4); break;
    case 8: transpose_tile(tile, 8); break;
    default: transpose_tile(tile, 16); break;
    }
}

/* Transposes a tile one square high through slots. A whole square is transposed before its lines are streamed, because a load of bytes that several stores
 * have just written stalls. */
static DMS_TARGET void transpose_collected(dms_tile *tile)
{
    _Alignas(2 * DMS_LINE) char slots[DMS_LINE][2 * DMS_LINE];      /* each in one page: see dms_left_out */
    char *to[DMS_LINE];
    const size_t bytes = tile->rows * tile->element_size;
    dms_tile squares = *tile;
    DMS_ASSERT((uintptr_t)slots % sizeof slots[0] == 0);
    squares.to = to;
    for (size_t column = 0; column < tile->columns; column += squares.columns) {
        dms_lines *const carries = tile->carries + column;
        squares.columns = dms_smaller(tile->columns - column, tile->side);
        for (size_t j = 0; j < squares.columns; j++) {
            DMS_NAME(copy_line)(slots[j], carries[j].bytes);
            to[j] = slots[j] + carries[j].fill;
        }
        transpose_squares(&squares);
        for (size_t j = 0; j < squares.columns; j++) {
            const size_t end = carries[j].fill + bytes;
            carries[j].fill = (uint32_t)(end % DMS_LINE);
            DMS_NAME(copy_line)(carries[j].bytes, slots[j] + (end - end % DMS_LINE));
            if (end >= DMS_LINE) {
                DMS_NAME(store_first)(&carries[j], slots[j]);
                carries[j].line += DMS_LINE;
            }
        }
        squares.from_offset += (int64_t)(squares.columns * tile->element_size);
    }
}

#if VECTOR < DMS_LINE

/* Copies a tile to where its rows share no cache sets, and transposes it from there. The next tile is prefetched meanwhile: from memory 0.55 to 1 of the time,
 * within the caches up to 1.06 (Zen 5). */
static DMS_TARGET DMS_NEVER_INLINE void transpose_staged(dms_tile *tile)
{
    enum { PITCH = DMS_STAGED_WIDE + DMS_LINE };
    _Alignas(DMS_LINE) char staged[DMS_LINE * PITCH];
    char *from[DMS_LINE];
    const size_t bytes = tile->columns * tile->element_size;
    dms_tile squares = *tile;
    DMS_ASSERT(tile->rows <= DMS_LINE && bytes <= DMS_STAGED_WIDE);
    squares.from = from;
    squares.from_offset = 0;
    squares.fetched = false;
    for (size_t i = 0; i < tile->rows; i++) {
        const char *const row = tile->from[i] + tile->from_offset;
        from[i] = staged + i * PITCH;
        for (size_t line = 0; line < bytes; line += DMS_LINE)
            DMS_PREFETCH_FAR((uintptr_t)(row + line) + (uintptr_t)tile->next);
        if (bytes < VECTOR) {
            dms_copy_short(from[i], row, bytes);
            continue;
        }
        for (size_t at = 0; at < bytes - VECTOR; at += VECTOR)
            store(from[i] + at, load(row + at));
        store(from[i] + bytes - VECTOR, load(row + bytes - VECTOR));
    }
    transpose_squares(&squares);
}

#else

#define transpose_staged(tile) ((void)0)        /* tiles are not staged: see shape_stored */

#endif

static DMS_TARGET void DMS_NAME(transpose)(dms_tile *tile)
{
    if (tile->staged) {
        transpose_staged(tile);
        return;
    }
    if (tile->sink == DMS_COLLECTED)
        transpose_collected(tile);
    else
        transpose_squares(tile);
    if (tile->sink == DMS_COALESCED)
        DMS_NAME(drain_lines)(tile->carries, tile->columns * tile->rows * tile->element_size);
}

static const dms_transposer transposer = {DMS_NAME(transpose), VECTOR};

DMS_TARGET void DMS_NAME(dms_run_transpose)(const dms_nest *nest, char *target, const char *source)
{
    dms_transpose_nest(nest, target, source, &transposer);
}

DMS_TARGET void DMS_NAME(dms_run_columns)(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    dms_transpose_columns(plan, buffers, first, last, &transposer);
}
