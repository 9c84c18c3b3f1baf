/* qwords_avx512.h - rows of 64 bytes, cut into 2 or 3 parts of whole qwords, such as 1 + 2 + 5
 *
 * A split reads eight rows at once, which make eight vectors of the parts; each is permuted from the rows that have its qwords. Here parts of 1 and 7 qwords:
 *
 *     row 0  a0 b0 b1 b2 b3 b4 b5 b6        part a  a0 a8 ...             from all rows
 *     row 1  a8 b8 b9 ...                   part b  b0 b1 b2 b3 b4 b5 b6 b8    from rows 0 and 1
 *                                                   b9 ...                     from rows 1 and 2
 *
 * A join loads each piece to its place in the row, by masks.
 */
#include "carried_avx512.h"

enum { ROWS = 8 };                      /* of a block: whole vectors in every part */

/* Returns a row of a block: a register if the rows are held in registers, otherwise it is loaded. */
static DMS_TARGET DMS_ALWAYS_INLINE vector row_of(const char *rows, const vector *held, size_t row)
{
    return held != NULL ? held[row] : load(rows + row * DMS_LINE);
}

/* Returns vector `index` of a part that begins at qword `part_begin` of each row. width (in qwords), part_begin and index are constants. */
static DMS_TARGET DMS_ALWAYS_INLINE vector gather_qwords(const char *rows, const vector *held, size_t width, size_t part_begin, size_t index)
{
    const size_t begin = ROWS * index;  /* first qword of the vector in the part */
#define COLUMN(t) (long long)(part_begin + (begin + (t)) % width)
    const __m512i columns = _mm512_setr_epi64(COLUMN(0), COLUMN(1), COLUMN(2), COLUMN(3), COLUMN(4), COLUMN(5), COLUMN(6), COLUMN(7));
    vector v = _mm512_permutexvar_epi64(columns, row_of(rows, held, begin / width));
    DMS_UNROLLED_LONG
    for (size_t r = begin / width + 1; r * width < begin + ROWS; r++)
        v = _mm512_mask_permutexvar_epi64(v, (__mmask8)(0xff << (r * width - begin)), columns, row_of(rows, held, r));
    return v;
}

static DMS_TARGET DMS_ALWAYS_INLINE void put_line(char **to, vector line, dms_regime regime)
{
    if (regime == DMS_CLAIMED)
        DMS_CLAIM(*to, DMS_CLAIMED_AHEAD);
    if (regime == DMS_STREAMED)
        stream(*to, line);
    else
        store(*to, line);
    *to += DMS_LINE;
}

/* regime is a constant: a test for each line took a quarter longer when lines are claimed. */
static DMS_TARGET DMS_ALWAYS_INLINE void put_block(carried *to, const vector *v, size_t a, size_t b, dms_regime regime)
{
    DMS_UNROLLED_LONG
    for (size_t i = 0; i < ROWS; i++)
        put_line(&to[i < a ? 0 : i < a + b ? 1 : 2].line, v[i], regime);
}

/* Splits blocks of eight rows, whose stores are not plain. The widths of the first two parts are constants, and so is that of the third one, if any. */
static DMS_TARGET DMS_ALWAYS_INLINE void split_blocks(const dms_channels *c, const dms_stores *stores, carried *given, bool ragged, size_t a, size_t b)
{
    const size_t begins[] = {0, a, a + b, ROWS}, parts = a + b < ROWS ? 3 : 2;
    const char *from = c->whole;
    const dms_regime regime = stores->regime;
    const uintptr_t ahead = dms_lines_ahead(stores, true);
    carried to[] = {given[0], given[1], given[parts - 1]};
    for (uint64_t left = c->rows; left > 0; left -= ROWS, from += ROWS * DMS_LINE) {
        vector v[ROWS];
        for (size_t i = 0; i < ROWS && regime == DMS_STREAMED; i++) {
            DMS_PREFETCH_AT(from + i * DMS_LINE, ahead);
            DMS_FETCH_PAGE(from + i * DMS_LINE, stores);
        }
        DMS_UNROLLED_LONG
        for (size_t i = 0; i < ROWS; i++) {
            const size_t part = i < a ? 0 : i < a + b ? 1 : 2;
            v[i] = gather_qwords(from, NULL, begins[part + 1] - begins[part], begins[part], i - begins[part]);
        }
        DMS_UNROLLED_LONG
        for (size_t i = 0; i < ROWS && ragged; i++) {       /* load all before storing: alternating took 1.4 times as
                                                               long */
            carried *const w = &to[i < a ? 0 : i < a + b ? 1 : 2];
            v[i] = carry(v[i], w->rotation, w->filled, &w->waiting);
        }
        if (regime == DMS_STREAMED)
            put_block(to, v, a, b, DMS_STREAMED);
        else
            put_block(to, v, a, b, DMS_CLAIMED);
    }
    for (size_t part = 0; part < parts; part++)
        given[part] = to[part];
}

/* The same by plain stores wherever the parts begin, which need no registers for what is carried: these hold the rows. Splits into three parts of 16 to 900 KB
 * took 0.6 to 0.75 of the time (Intel). */
static DMS_TARGET DMS_ALWAYS_INLINE void split_plainly(const dms_channels *c, carried *given, size_t a, size_t b)
{
    const size_t begins[] = {0, a, a + b, ROWS}, parts = a + b < ROWS ? 3 : 2;
    const char *from = c->whole;
    char *to[] = {given[0].line, given[1].line, given[parts - 1].line};
    for (uint64_t left = c->rows; left > 0; left -= ROWS, from += ROWS * DMS_LINE) {
        vector held[ROWS];
        DMS_UNROLLED
        for (size_t i = 0; i < ROWS; i++)
            held[i] = load(from + i * DMS_LINE);
        DMS_UNROLLED_LONG
        for (size_t i = 0; i < ROWS; i++) {
            const size_t part = i < a ? 0 : i < a + b ? 1 : 2;
            store(to[part] + (i - begins[part]) * DMS_LINE, gather_qwords(from, held, begins[part + 1] - begins[part], begins[part], i - begins[part]));
        }
        for (size_t part = 0; part < parts; part++)
            to[part] += (begins[part + 1] - begins[part]) * DMS_LINE;
    }
    for (size_t part = 0; part < parts; part++)
        given[part].line = to[part];
}

static DMS_TARGET void split_rows(const dms_channels *c, const dms_stores *stores, carried *to, bool ragged)
{
    switch (c->widths[0] + c->widths[1] / 8) {
#define CUT(a, b) case 8 * (a) + (b): if ((a) + (b) <= ROWS) split_blocks(c, stores, to, ragged, a, b); break;
#define CUTS(a) CUT(a, 1) CUT(a, 2) CUT(a, 3) CUT(a, 4) CUT(a, 5) CUT(a, 6) CUT(a, 7)
        CUTS(1) CUTS(2) CUTS(3) CUTS(4) CUTS(5) CUTS(6) CUTS(7)
    default: break;
    }
}
#undef CUT

static DMS_TARGET void split_rows_plainly(const dms_channels *c, carried *to)
{
    switch (c->widths[0] + c->widths[1] / 8) {
#define CUT(a, b) case 8 * (a) + (b): if ((a) + (b) <= ROWS) split_plainly(c, to, a, b); break;
        CUTS(1) CUTS(2) CUTS(3) CUTS(4) CUTS(5) CUTS(6) CUTS(7)
    default: break;
    }
}

/* Joins blocks of eight rows. Loads begin before the pieces; masks keep those bytes from being read. regime is a constant. */
static DMS_TARGET DMS_ALWAYS_INLINE void join_blocks(const dms_channels *p, carried *given, bool ragged, dms_regime regime)
{
    const size_t third = p->count - 1;  /* the second one again if there are two; its mask is then empty */
    const size_t step_a = p->widths[0], step_b = p->widths[1], step_c = p->widths[third];
    const __mmask8 not_a = (__mmask8)(0xff << step_a / 8), not_b = (__mmask8)(0xff << (step_a + step_b) / 8);
    uintptr_t a = (uintptr_t)p->parts[0], b = (uintptr_t)p->parts[1] - p->row_begins[1], c = (uintptr_t)p->parts[third] - p->row_begins[third];
    carried to = *given;
    for (uint64_t left = p->rows; left > 0; left -= ROWS) {
        for (size_t i = 0; i < p->count && regime == DMS_STREAMED; i++)
            for (size_t line = 0; line < ROWS * p->widths[i]; line += DMS_LINE)
                DMS_PREFETCH_AT(p->parts[i] + (p->rows - left) * p->widths[i] + line, DMS_NEAR_AHEAD);
        for (int row = 0; row < ROWS; row++, a += step_a, b += step_b, c += step_c) {
            vector v = _mm512_maskz_loadu_epi64((__mmask8)~not_a, (const void *)a);
            v = _mm512_mask_loadu_epi64(v, (__mmask8)(not_a & ~not_b), (const void *)b);
            v = _mm512_mask_loadu_epi64(v, not_b, (const void *)c);
            put_line(&to.line, ragged ? carry(v, to.rotation, to.filled, &to.waiting) : v, regime);
        }
    }
    *given = to;
}

static DMS_TARGET void copy_qword_blocks(const dms_channels *c, const void *tables, bool split, const dms_stores *stores, carried *to, bool ragged)
{
    (void)tables;
    if (split && stores->regime == DMS_PLAIN)
        split_rows_plainly(c, to);
    else if (split)
        split_rows(c, stores, to, ragged);
    else if (stores->regime == DMS_STREAMED)
        join_blocks(c, to, ragged, DMS_STREAMED);
    else if (stores->regime == DMS_CLAIMED)
        join_blocks(c, to, ragged, DMS_CLAIMED);
    else
        join_blocks(c, to, false, DMS_PLAIN);
}

const char *dms_can_qwords_avx512(const dmlsplit_plan *plan)
{
    const char *refusal = dms_can_packed_rows(plan);
    const dms_space *space = &plan->space;
    uint64_t bits = 0;
    if (refusal != NULL)
        return refusal;
    for (uint64_t i = 0; i < space->operand_count; i++)
        bits |= space->operands[i].length * space->element_size;
    if (space->operands[0].length * space->element_size != DMS_LINE || bits % 8 != 0 || dms_full_parts(plan) > 3)
        return "rows are not 64 bytes in 2 or 3 pieces of whole qwords";
    return NULL;
}

void dms_copy_qwords_avx512(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    copy_carried(c, tables, split, ROWS, stores, stores->regime != DMS_PLAIN, dms_copy_channels, copy_qword_blocks);
}
