/* transpose_avx512.h - matrices turned by 512-bit vectors: the kernels columns_avx512 and transpose_avx512
 *
 * A square of one line of memory a row is turned within registers, so that each line of the source is read once and each line of the target is
 * written once, whole. Here 16 rows of dwords, A being four elements of row a: groups of four rows are turned in each lane, and the lanes of
 * the groups' first vectors make four columns, those of their second vectors the next four.
 *
 *     A0 A1 A2 A3        a0 b0 c0 d0 | a4 b4 c4 d4 | a8 ... | a12 ...        a0 b0 c0 d0 | e0 f0 g0 h0 | i0 ... | m0 ...       column 0
 *     B0 B1 B2 B3   ->   a1 b1 c1 d1 | a5 ...                           ->   a4 b4 c4 d4 | e4 ...                              column 4
 *     C0 C1 C2 C3        a2 b2 c2 d2 | a6 ...
 *     D0 D1 D2 D3        a3 b3 c3 d3 | a7 ...
 */
#include "../dms_transpose.h"

#include "lines_template.h"
#include "turn_lanes_template.h"

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

/* Rows ahead whose lines are fetched where a tile is many rows of one line: rows in memory of their own are not fetched by the CPU itself. */
enum { FETCHED = 32 };

static DMS_TARGET DMS_ALWAYS_INLINE void load_rows(vector *v, const square *s, size_t first, size_t count, size_t size, square_kind kind)
{
    for (size_t i = 0; i < count; i++) {
        if (kind < PARTIAL) {
            const char *const from = s->from[first + i] + s->from_offset;
            v[i] = load(from);
            if (kind != WHOLE)
                DMS_PREFETCH_AT(from, s->ahead);
            else if (s->rows > FETCHED + VECTOR)  /* no square has more rows than a vector bytes */
                DMS_PREFETCH_AT(s->from[first + i + FETCHED], s->from_offset);
        } else {
            v[i] = _mm512_setzero_si512();
            if (first + i < s->rows)
                v[i] = _mm512_maskz_loadu_epi8(first_bytes(s->columns * size), s->from[first + i] + s->from_offset);
        }
    }
}

/* Adds to the lines of a column. */
static DMS_TARGET DMS_ALWAYS_INLINE void carry_column(const square *s, size_t column, vector v, size_t bytes)
{
    dms_lines *lines = &s->carries[column];
    DMS_NAME(put_vector)(lines, v, rotation_by(lines->fill), bytes, true);
}

static DMS_TARGET DMS_ALWAYS_INLINE void store_column(const square *s, size_t column, vector v, size_t size, square_kind kind)
{
    const size_t bytes = s->rows * size < DMS_LINE ? s->rows * size : DMS_LINE;
    if (kind >= PARTIAL && column >= s->columns)
        return;
    switch (kind) {
    case WHOLE: store(s->to[column] + s->to_offset, v); break;
    case STREAMED: stream(s->to[column] + s->to_offset, v); break;
    case CARRIED: carry_column(s, column, v, DMS_LINE); break;
    case PARTIAL: _mm512_mask_storeu_epi8(s->to[column] + s->to_offset, first_bytes(bytes), v); break;
    default: carry_column(s, column, v, bytes); break;
    }
}

/* Stores lanes 0, 1, 2 and 3 of a, b, c and d as columns k, n + k, 2n + k and 3n + k. */
static DMS_TARGET DMS_ALWAYS_INLINE void store_lanes(const square *s, size_t k, vector a, vector b, vector c, vector d, size_t size, square_kind kind)
{
    const vector ab_even = _mm512_shuffle_i32x4(a, b, 0x88), ab_odd = _mm512_shuffle_i32x4(a, b, 0xdd);
    const vector cd_even = _mm512_shuffle_i32x4(c, d, 0x88), cd_odd = _mm512_shuffle_i32x4(c, d, 0xdd);
    const size_t n = 16 / size;
    store_column(s, k, _mm512_shuffle_i32x4(ab_even, cd_even, 0x88), size, kind);
    store_column(s, n + k, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0x88), size, kind);
    store_column(s, 2 * n + k, _mm512_shuffle_i32x4(ab_even, cd_even, 0xdd), size, kind);
    store_column(s, 3 * n + k, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0xdd), size, kind);
}

static DMS_TARGET DMS_ALWAYS_INLINE void turn_square(const square *s, size_t size, square_kind kind)
{
    const size_t n = 16 / size;
    vector v[4][16];
    for (size_t group = 0; group < 4; group++) {
        load_rows(v[group], s, group * n, n, size, kind);
        DMS_NAME(turn_lanes)(v[group], size);
    }
    for (size_t k = 0; k < n; k++)
        store_lanes(s, k, v[0][k], v[1][k], v[2][k], v[3][k], size, kind);
}

static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(turn_tile)(dms_tile *tile, size_t size)
{
    const size_t n = VECTOR / size;
    for (size_t row = 0; row < tile->rows; row += n)
        for (size_t column = 0; column < tile->columns; column += n) {
            const square s = {tile->from + row, tile->to + column, tile->from_offset + (int64_t)(column * size),
                              tile->to_offset + (int64_t)(row * size), tile->rows - row, tile->columns - column, tile->next,
                              tile->carries + column};
            const bool whole = s.rows >= n && s.columns >= n;
            if (dms_is_carried(tile) && whole)
                turn_square(&s, size, CARRIED);
            else if (dms_is_carried(tile))
                turn_square(&s, size, PARTIAL_CARRIED);
            else if (!whole)
                turn_square(&s, size, PARTIAL);
            else if (tile->strategy == DMS_SQUARES_STREAMED)
                turn_square(&s, size, STREAMED);
            else
                turn_square(&s, size, WHOLE);
            for (size_t k = 0; tile->claimed && k < n && k < s.columns; k++)
                DMS_CLAIM(s.to[k] + s.to_offset, 2 * DMS_LINE);
        }
    tile->to_offset += (int64_t)(tile->rows * size);
}

#define SQUARE VECTOR
#define STAGE dms_turn_avx2
#include "transpose_kernels.h"
